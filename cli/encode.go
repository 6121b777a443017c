package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/encode"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/printing"
	"overcomplete/model"
	"overcomplete/vectors"
)

type encodeFlags struct {
	vectors.ReadOptions
	deviceFlags
	progressFlags
	output   string
	steps    int
	nonzeros int
	lambda   float64
	exact    bool
	gap      float64
	shard    *model.Shard
}

const leastGap = 1e-5 // the resolution of single precision

func newEncode() *cobra.Command {
	var f encodeFlags
	cmd := &cobra.Command{
		Use:        "encode MODEL VECTORS... -o OUT",
		SuggestFor: []string{"transform", "predict", "embed", "infer"},
		Short:      "Encode vectors with the dictionary of a model",
		Long: `Encode computes a sparse code for every row of VECTORS with the dictionary of MODEL. OUT
is a model directory with these codes and MODEL's dictionary and mean. VECTORS are files,
folders or patterns as train takes them. Memory does not grow with the number of rows. Repeated words are encoded each time. A row of zeros is malformed,
unless it belongs to a text.

By default FISTA is stopped early, so that codes of similar words stay similar, and the
largest values of a code are refined. --exact minimises ‖x − aD‖² + λ‖a‖₁ instead: the
objective is lower, and similar words have less similar codes. Below λ = 0.5, each halving
of λ takes two to three times as long. Both use the squared loss, whatever the loss of the
training, and codes of method B are nonnegative.

Processes can share a large input: run encode with --shard 1/16 to 16/16, and put the
outputs together with "overcomplete merge".
Codes of x86 CPUs with AVX2, of other CPUs, and of GPUs differ in the last digits. Encode all shards
on one of these kinds.`,
		Example: `  overcomplete encode model new.txt -o new.model
  overcomplete encode model vectors.bin -o part3.model --shard 3/16
  zcat crawl.txt.gz | overcomplete encode model - -o exact.model --exact --gap 1e-3`,
		Args: cobra.MinimumNArgs(2),
		RunE: f.encode,
	}
	flags := cmd.Flags()
	addOutput(cmd, &f.output, "model `directory` to write", "a model that exists")
	flags.Var(count(&f.steps, 0), "encode-steps", "steps of FISTA (default MODEL's); 10 favours similarity, 40 a low reconstruction error")
	flags.Var(count(&f.nonzeros, 0), "nonzeros", "maximum number of nonzeros per row (default MODEL's)")
	flags.Float64Var(&f.lambda, "lambda", 0, "weight λ of the codes' Σ|a| (default MODEL's)")
	flags.BoolVar(&f.exact, "exact", false, "minimise the objective instead of stopping early")
	flags.Float64Var(&f.gap, "gap", 1e-4, "with --exact, the duality gap of a row as a share of its objective")
	needs(cmd, "exact", "gap")
	excludes(cmd, "exact", "encode-steps", "nonzeros")
	flags.Func("shard", "encode only part `i/n` of the rows, i from 1 to n", f.parseShard)
	registerInput(cmd, &f.ReadOptions)
	f.registerDevice(cmd)
	addJSON(cmd, "print the results as JSON")
	flags.BoolVar(&f.quiet, "quiet", false, "print no progress")
	return cmd
}

// check refuses flags outside their domain.
func (f *encodeFlags) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("lambda") && (!(f.lambda >= 0) || math.IsInf(float64(float32(f.lambda)), 0)):
		return usagef("--lambda is %v, want 0 or more, in the range of single precision", f.lambda)
	case !(f.gap >= leastGap && f.gap < 1):
		return usagef("--gap is %v, want at least %v, the resolution of single precision, and less than 1", f.gap, leastGap)
	}
	var onCPU error
	if f.exact {
		onCPU = errors.New("--exact runs on the CPU only")
	}
	return f.deviceFlags.check(cmd, onCPU)
}

func (f *encodeFlags) parseShard(s string) error {
	first, second, _ := strings.Cut(s, "/")
	i, err := strconv.Atoi(first)
	n, failed := strconv.Atoi(second)
	if err != nil || failed != nil || i < 1 || i > n || n > math.MaxInt32 {
		return fmt.Errorf("want i/n with i from 1 to n, and n at most %d", math.MaxInt32)
	}
	f.shard = &model.Shard{Index: i, Of: n}
	return nil
}

