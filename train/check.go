package train

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"overcomplete/model"
	"overcomplete/vectors"
)

// The paper's trainer is made for vectors with a mean norm of about 3: a code cannot
// exceed η√t after t epochs, so that λ means something else on others.
const leastNorm, mostNorm = 1.5, 9

// checkScale warns of vectors that are larger or smaller.
func checkScale(x *vectors.Dense, o Options) {
	var norms float64
	for i := range x.Len() {
		norms += math.Sqrt(squares(x.Row(i)))
	}
	if norm := norms / float64(x.Len()); norm < leastNorm || norm > mostNorm {
		o.note("warning: the vectors' mean norm is %.3g, and λ and the rate of the recipe paper are for about 3: scale them, or use the recipe best, which takes any", norm)
	}
}

// ErrNothingActive is what a training ends with that came to nothing.
var ErrNothingActive = errors.New("all codes are zero: lower --lambda or --sparsity")

// mostUnused is the share of dimensions that may go unused without a warning.
const mostUnused = 0.2

// CheckCodes tells of codes that were made with a dictionary of the recipe "best" and are not
// as they should be: by notes, if note is not nil, and by ErrNothingActive where all are zero.
// [Fit] does so itself.
func CheckCodes(i model.Info, note func(line string)) error {
	h, best := i.Training.Recipe.(model.Best)
	e, o := i.Encoding, Options{Note: note}
	if !best || e == nil {
		return errors.New("train: no codes with a dictionary of the recipe best")
	}
	if e.L1 == 0 {
		return ErrNothingActive
	}
	if unused := float64(e.UnusedAtoms) / float64(h.Atoms); unused > mostUnused {
		o.note("warning: %.0f %% of the dimensions are not used by any word: lower --atoms", 100*unused)
	}
	if wanted := sparsity(h.Common); e.Sparsity > wanted+SparsityTolerance {
		o.note("warning: %.4g %% of the codes are zero, more than the %.4g %% that were asked for: lower --lambda", 100*e.Sparsity, 100*wanted)
	}
	return nil
}

// checkResult warns of a training that ended badly.
func checkResult(i model.Info, o Options) {
	epochs := i.Training.Epochs
	last := epochs[len(epochs)-1]
	lowest := slices.MinFunc(epochs, func(a, b model.Epoch) int { return cmp.Compare(a.Error, b.Error) })
	const rise = 1.25
	unused := float64(last.UnusedAtoms) / float64(i.Training.Recipe.Base().Atoms)
	if unused > mostUnused {
		o.note("warning: %.0f %% of the dimensions are not used by any word: lower --lambda or --atoms, or use the recipe best", 100*unused)
	}
	// Codes get sparser from epoch to epoch, which alone makes the error rise.
	if last.Error > rise*lowest.Error && last.Sparsity <= lowest.Sparsity {
		o.note("warning: the error has risen from %.4g to %.4g: use fewer --epochs or a lower --rate, or the recipe best", lowest.Error, last.Error)
	}
}
