package kernels

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"overcomplete/graph"
)

var anySpec = graph.Spec{Atoms: 10, Dim: 4, Lambda: 0.5, Tau: 1e-5, Rate: 0.05}

func compiled(t *testing.T, build graph.Build, spec graph.Spec) *executable {
	t.Helper()
	p, err := graph.Compile(build, spec)
	if err != nil {
		t.Fatal(err)
	}
	x, err := compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The products of the two passes, and nothing beside them, reach the
// tensor cores.
func TestCompile(t *testing.T) {
	for _, test := range []struct {
		name     string
		build    graph.Build
		steps    string
		products int
		sums     string
	}{
		{"dictionary", graph.Dictionary, "decode accumulate decode elementwise", 4, "loss shortened"},
		{"code", graph.Code, "decode correlate decode", 3, "error l1 loss nonzeros"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := compiled(t, test.build, anySpec)
			var kinds []string
			products := 0
			for _, s := range x.steps {
				kinds = append(kinds, string(s.kind))
				products += len(s.product)
			}
			if got := strings.Join(kinds, " "); got != test.steps || products != test.products {
				t.Errorf("%s with %d products, want %s with %d", got, products, test.steps, test.products)
			}
			for _, name := range strings.Fields(test.sums) {
				if _, ok := x.sums[name]; !ok {
					t.Errorf("no sum %s", name)
				}
			}
			if len(x.sums) != len(strings.Fields(test.sums)) {
				t.Errorf("sums %v, want %s", x.sums, test.sums)
			}
		})
	}
}

// What has no kernel is refused when it is compiled, by step.
func TestCompileUnsupported(t *testing.T) {
	twice := func(s graph.Spec, words int, dtype tensor.Dtype) (*graph.Expression, error) {
		e, err := graph.Code(s, words, dtype)
		if err != nil {
			return nil, err
		}
		for i, out := range e.Outputs {
			if out.Name == "S" { // S + S∘S is nothing that dual averaging does
				e.Outputs[i].Node = gorgonia.Must(gorgonia.Add(out.Node, gorgonia.Must(gorgonia.Square(out.Node))))
			}
		}
		return e, nil
	}
	for name, test := range map[string]struct {
		build graph.Build
		want  string
	}{
		"authors' order":       {graph.Authors, "kernels: step 2 (accumulate) of the authors program: no kernel for"},
		"other dual averaging": {twice, "kernels: step 2 (correlate) of the code program: "},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := graph.Compile(test.build, anySpec)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = compile(p); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v, want %s…", err, test.want)
			}
		})
	}
}

// Scratch rows are shared by values that are not needed at the same time: the
// row machine keeps them in shared memory, which is small.
func TestScratchIsReused(t *testing.T) {
	for _, build := range []graph.Build{graph.Dictionary, graph.Code} {
		for i, s := range compiled(t, build, anySpec).steps {
			if s.temps > 4 {
				t.Errorf("step %d needs %d scratch rows", i+1, s.temps)
			}
		}
	}
}

// Go's instructions are the kernels'.
func TestInstructionNames(t *testing.T) {
	names := func(file, pattern string) []string {
		t.Helper()
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(source, -1) {
			found = append(found, strings.ToLower(strings.ReplaceAll(string(m[1]), "_", "")))
		}
		return found
	}
	ours := names("instructions.go", `(?m)^\top([A-Z]\w*)`)
	theirs := names("instructions.cuh", `(?m)^    OP_(\w+)`)
	if len(ours) < 20 || strings.Join(ours, " ") != strings.Join(theirs, " ") {
		t.Errorf("Go has\n%v\nand CUDA\n%v", ours, theirs)
	}
}
