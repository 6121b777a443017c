package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/encode"
	"overcomplete/internal/atomicfile"
	"overcomplete/internal/escape"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// trainFlags are the flags that "train" and "paper train" share.
type trainFlags struct {
	recipe model.Recipe // of the flags, but for what depends on the vectors: see [sizeFlags.at]
	sizeFlags
	inputFlags
	deviceFlags
	checkpoint time.Duration // between checkpoints; 0 for none
	resume     bool
	output     string
	like       string // a model
	progressFlags
}

func newTrain() *cobra.Command {
	var f trainFlags
	var trainWords string
	h := train.Best()
	cmd := &cobra.Command{
		Use:   "train VECTORS -o MODEL",
		Short: "Learn sparse vectors and their dictionary from dense vectors",
		Long: `Train reads dense vectors of words or texts, learns the dictionary online, at the
sparsity that --sparsity says, and encodes every row. It writes a model directory
atomically, and prints what it measured and some dimensions by their top words.

VECTORS is a file of GloVe text, word2vec text or binary, fastText .vec, .npy, .npz,
.safetensors, Arrow (Feather) or Parquet, plain or compressed with gzip or zstd, or -
for standard input. The format is told from the content. Rows without words are called
by their numbers, unless --words names them. Of texts, such as sentences with their
embeddings in Parquet, each row is kept, with an id and the other columns of the table.

Method A learns codes of either sign. Method B, the default of texts, learns nonnegative
codes, of which "overcomplete export --format binary" makes binary vectors.`,
		Example: `  overcomplete train glove.6B.300d.txt.gz -o model
  overcomplete train vectors.bin -o model --method B -k 2000 --sparsity 0.98
  overcomplete train vectors.npy --words words.txt -o model --json > metrics.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parseTrainWords(&h, trainWords); err != nil {
				return err
			}
			f.recipe = h
			if err := f.check(cmd, nil); err != nil {
				return err
			}
			return f.train(cmd, args[0])
		},
	}
	flags := cmd.Flags()
	f.registerOutput(cmd)
	f.registerCommon(cmd, &h.Common, "(default 10 times the dense ones, at most half as many as words, but no fewer than the dense ones)",
		fmt.Sprintf("(default %v)", train.DefaultSparsity),
		epochsOf("(default %d, or %d of rows in no order of frequency, such as texts)", model.Best{}, model.Best{Order: model.None}))
	flags.Lookup("dictionary-steps").Usage += ", or fewer, so that each has 256 words"
	flags.StringVar((*string)(&h.Method), "method", string(h.Method), "A, or B for nonnegative codes (default A, or B of texts)")
	flags.Lookup("method").DefValue = "" // the usage says it
	flags.Float64Var(&h.Lambda, "lambda", h.Lambda, "weight λ of the codes' Σ|a|, as a share of the mean squared norm")
	flags.Float64Var(&h.Anchor, "anchor", h.Anchor, "how strongly atoms are regularised towards the words that they are initialised from, for dimensions that are stable across seeds; 0 for not at all")
	flags.StringVar(&trainWords, "train-words", "", "`rows` to learn from: first:n or n, random:n or all; all are encoded (default of words, which are taken to be in order of frequency: the first 20 K; of rows that have none, or are texts: all)")
	flags.StringVar(&f.like, "like", "", "have the dimensions of this `model`, with their numbers and labels, for vectors of the same space")
	f.registerRest(cmd)
	return cmd
}

func (f *trainFlags) registerOutput(cmd *cobra.Command) {
	addOutput(cmd, &f.output, "model `directory` to write", "a model that exists")
}

// registerRest adds the flags that are no hyperparameters.
func (f *trainFlags) registerRest(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.registerInput(cmd)
	f.registerDevice(cmd, "train", "tf32 (fast, 11-bit factors), fp16 (as many bits in half the bytes), or fp32")
	flags.BoolVar(&f.overcommit, "overcommit", false, "train on the CPU even if it seems to have too little memory")
	flags.DurationVar(&f.checkpoint, "checkpoint", 0, "save what it takes to resume the training at this interval, such as 5m, and when interrupted")
	flags.BoolVar(&f.resume, "resume", false, "resume from the checkpoint in MODEL, if there is one, to the result of a training never stopped")
	addJSON(cmd, "print the results as JSON")
	f.registerProgress(flags, "an epoch")
}

// check refuses flags outside their domain. OnlyOnCPU says why no GPU runs the training, or is nil.
func (f *trainFlags) check(cmd *cobra.Command, onlyOnCPU error) error {
	changed := cmd.Flags().Changed
	if err := cmp.Or(f.sizeFlags.check(cmd, f.recipe.Base()), f.inputFlags.check(changed)); err != nil {
		return err
	}
	if err := f.recipe.Validate(); err != nil {
		return usagef("--%w", err)
	}
	switch {
	case changed("workers") && (f.workers < 1 || f.workers > math.MaxInt32):
		return usagef("--workers is %d, want 1 to %d", f.workers, math.MaxInt32)
	case changed("like") && f.like == "":
		return usagef("--like is empty, want the directory of a model")
	case f.output == "":
		return usagef("-o is empty, want the name of a directory")
	case changed("checkpoint") && f.checkpoint <= 0:
		return usagef("--checkpoint is %v, want a time such as 5m", f.checkpoint)
	}
	return f.deviceFlags.check(onlyOnCPU, changed)
}

// parseTrainWords reads --train-words into h.
func parseTrainWords(h *model.Best, flag string) error {
	switch flag {
	case "":
		return nil
	case "all":
		h.TrainWords = math.MaxInt32
		return nil
	}
	which, number, two := strings.Cut(flag, ":")
	if !two {
		which, number = "first", which
	}
	n, err := strconv.Atoi(number)
	order, ok := map[string]model.Order{"first": model.Frequency, "random": model.None}[which]
	if err != nil || !ok || n < 1 || n > math.MaxInt32 {
		return usagef("--train-words is %q, want first:n or n, random:n or all, with n from 1 to %d", flag, math.MaxInt32)
	}
	h.TrainWords, h.Order = n, order
	return nil
}

func (f *trainFlags) train(cmd *cobra.Command, path string) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	log := f.log(stderr)
	// What forbids saving is found before hours of training.
	if err := model.CheckSave(f.output, model.MayReplace(forced(cmd) || f.resume)); err != nil {
		return err
	}
	if err := f.available(); err != nil {
		return err
	}

	like, labels, err := f.openLike(stderr)
	if err != nil {
		return err
	}
	x, source, err := f.read(cmd, path, log)
	if err != nil {
		return err
	}
	if like != nil && like.Dim != x.Dim {
		return usagef("%s has atoms of %d numbers, and %s vectors of %d: they are of different spaces", f.like, like.Dim, path, x.Dim)
	}
	if best, is := f.recipe.(model.Best); is && x.Texts != nil && !cmd.Flags().Changed("method") {
		best.Method = model.Nonnegative // whose codes of texts explain more, and are easier to read
		f.recipe = best
	}
	if f.recipe, err = f.at(f.recipe, x, source.Rows); err != nil {
		return err
	}
	f.recipe = train.Settled(f.recipe, x)
	words := x.Len() // to learn from
	best, isBest := f.recipe.(model.Best)
	if isBest {
		words = best.TrainWords
	}
	// Where rows were left out, codes are made in a second reading.
	again := x.Len() < source.Rows
	if k := f.recipe.Base().Atoms; k <= x.Dim {
		warn(stderr, "%d sparse dimensions for %d dense ones are not overcomplete", k, x.Dim)
	}
	if changed := cmd.Flags().Changed; isBest && (changed("atoms") || changed("factor") || changed("sparsity") || changed("nonzeros")) {
		f.warnUnusual(stderr, best, words, x.Dim)
	}
	checkpoint := &train.Checkpoint{Dir: f.output, Every: f.checkpoint, Resume: f.resume, Replace: forced(cmd)}
	o, done := f.show(f.recipe, words, log, stderr)
	o.Source, o.Checkpoint, o.Like = source, checkpoint, like
	device := chosenDevice{&f.deviceFlags, log}
	var m *model.Model
	if again {
		m, err = train.Learn(ctx, x, best, device, o)
	} else {
		m, err = train.Fit(ctx, x, f.recipe, device, o)
	}
	if learned, ok := errors.AsType[*train.LearnedError](err); ok {
		m = learned.Model
	}
	done()
	if notLearnable(err) {
		return usageError{fmt.Errorf("%s: %w", path, err)}
	}
	sampled := err == nil && again
	if m != nil {
		m.Labels = labels
	}
	if sampled {
		var info model.Info
		var first *vectors.Sparse
		if info, first, err = f.encodeAll(cmd, path, m, source, checkpoint.MayReplace, log); err == nil {
			if err := f.report(cmd, info, first); err != nil {
				return err
			}
			return train.CheckCodes(info, o.Note)
		} else if _, kept := errors.AsType[*atomicfile.KeptError](err); kept || atomicfile.InPlace(err) {
			return err
		}
	}
	stopped := errors.Is(err, context.Canceled)
	but := func(format string, args ...any) error { // err, and what is left of the training
		left := fmt.Errorf(format, args...)
		if stopped {
			return interrupted{left.Error()}
		}
		return fmt.Errorf("%w; %w", err, left)
	}
	switch {
	case err == nil:
		if err := m.SaveOver(f.output, checkpoint.MayReplace); err != nil {
			return err
		}
		return f.report(cmd, m.Info, m.Codes)
	case stopped && checkpoint.Epoch > 0:
		return but("%s is a checkpoint after epoch %d, with which --resume goes on", f.output, checkpoint.Epoch)
	case stopped && m == nil, errors.Is(err, train.ErrDiverged), errors.Is(err, train.ErrNothingActive):
		if checkpoint.Epoch > 0 {
			return but("%s is a checkpoint after epoch %d", f.output, checkpoint.Epoch)
		}
		return err
	case sampled, m != nil && checkpoint.Epoch < len(m.Info.Training.Epochs): // what was learned is not lost
		if _, there := os.Lstat(f.output); m.Codes == nil && checkpoint.Epoch == 0 && there == nil {
			return but("%s is as it was: a dictionary without codes does not replace it, and is lost", f.output)
		}
		if saved := m.SaveOver(f.output, checkpoint.MayReplace); saved != nil {
			return but("nor can the model be saved: %w", saved)
		}
		if m.Codes == nil {
			return but("%s has the dictionary, with which encode makes codes", f.output)
		}
		return fmt.Errorf("%w; %s is whole", err, f.output)
	case checkpoint.Epoch > 0:
		return but("%s is a checkpoint after epoch %d, with which --resume goes on", f.output, checkpoint.Epoch)
	}
	return err
}

// warnUnusual warns of flags with which codes say little, that are learned from so many rows.
func (f *trainFlags) warnUnusual(stderr io.Writer, best model.Best, rows, dim int) {
	const few = 5 // nonzeros; with fewer, scores in tasks are far below the dense vectors'
	kept := best.Nonzeros
	switch {
	case kept < few && best.Atoms > few:
		warn(stderr, "codes keep %d values, too few to say much of a word: --nonzeros %d keeps more", kept, few)
	case kept > dim:
		warn(stderr, "codes keep %d values, more than the %d of the dense vectors: --nonzeros %d keeps as many", kept, dim, dim)
	}
	if most := max(dim, rows/2); f.like == "" && best.Atoms > most && best.Atoms <= rows { // of more, training says so
		warn(stderr, "%d sparse dimensions for %d rows, whose vectors they start from: most will be about one row; -k %d has two for each", best.Atoms, rows, most)
	}
}

// openLike returns the dictionary of the model that --like names, and its labels, or nil. K
// becomes its K.
func (f *trainFlags) openLike(stderr io.Writer) (like *model.Dictionary, labels []byte, err error) {
	if f.like == "" {
		return nil, nil, nil
	}
	if a, err := os.Stat(f.like); err == nil {
		if b, err := os.Stat(f.output); err == nil && os.SameFile(a, b) {
			return nil, nil, usagef("--like and -o are the same model, which would be gone before it is like itself; write to another directory")
		}
	}
	m, err := model.OpenDictionary(f.like)
	if err != nil {
		return nil, nil, usageError{err}
	}
	k := m.Dictionary.Len()
	c := f.recipe.Base()
	if f.factor > 0 || c.Atoms > 0 && c.Atoms != k {
		return nil, nil, usagef("%s has %d dimensions, and so will what is like it: drop -k and --factor", f.like, k)
	}
	c.Atoms = k
	f.recipe = f.recipe.With(c)
	if model.IsCheckpoint(f.like) {
		warn(stderr, "%s is a checkpoint: its dimensions are not what they will be", f.like)
	}
	all, err := loadLabels(f.like, k)
	if err != nil || len(all) == 0 {
		return &m.Dictionary, nil, err
	}
	var text bytes.Buffer
	err = all.Write(&text)
	return &m.Dictionary, text.Bytes(), err
}

// read reads the vectors to train on: those that a dictionary is learned from where all can be
// read a second time, else all of them.
func (f *trainFlags) read(cmd *cobra.Command, path string, log io.Writer) (x *vectors.Dense, source *vectors.Source, err error) {
	start := time.Now()
	o := f.readOptions()
	best, isBest := f.recipe.(model.Best)
	switch sample := vectors.NewSample(best.TrainWords, best.Seed); {
	case !isBest || !isRegular(path): // a pipe is read once
		x, source, err = vectors.Read(cmd.Context(), path, o)
	case best.Order == model.None:
		o.Distinct = true
		source = new(vectors.Source)
		for rows, err := range vectors.Stream(cmd.Context(), path, o, source) {
			if err != nil {
				return nil, nil, err
			}
			sample.Add(rows)
		}
		x = &sample.Rows
	default:
		o.Keep = func(rows *vectors.Dense) int { return f.keep(best, rows) }
		x, source, err = vectors.Read(cmd.Context(), path, o)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, warning := range source.Warnings {
		warn(cmd.ErrOrStderr(), "%s: %s", source.Name, warning)
	}
	say(log, "read %s: %d %s × %d dimensions, %s, in %.1f s", source.Name, source.Rows, source.Kind, x.Dim, source.About(), time.Since(start).Seconds())
	return x, source, nil
}

// isRegular reports whether path is a file that can be read again, and not a pipe. Where
// nobody knows, reading it tells what is wrong.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return path != "-" && (err != nil || info.Mode().IsRegular())
}

// keep returns how many words to learn from, of a file that begins with these.
func (f *trainFlags) keep(best model.Best, rows *vectors.Dense) int {
	if best.TrainWords > 0 {
		return best.TrainWords
	}
	// As if there were no end of words: if there is, K is smaller, and all are kept.
	all, err := f.at(best, rows, math.MaxInt32)
	if err != nil {
		return 0 // to be found when all are read
	}
	best = all.(model.Best)
	best.Order = train.DefaultOrder(rows)
	most := train.DefaultTrainWords(best, math.MaxInt32)
	if rows.Len() <= most {
		return 0
	}
	chosen := f.recipe.(model.Best)
	chosen.Order = best.Order // for the rows that are kept may look like others
	f.recipe = chosen
	return most
}

// encodeAll reads the file at path again, of which m was learned from a sample, and saves the
// codes of all its rows. It returns what model.json says, and the first codes.
func (f *trainFlags) encodeAll(cmd *cobra.Command, path string, m *model.Model, source *vectors.Source, may func(path string) error, log io.Writer) (model.Info, *vectors.Sparse, error) {
	first := &vectors.Sparse{CSR: vectors.CSR{Cols: m.Dictionary.Len(), Ptr: []int64{0}}}
	read := f.readOptions()
	read.Distinct = true
	p := newCounter(log)
	info, again, err := encode.File(cmd.Context(), m, path, f.output, chosenDevice{&f.deviceFlags, log}, encode.Defaults(m.Info), encode.FileOptions{
		Read: read, MayReplace: may,
		Show: func(block *vectors.Sparse) {
			p.add(block.Rows)
			for i := range min(block.Rows, shownRows*first.Cols-first.Rows) {
				first.Words = append(first.Words, block.Words[i])
				if block.Texts != nil {
					first.Texts = first.Texts.Join(block.Texts.Slice(i, i+1))
				}
				first.AppendRow(block.Row(i))
			}
		},
		Accept: func(e *model.Encoding) error {
			if e.L1 == 0 {
				return train.ErrNothingActive
			}
			return nil
		},
	})
	p.done(err == nil)
	if err == nil && again.SHA256 != source.SHA256 {
		warn(cmd.ErrOrStderr(), "%s changed between its two readings: the dictionary was learned from what it was before", path)
	}
	return info, first, err
}

// notLearnable reports whether an error is of the vectors, or of a K that they can't start.
func notLearnable(err error) bool {
	return errors.Is(err, train.ErrAllSame) || errors.Is(err, train.ErrMemory) && !isUsage(err)
}

// show returns the options of a training of so many words, which show it on log, and what
// ends that.
func (f *trainFlags) show(r model.Recipe, words int, log, stderr io.Writer) (o train.Options, done func()) {
	passes := 2 // over the words, an epoch
	if best, is := r.(model.Best); is {
		passes = 1
		words = min(words, cmp.Or(best.TrainWords, words))
	}
	p := newProgress(log, f.lines, words, passes, r.Base().Epochs)
	// A training's memory is a few large arrays without pointers: collecting is cheap,
	// and codes of past epochs are garbage as large as what is in use.
	percent := debug.SetGCPercent(20)
	o = train.Options{
		Workers: f.workers,
		Begin:   func(i model.Info) { p.begin(i.Training.Epochs) },
		Words:   p.words, Epoch: p.epoch,
		Note: func(line string) { p.say(stderr, line) },
	}
	return o, func() {
		p.done()
		debug.SetGCPercent(percent)
	}
}

// Some dimensions to look at, by the words with which a file begins, as many for each atom: they
// are the frequent ones.
const shownDimensions, shownWords, shownRows = 6, 8, 2

// dimension is a dimension with its top words.
type dimension struct {
	Dimension int      `json:"dimension"`
	Words     []string `json:"words"`
}

func topDimensions(codes *vectors.Sparse) []dimension {
	first := make([]int, min(codes.Rows, shownRows*codes.Cols))
	for i := range first {
		first[i] = i
	}
	codes = interpret.SelectRows(codes, first)
	top, x := interpret.TopWords(codes, shownWords), interpret.NewIndex(codes)
	strongest := interpret.Strongest(top)
	out := []dimension{}
	shown := map[int]bool{} // rows
	for _, k := range strongest {
		if len(top[k]) == 0 || len(out) == shownDimensions {
			break // nor have those that follow words
		}
		if shown[top[k][0].Row] {
			continue // much like another
		}
		d := dimension{Dimension: k, Words: []string{}}
		for _, e := range top[k] {
			shown[e.Row] = true
		}
		d.Words = x.Words(k, shownWords, false)
		out = append(out, d)
	}
	return out
}

// report prints a training's results, and dimensions by the first of these codes.
func (f *trainFlags) report(cmd *cobra.Command, i model.Info, codes *vectors.Sparse) error {
	top := topDimensions(codes)
	return show(cmd, struct {
		Model string `json:"model"`
		model.Info
		Dimensions []dimension `json:"dimensions"`
	}{f.output, i, top}, func(b *strings.Builder) {
		t := &i.Training
		last := t.Epochs[len(t.Epochs)-1]
		rows := i.Encoding.Input.Kind()
		fmt.Fprintf(b, "%s: %d %s × %d sparse dimensions after %d epochs\n", escape.Text(f.output), i.Words(), rows, codes.Cols, last.Epoch)
		if best, is := t.Recipe.(model.Best); is && best.TrainWords < i.Words() {
			which := "the first"
			if best.Order == model.None {
				which = "a random"
			}
			fmt.Fprintf(b, "  learned from   %s %d %s\n", which, best.TrainWords, rows)
		}
		describeCodes(b, *i.Encoding, codes.Cols)
		fmt.Fprintf(b, "  mean atom norm %.4f\n", last.AtomNorm)
		fmt.Fprintf(b, "dimensions that the first %s have most of:\n", rows)
		for _, d := range top {
			fmt.Fprintf(b, "  %5d  %s\n", d.Dimension, wordList(d.Words, " "))
		}
	})
}