// openDictionary opens a model without its codes, and returns the options to encode with it.
func (f *encodeFlags) openDictionary(cmd *cobra.Command, dir string) (*model.Model, encode.Options, error) {
	m, err := model.OpenDictionary(dir)
	if err != nil {
		return nil, encode.Options{}, err
	}
	o := encode.Defaults(m.Info)
	if cmd.Flags().Changed("lambda") {
		o.Lambda = f.lambda
	}
	if cmd.Flags().Changed("nonzeros") {
		if o.Nonzeros = f.nonzeros; o.Nonzeros > m.Dictionary.Len() {
			return nil, o, usagef("--nonzeros is %d, and %s has %d dimensions", f.nonzeros, dir, m.Dictionary.Len())
		}
	}
	return m, o, nil
}

func (f *encodeFlags) encode(cmd *cobra.Command, args []string) error {
	dir := args[0]
	if err := f.check(cmd); err != nil {
		return err
	}
	m, o, err := f.openDictionary(cmd, dir)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("encode-steps") {
		o.Steps = f.steps
	}
	if f.exact {
		if o.Gap = f.gap; o.Lambda == 0 {
			return usagef("--exact needs a λ above 0; give --lambda")
		}
	}
	stderr := cmd.ErrOrStderr()
	if paper, is := m.Info.Training.Recipe.(model.Paper); is && paper.Loss != model.Squared {
		say(stderr, "%s: trained with the loss %s, encoded with the squared loss", dir, paper.Loss)
	}
	if modeldir.IsCheckpoint(dir) {
		warn(stderr, "%s is a checkpoint: its training isn't finished, and its dictionary will change", dir)
	}
	log := f.log(stderr)
	p := newBar(log, unknown)
	f.Progress = p.read
	info, source, err := encode.File(cmd.Context(), m, args[1:], f.output, chosenDevice{&f.deviceFlags, log}, o, encode.FileOptions{
		Read: f.ReadOptions, Shard: f.shard, Replace: isSet(cmd, "force"), Show: func(block *vectors.Sparse) { p.add(block.Rows) },
	})
	p.done(err)
	if errors.Is(err, encode.ErrDictionary) {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if err != nil {
		return err
	}
	warnOf(stderr, source)
	return reportEncoding(cmd, f.output, info)
}

func reportEncoding(cmd *cobra.Command, output string, i model.Info) error {
	e := i.Encoding
	if e.Unreached > 0 {
		var named []string
		for _, word := range e.UnreachedIDs {
			named = append(named, fmt.Sprintf("%.100q", word))
		}
		if e.Unreached > len(named) {
			named = append(named, "…")
		}
		warn(cmd.ErrOrStderr(), "rows above the duality gap of %v: %d (%s)", e.Gap, e.Unreached, strings.Join(named, ", "))
	}
	if e.Input.Rows > 0 && e.L1 == 0 {
		warn(cmd.ErrOrStderr(), "all codes are zero: use a smaller --lambda")
	}
	return show(cmd, struct {
		Model string `json:"model"`
		model.Info
	}{output, i}, func(b *strings.Builder) {
		atoms := i.Training.Recipe.Base().Atoms
		fmt.Fprintf(b, "%s: %d %s × %d sparse dimensions\n", printing.Text(output), e.Input.Rows, e.Input.Kind(), atoms)
		if e.Input.Rows == 0 { // a shard of an input with fewer blocks than shards
			fmt.Fprintf(b, "  shard %d/%d has no rows: the input has %d, in blocks of %d\n", e.Shard.Index, e.Shard.Of, e.Shard.Rows, encode.Block)
		} else {
			describeCodes(b, *e, atoms)
			if e.Gap > 0 {
				fmt.Fprintf(b, "  largest duality gap   %.1e of a row's objective\n", e.WorstGap)
			}
		}
	})
}

func describeCodes(w io.Writer, e model.Encoding, atoms int) {
	fmt.Fprintf(w, "  reconstruction error  %.4f\n", e.Error)
	if share, known := e.Explained(); known {
		fmt.Fprintf(w, "  explained variance    %.1f %%\n", 100*share)
	}
	fmt.Fprintf(w, "  objective             %.4f\n", e.Objective)
	fmt.Fprintf(w, "  sparsity              %.2f %%, %.1f nonzeros per row\n", 100*e.Sparsity, (1-e.Sparsity)*float64(atoms))
	fmt.Fprintf(w, "  mean ‖a‖₁             %.4f\n", e.L1)
	fmt.Fprintf(w, "  dead atoms            %d\n", e.UnusedAtoms)
}
