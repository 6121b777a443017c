package selfcheck

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/cpu"
	"overcomplete/testonly"
)

var small = Size{Rows: 120, Dim: 20, Atoms: 60}

// A correct device passes. Run returns the error of a device that fails.
func TestRun(t *testing.T) {
	steps, err := Run(t.Context(), cpu.Device{}, cpu.Device{Workers: 1}, small)
	testonly.Must(t, err)
	for _, s := range steps {
		testonly.Must(t, s.Err())
	}
	if len(steps) != 3 {
		t.Errorf("%d steps, want 3", len(steps))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, cpu.Device{}, cpu.Device{}, small); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// Each kind of fault is detected. The first run has each fault; the second has it, too, unless alone is set.
func TestCompare(t *testing.T) {
	run := func() output {
		o, err := generate(small).encode(t.Context(), cpu.Device{})
		testonly.Must(t, err)
		return o
	}
	for name, test := range map[string]struct {
		fault func(o *output)
		alone bool
		want  string // the beginning of the error
	}{
		"an objective that is 2 % larger": {func(o *output) { o.objective *= 1.02 }, false, "encode: the objective"},
		"no number":                       {func(o *output) { o.objective = math.NaN() }, true, "encode: the objective"},
		"other values":                    {func(o *output) { clear(o.values[:small.Dim]) }, false, "encode: the output"},
		"another value":                   {func(o *output) { o.values[0] += 1e-6 }, true, "encode: two runs"},
		"another objective":               {func(o *output) { o.objective *= 1 + 1e-9 }, true, "encode: two runs"},
		"another loss that vanishes in the sum": {func(o *output) {
			last := len(o.codes.Loss) - 1
			o.codes.Loss[last] = math.Nextafter(o.codes.Loss[last], 0)
		}, true, "encode: two runs"},
	} {
		got, again, want := run(), run(), run()
		if test.fault(&got); !test.alone {
			test.fault(&again)
		}
		if err := compare("encode", got, again, want).Err(); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
	o := run()
	if loss := floats.Sum(o.codes.Loss); loss < 0.5*o.objective || loss > 0.98*o.objective {
		t.Errorf("the losses, %v, are no part of the objective, %v", loss, o.objective)
	}
	testonly.Must(t, compare("encode", o, run(), run()).Err())
}
