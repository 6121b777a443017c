// Package cli is the command line: one file a command.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"overcomplete/encode"
	"overcomplete/internal/atomicfile"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2   // bad usage or input
	exitInterrupted = 130 // as a shell reports a program that SIGINT ended
)

// usageError is bad usage, or bad input that has no type of its own.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// interrupted is the error of a command that can be gone on with.
type interrupted struct {
	left string // what is there of it, and how to go on
}

func (e interrupted) Error() string { return "interrupted; " + e.left }
func (e interrupted) Unwrap() error { return context.Canceled }

// Main runs the command line of this process and returns its exit code.
func Main() int {
	// A training goes on when nobody reads its progress any more: to write is
	// then an error like others.
	signal.Ignore(syscall.SIGPIPE)
	// What is ignored from the start, as under nohup, stays so.
	signals := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	// A second signal ends the program at once, as without a handler.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// run executes one command. Results go to stdout, everything else to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := cmd.ValidateRequiredFlags()
		started = err == nil
		return err
	}
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		if e, ok := errors.AsType[interrupted](err); ok {
			fmt.Fprintln(stderr, "overcomplete:", e)
		} else {
			fmt.Fprintln(stderr, "overcomplete: interrupted, no file was written")
		}
		return exitInterrupted
	case !started:
		fmt.Fprintf(stderr, "overcomplete: %v; see %s --help\n", err, cmd.CommandPath())
		return exitUsage
	case errors.Is(err, syscall.EPIPE):
		return exitFailed // whoever read the results has seen enough
	}
	fmt.Fprintln(stderr, "overcomplete:", err)
	if isUsage(err) {
		return exitUsage
	}
	return exitFailed
}

// isUsage reports whether the user's command or files are at fault.
func isUsage(err error) bool {
	var usage usageError
	var input *vectors.InputError
	var output *atomicfile.OutputError
	var shards *encode.ShardError
	var checkpoint *train.CheckpointError
	return errors.As(err, &usage) || errors.As(err, &input) || errors.As(err, &output) || errors.As(err, &shards) || errors.As(err, &checkpoint) ||
		errors.Is(err, encode.ErrOverflow) || errors.Is(err, encode.ErrDictionary)
}

// printJSON prints what a command found, indented, for --json.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "overcomplete",
		Short: "Sparse, overcomplete word vectors that people can read",
		Long: `Overcomplete turns dense word vectors into sparse, overcomplete, optionally
nonnegative and binary vectors whose dimensions people can read (Faruqui et al.,
Sparse Overcomplete Word Vector Representations, ACL 2015).

Results go to standard output, everything else to standard error. Exit codes: 0
done, 1 failed, 2 bad usage or input, 130 interrupted.`,
		Example:       "  overcomplete train glove.6B.300d.txt -o model --lambda 1",
		SilenceErrors: true,
		SilenceUsage:  true,
		// Errors are one line.
		DisableSuggestions: true,
	}
	version := root.Flags().Bool("version", false, "print the version of this program and how it was built")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			return printVersion(cmd.OutOrStdout())
		}
		return cmd.Help()
	}
	root.AddCommand(newTrain(), newEncode(), newMerge(), newExport(),
		newEval(), newTransform(), newTune(), newSweep(), newPaper(),
		newTop(), newExplain(), newIntrusion(), newClusters(), newHeatmap(), newExplore(),
		newGraph(), newDevices(), newVersion())
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Example = "  overcomplete help train"
	// Without this, help on what is no command is that on the program.
	help.Args = func(_ *cobra.Command, args []string) error {
		_, _, err := root.Find(args)
		return err
	}
	return root
}
