package encode_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"overcomplete/cpu"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// TestMain trains the README's first model, for the examples, and runs the tests in its directory.
func TestMain(m *testing.M) {
	sample, err := filepath.Abs("../testdata")
	check(err)
	dir, err := os.MkdirTemp("", "encode")
	check(err)
	check(os.Chdir(dir))
	check(os.CopyFS("testdata", os.DirFS(sample)))
	ctx := context.Background()
	x, source, err := vectors.Read(ctx, []string{"testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{})
	check(err)
	h := train.Best()
	h.Method = "B"
	trained, err := train.Fit(ctx, x, h, cpu.Device{}, train.Options{Source: source})
	check(err)
	check(trained.Save("godoc.model", false))
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// untrained returns a model of the recipe paper without codes, for atoms of length dim.
func untrained(dim int, atoms ...float32) *model.Model {
	h := train.Paper()
	h.Atoms, h.Epochs = len(atoms)/dim, 1
	learned := model.Training{Input: model.Input{Name: "learned.txt", SHA256: "0", Rows: 50, Dim: dim}, Recipe: h}
	return &model.Model{Info: model.Info{Format: model.FormatVersion, Training: learned}, Dictionary: model.Dictionary{Dim: dim, Atoms: atoms}}
}
