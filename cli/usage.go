package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// otherCommands maps commands to names that people may type instead.
var otherCommands = map[string][]string{
	"train":   {"fit", "learn", "factorize", "build"},
	"encode":  {"transform", "predict", "embed", "infer", "code"},
	"merge":   {"join", "concat", "combine"},
	"export":  {"convert", "dump", "save", "write"},
	"explore": {"view", "serve", "ui", "web", "browse", "open", "gui", "visualize"},
	"top":     {"info", "show", "dimensions", "inspect", "describe", "list", "print"},
	"nearest": {"search", "find", "query", "similar", "neighbours", "neighbors", "analogy"},
	"compare": {"match", "diff", "align"},
	"topics":  {"themes"},
	"columns": {"diff", "contrast", "drift", "classes"},
	"labels":  {"label", "names", "annotate"},
	"eval":    {"evaluate", "benchmark", "score", "test"},
	"devices": {"gpu", "gpus", "cuda", "device"},
	"help":    {"man", "usage"},

	"paper train":  {"reproduce"},
	"paper tune":   {"tune", "grid"},
	"paper report": {"report", "sweep", "heatmap", "clusters"},
}

// otherFlags maps flags to names that people may type instead.
var otherFlags = map[string][]string{
	"atoms":      {"k", "n-components", "components", "n-atoms", "num-atoms", "dim", "dims", "dimensions", "size", "latents"},
	"device":     {"gpu", "cuda", "cpu", "gpus"},
	"dimensions": {"k", "n-dimensions"},
	"epochs":     {"iterations", "iters", "n-iter", "max-iter", "passes"},
	"force":      {"overwrite", "replace", "yes", "y"},
	"format":     {"f", "to", "type"},
	"host":       {"listen", "address", "bind", "ip"},
	"json":       {"format", "as-json", "machine"},
	"lambda":     {"sparsity", "nonzeros"},
	"max-rows":   {"limit", "max-words", "vocab-size", "head"},
	"neighbours": {"k", "neighbors", "top-k"},
	"nonzeros":   {"l0", "top-k", "topk", "nnz", "n-nonzero-coefs"},
	"open":       {"browser"},
	"output":     {"out", "save", "output-dir", "dest", "out-dir", "to"},
	"port":       {"p"},
	"progress":   {"verbose", "v"},
	"quiet":      {"silent", "q", "no-progress"},
	"seed":       {"random-state", "random-seed", "rng"},
	"sparsity":   {"alpha", "l1", "density", "sparse"},
	"words":      {"n", "top", "topn", "count", "limit", "vocab", "vocabulary"},
	"workers":    {"threads", "jobs", "n-jobs", "j", "procs", "parallel"},
}

// suggest returns the intended name for a known alternative, or else similarly spelled names, as
// "; did you mean A or B?".
func suggest(name, prefix string, names []string, others map[string][]string) string {
	var meant []string
	for _, n := range names {
		if slices.Contains(others[n], strings.ToLower(name)) {
			meant = append(meant, prefix+n)
		}
	}
	if meant == nil {
		c := &cobra.Command{SuggestionsMinimumDistance: min(2, len(name)/2)}
		for _, n := range slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, " ") }) {
			c.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
		}
		for _, n := range c.SuggestionsFor(name) {
			meant = append(meant, prefix+n)
		}
	}
	if meant == nil {
		return ""
	}
	return "; did you mean " + strings.Join(meant, " or ") + "?"
}

// noCommand refuses arguments that aren't commands of cmd.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
			for _, sub := range c.Commands() {
				names = append(names, c.Name()+" "+sub.Name())
			}
		}
	}
	return usagef("no command %q%s", args[0], suggest(args[0], "", names, otherCommands))
}

// needCommand refuses a command without its subcommand.
func needCommand(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return usagef("%s requires a subcommand: %s; see %s --help", cmd.Name(), orNames(names), cmd.CommandPath())
}

// withUsage adds the usage line of a command to an error.
func withUsage(cmd *cobra.Command, format string, args ...any) error {
	return usagef("%s; usage: %s", fmt.Sprintf(format, args...), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
}

// refuseArguments replaces Cobra's errors about the number of arguments of a command.
func refuseArguments(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "") {
			return withUsage(cmd, "an argument is empty")
		}
		err := check(cmd, args)
		if _, ours := errors.AsType[usageError](err); err == nil || ours {
			return err
		}
		switch len(args) {
		case 0:
			return withUsage(cmd, "no arguments are given")
		case 1:
			return withUsage(cmd, "one argument is given, %.60q", args[0])
		}
		return withUsage(cmd, "%d arguments are given, %.60q to %.60q", len(args), args[0], args[len(args)-1])
	}
}

// refuseFlags refuses flags that are given and would have no effect.
func refuseFlags(cmd *cobra.Command, why string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef("%s %s", flagName(cmd.Flags().Lookup(name)), why)
		}
	}
	return nil
}

// refuseRepeated refuses a value that is given twice.
func refuseRepeated[T comparable](what string, values []T) error {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return usagef("%s %.60q is given twice", what, fmt.Sprint(v))
		}
	}
	return nil
}

// checkRequired returns an error that names the first required flag that is missing.
func checkRequired(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !f.Changed {
			argument, meaning := pflag.UnquoteUsage(f)
			err = withUsage(cmd, "%s %s is missing: %s", flagName(f), argument, meaning)
		}
	})
	return err
}

// flagName returns a flag as typed, such as -o.
func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// valueForms describes the values of a type of flag.
var valueForms = map[string]string{
	"bool": "no value", "int": "a whole number", "uint64": "a whole number from 0", "float64": "a number",
	"duration": "a duration, such as 10m", "intSlice": "whole numbers separated by commas", "float64Slice": "numbers separated by commas",
	"stringSlice": "a list separated by commas, with \"double quotes\" around what has a comma or a quote",
}

// flagError rephrases pflag's errors.
func flagError(cmd *cobra.Command, err error) error {
	// A mistyped command often comes with flags of the intended one; report the command then.
	if cmd.HasSubCommands() {
		if wrong := noCommand(cmd, cmd.Flags().Args()); wrong != nil {
			return wrong
		}
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		typed := "--" + e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			typed = typed[1:]
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return withUsage(cmd, "no flag %.60s%s", typed, suggest(e.GetSpecifiedName(), "--", names, otherFlags))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		argument, meaning := pflag.UnquoteUsage(e.GetFlag())
		return withUsage(cmd, "%s needs a value, %s: %s", flagName(e.GetFlag()), argument, meaning)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := e.GetFlag()
		if form := valueForms[f.Value.Type()]; form != "" {
			return usagef("%s is %.60q, want %s", flagName(f), e.GetValue(), form)
		}
		return usagef("%s is %.60q: %w", flagName(f), e.GetValue(), e.Unwrap())
	}
	return withUsage(cmd, "%v", err)
}
