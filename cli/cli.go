// Package cli is the command line, with one file per command.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"overcomplete/encode"
	"overcomplete/internal/atomicfile"
	"overcomplete/internal/memory"
	"overcomplete/internal/printing"
	"overcomplete/internal/simd"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2   // bad usage or input
	exitInterrupted = 130 // as a shell reports a program that SIGINT ended
)

// usageError reports bad usage, or bad input whose error has no type of its own.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// interrupted is the error of an interrupted command that left something behind.
type interrupted struct {
	left string // description of the remaining output, and how to resume
}

func (e interrupted) Error() string { return "interrupted; " + e.left }
func (e interrupted) Unwrap() error { return context.Canceled }

// orNames lists names as alternatives: "a, b or c".
func orNames(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Main runs the command line of this process and returns its exit code.
func Main() int {
	// A closed standard error must not end a training; writes then return an error.
	signal.Ignore(syscall.SIGPIPE)
	// Signals that the parent process ignores, as nohup does, stay ignored.
	signals := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	// A second signal ends the program at once, unless it comes with the first: programs such as timeout send a signal
	// to the process and then to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(100*time.Millisecond, stop) })
	memory.SetLimit()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// run executes one command. Results go to stdout, everything else to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	out, errs := &stream{ctx: ctx, w: stdout}, printing.Writer{Writer: &stream{ctx: ctx, w: stderr}}
	root.SetOut(printing.Writer{Writer: out})
	root.SetErr(errs)
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := checkFlags(cmd)
		started = err == nil
		return err
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil && out.err != nil { // the command ignored the error of a write
		started, err = true, out.err
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		if e, ok := errors.AsType[interrupted](err); ok {
			say(errs, "overcomplete: %v", e)
		} else {
			say(errs, "overcomplete: interrupted, no file was written")
		}
		return exitInterrupted
	case !started:
		say(errs, "overcomplete: %s; see %s --help", shortened(err.Error()), cmd.CommandPath())
		return exitUsage
	case errors.Is(err, syscall.EPIPE):
		return exitFailed // the reader of the results closed the pipe
	}
	if isUsage(err) {
		say(errs, "overcomplete: %s%s", shortened(err.Error()), advice(cmd, err))
		return exitUsage
	}
	say(errs, "overcomplete: %v%s", err, advice(cmd, err))
	return exitFailed
}

var longWord = regexp.MustCompile(`\S{81,}`)

// shortened returns the message. In a long message, it cuts the middle out of names of more than 80 characters.
func shortened(message string) string {
	const most = 200
	if utf8.RuneCountInString(message) <= most {
		return message
	}
	return longWord.ReplaceAllStringFunc(message, func(word string) string {
		runes := []rune(word)
		return string(runes[:40]) + "…" + string(runes[len(runes)-40:])
	})
}

// refusals are errors caused by the user's command or files.
var refusals = []error{
	train.ErrCheckpoint, train.ErrMemory, memory.ErrTooLarge, encode.ErrOverflow, encode.ErrDictionary, vectors.ErrUnindexable, simd.ErrLevel,
}

// systemFailures are errors of the system that neither the command nor its files cause.
var systemFailures = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ESTALE, syscall.ETIMEDOUT,
}

// isUsage reports whether err was caused by the user's command or files.
func isUsage(err error) bool {
	if slices.ContainsFunc(systemFailures, func(failure error) bool { return errors.Is(err, failure) }) {
		return false
	}
	var usage usageError
	var input *vectors.InputError
	var output *atomicfile.OutputError
	return errors.As(err, &usage) || errors.As(err, &input) || errors.As(err, &output) ||
		slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

func init() { cobra.EnableCommandSorting = false } // help lists commands in the order of their use

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "overcomplete",
		Short: "Sparse, overcomplete codes of embeddings that people can read",
		Long: `Overcomplete turns dense vectors of words or texts into sparse, overcomplete,
optionally nonnegative or binary codes whose dimensions people can read (Faruqui
et al., Sparse Overcomplete Word Vector Representations, ACL 2015).

Results go to standard output, everything else to standard error. Exit codes: 0
done, 1 failed, 2 bad usage or input, 130 interrupted.`,
		Example:       "  overcomplete train posts.parquet -o model\n  overcomplete explore model --open",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
	}
	version := root.Flags().Bool("version", false, "print the version of this program and how it was built")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			return printVersion(cmd)
		}
		return cmd.Help()
	}
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{.CommandPath}} [command]", "{{.CommandPath}} COMMAND", 1))
	const program = "This program:"
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Train and encode:", []*cobra.Command{newTrain(), newEncode(), newMerge(), newExport(), newPipe(), newQuery()}},
		{"Interpret:", []*cobra.Command{newExplore(), newTopics(), newTop(), newExplain(), newNearest(), newCompare(), newLabels()}},
		{"Evaluate:", []*cobra.Command{newEval(), newRecall(), newIntrusion()}},
		{"The paper:", []*cobra.Command{newPaper()}},
		{program, []*cobra.Command{newDevices(), newGraph(), newVersion(), newMan()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID(program)
	root.SetCompletionCommandGroupID(program)
	root.SetFlagErrorFunc(flagError)
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Example = "  overcomplete help train"
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Example = "  overcomplete completion bash > /etc/bash_completion.d/overcomplete"
	// Cobra's help prints the help of the program for an unknown command; refuse it instead.
	help.Args = func(_ *cobra.Command, args []string) error {
		found, rest, err := root.Find(args)
		return cmp.Or(err, noCommand(found, rest))
	}
	prepare(root)
	return root
}

// prepare sets up the flags, completion and messages of a command and of its subcommands.
func prepare(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false // help lists them in the order of their use
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if names, ok := f.Value.(interface{ all() []string }); ok {
			complete(cmd, f, names.all())
		}
	})
	if !cmd.Runnable() {
		cmd.Args, cmd.RunE = noCommand, needCommand
	}
	refuseArguments(cmd)
	for _, c := range cmd.Commands() {
		prepare(c)
	}
}
