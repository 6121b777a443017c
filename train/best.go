package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unicode"

	"gonum.org/v1/gonum/stat"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/vectors"
)

const (
	// defaultSparsity is the sparsity that determines the default number of nonzeros.
	defaultSparsity = 0.97

	// rowsPerAtom is the number of training rows per atom for words in order of frequency. Rarer
	// words are mostly names and misspellings, which would shift the mean and the atoms.
	rowsPerAtom = 20

	// minSampleRows is the least default number of training rows if rows are in no order of frequency. At K = 1,000 it
	// gives 100 rows per atom. More rows help little: from 78 to 117 per atom, the error of held-out rows falls by 1 %.
	minSampleRows = 100_000

	// sampleSeed seeds the training sample. It doesn't follow the recipe's seed, so that dimensions
	// depend less on that seed.
	sampleSeed = 1

	// minTextRows is the least default number of training rows for texts. maxTextWeights limits the default dictionary
	// for texts: its size, K·L, is at most 3,072 × 768. With these limits, training on 100,000 texts of L = 384, or on
	// 20,000 of L = 1,536, takes a minute on two cores, including the encoding of all texts. Search by codes, and
	// classifiers of codes, are about as good as after training on all rows (docs/results/measurements.md).
	minTextRows, maxTextWeights = 16_000, 3072 * 768

	// The default number of dictionary updates per epoch is one per updateRows training rows, within these
	// limits. Fewer, larger updates cost less and make dimensions more stable across seeds.
	updateRows, minUpdates, maxUpdates = 8192, 16, 64

	// The sums G and B remember as many rows as were visited, within these limits per atom. With more rows, codes of
	// outdated atoms slow down learning. With fewer rows, the sums determine the atoms poorly.
	minMemoryPerAtom, maxMemoryPerAtom = 2, 20

	// minTextNonzeros is the least default number of nonzeros per text.
	minTextNonzeros = 8

	// defaultOrder infers the order of all rows from the first orderSample rows.
	orderSample = 10_000

	// minBatch is the least number of rows per mini-batch.
	minBatch = 256

	// minErrorReduction is the relative decrease of the error below which training stops.
	minErrorReduction = 0.02
)

// bestTraining trains by the recipe "best".
type bestTraining model.Best

func (h bestTraining) withDefaults(x *vectors.Dense, n int) model.Recipe {
	return model.Best(h.fillDefaults(x, n))
}

func (h bestTraining) fillDefaults(x *vectors.Dense, n int) bestTraining {
	if h.Method == "" {
		h.Method = model.Signed
		if x.Texts != nil { // for texts, nonnegative codes explain more variance and are easier to read
			h.Method = model.Nonnegative
		}
	}
	rows := n
	if h.TrainRows > 0 {
		rows = min(n, h.TrainRows)
	}
	atoms, leastNonzeros := min(10*x.Dim, max(x.Dim, rows/2)), 1
	if x.Texts != nil {
		rows = min(n, cmp.Or(h.TrainRows, minTextRows))
		atoms, leastNonzeros = max(1, min(10*x.Dim, maxTextWeights/x.Dim, rows/2)), minTextNonzeros
	}
	h.Atoms = cmp.Or(h.Atoms, atoms)
	h.Order = cmp.Or(h.Order, defaultOrder(x))
	epochs := 2
	if h.Order == model.None { // these rows are more diverse than frequent words
		epochs = 4
	}
	h.Epochs = cmp.Or(h.Epochs, epochs)
	h.Nonzeros = cmp.Or(h.Nonzeros, min(max(model.Nonzeros(defaultSparsity, h.Atoms), leastNonzeros), h.Atoms))
	h.TrainRows = min(cmp.Or(h.TrainRows, h.defaultTrainRows(x)), n)
	h.DictionarySteps = cmp.Or(h.DictionarySteps, min(max(minUpdates, (h.TrainRows+updateRows/2)/updateRows), maxUpdates))
	return h
}

func (h bestTraining) batch(rows int) int {
	return min(max(backend.Batch(rows, h.DictionarySteps), minBatch), rows)
}

// defaultTrainRows returns the default number of training rows, which may exceed the number of rows of x.
func (h bestTraining) defaultTrainRows(x *vectors.Dense) int {
	switch {
	case x.Texts != nil:
		return max(minTextRows, 2*h.Atoms)
	case h.Order == model.None:
		return max(minSampleRows, rowsPerAtom*h.Atoms)
	}
	return rowsPerAtom * h.Atoms
}

