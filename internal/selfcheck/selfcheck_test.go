package selfcheck

import (
	"context"
	"errors"
	"slices"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
)

var small = Size{Rows: 120, Compared: 80, Dim: 20, Atoms: 60}

// faulty is a CPU device whose codes and dictionaries are changed by functions of the number of the run.
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

func (f faultyEncoder) Encode(ctx context.Context, x []float32) (*encode.Codes, error) {
	c, err := f.Encoder.Encode(ctx, x)
	if err == nil && f.by.codes != nil {
		f.by.codes(*f.by.runs, c)
	}
	return c, err
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
		want  []string
	}{
		"correct":      {},
		"wrong losses": {codes: func(_ int, c *encode.Codes) { c.Loss[3] *= 1.01 }, want: []string{"encode: loss in float64"}},
		"other values": {codes: func(_ int, c *encode.Codes) {
			for i := range c.Value {
				c.Value[i] *= 1.2
			}
		}, want: []string{"encode: loss in float64", "encode: objective"}},
		"other atoms": {codes: func(_ int, c *encode.Codes) {
			for i := range c.Index {
				c.Index[i] ^= 1
			}
			for i := range c.Rows {
				index, _ := c.Row(i)
				slices.Sort(index)
			}
		}, want: []string{"encode: loss in float64", "encode: support"}},
		"another result in each run": {
			codes: func(run int, c *encode.Codes) { c.Value[0] += float32(run) * 1e-6 },
			atoms: func(run int, atoms []float32) { atoms[0] += float32(run) * 1e-6 },
			want:  []string{"encode: second run", "learn: second run"},
		},
		"a wrong dictionary": {atoms: func(_ int, atoms []float32) { clear(atoms[:60]) }, want: []string{"learn: dictionary"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(t.Context(), faulty{codes: test.codes, atoms: test.atoms, runs: new(int)}, cpu.Device{}, small)
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, d := range r.Differences {
				if !d.OK() {
					failed = append(failed, d.Step+": "+d.Metric)
				}
			}
			if !slices.Equal(failed, test.want) {
				t.Errorf("failed: %q, want %q", failed, test.want)
			}
			for _, rate := range r.Rates {
				if !(rate.Seconds > 0 && rate.FLOPs > 0 && rate.Rows > 0) {
					t.Errorf("%+v", rate)
				}
			}
		})
	}
}

// Run returns the error of a device that fails.
func TestRunFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, cpu.Device{}, nil, small); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
