package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// noImports replaces imports by empty packages, because only variables of this package are looked up.
type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// The variable of each flag is read somewhere, so that every flag has an effect. The library's tests cover the fields
// of its options.
func TestFlagsAreRead(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.go")
	testonly.Must(t, err)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			file, err := parser.ParseFile(fset, path, nil, 0)
			testonly.Must(t, err)
			files = append(files, file)
		}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}} // names of other packages are unknown
	config.Check("cli", fset, files, &info)

	uses := map[types.Object]int{}
	for _, object := range info.Uses {
		uses[object]++
	}
	register := regexp.MustCompile(`^([A-Z]\w*VarP?|count|countFrom0|within|seedOf|oneOf|methodFlag)$`) // the first are methods of pflag.FlagSet
	flags := map[types.Object]token.Pos{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			function, _ := call.Fun.(*ast.Ident)
			if method, ok := call.Fun.(*ast.SelectorExpr); ok {
				function = method.Sel
			}
			address, isAddress := call.Args[0].(*ast.UnaryExpr)
			if function == nil || !isAddress || !register.MatchString(function.Name) {
				return true
			}
			name, ok := address.X.(*ast.Ident)
			if field, isField := address.X.(*ast.SelectorExpr); isField {
				name, ok = field.Sel, true
			}
			if variable := info.Uses[name]; ok && variable != nil {
				flags[variable] = call.Pos()
				uses[variable]--
			}
			return true
		})
	}
	for variable, at := range flags {
		if uses[variable] == 0 {
			t.Errorf("%s: no code reads the variable %s of this flag", fset.Position(at), variable.Name())
		}
	}
	if len(flags) < 50 {
		t.Errorf("%d flags found", len(flags))
	}
}
