package input_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mayOpen has the files of the program that open files by themselves, and why they may.
// All others have package input read, and package atomicfile write.
var mayOpen = map[string]string{
	"internal/input/input.go":           "this package",
	"internal/atomicfile/atomicfile.go": "files that are whole or not there",
	"internal/memory/memory_linux.go":   "files of the kernel's",
	"vectors/readfile.go":               "vectors may come from a pipe, and are hashed as they come",
	"vectors/csr.go":                    "temporary files, in a directory that is not there yet",
	"model/directory.go":                "a directory, to see whether it is replaced",
	"interpret/judge/answers.go":        "answers are added to a file",
	"eval/evaltest/evaltest.go":         "data of tests",
}

// Who opens a file without care waits for a pipe that nobody writes to, or reads a device
// that has no end.
func TestNobodyElseOpensFiles(t *testing.T) {
	opening := []string{"Open", "OpenFile", "ReadFile", "Create", "CreateTemp", "WriteFile", "OpenInRoot", "OpenRoot"}
	const root = "../.."
	used := map[string]bool{}
	for _, top := range []string{"cpu", "encode", "eval", "graph", "internal", "interpret", "model", "train", "vectors"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && (strings.HasPrefix(entry.Name(), "_") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(opening, s.Sel.Name) {
					if x, ok := s.X.(*ast.Ident); ok && (x.Name == "os" || x.Name == "ioutil") {
						used[name] = true
						if mayOpen[name] == "" {
							t.Errorf("%s calls os.%s: use package input or atomicfile", name, s.Sel.Name)
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range mayOpen {
		if !used[name] {
			t.Errorf("%s need not be allowed to open files", name)
		}
	}
}
