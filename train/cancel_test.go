package train_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"overcomplete/cpu"
	"overcomplete/testonly"
	"overcomplete/train"
)

// checkedContext is cancelled at check number `at` of Err or Done.
type checkedContext struct {
	context.Context
	cancel context.CancelFunc
	checks atomic.Int64
	at     int64
}

func (c *checkedContext) check() {
	if c.checks.Add(1) == c.at {
		c.cancel()
	}
}

func (c *checkedContext) Err() error {
	c.check()
	return c.Context.Err()
}

func (c *checkedContext) Done() <-chan struct{} {
	c.check()
	return c.Context.Done()
}

// Wherever File checks its context, cancellation ends it with [context.Canceled]. The model that was there stays, and
// neither files nor goroutines are left. After training, the dictionary is kept.
func TestFileCancelled(t *testing.T) {
	dir := t.TempDir()
	table, out := filepath.Join(dir, "texts.jsonl"), filepath.Join(dir, "model")
	var lines []byte
	for x, i := plantedTexts(), 0; i < x.Len(); i++ {
		line, err := json.Marshal(map[string]any{"text": string(x.Texts.Text[i]), "embedding": x.Row(i)})
		testonly.Must(t, err)
		lines = append(append(lines, line...), '\n')
	}
	testonly.Must(t, os.WriteFile(table, lines, 0o666))
	h := train.Best()
	h.Atoms, h.TrainRows, h.Epochs = 36, 200, 1
	run := func(at int64, replace bool) (checks int64, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &checkedContext{Context: ctx, cancel: cancel, at: at}
		_, err = train.File(c, []string{table}, h, cpu.Device{Workers: 2}, out, train.FileOptions{Replace: replace})
		return c.checks.Load(), err
	}
	info := func() string { return string(testonly.ReadFile(t, filepath.Join(out, "model.json"))) }
	before := runtime.NumGoroutine()
	checks, err := run(0, false)
	testonly.Must(t, err)
	for at := int64(1); at <= checks; at++ {
		earlier := info()
		_, err := run(at, true)
		if err == nil {
			continue // the model was complete
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("check %d of %d: error %v, want %v", at, checks, err, context.Canceled)
		}
		if info() != earlier {
			t.Errorf("check %d of %d: the model that was there changed", at, checks)
		}
		entries, err := os.ReadDir(dir)
		testonly.Must(t, err)
		for _, e := range entries {
			if name := e.Name(); name != "texts.jsonl" && name != "model" && name != "model.dictionary" {
				t.Errorf("check %d of %d: %s is left", at, checks, name)
			}
		}
		testonly.Must(t, os.RemoveAll(out+".dictionary"))
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	if checks < 30 {
		t.Errorf("%d checks, want reading, learning, topics, encoding and writing to have some", checks)
	}
}
