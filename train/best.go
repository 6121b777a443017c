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
	"time"
	"unicode"

	"gonum.org/v1/gonum/stat"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/vectors"
)

const (
	// defaultSparsity is the share of zeros of the default nonzeros.
	defaultSparsity = 0.97

	// frequentRows is the number of training rows per atom, of words in order of frequency: the
	// rest of a whole vocabulary is mostly names and misspellings, whose mean and directions are
	// not those of language.
	frequentRows = 20

	// sampleRows is the least number of training rows in no order of frequency. That is 100 for each of 1,000
	// atoms: from 78 rows per atom to 117, the error of other rows falls by 1 %.
	sampleRows = 100_000

	// sampleSeed chooses these rows. It is not the recipe's seed, on which dimensions shall depend little.
	sampleSeed = 1

	// textRows is the least number of training rows of texts, and textNumbers the most numbers of their
	// default dictionary, K·L: 3,072 × 768. With these, 100,000 texts of 384 numbers and 20,000 of 1,536
	// train and encode in a minute on two cores. Search by codes and classifiers are about as good as
	// with all rows (docs/results/measurements.md).
	textRows, textNumbers = 16_000, 3072 * 768

	// textSteps is the least number of dictionary updates per epoch of texts, and dictionarySteps the default
	// of words and the most of texts. Each update takes as long as encoding some hundred rows. Texts have fewer
	// because they have more epochs.
	textSteps, dictionarySteps = 16, 64

	// textNonzeros is the least number of nonzeros of a text by default.
	textNonzeros = 8

	// orderRows is the number of rows that decide whether they are in order of frequency.
	orderRows = 10_000

	// minBatch is the least number of rows of a batch.
	minBatch = 256

	// minGain is the share of an epoch's error by which the next has to be lower to go on.
	minGain = 0.02
)

// best trains by the recipe "best".
type best model.Best

func (h best) settled(x *vectors.Dense, n int) model.Recipe { return model.Best(h.withDefaults(x, n)) }

func (h best) withDefaults(x *vectors.Dense, n int) best {
	if h.Method == "" {
		h.Method = model.Signed
		if x.Texts != nil { // nonnegative codes of texts explain more and are easier to read
			h.Method = model.Nonnegative
		}
	}
	rows := n
	if h.TrainWords > 0 {
		rows = min(n, h.TrainWords)
	}
	atoms, leastNonzeros := min(10*x.Dim, max(x.Dim, rows/2)), 1
	if x.Texts != nil {
		rows = min(n, cmp.Or(h.TrainWords, textRows))
		atoms, leastNonzeros = max(1, min(10*x.Dim, textNumbers/x.Dim, rows/2)), textNonzeros
	}
	h.Atoms = cmp.Or(h.Atoms, atoms)
	h.Order = cmp.Or(h.Order, defaultOrder(x))
	epochs := 2
	if h.Order == model.None { // such rows differ more than frequent words, with fewer rows per atom
		epochs = 4
	}
	h.Epochs = cmp.Or(h.Epochs, epochs)
	h.Nonzeros = cmp.Or(h.Nonzeros, min(max(model.Nonzeros(defaultSparsity, h.Atoms), leastNonzeros), h.Atoms))
	h.TrainWords = min(cmp.Or(h.TrainWords, h.defaultTrainWords(x)), n)
	steps := dictionarySteps
	if x.Texts != nil {
		steps = min(max(textSteps, h.TrainWords/1000), dictionarySteps)
	}
	h.DictionarySteps = cmp.Or(h.DictionarySteps, steps)
	return h
}

// defaultTrainWords returns the number of training rows, where there are as many. Texts have fewer.
func (h best) defaultTrainWords(x *vectors.Dense) int {
	switch {
	case x.Texts != nil:
		return max(textRows, 2*h.Atoms)
	case h.Order == model.None:
		return max(sampleRows, frequentRows*h.Atoms)
	}
	return frequentRows * h.Atoms
}