// defaultOrder returns None for texts, for sorted rows, and if most of the first rows have names that
// look like texts (with spaces, or at least 24 bytes long) or ids (with digits). Otherwise it returns
// Frequency. Words of equal frequency are often sorted, so a few sorted words don't matter.
func defaultOrder(x *vectors.Dense) model.Order {
	if x.Texts != nil {
		return model.None
	}
	ids := x.IDs[:min(len(x.IDs), orderSample)]
	const minTextBytes, minCorrelated = 24, 50
	textsOrIDs := 0
	for _, w := range ids {
		if len(w) >= minTextBytes || strings.ContainsFunc(w, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsDigit(r) }) {
			textsOrIDs++
		}
	}
	sorted := len(ids) > 1 && slices.IsSorted(ids)
	if len(ids) >= minCorrelated { // fewer ids may correlate by chance
		sorted = math.Abs(rankCorrelation(ids)) > 0.5
	}
	if 2*textsOrIDs > len(ids) || sorted {
		return model.None
	}
	return model.Frequency
}

// rankCorrelation returns Spearman's ρ between the order of words and their alphabetical order.
func rankCorrelation(ids []string) float64 {
	ranks, rows := make([]float64, len(ids)), make([]float64, len(ids))
	for i := range ids {
		ranks[i], rows[i] = float64(i), float64(i)
	}
	slices.SortStableFunc(rows, func(a, b float64) int { return strings.Compare(ids[int(a)], ids[int(b)]) })
	return stat.Correlation(ranks, rows, nil)
}

func (h bestTraining) fit(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
	m, err := h.learn(ctx, x, device, o)
	if err != nil || o.NoCodes {
		return m, err
	}
	encoded, err := encode.Model(ctx, m, x, device, encode.Defaults(m.Info))
	if err != nil {
		return m, err
	}
	encoded.Info.Encoding.Input = inputOf(x, o.Source)
	return encoded, checkCodes(encoded.Info, o)
}

// learn returns a model with a dictionary and without codes.
func (h bestTraining) learn(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
	if d := o.Like; d != nil {
		switch {
		case d.Dim != x.Dim:
			return nil, fmt.Errorf("train: the vectors differ in length from the atoms of the earlier model (got %d, want %d)", x.Dim, d.Dim)
		case h.Atoms != 0 && h.Atoms != d.Len():
			return nil, fmt.Errorf("train: the number of atoms differs from the earlier model (got %d, want %d or 0)", h.Atoms, d.Len())
		}
		h.Atoms, h.Like = d.Len(), vectors.SHA256(d.Atoms)
	} else if h.Like != "" {
		return nil, errors.New("train: the recipe names an earlier model, and Options.Like is nil: set it, or clear the recipe's Like")
	}
	h = h.fillDefaults(x, x.Len())
	if err := cmp.Or(x.Validate(), model.Best(h).Validate()); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if gram := 4 * float64(h.Atoms) * float64(h.Atoms); gram > backend.Addressable { // before atoms are initialised
		return nil, fmt.Errorf("%w: learning %d sparse dimensions takes about %.1f GB, which is more than any machine has", ErrMemory, h.Atoms, gram/1e9)
	}
	x = h.trainingRows(x)
	f := newFit(x, model.Best(h), o)
	mean := model.Dictionary{Dim: x.Dim, Mean: x.Mean()}
	chooser := initialiser{x: x.Data, mean: &mean, atoms: h.Atoms, order: h.Order, seed: h.Seed}
	atoms, norm, err := chooser.choose(ctx, o)
	if err != nil {
		return nil, err
	}
	f.model.Dictionary.Mean, f.model.Info.Training.Lambda = mean.Mean, h.Lambda*norm*norm
	f.batch = h.batch(x.Len())
	var learning sync.WaitGroup
	var topics struct {
		directions []float32
		themes     *model.Themes
		err        error
	}
	ctx, stop := context.WithCancelCause(ctx) // if learning fails, topics stop, and vice versa
	defer stop(nil)
	hasTopics := h.Topics != model.NoTopics && (h.Topics != 0 || x.Texts != nil)
	if hasTopics { // topics need only the mean, so they are learned beside the dictionary
		learning.Go(func() {
			topics.directions, topics.themes, topics.err = learnThemes(ctx, x, &mean, h.Topics)
			if topics.err != nil {
				stop(topics.err)
			}
		})
	}
	m, err := f.run(ctx, func() (trainer, error) {
		d := mean
		d.Atoms = atoms
		l, err := device.Learner(x.Data, &d, norm, encode.Options{
			Lambda: f.model.Info.Training.Lambda, Nonnegative: h.Method == model.Nonnegative, Steps: encode.DefaultSteps, Nonzeros: h.Nonzeros,
		})
		if err != nil {
			return trainer{}, err
		}
		online := &onlineLearner{learner: l, rows: x.Len(), recipe: h, progress: o.Progress, norm2: norm * norm, training: &f.model.Info.Training}
		return trainer{l, online.epoch, func(saved *model.Model) error { return l.Restore(saved.Dictionary.Atoms) }, nil}, nil
	})
	if err != nil {
		stop(err)
	}
	learning.Wait()
	if err == nil || context.Cause(ctx) == topics.err { // learning succeeded, or topics cancelled it
		err = cmp.Or(topics.err, err)
	}
	if err != nil || !hasTopics {
		return m, err
	}
	m.Dictionary.Themes, m.Info.Training.Themes = topics.directions, topics.themes
	if m.Dictionary.Themes == nil {
		o.note("no topics: all texts are empty, or their vectors equal the mean")
	}
	if n := m.Info.Training.Themes.Len(); n > 0 && n < h.Topics {
		o.note("%d topics instead of %d: only %d rows differ", n, h.Topics, n)
	}
	return m, nil
}

