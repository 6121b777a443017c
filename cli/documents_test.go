package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"overcomplete/internal/simd"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// documents returns README.md and the pages of docs.
func documents(t *testing.T) map[string]string {
	pages := map[string]string{}
	root := os.DirFS("..")
	paths, err := fs.Glob(root, "docs/*/*.md")
	if err != nil || len(paths) < 10 {
		t.Fatalf("docs has %d pages: %v", len(paths), err)
	}
	for _, path := range append(paths, "README.md") {
		text, err := fs.ReadFile(root, path)
		testonly.Must(t, err)
		pages[path] = string(text)
	}
	return pages
}

var (
	inlineCommand = regexp.MustCompile("`overcomplete ([^`]+)`")
	blockCommand  = regexp.MustCompile(`(?m)^    (?:overcomplete|go run \.) (.*)$`)
	shellRest     = regexp.MustCompile(` *( #|[;&|<>]).*`) // what follows the command
	usesModel     = regexp.MustCompile(`(godoc|messages)\.model`)
	redirection   = regexp.MustCompile(` > (\S+)`)
	number        = regexp.MustCompile(`^[A-Z]+$`) // a placeholder, as in -k K
	quoted        = regexp.MustCompile(`"[^"]*"|\S+`)
)

// arguments splits a command line as a shell does. It drops what follows the command.
func arguments(line string) []string {
	var args []string
	for _, arg := range quoted.FindAllString(shellRest.ReplaceAllString(line, ""), -1) {
		args = append(args, strings.Trim(arg, `"`))
	}
	return args
}

// The commands in the documents exist, with their flags and numbers of arguments.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	commands := 0
	for path, text := range documents(t) {
		for _, match := range append(blockCommand.FindAllStringSubmatch(text, -1), inlineCommand.FindAllStringSubmatch(text, -1)...) {
			args := arguments(match[1])
			cmd, rest, err := newRoot().Find(args)
			if err != nil {
				t.Errorf("%s: %q: %v", path, match[0], err)
				continue
			}
			for i, arg := range rest {
				if number.MatchString(arg) && i > 0 && strings.HasPrefix(rest[i-1], "-") && rest[i-1] != "-o" && rest[i-1] != "--method" {
					rest[i] = "1"
				}
				if value := map[string]string{"FORMAT": "csr", "random:N": "random:1"}[arg]; value != "" {
					rest[i] = value
				}
			}
			if err := cmd.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) {
				t.Errorf("%s: %q: %v", path, match[0], err)
				continue
			}
			commands++
			if match[0][0] == '`' { // a command without its arguments
				continue
			}
			if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
				t.Errorf("%s: %q: %v", path, match[0], err)
			}
		}
	}
	if commands < 50 {
		t.Errorf("the documents have %d commands", commands)
	}
}

// Commands in the documents on the models of README print the blocks that follow them. Other processors than x86 with
// AVX2 differ in the last bits of models, which decide about single texts and words.
func TestDocumentedOutput(t *testing.T) {
	t.Parallel()
	kernels, _, err := simd.Choose()
	testonly.Must(t, err)
	dir := clitest.New(t)
	data, err := filepath.Abs("../testdata")
	testonly.Must(t, err)
	testonly.Must(t, os.Symlink(data, filepath.Join(string(dir), "testdata")))
	dir.MustRun(t, "train testdata/godoc.50d.txt.gz -o godoc.model --method B --quiet --force")
	dir.MustRun(t, "train testdata/messages.384d.500.parquet -o messages.model --quiet --force")
	shown := 0
	for path, text := range documents(t) {
		locations := blockCommand.FindAllStringSubmatchIndex(text, -1)
		for i, at := range locations {
			command := shellRest.ReplaceAllString(text[at[2]:at[3]], "")
			if !usesModel.MatchString(command) || strings.HasPrefix(command, "explore") && !strings.Contains(command, "--export") {
				continue
			}
			until := len(text)
			if i+1 < len(locations) {
				until = locations[i+1][0]
			}
			stdout, _ := dir.MustRun(t, strings.Replace(command, "train ", "train --force ", 1))
			if to := redirection.FindStringSubmatch(text[at[2]:at[3]]); to != nil {
				testonly.Must(t, os.WriteFile(filepath.Join(string(dir), to[1]), []byte(stdout), 0o666))
			}
			_, block, found := strings.Cut(text[at[1]:until], "\n```\n")
			if output, _, ended := strings.Cut(block, "```\n"); found && ended {
				shown++
				if stdout != output && runtime.GOARCH == "amd64" && kernels.Name != "generic" {
					t.Errorf("%s: %q prints\n%s, not\n%s", path, command, stdout, output)
				}
			}
		}
	}
	if shown < 6 {
		t.Errorf("the documents have %d outputs", shown)
	}
}
