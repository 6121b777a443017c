package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/internal/modeldir"
	"overcomplete/internal/printing"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// trainFlags are the flags that "train" and "paper train" share.
type trainFlags struct {
	vectors.ReadOptions
	deviceFlags
	factor     int           // K as a multiple of L
	sparsity   float64       // sparsity that sets the number of nonzeros
	checkpoint time.Duration // time between checkpoints; 0 for none
	resume     bool
	output     string
	like       string // path of the earlier model that --like names
	passes     int    // passes over the rows per epoch
	unusual    bool   // whether to warn of unusual hyperparameters
	progressFlags
}

func newTrain() *cobra.Command {
	f := trainFlags{passes: 1}
	var topics int
	h := train.Best()
	cmd := &cobra.Command{
		Use:        "train VECTORS... -o MODEL",
		SuggestFor: []string{"fit", "learn", "factorize", "build"},
		Short:      "Learn a dictionary and encode every row",
		Long: `Train learns a dictionary from dense vectors of words or texts, in mini-batches, and
encodes every row at the sparsity of --sparsity. It writes a model directory atomically,
and prints metrics and some dimensions by their top words.

VECTORS is a file of GloVe text, word2vec text or binary, fastText .vec, .npy, .npz,
.safetensors, Arrow (Feather), Parquet, CSV or JSON lines, plain or compressed with gzip
or zstd, or - for standard input. The format is detected from the content. Rows without
words are named by their numbers, unless --words names them. Rows that are texts, such as
sentences with their embeddings in Parquet, keep their ids and the table's other columns.

Several files are read as one, in the order given. A folder stands for all files below it,
sorted by name, and a pattern in quotes for the files that match. Names that begin with .
or _ are left out. A folder named key=value gives its texts a column key with this value.

Method A learns codes of either sign. Method B, the default for texts, learns nonnegative
codes; "overcomplete export --format binary" turns their nonzeros into 1.`,
		Example: `  overcomplete train glove.6B.300d.txt.gz -o model
  overcomplete train vectors.bin -o model --method B -k 2000 --sparsity 0.98
  overcomplete train vectors.npy --words words.txt -o model --json > metrics.json
  overcomplete train "shards/part-*.parquet" -o model`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if h.Topics = topics; topics == 0 && cmd.Flags().Changed("topics") {
				h.Topics = model.NoTopics
			}
			if err := f.check(cmd, h, nil); err != nil {
				return err
			}
			f.unusual = slices.ContainsFunc([]string{"atoms", "factor", "sparsity", "nonzeros"}, cmd.Flags().Changed)
			return f.train(cmd, args, h)
		},
	}
	flags := cmd.Flags()
	f.registerOutput(cmd)
	f.registerCommon(cmd, &h.Common, "(default 10·L, or half of --train-rows or of the rows if that is fewer, but at least L; for texts the least of 10·L, 2359296/L and half of --train-rows or of the rows)",
		"(default 2; 4 for rows that are not sorted by frequency, such as texts)")
	flags.Lookup("dictionary-steps").Usage += " (default 1 per 8192 training rows, from 16 to 64); fewer if a mini-batch would have less than 256 rows"
	flags.Var(methodFlag(&h.Method, ""), "method", "A, or B for nonnegative codes (default A; B for texts)")
	flags.Float64Var(&f.sparsity, "sparsity", 0, "`fraction` of zeros in the codes (default 0.97; lower if texts would have fewer than 8 nonzeros)")
	flags.Var(count(&h.Nonzeros, 0), "nonzeros", "maximum number of nonzeros per row, instead of --sparsity")
	excludes(cmd, "nonzeros", "sparsity")
	flags.Float64Var(&h.Lambda, "lambda", h.Lambda, "weight λ of Σ|a| in the objective, relative to the mean squared norm of the centred vectors")
	flags.Float64Var(&h.Anchor, "anchor", h.Anchor, "how strongly atoms are regularised towards their initial vectors, which makes dimensions stable across seeds; 0 for not at all")
	flags.Func("train-rows", "training `rows`: first:n or n, random:n or all; every row is encoded (default first:20·K for words sorted by frequency; random:100000 for other words, or 20·K if that is more; random:16000 for texts, or 2·K if that is more)",
		func(s string) error { return parseTrainRows(&h, s) })
	flags.Var(countFrom0(&topics, 0), "topics", "default number of topics of the model; 0 learns none (default chosen from the rows for texts, 0 for words)")
	flags.StringVar(&f.like, "like", "", "use the atoms of this `model` as anchors: the new model has its dimensions and labels")
	f.registerRest(cmd)
	return cmd
}

