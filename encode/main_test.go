package encode_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/cpu"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// What the README's program is, as of before tests go elsewhere.
var readme, example []byte

// TestMain trains the model that the example is about, and runs tests where it is.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		var dir string
		var err error
		if readme, err = os.ReadFile("../README.md"); err == nil {
			example, err = os.ReadFile("example_test.go")
		}
		if err == nil {
			dir, err = os.MkdirTemp("", "encode")
		}
		if err == nil {
			defer os.RemoveAll(dir)
			err = trainSample(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// The README has the example as a program, and what it prints.
func TestREADME(t *testing.T) {
	readme, example := string(readme), string(example)
	body, rest, _ := strings.Cut(example, "\t// Output:\n")
	output, rest, _ := strings.Cut(rest, "}\n")
	program := strings.Replace(body+"}\n"+rest, "package encode_test", "package main", 1)
	program = strings.Replace(program, "// What the README's first model makes of a phrase.\nfunc Example()", "func main()", 1)
	if !strings.Contains(program, "func main()") || !strings.Contains(readme, "```go\n"+program+"```\n") {
		t.Errorf("the README does not have this program:\n%s", program)
	}
	if output = strings.ReplaceAll(output, "\t// ", ""); !strings.Contains(readme, "```\n"+output+"```\n") {
		t.Errorf("the README does not have its output:\n%s", output)
	}
}

// trainSample does in dir what the README's first command does, and goes there.
func trainSample(dir string) error {
	sample, err := filepath.Abs("../testdata")
	if err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if err := os.CopyFS("testdata", os.DirFS(sample)); err != nil {
		return err
	}
	ctx := context.Background()
	x, source, err := vectors.Read(ctx, "testdata/godoc.50d.txt.gz", vectors.ReadOptions{})
	if err != nil {
		return err
	}
	h := model.Defaults()
	h.Method, h.Lambda, h.Center = "B", 1, true
	m, err := train.Fit(ctx, x, h, cpu.Device{}, train.Options{Source: source})
	if err != nil {
		return err
	}
	return m.Save("godoc.model", false)
}