// defaultOrder returns None for texts, for rows most of whose first names look like texts (with spaces, or of
// 24 bytes or more) or ids (with digits), and for sorted ones; else Frequency. Words of equal
// frequency are often sorted, so a few sorted words do not count.
func defaultOrder(x *vectors.Dense) model.Order {
	if x.Texts != nil {
		return model.None
	}
	words := x.Words
	words = words[:min(len(words), orderRows)]
	const longText, fewWords = 24, 50
	others := 0
	for _, w := range words {
		if len(w) >= longText || strings.ContainsFunc(w, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsDigit(r) }) {
			others++
		}
	}
	sorted := len(words) > 1 && slices.IsSorted(words)
	if len(words) >= fewWords { // fewer may correlate by chance
		sorted = math.Abs(sortedness(words)) > 0.5
	}
	if 2*others > len(words) || sorted {
		return model.None
	}
	return model.Frequency
}

// sortedness returns Spearman's ρ between the order of words and their alphabetical order.
func sortedness(words []string) float64 {
	ranks, rows := make([]float64, len(words)), make([]float64, len(words))
	for i := range words {
		ranks[i], rows[i] = float64(i), float64(i)
	}
	slices.SortStableFunc(rows, func(a, b float64) int { return strings.Compare(words[int(a)], words[int(b)]) })
	return stat.Correlation(ranks, rows, nil)
}