func (f *trainFlags) registerOutput(cmd *cobra.Command) {
	addOutput(cmd, &f.output, "model `directory` to write", "a model that exists, unless it has labels")
}

// registerCommon adds the flags of the hyperparameters that all recipes have. The arguments atoms and epochs state the
// defaults of these flags, at the end of their usage.
func (f *trainFlags) registerCommon(cmd *cobra.Command, c *model.Common, atoms, epochs string) {
	flags := cmd.Flags()
	flags.VarP(count(&c.Atoms, 0), "atoms", "k", "number of sparse dimensions, K, for vectors of L numbers "+atoms)
	flags.Var(within(&f.factor, 0, 1, math.MaxInt32/vectors.MaxDim), "factor", "K as a multiple of L, instead of -k")
	excludes(cmd, "factor", "atoms")
	flags.Var(count(&c.Epochs, 0), "epochs", "maximum number of epochs "+epochs)
	flags.Var(count(&c.DictionarySteps, c.DictionarySteps), "dictionary-steps", "dictionary updates per epoch")
	flags.Var(seedOf(&c.Seed, c.Seed), "seed", "random seed")
}

// registerRest adds the flags that are not hyperparameters.
func (f *trainFlags) registerRest(cmd *cobra.Command) {
	flags := cmd.Flags()
	registerInput(cmd, &f.ReadOptions)
	f.registerDevice(cmd)
	flags.BoolVar(&f.overcommit, "overcommit", false, "train on the CPU even if memory seems too small")
	flags.DurationVar(&f.checkpoint, "checkpoint", 0, "save a checkpoint after an epoch if this time, such as 5m, has passed, and when interrupted")
	flags.BoolVar(&f.resume, "resume", false, "resume from the checkpoint in MODEL, if there is one")
	addJSON(cmd, "print the results as JSON")
	f.registerProgress(cmd, "an epoch")
}

// check refuses flags outside their domain. unsupported is the reason why no GPU supports the training, or nil.
func (f *trainFlags) check(cmd *cobra.Command, r model.Recipe, unsupported error) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("sparsity") && !(f.sparsity > 0 && f.sparsity < 1):
		return usagef("--sparsity is %v, want a number between 0 and 1, such as 0.95", f.sparsity)
	case f.like != "" && sameFile(f.like, f.output):
		return usagef("--like and -o name the same model; write to another directory")
	case changed("checkpoint") && f.checkpoint <= 0:
		return usagef("--checkpoint is %v, want a time such as 5m", f.checkpoint)
	}
	return cmp.Or(withFlag(r.Validate()), f.deviceFlags.check(cmd, unsupported))
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(first, second)
}

func parseTrainRows(h *model.Best, flag string) error {
	if flag == "all" {
		h.TrainRows = math.MaxInt32
		return nil
	}
	which, number, two := strings.Cut(flag, ":")
	if !two {
		which, number = "first", which
	}
	n, err := strconv.Atoi(number)
	order, ok := map[string]model.Order{"first": model.Frequency, "random": model.None}[which]
	if err != nil || !ok || n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("want first:n or n, random:n or all, with n from 1 to %d", math.MaxInt32)
	}
	h.TrainRows, h.Order = n, order
	return nil
}

