package train

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/vectors"
)

const (
	// fewestRows is how many rows a batch has at least: each moves all atoms, which takes
	// as long as encoding some hundred rows.
	fewestRows = 256

	// littleGain is the share of a pass's error below which the next is not worth its time.
	littleGain = 0.02
)

// online trains with a learner. An epoch is a pass over all rows, in an order of its
// own. G and B remember about as many rows as that.
type online struct {
	backend.Learner
	rows     int // V
	recipe   model.Best
	words    func(n int)     // as [Options.Words]
	square   float64         // ρ², the squared norm of an atom
	started  bool            // G and B hold something
	training *model.Training // whose Epochs are those before
}

// newOnline starts a training of the recipe "best" from atoms of a norm. The learner
// subtracts the mean, as an encoder does.
func newOnline(x *vectors.Dense, h model.Best, start *model.Dictionary, norm float64, f *fit, device Device) (*online, error) {
	training := &f.model.Info.Training
	l, err := device.Learner(x.Data, start, norm, encode.Options{
		Lambda: training.Lambda, Nonnegative: h.Method == model.Nonnegative, Steps: encode.DefaultSteps, Nonzeros: h.Nonzeros,
	})
	if err != nil {
		return nil, err
	}
	return &online{Learner: l, rows: x.Len(), recipe: h, words: f.options.Words, square: norm * norm, training: training}, nil
}

// Epoch implements [backend.Trainer].
func (o *online) Epoch(ctx context.Context, epoch, batch int) (sums backend.Sums, err error) {
	start := time.Now()
	order := make([]int32, o.rows)
	for i, row := range rand.New(rand.NewPCG(o.recipe.Seed, uint64(epoch))).Perm(o.rows) {
		order[i] = int32(row)
	}
	sums.Used = make([]bool, o.recipe.Atoms)
	seen := 0 // rows of this pass
	for part := range slices.Chunk(order, batch) {
		remember := 0.
		if o.started {
			remember = 1 - float64(len(part))/float64(o.rows)
		}
		if err := o.Learn(ctx, part, remember, o.pull(epoch, sums.RunningLoss, seen), &sums); err != nil {
			return sums, err
		}
		seen += len(part)
		o.started = true
		sums.Steps++
		if o.words != nil {
			o.words(len(part))
		}
	}
	// No pass is made to measure alone: encoding does that in the end.
	sums.Loss, sums.Error = sums.RunningLoss, sums.RunningLoss
	sums.DictionarySeconds = time.Since(start).Seconds()
	return sums, nil
}

// pull is the weight of ‖D − W‖² that makes atoms the most likely ones, given the codes, if
// rows are noisy sums of atoms, and an atom lies about its anchor with a variance of
// ρ²/Anchor. (All variances are those of vectors, the sums of their coordinates'.) The noise
// is what rows leave on average when they are met last: all of it, before any is. So atoms that are clear from the data go where these want them, and those
// that are not stay where they were, whatever the seed.
func (o *online) pull(epoch int, loss float64, rows int) float64 {
	switch {
	case epoch > 1: // of the others in the pass before
		loss += o.training.Epochs[epoch-2].RunningLoss * float64(o.rows-rows)
		rows = o.rows
	case rows == 0:
		loss, rows = o.square, 1
	}
	return o.recipe.Anchor * loss / float64(rows) / o.square
}

// Codes implements [backend.Trainer]. A learner keeps none.
func (o *online) Codes() (*vectors.CSR, error) { return nil, errors.New("a learner has no codes") }

// Restore implements [backend.Trainer].
func (o *online) Restore(dictionary []float32, _ *vectors.CSR) error {
	o.started = true
	return o.Learner.Restore(dictionary)
}
