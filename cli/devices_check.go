package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"overcomplete/cpu"
	"overcomplete/internal/printing"
	"overcomplete/kernels"
	"overcomplete/lab/selfcheck"
)

// deviceCheck is the result of devices --check.
type deviceCheck struct {
	Device    string           `json:"device"`
	Precision string           `json:"precision"`
	Size      selfcheck.Size   `json:"size"`
	Steps     []selfcheck.Step `json:"steps"`
	Failed    string           `json:"failed,omitempty"`
}

// checkSize has 4,096 rows and the lengths of GoogleNews, 300 → 3,000.
var checkSize = selfcheck.Size{Rows: 4096, Dim: 300, Atoms: 3000}

// runCheck checks the GPU of --device, by default the first. A fault of the GPU is no error, but is reported in
// Failed.
func runCheck(ctx context.Context, f *deviceFlags, size selfcheck.Size, log io.Writer) (*deviceCheck, error) {
	index, _, err := f.cuda()
	if err != nil {
		return nil, err
	}
	if f.device == "cpu" {
		return nil, usagef("--check compares a GPU with the CPU; drop --device cpu")
	}
	gpu, err := kernels.Find(index)
	if err != nil {
		return nil, usagef("--check: %w", err)
	}
	c := &deviceCheck{Device: fmt.Sprintf("GPU %d, %s", index, gpu.Name), Precision: f.precision, Size: size}
	c.Steps, err = selfcheck.Run(ctx, chosenDevice{f, log}.gpu(index), cpu.Device{Workers: f.workers}, size)
	if err := c.setFailed(err); err != nil {
		return nil, err
	}
	return c, nil
}

// setFailed sets Failed from the steps and the error of the check. It returns an error if the check was cancelled, or
// if the GPU is busy or lacks memory.
func (c *deviceCheck) setFailed(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	for _, s := range slices.Backward(c.Steps) {
		err = cmp.Or(s.Err(), err) // a difference in a step precedes a failure
	}
	if unable(err) {
		return usagef("--check of %s: %w", c.Device, err)
	}
	if err != nil {
		c.Failed = err.Error()
	}
	return nil
}

// err returns the error of a failed check.
func (c *deviceCheck) err() error {
	if c.Failed == "" {
		return nil
	}
	return fmt.Errorf("%s failed the check: %s; don't use it, and report the output of this command with --json, of overcomplete version and of nvidia-smi -q",
		c.Device, c.Failed)
}

func (c *deviceCheck) print(b *strings.Builder) {
	fmt.Fprintf(b, "\nCheck of %s, %s: %d rows, %d → %d\n", c.Device, c.Precision, c.Size.Rows, c.Size.Dim, c.Size.Atoms)
	steps := printing.Table{{"step", "objective ↓", "output ↓", "repeatable", ""}}
	for _, s := range c.Steps {
		verdict := map[bool]string{true: "ok", false: "FAILED"}[s.Err() == nil]
		steps = append(steps, []string{s.Name, fmt.Sprintf("%.1e", s.Objective), fmt.Sprintf("%.1e", s.Output), fmt.Sprint(s.Repeats), verdict})
	}
	b.WriteString(steps.Text("lrrll"))
}