// train runs a recipe on the vectors at paths, and prints the result.
func (f *trainFlags) train(cmd *cobra.Command, paths []string, recipe model.Recipe) error {
	stderr := cmd.ErrOrStderr()
	log, started := f.log(stderr), time.Now()
	p := &progress{stderr: stderr, log: log, lines: f.lines}
	f.Progress = p.read
	o := train.FileOptions{
		Read: f.ReadOptions, Replace: isSet(cmd, "force"), Checkpoint: f.checkpoint, Resume: f.resume, Factor: f.factor, Sparsity: f.sparsity,
		Ready: func(source *vectors.Source, t model.Training) { f.ready(p, started, source, t) },
		Begin: p.begin, Progress: p.rows, Epoch: p.epoch, Encoded: p.encoded, Note: p.note,
	}
	var err error
	if o.Like, o.Labels, err = f.openLike(stderr, recipe.Base().Atoms); err != nil {
		return err
	}
	device := chosenDevice{&f.deviceFlags, log}
	if _, best := recipe.(model.Best); best {
		device.startGPU()
	}
	info, err := train.File(cmd.Context(), paths, recipe, device, f.output, o)
	p.done(err)
	if left, ok := errors.AsType[*train.LeftError](err); ok && errors.Is(err, context.Canceled) {
		return interrupted{left.Left + advice(cmd, left)}
	}
	if err != nil {
		return withFlag(err)
	}
	return f.report(cmd, info)
}

// openLike returns the dictionary and labels of the model that --like names, or nil.
func (f *trainFlags) openLike(stderr io.Writer, atoms int) (like *model.Dictionary, labels []byte, err error) {
	if f.like == "" {
		return nil, nil, nil
	}
	m, err := model.OpenDictionary(f.like)
	if err != nil {
		return nil, nil, err
	}
	k := m.Dictionary.Len()
	if f.factor > 0 || atoms > 0 && atoms != k {
		return nil, nil, usagef("%s has %d dimensions, and --like keeps them; drop -k and --factor", f.like, k)
	}
	if modeldir.IsCheckpoint(f.like) {
		warn(stderr, "%s is a checkpoint: its training isn't finished, and its dimensions will change", f.like)
	}
	all, err := loadLabels(f.like, k)
	all = slices.DeleteFunc(all, func(l interpret.Label) bool { return l.Topic }) // the new model has other topics
	if err != nil || len(all) == 0 {
		return &m.Dictionary, nil, err
	}
	labels, err = json.Marshal(all)
	return &m.Dictionary, labels, err
}

// ready prints what was read, and warns of unusual settings.
func (f *trainFlags) ready(p *progress, started time.Time, source *vectors.Source, t model.Training) {
	warnOf(p.stderr, source)
	say(p.log, "read %s: %d %s × %d dimensions, %s, in %.1f s", source.Name, source.Rows, source.Kind, t.Input.Dim, source.About(), time.Since(started).Seconds())
	c := t.Recipe.Base()
	if c.Atoms <= t.Input.Dim && source.Kind == vectors.KindWords { // for texts, even a few dimensions are useful, as topics
		warn(p.stderr, "%d sparse dimensions for %d dense ones are not overcomplete", c.Atoms, t.Input.Dim)
	}
	if h, is := t.Recipe.(model.Best); is && f.unusual {
		f.warnUnusual(p.stderr, h, t.Input)
	}
	p.start(t.Input.Rows, f.passes, c.Epochs)
}

// warnUnusual warns of hyperparameters that make uninformative codes.
func (f *trainFlags) warnUnusual(stderr io.Writer, h model.Best, in model.Input) {
	const few = 5 // with fewer nonzeros, dense vectors have far better task scores
	switch {
	case h.Nonzeros < few && h.Atoms > few && in.Kind() == vectors.KindWords:
		warn(stderr, "%d nonzeros per row describe a word poorly; --nonzeros %d keeps more", h.Nonzeros, few)
	case h.Nonzeros > in.Dim:
		warn(stderr, "%d nonzeros per row are more than the %d dense dimensions; --nonzeros %d keeps as many", h.Nonzeros, in.Dim, in.Dim)
	}
	if most := max(in.Dim, in.Rows/2); f.like == "" && h.Atoms > most && h.Atoms <= in.Rows { // training refuses more atoms than rows
		warn(stderr, "%d dimensions for %d rows, which initialise them: most will describe a single row; -k %d has two rows per dimension", h.Atoms, in.Rows, most)
	}
}

// A report shows dimensions by their top words among the first shownRows·K rows, the frequent words.
const shownDimensions, shownWords, shownRows, shownTopics = 6, 8, 2, 12

type dimension struct {
	Dimension int      `json:"dimension"`
	Words     []string `json:"words"`
}

