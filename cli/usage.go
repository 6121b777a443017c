package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noCommand refuses arguments that aren't commands of cmd.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("no command %q%s", args[0], suggest(cmd, args[0], ""))
}

// suggest returns a phrase with the subcommands of cmd that name may mean: "; did you mean A or B?".
func suggest(cmd *cobra.Command, name, prefix string) string {
	cmd.SuggestionsMinimumDistance = min(2, len(name)/2)
	meant := cmd.SuggestionsFor(name)
	if len(meant) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(meant, " or "+prefix) + "?"
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

// refuseRepeated refuses a value that is given twice.
func refuseRepeated[T comparable](what string, values []T) error {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return usagef("%s %.60q is given twice", what, fmt.Sprint(v))
		}
	}
	return nil
}

// valueForms describes the values of a type of flag.
var valueForms = map[string]string{
	"bool": "no value", "float64": "a number",
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
		flags := &cobra.Command{} // has a command for each flag, because suggest searches commands
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		})
		return withUsage(cmd, "no flag %.60s%s", typed, suggest(flags, e.GetSpecifiedName(), "--"))
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
		if n, err := strconv.ParseInt(e.GetValue(), 10, 64); err == nil {
			return usagef("%s is %d, %w", flagName(f), n, e.Unwrap())
		}
		return usagef("%s is %.60q, %w", flagName(f), e.GetValue(), e.Unwrap())
	}
	return withUsage(cmd, "%v", err)
}
