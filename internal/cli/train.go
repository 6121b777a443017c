package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// trainFlags are what train was asked for.
type trainFlags struct {
	modelFlags
	deviceFlags
	checkpointFlags
	output      string
	force       bool
	atoms       int
	factor      int
	epochs      int
	recipe      string
	maxWords    int
	skipBad     bool
	wordList    string
	json, quiet bool
}

func newTrain() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train VECTORS -o MODEL",
		Short: "Learn sparse vectors and their dictionary from dense vectors",
		Long: `Train reads dense word vectors and learns a sparse code for each word and the
dictionary that turns codes back into vectors. It writes a model directory, whole
or not at all, and prints what it measured and some dimensions by their top words.

VECTORS is a file of GloVe text, word2vec text or binary, fastText .vec, .npy, .npz
or .safetensors, plain or compressed with gzip or zstd, or - for standard input. The
format is told from the content.

Method A learns codes of either sign. Method B learns nonnegative codes, of which
"overcomplete export --format binary" makes binary vectors.`,
		Example: `  overcomplete train glove.6B.300d.txt.gz -o model --lambda 1
  overcomplete train vectors.bin -o model --method B -k 2000 --center
  overcomplete train vectors.npy --words words.txt -o model --json > metrics.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return f.train(cmd, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "model `directory` to write")
	flags.BoolVar(&f.force, "force", false, "replace a model that exists")
	flags.IntVarP(&f.atoms, "atoms", "k", 0, "K, the dimensions of the sparse vectors (default --factor times the dense ones)")
	flags.IntVar(&f.factor, "factor", 10, "K as a multiple of the dense dimensions, instead of -k")
	f.register(cmd)
	flags.StringVar(&f.recipe, "recipe", "paper", "paper, or best: --center, and final codes as encode gives them")
	flags.BoolVar(&f.Center, "center", false, "subtract the mean vector first")
	flags.IntVar(&f.epochs, "epochs", 0, "epochs to train (default 20 for method A, 30 for B)")
	flags.StringVar(&f.Stop, "stop", f.Stop, "stop after --epochs (epochs), or by the rule of the paper's program (authors)")
	flags.StringVar(&f.Algorithm, "algorithm", f.Algorithm, "minibatch, or the paper's, word by word and slow (authors)")
	flags.IntVar(&f.DictionarySteps, "dictionary-steps", f.DictionarySteps, "dictionary steps an epoch of --algorithm minibatch")
	flags.Uint64Var(&f.Seed, "seed", f.Seed, "seed of the random codes and dictionary to start from")
	f.registerInput(cmd)
	flags.StringVar(&f.State, "state", f.State, "what to keep sums of gradients as: float32, 8 bytes for each word and dimension, or float16, half of it, rounded (CPU only)")
	f.registerTrainingDevice(cmd)
	flags.DurationVar(&f.checkpoint, "checkpoint", 0, "save what it takes to go on with the training at this interval, such as 5m, and when interrupted")
	flags.BoolVar(&f.resume, "resume", false, "go on with the checkpoint in MODEL, if there is one, to the result of a training never stopped")
	flags.BoolVar(&f.json, "json", false, "print the results as JSON")
	flags.BoolVar(&f.quiet, "quiet", false, "print no progress")
	cmd.MarkFlagRequired("output")
	return cmd
}

// registerInput adds the flags that say how vectors are read.
func (f *trainFlags) registerInput(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.maxWords, "max-words", 0, "read only the first `n` words (default all)")
	flags.BoolVar(&f.skipBad, "skip-bad", false, "drop malformed rows instead of stopping at the first")
	flags.StringVar(&f.wordList, "words", "", "`file` with a word a line, for .npy, .npz and .safetensors, instead of words in the latter two")
}

// registerTrainingDevice adds the flags that say where training runs.
func (f *trainFlags) registerTrainingDevice(cmd *cobra.Command) {
	f.registerDevice(cmd, "train")
	cmd.Flags().BoolVar(&f.overcommit, "overcommit", false, "train on the CPU even if it seems to have too little memory")
}

// registerDevice adds the flags that say where something, such as "train", runs.
func (f *deviceFlags) registerDevice(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	flags.StringVar(&f.device, "device", "auto", "where to "+what+": cpu, cuda (an NVIDIA GPU), cuda:i (the i-th, from 0), or auto, a GPU if there is one")
	flags.StringVar(&f.precision, "precision", "tf32", "precision of products on a GPU: tf32 (fast, 11-bit factors) or fp32")
	flags.IntVar(&f.workers, "workers", 0, "processors to use on the CPU (default all); the result does not depend on it")
}

// check refuses flags outside their domain and settles what depends on others.
func (f *trainFlags) check(cmd *cobra.Command) error {
	if err := f.modelFlags.check(cmd); err != nil {
		return err
	}
	changed := cmd.Flags().Changed
	for _, v := range []struct {
		flag     string
		value    int
		required bool // even if the flag is not given
	}{
		{"-k", f.atoms, changed("atoms")}, {"--factor", f.factor, true}, {"--epochs", f.epochs, changed("epochs")},
		{"--max-words", f.maxWords, changed("max-words")}, {"--workers", f.workers, changed("workers")},
	} {
		if v.required && (v.value < 1 || v.value > math.MaxInt32) {
			return usagef("%s is %d, want 1 to %d", v.flag, v.value, math.MaxInt32)
		}
	}
	switch {
	case f.output == "":
		return usagef("-o is empty, want the name of a directory")
	case changed("atoms") && changed("factor"):
		return usagef("give -k or --factor, not both")
	case changed("stop") && changed("epochs"):
		return usagef("give --epochs or --stop, not both")
	case f.recipe != "paper" && f.recipe != "best":
		return usagef("--recipe is %q, want paper or best", f.recipe)
	case f.recipe == "best" && changed("center") && !f.Center:
		return usagef("--recipe best centres the vectors; drop --center=false")
	case f.Algorithm == "authors" && changed("dictionary-steps"):
		return usagef("--dictionary-steps has no meaning with --algorithm authors, which takes one step a word")
	}
	if err := f.deviceFlags.check(onlyOnCPU(f.Hyperparameters), changed); err != nil {
		return err
	}
	if err := f.checkpointFlags.check(changed("checkpoint")); err != nil {
		return err
	}
	f.Center = f.Center || f.recipe == "best"
	if f.Epochs = f.epochs; f.Epochs == 0 {
		f.Epochs = train.DefaultEpochs(f.Hyperparameters)
	}
	return nil
}

func (f *trainFlags) train(cmd *cobra.Command, path string) error {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	log := stderr
	if f.quiet {
		log = io.Discard
	}
	// What forbids saving is found before hours of training.
	if err := model.CheckSave(f.output, f.force || f.resume); err != nil {
		return err
	}
	if err := f.available(); err != nil {
		return err
	}

	x, source, err := f.read(cmd, path, log)
	if err != nil {
		return err
	}
	m, err := f.fit(ctx, x, source, log, stderr)
	if err != nil {
		return err
	}
	return f.report(cmd.OutOrStdout(), m)
}

// read reads the vectors to train on.
func (f *trainFlags) read(cmd *cobra.Command, path string, log io.Writer) (*vectors.Dense, *vectors.Source, error) {
	start := time.Now()
	x, source, err := vectors.Read(cmd.Context(), path, vectors.ReadOptions{MaxWords: f.maxWords, SkipBad: f.skipBad, WordList: f.wordList})
	if err != nil {
		return nil, nil, err
	}
	for _, warning := range source.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s: %s\n", source.Name, warning)
	}
	fmt.Fprintf(log, "read %s: %d words × %d dimensions, %s, in %.1f s\n", source.Name, x.Len(), x.Dim, source.Format, time.Since(start).Seconds())
	return x, source, nil
}

// fit trains on x, which it centres if that was asked for, and saves the model.
func (f *trainFlags) fit(ctx context.Context, x *vectors.Dense, source *vectors.Source, log, stderr io.Writer) (*model.Model, error) {
	if f.Atoms = f.atoms; f.Atoms == 0 {
		f.Atoms = f.factor * x.Dim
	}
	m, err := train.NewModel(x, source, f.Hyperparameters)
	if err != nil {
		return nil, usagef("--%w", err)
	}
	if f.Atoms <= x.Dim {
		fmt.Fprintf(stderr, "warning: %d sparse dimensions for %d dense ones are not overcomplete\n", f.Atoms, x.Dim)
	}
	progress := f.newProgress(log, x.Len())
	c := &checkpoints{trainFlags: f, ctx: ctx, log: stderr, model: m, replace: f.force, last: time.Now()}
	err = f.run(x, progress, c)
	progress.done()
	if err != nil {
		return nil, err
	}
	if f.recipe == "best" {
		noteLoss(stderr, f.output, m.Info)
		encoded, err := f.encodeCodes(ctx, m, x, log)
		switch {
		case err == nil:
			m = encoded
		case ctx.Err() == nil: // what was learned is not lost
			if saved := m.Save(f.output, c.replace); saved != nil {
				return nil, fmt.Errorf("%w; nor can the model be saved: %w", err, saved)
			}
			return nil, fmt.Errorf("%w; %s is whole, but has the codes of training: encode gives others", err, f.output)
		case c.epoch > 0:
			return nil, resumable(f.output, c.epoch)
		default:
			return nil, err
		}
	}
	return m, m.Save(f.output, c.replace)
}

// Some dimensions to look at.
const shownDimensions, shownWords = 6, 8

// dimension is a dimension with its top words.
type dimension struct {
	Dimension int      `json:"dimension"`
	Words     []string `json:"words"`
}

func topDimensions(m *model.Model) []dimension {
	top := interpret.TopWords(m.Codes, shownWords)
	strongest := interpret.Strongest(top)
	var out []dimension
	for _, k := range strongest[:min(shownDimensions, len(strongest))] {
		d := dimension{Dimension: k, Words: []string{}}
		for _, e := range top[k] {
			d.Words = append(d.Words, m.Codes.Words[e.Row])
		}
		out = append(out, d)
	}
	return out
}

// report prints a training's results.
func (f *trainFlags) report(w io.Writer, m *model.Model) error {
	top := topDimensions(m)
	if f.json {
		return printJSON(w, struct {
			Model string `json:"model"`
			model.Info
			Dimensions []dimension `json:"dimensions"`
		}{f.output, m.Info, top})
	}
	e := m.Info.Epochs[len(m.Info.Epochs)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d words × %d sparse dimensions after %d epochs\n", f.output, m.Codes.Rows, m.Codes.Cols, e.Epoch)
	measured := model.Encoding{Error: e.Error, Objective: e.Objective, Sparsity: e.Sparsity, L1: e.L1, UnusedAtoms: e.UnusedAtoms}
	if m.Info.Encoding != nil {
		measured = *m.Info.Encoding
	}
	describeCodes(&b, measured, m.Codes.Cols)
	fmt.Fprintf(&b, "  mean atom norm %.4f\n", e.AtomNorm)
	fmt.Fprintf(&b, "dimensions with the strongest top words:\n")
	for _, d := range top {
		fmt.Fprintf(&b, "  %5d  %s\n", d.Dimension, wordList(d.Words, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