// topDimensions returns the strongest dimensions of codes, except dimensions that are similar to a stronger one.
func topDimensions(codes *vectors.Sparse) []dimension {
	x := interpret.NewIndex(codes)
	out := []dimension{}
	shown := map[int]bool{} // rows whose words are shown
	for _, k := range x.Strongest(shownWords) {
		top := x.Top(interpret.Pole{Dimension: k}, shownWords)
		if len(top) == 0 || len(out) == shownDimensions {
			break
		}
		if shown[top[0].Row] {
			continue
		}
		for _, e := range top {
			shown[e.Row] = true
		}
		out = append(out, dimension{k, x.Words(interpret.Pole{Dimension: k}, shownWords)})
	}
	return out
}

// topicRows is the maximum number of texts for which train prints topics. Topics require all codes.
const topicRows = 20_000

// firstDimensions returns the strongest dimensions of the first shownRows·K rows of the output, and the number of rows.
func (f *trainFlags) firstDimensions() (top []dimension, rows int, err error) {
	m, err := model.OpenDictionary(f.output)
	if err != nil {
		return nil, 0, err
	}
	for first, err := range m.Rows(f.output, shownRows*m.Dictionary.Len()) {
		if err != nil {
			return nil, 0, err
		}
		return topDimensions(first), first.Rows, nil
	}
	return nil, 0, nil
}

// topics returns the topics of the output, largest first. There are fewer than T if texts use fewer.
func (f *trainFlags) topics(ctx context.Context) ([]topics.Topic, error) {
	m, err := model.Open(f.output)
	if err != nil {
		return nil, err
	}
	t, err := newTopicTable(ctx, f.output, m, interpret.NewIndex(m.Codes), 0)
	if err != nil {
		return nil, err
	}
	return t.Topics, nil
}

// report prints the metrics of a training, and the topics or else the strongest dimensions of the first rows. If these
// can't be read, it only warns, because the model is complete.
func (f *trainFlags) report(cmd *cobra.Command, i model.Info) error {
	k, themes := i.Training.Recipe.Base().Atoms, i.Training.Themes
	var top []dimension
	var topRows int // number of first rows from which top was computed
	var all []topics.Topic
	var err error
	if themes == nil {
		top, topRows, err = f.firstDimensions()
	} else if i.Rows() <= topicRows {
		all, err = f.topics(cmd.Context())
	}
	largest := all[:min(len(all), shownTopics)]
	if cmd.Context().Err() == nil && err != nil {
		warn(cmd.ErrOrStderr(), "%s is written, but can't be read for this summary: %v", f.output, err)
	} else if err != nil {
		return err
	}
	return show(cmd, struct {
		Model string `json:"model"`
		model.Info
		Dimensions []dimension    `json:"dimensions,omitempty"`
		Topics     []topics.Topic `json:"topics,omitempty"`
	}{f.output, i, top, largest}, func(b *strings.Builder) {
		t := &i.Training
		last := t.Epochs[len(t.Epochs)-1]
		rows := i.Encoding.Input.Kind()
		fmt.Fprintf(b, "%s: %d %s × %d sparse dimensions after %d epochs\n", printing.Text(f.output), i.Rows(), rows, k, last.Epoch)
		if n := t.Input.Rows; n < i.Rows() {
			which := "the first"
			if i.Known() == 0 {
				which = "a random"
			}
			fmt.Fprintf(b, "  training rows         %s %d %s\n", which, n, rows)
		}
		describeCodes(b, *i.Encoding, k)
		fmt.Fprintf(b, "  mean atom norm        %.4f\n", last.AtomNorm)
		if themes != nil {
			n, end := len(all), ":"
			if n == 0 {
				n, end = themes.Topics, ""
			}
			fmt.Fprintf(b, "%d topics (overcomplete topics %s)%s\n", n, printing.Text(f.output), end)
			for _, topic := range largest {
				fmt.Fprintf(b, "  %4.1f %%  %s\n", 100*topic.Share, printing.Text(topic.Label))
			}
			if len(largest) < len(all) {
				fmt.Fprintf(b, "  and smaller ones\n")
			}
			return
		}
		if topRows == 0 {
			return
		}
		fmt.Fprintf(b, "strongest dimensions of the first %d %s, with their top words:\n", topRows, rows)
		for _, d := range top {
			fmt.Fprintf(b, "  %5d  %s\n", d.Dimension, wordList(d.Words, " "))
		}
	})
}
