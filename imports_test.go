package main

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
)

var (
	row    = regexp.MustCompile("(?m)^\\| `([^`]*)` \\|.*\\| (.*) \\|$")
	quoted = regexp.MustCompile("`[^`]*`")
)

// TestImports checks that packages import only the packages of this module, and the plotting library,
// that the table in ARCHITECTURE.md allows, for every system and build tag. Test files are exempt.
func TestImports(t *testing.T) {
	module, _, _ := strings.Cut(strings.TrimPrefix(read(t, "go.mod"), "module "), "\n")
	allowed := make(map[string]string) // the last column, by package
	for _, r := range row.FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1) {
		allowed[r[1]] = r[2]
	}
	found := make(map[string]bool)
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, string(filepath.Separator)+"_") {
			continue
		}
		name := path.Dir(filepath.ToSlash(file))
		if name == "." {
			name = "main.go"
		}
		may, ok := allowed[name]
		if !ok {
			t.Errorf("package %s is not in the table of ARCHITECTURE.md", name)
		}
		found[name] = true
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		testonly.Must(t, err)
		for _, s := range syntax.Imports {
			imported, ours := strings.CutPrefix(strings.Trim(s.Path.Value, `"`), module+"/")
			helper := allowed[imported] == "is a helper" && may != "nothing"
			// The column lists allowed packages or, after "everything but", forbidden ones.
			listed := slices.Contains(quoted.FindAllString(may, -1), "`"+imported+"`")
			if ours && !helper && listed == strings.HasPrefix(may, "everything") {
				t.Errorf("%s imports %s: ARCHITECTURE.md allows %s only: %s", file, imported, name, may)
			}
			if plot := "gonum.org/v1/plot"; strings.HasPrefix(imported, plot) && !slices.Contains(quoted.FindAllString(may, -1), "`"+plot+"`") && !strings.HasPrefix(may, "everything") {
				t.Errorf("%s imports %s: ARCHITECTURE.md allows %s only: %s", file, imported, name, may)
			}
		}
	}
	for name := range allowed {
		if !found[name] {
			t.Errorf("ARCHITECTURE.md: the table lists %s, which is not a package", name)
		}
	}
}
