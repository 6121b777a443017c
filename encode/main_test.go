package encode_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"overcomplete/cpu"
	"overcomplete/train"
	"overcomplete/vectors"
)

// TestMain trains the model of the examples and runs the tests in its directory.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "encode")
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

// trainSample changes to dir and trains the README's first model there.
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
	x, source, err := vectors.Read(ctx, []string{"testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{})
	if err != nil {
		return err
	}
	h := train.Best()
	h.Method = "B"
	m, err := train.Fit(ctx, x, h, cpu.Device{}, train.Options{Source: source})
	if err != nil {
		return err
	}
	return m.Save("godoc.model", false)
}
