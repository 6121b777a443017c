//go:build full

package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"overcomplete/cpu"
	"overcomplete/train"
)

// scikit-learn's script computes the objective that training reports for the same codes.
func TestDictionaryLearning(t *testing.T) {
	python, ok := os.LookupEnv("OVERCOMPLETE_PYTHON")
	if !ok {
		t.Skip("set OVERCOMPLETE_PYTHON to a Python with the packages of .ci/requirements.txt")
	}
	dir := t.TempDir()
	file, trained := filepath.Join(dir, "x.npy"), filepath.Join(dir, "model")
	if err := run([]string{"vectors", "--words", "150", "--dim", "8", file}, nil); err != nil {
		t.Fatal(err)
	}
	m, err := train.Fit(t.Context(), generate(seed, 150, 8), hyperparameters(24, 3), cpu.Device{}, train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(trained, false); err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []string{"0", "600"} {
		out, err := exec.Command(python, "peers/dictionary_learning.py", trained, file, seconds).Output()
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Seconds, Objective, Ours float64
			Words                    int
			Reached                  bool
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		// Training sums residuals that were rounded to float32.
		if want := m.Info.Training.Epochs[2].Objective; math.Abs(r.Ours/want-1) > 1e-5 {
			t.Errorf("objective %v, training reports %v", r.Ours, want)
		}
		if r.Reached != (r.Objective <= r.Ours) || r.Words == 0 || !r.Reached && seconds != "0" {
			t.Errorf("given %s s: %+v", seconds, r)
		}
	}
}