func (h best) fit(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
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

// learn learns the dictionary.
func (h best) learn(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
	if d := o.Like; d != nil {
		switch {
		case d.Dim != x.Dim:
			return nil, fmt.Errorf("train: the model to be like has atoms of %d numbers, and the vectors have %d", d.Dim, x.Dim)
		case h.Atoms != 0 && h.Atoms != d.Len():
			return nil, fmt.Errorf("train: the model to be like has %d dimensions, and atoms is %d: want the same, or 0", d.Len(), h.Atoms)
		}
		h.Atoms, h.Like = d.Len(), vectors.SHA256(d.Atoms)
	} else if h.Like != "" {
		return nil, errors.New("train: the recipe names a model to be like, and Options.Like has none")
	}
	h = h.withDefaults(x, x.Len())
	if err := cmp.Or(x.Validate(), model.Best(h).Validate()); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	x = h.trainingRows(x)
	f := newFit(x, model.Best(h), o)
	mean := model.Dictionary{Dim: x.Dim, Mean: x.Mean()}
	start := initialiser{x: x.Data, mean: &mean, atoms: h.Atoms, order: h.Order, seed: h.Seed}
	atoms, norm, err := start.choose(ctx, o)
	if err != nil {
		return nil, err
	}
	f.model.Dictionary.Mean, f.model.Info.Training.Lambda = mean.Mean, h.Lambda*norm*norm
	f.batch = min(max(backend.Batch(x.Len(), h.DictionarySteps), minBatch), x.Len())
	m, err := f.run(ctx, func() (backend.Trainer, error) {
		d := mean
		d.Atoms = atoms
		l, err := device.Learner(x.Data, &d, norm, encode.Options{
			Lambda: f.model.Info.Training.Lambda, Nonnegative: h.Method == model.Nonnegative, Steps: encode.DefaultSteps, Nonzeros: h.Nonzeros,
		})
		if err != nil {
			return nil, err
		}
		return &online{Learner: l, rows: x.Len(), recipe: h, words: o.Words, norm2: norm * norm, training: &f.model.Info.Training}, nil
	})
	if err != nil || h.Topics == model.NoTopics || h.Topics == 0 && x.Texts == nil {
		return m, err
	}
	m.Dictionary.Themes, m.Info.Training.Themes, err = learnThemes(ctx, x, &m.Dictionary, h.Topics)
	if err == nil && m.Dictionary.Themes == nil {
		o.note("there are no topics: all texts are empty, or their vectors are the mean")
	}
	if n := m.Info.Training.Themes.Len(); err == nil && n > 0 && n < h.Topics {
		o.note("there are %d topics instead of %d: no more rows differ", n, h.Topics)
	}
	return m, err
}

// trainingRows returns the rows of x to learn from.
func (h best) trainingRows(x *vectors.Dense) *vectors.Dense {
	switch {
	case h.TrainWords == x.Len():
		return x
	case h.Order == model.Frequency:
		return x.Slice(0, h.TrainWords)
	}
	s := vectors.NewSample(h.TrainWords, sampleSeed)
	s.Add(x)
	return &s.Rows
}

func (h best) converged(epochs []model.Epoch) bool {
	t := len(epochs)
	return t > 1 && epochs[t-2].RunningLoss-epochs[t-1].RunningLoss < minGain*epochs[t-2].RunningLoss
}

// checkCodes notes what is wrong with codes of a dictionary of the recipe "best". It returns
// ErrNothingActive if all are zero.
func checkCodes(i model.Info, o Options) error {
	e, h := i.Encoding, i.Training.Recipe.(model.Best)
	if e.L1 == 0 {
		return ErrNothingActive
	}
	if dead := float64(e.UnusedAtoms) / float64(h.Atoms); dead > mostDead {
		o.note("warning: %.0f %% of the atoms are dead: fewer atoms lose nothing", 100*dead)
	}
	const tolerance = 0.005
	if wanted := 1 - float64(h.Nonzeros)/float64(h.Atoms); e.Sparsity > wanted+tolerance {
		o.note("warning: the sparsity is %.4g %%, more than the %.4g %% asked for: a smaller λ keeps more nonzeros", 100*e.Sparsity, 100*wanted)
	}
	return nil
}

// online is a [backend.Trainer] on a learner. An epoch is a pass over all rows in a random order.
type online struct {
	backend.Learner
	rows     int // V
	recipe   best
	words    func(n int)     // [Options.Words]
	norm2    float64         // ρ², the squared norm of an atom
	started  bool            // whether G and B hold sums
	training *model.Training // whose Epochs are those before
}

// Epoch implements [backend.Trainer].
func (o *online) Epoch(ctx context.Context, epoch, batch int) (sums backend.Sums, err error) {
	start := time.Now()
	order := make([]int32, o.rows)
	for i, row := range rand.New(rand.NewPCG(o.recipe.Seed, uint64(epoch))).Perm(o.rows) {
		order[i] = int32(row)
	}
	sums.Used = make([]bool, o.recipe.Atoms)
	seen := 0 // rows of this epoch
	for part := range slices.Chunk(order, batch) {
		forgetting := 0. // G and B forget about a pass of rows
		if o.started {
			forgetting = 1 - float64(len(part))/float64(o.rows)
		}
		if err := o.Learn(ctx, part, forgetting, o.anchorWeight(epoch, sums.RunningLoss, seen), &sums); err != nil {
			return sums, err
		}
		seen += len(part)
		o.started = true
		sums.Steps++
		if o.words != nil {
			o.words(len(part))
		}
	}
	// No pass is made for measuring alone: encoding does that in the end.
	sums.Loss, sums.Error = sums.RunningLoss, sums.RunningLoss
	sums.DictionarySeconds = time.Since(start).Seconds()
	return sums, nil
}

// anchorWeight returns the weight of the penalty ‖D − W‖². It is the MAP weight, noise variance /
// prior variance, under x = aD + noise and d_k ~ N(w_k, ρ²/Anchor); variances are sums over
// coordinates. The noise variance is the mean loss of each row at its latest visit: all of its
// norm before any visit. Atoms that the data determine follow the data, and others stay at their
// anchors, whatever the seed.
func (o *online) anchorWeight(epoch int, loss float64, rows int) float64 {
	switch {
	case epoch > 1: // rows not yet visited in this epoch count as in the epoch before
		loss += o.training.Epochs[epoch-2].RunningLoss * float64(o.rows-rows)
		rows = o.rows
	case rows == 0:
		loss, rows = o.norm2, 1
	}
	return o.recipe.Anchor * loss / float64(rows) / o.norm2
}

// Codes implements [backend.Trainer]. A learner keeps none.
func (o *online) Codes() (*vectors.CSR, error) { return nil, errors.New("a learner has no codes") }

// Restore implements [backend.Trainer].
func (o *online) Restore(dictionary []float32, _ *vectors.CSR) error {
	o.started = true
	return o.Learner.Restore(dictionary)
}
