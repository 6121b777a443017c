package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man [COMMAND]",
		Short: "Print the manual page of the program, or of a command",
		Long: `Man prints a manual page in troff, as man reads it. It says what --help says.
Archives of releases have the pages of all commands.`,
		Example: `  overcomplete man train | man -l -
  overcomplete man train > /usr/local/share/man/man1/overcomplete-train.1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err := cmp.Or(err, noCommand(about, rest)); err != nil {
				return err
			}
			return writeMan(raw(cmd.OutOrStdout()), about)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if about, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range visible(about) {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// visible returns the commands of a command that are there for people.
func visible(cmd *cobra.Command) (commands []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			commands = append(commands, c)
		}
	}
	return commands
}

// writeMan writes a command's help as a manual page.
func writeMan(w io.Writer, cmd *cobra.Command) error {
	name := func(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
	var b strings.Builder
	section := func(title, text string) { fmt.Fprintf(&b, ".SH %s\n%s", title, text) }
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"\" \"overcomplete\"\n", troff(strings.ToUpper(name(cmd))))
	section("NAME", troff(name(cmd))+` \- `+troff(cmd.Short)+"\n")
	section("SYNOPSIS", `\fB`+troff(cmd.UseLine())+`\fR`+"\n")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	section("DESCRIPTION", asItStands(long))
	if commands := visible(cmd); len(commands) > 0 {
		section("COMMANDS", "")
		for _, c := range commands {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", troff(c.Name()), troff(c.Short))
		}
	}
	cmd.InitDefaultHelpFlag()
	section("OPTIONS", "")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		fmt.Fprint(&b, ".TP\n.B ")
		if f.Shorthand != "" {
			fmt.Fprint(&b, troff("-"+f.Shorthand+", "))
		}
		if !slices.Contains([]string{"", "0", "false", "[]", "0s"}, f.DefValue) {
			usage += fmt.Sprintf(" (default %s)", strings.Trim(f.DefValue, "[]"))
		}
		fmt.Fprint(&b, troff(strings.TrimSpace("--"+f.Name+" "+value)), "\n", troff(usage), "\n")
	})
	if cmd.Example != "" {
		section("EXAMPLES", asItStands(cmd.Example))
	}
	if parent := cmd.Parent(); parent != nil {
		section("SEE ALSO", ".BR "+troff(name(parent))+" (1)\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// asItStands is a text whose lines are not filled.
func asItStands(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i := range lines {
		lines[i] = troff(lines[i])
	}
	return ".nf\n" + strings.Join(lines, "\n") + "\n.fi\n"
}

// troff escapes a line of text.
func troff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
