package selfcheck

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/testonly"
)

var small = Size{Rows: 120, Dim: 20, Atoms: 60}

// faulty is a CPU device whose results the functions codes and atoms change. Their argument run counts the runs from 1.
type faulty struct {
	cpu.Device
	codes func(run int, c *encode.Codes)
	atoms func(run int, atoms []float32)
	runs  *int
}

func (f faulty) Encoder(d *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	e, err := f.Device.Encoder(d, o)
	*f.runs++
	return faultyEncoder{e, f}, err
}

func (f faulty) Learner(x []float32, d *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	l, err := f.Device.Learner(x, d, norm, o)
	*f.runs++
	return faultyLearner{l, f}, err
}

type faultyEncoder struct {
	encode.Encoder
	by faulty
}

func (f faultyEncoder) Start(ctx context.Context, x []float32, codes *encode.Codes) func() error {
	wait := f.Encoder.Start(ctx, x, codes)
	return func() error {
		err := wait()
		if err == nil && f.by.codes != nil {
			f.by.codes(*f.by.runs, codes)
		}
		return err
	}
}

type faultyLearner struct {
	backend.Learner
	by faulty
}

func (f faultyLearner) Dictionary() ([]float32, error) {
	atoms, err := f.Learner.Dictionary()
	if err == nil && f.by.atoms != nil {
		f.by.atoms(*f.by.runs, atoms)
	}
	return atoms, err
}

// Run detects each kind of fault, and reports none for a correct device.
func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		codes func(run int, c *encode.Codes)
		atoms func(run int, atoms []float32)
		want  string // the beginnings of the errors of the steps that fail
	}{
		"correct": {},
		"wrong losses": {codes: func(_ int, c *encode.Codes) {
			for i := range c.Loss {
				c.Loss[i] *= 1.02
			}
		}, want: "encode: the objective"},
		"other values": {codes: func(_ int, c *encode.Codes) {
			for i := range c.Value {
				c.Value[i] *= 1.2
			}
		}, want: "encode: the objective"},
		"other atoms": {codes: func(_ int, c *encode.Codes) {
			for i := range c.Index {
				c.Index[i] ^= 1
			}
			for i := range c.Rows {
				index, _ := c.Row(i)
				slices.Sort(index)
			}
		}, want: "encode: the output"},
		"another result in each run": {
			codes: func(run int, c *encode.Codes) { c.Value[0] += float32(run) * 1e-6 },
			atoms: func(run int, atoms []float32) { atoms[0] += float32(run) * 1e-6 },
			want:  "encode: two runs, learn: two runs",
		},
		"another loss that vanishes in the sum": {codes: func(run int, c *encode.Codes) {
			for range run {
				c.Loss[c.Rows-1] = math.Nextafter(c.Loss[c.Rows-1], 0)
			}
		}, want: "encode: two runs"},
		"no number":          {codes: func(_ int, c *encode.Codes) { c.Loss[0] = math.NaN() }, want: "encode: the objective"},
		"a wrong dictionary": {atoms: func(_ int, atoms []float32) { clear(atoms[:60]) }, want: "learn: the output"},
	} {
		t.Run(name, func(t *testing.T) {
			device := faulty{codes: test.codes, atoms: test.atoms, runs: new(int)}
			steps, err := Run(t.Context(), device, cpu.Device{}, small)
			testonly.Must(t, err)
			var failed []string
			for _, s := range steps {
				if err := s.Err(); err != nil {
					failed = append(failed, strings.Join(strings.Fields(err.Error())[:3], " "))
				}
			}
			if got := strings.Join(failed, ", "); len(steps) != 3 || got != test.want {
				t.Errorf("%d steps, failed: %q, want %q", len(steps), got, test.want)
			}
		})
	}
}

// Run returns the error of a device that fails.
func TestRunFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, cpu.Device{}, cpu.Device{}, small); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