func (h bestTraining) trainingRows(x *vectors.Dense) *vectors.Dense {
	switch {
	case h.TrainRows == x.Len():
		return x
	case h.Order == model.Frequency:
		return x.Slice(0, h.TrainRows)
	}
	s := vectors.NewSample(h.TrainRows, sampleSeed)
	s.Add(x)
	return &s.Rows
}

func (h bestTraining) converged(epochs []model.Epoch) bool {
	t := len(epochs)
	return t > 1 && epochs[t-2].RunningLoss-epochs[t-1].RunningLoss < minErrorReduction*epochs[t-2].RunningLoss
}

// checkCodes warns of dead atoms, and of codes that have far fewer nonzeros than the recipe "best" requests. It
// returns ErrZeroCodes if all codes are zero.
func checkCodes(i model.Info, o Options) error {
	e, h := i.Encoding, i.Training.Recipe.(model.Best)
	if e.L1 == 0 {
		return ErrZeroCodes
	}
	o.warnDead(e.UnusedAtoms, h.Atoms, "use fewer atoms")
	if mean := (1 - e.Sparsity) * float64(h.Atoms); mean < 0.85*float64(h.Nonzeros) {
		o.note("warning: codes have fewer nonzeros than requested (got %.1f per row, want %d): use a smaller λ", mean, h.Nonzeros)
	}
	return nil
}

// onlineLearner runs the epochs of a learner. Each epoch visits all rows in random order.
type onlineLearner struct {
	learner  backend.Learner
	rows     int // V
	recipe   bestTraining
	progress func(n int)     // [Options.Progress]
	norm2    float64         // ρ², the squared norm of an atom
	training *model.Training // Epochs lists the completed epochs
}

// epoch runs one epoch.
//
// The weight of the anchor penalty ‖D − W‖² is the MAP weight, noise variance / prior variance, under y = aD + noise
// and d_k ~ N(w_k, ρ²/Anchor). Variances are sums over coordinates. The noise variance is the mean loss per row of the
// previous mini-batch. The first mini-batch of an epoch uses the mean loss of the previous epoch. The first mini-batch
// of the training uses ρ². Atoms that many rows use follow the data. Other atoms stay near their anchors, for any seed.
func (o *onlineLearner) epoch(ctx context.Context, epoch, batch int) (sums backend.Sums, err error) {
	order := make([]int32, o.rows)
	for i := range order {
		order[i] = int32(i)
	}
	rand.New(rand.NewPCG(o.recipe.Seed, uint64(epoch))).Shuffle(o.rows, func(i, j int) { order[i], order[j] = order[j], order[i] })
	visited, noise := (epoch-1)*o.rows, o.norm2
	if epoch > 1 {
		noise = o.training.Epochs[epoch-2].RunningLoss
	}
	var batches []backend.Minibatch
	for rows := range slices.Chunk(order, batch) {
		visited += len(rows)
		k := o.recipe.Atoms
		memory := min(o.rows, max(maxMemoryPerAtom*k, 2*batch), max(minMemoryPerAtom*k, visited)) // rows that G and B remember
		batches = append(batches, backend.Minibatch{Rows: rows, Forgetting: 1 - float64(len(rows))/float64(memory)})
	}
	sums, err = o.learner.Learn(ctx, batches, o.recipe.Anchor/o.norm2, noise, o.progress)
	// The error with the final dictionary is measured by the encoding that follows.
	sums.Loss, sums.Error = sums.RunningLoss, sums.RunningLoss
	return sums, err
}
