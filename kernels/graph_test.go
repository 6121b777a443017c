//go:build gpu

package kernels

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gorgonia.org/cu"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/backendtest"
)

// From the second epoch on, one graph runs all dictionary steps except the last step, which has fewer words. The bits
// of the results and the launches are the same for every schedule.
func TestGraph(t *testing.T) {
	const rows, epochs = 100, 4
	for i, schedule := range schedules {
		precision, method := []Precision{tf32, fp16}[i/2], []model.Method{model.Signed, model.Nonnegative}[i%2]
		t.Run(string(precision)+string(method), func(t *testing.T) {
			p := sample(rows)
			p.Hyperparameters.Method = method
			wholeSteps := rows / p.Batch()
			if rows%p.Batch() == 0 || wholeSteps < 2 {
				t.Fatalf("batches of %d words make a poor test", p.Batch())
			}
			if emulated {
				setting(t, "EMULATED_SCHEDULE", schedule)
			}
			train := func(graphs bool) (r backendtest.Result, b *trainer) {
				b = open(t, p, precision, 0)
				t.Cleanup(func() { b.Close() })
				if !graphs {
					captureNone(b, p.Batch())
				}
				return backendtest.Trained(t, b, p.Batch(), 0, epochs), b
			}
			want, plain := train(false)
			got, b := train(true)
			if plain.gpu.cache.graph != nil || b.gpu.cache.graph == nil {
				t.Error("a graph although captures are off, or none although they are on")
			}
			if !reflect.DeepEqual(got, want) {
				t.Error("other bits than launch by launch")
			}
			if !emulated {
				return
			}
			count := func(steps int) int {
				return len(launches(t, func() error {
					b := open(t, p, precision, 0)
					leave := b.gpu.enter()
					for range steps {
						b.run(b.dictionaryStep, b.stateAt(0), p.Batch(), 0)
					}
					leave()
					return b.Close()
				}))
			}
			log := func(graphs bool) []string { return launches(t, func() error { train(graphs); return nil }) }
			all, graphs := log(true), 0
			for i, kernel := range all {
				if name, ok := strings.CutPrefix(kernel, graphed); ok {
					graphs, all[i] = graphs+1, name
				}
			}
			if want := (count(1) - count(0)) * (epochs - 1) * wholeSteps; graphs != want {
				t.Errorf("%d launches by graphs, want %d", graphs, want)
			}
			if want := log(false); !reflect.DeepEqual(all, want) {
				t.Errorf("the launches are\n%v\nwant\n%v", all, want)
			}
		})
	}
}

// captureNone prevents the capture of a graph for a batch size: it pretends that an earlier capture failed.
func captureNone(b *trainer, batch int) { b.gpu.cache = launchCache{key: batch, times: 2} }

// A graph is reused only for the same batch size.
func TestGraphBatches(t *testing.T) {
	for _, precision := range sampled(tf32, fp16) {
		p := sample(100)
		b, plain := open(t, p, precision, 0), open(t, p, precision, 0)
		defer b.Close()
		defer plain.Close()
		for i, batch := range []int{13, 13, 13, 10, 10, 13, 10, 12, 13, 13} {
			got := backendtest.Trained(t, b, batch, i, i+1)
			captureNone(plain, batch)
			if want := backendtest.Trained(t, plain, batch, i, i+1); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, epoch %d: other bits than launch by launch", precision, i+1)
			}
		}
		if b.gpu.cache.key != 13 || b.gpu.cache.graph == nil {
			t.Errorf("the graph is %+v", b.gpu.cache)
		}
	}
}

// If a capture fails, launches continue without a graph. If a launch itself fails, repeat reports an error. In both
// cases the stream remains usable.
func TestCaptureFails(t *testing.T) {
	if !emulated {
		t.Skip("needs the emulated driver")
	}
	random := randomCodes{shape: shape{rows: 1}}.launch(tf32)
	wrong := random
	wrong.threads = 2000
	for _, tt := range []struct {
		name, want string
		f          func(g *gpu, call int) // the second call is the capture
	}{
		{"a call of others", "", func(*gpu, int) { cu.MemAlloc(16) }},
		{"a call", "", func(g *gpu, _ int) { g.synchronize(g.compute) }},
		{"launches after a call of others", "", func(g *gpu, _ int) {
			cu.MemAlloc(16)
			g.queue(random, g.compute)
		}},
		{"a launch, once", "", func(g *gpu, call int) {
			if call == 2 {
				g.queue(wrong, g.compute)
			}
		}},
		{"launches", "launch of random_codes: InvalidValue", func(g *gpu, call int) {
			if call == 1 {
				g.queue(random, g.compute)
			} else {
				g.queue(wrong, g.compute)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := open(t, sample(20), tf32, 0)
			leave, calls := b.gpu.enter(), 0
			for range 4 {
				b.gpu.repeat(1, func() { calls++; tt.f(b.gpu, calls) })
			}
			leave()
			switch {
			case tt.want != "":
				if b.gpu.err == nil || !regexp.MustCompile(`^kernels: `+tt.want+`$`).MatchString(b.gpu.err.Error()) || calls != 3 {
					t.Errorf("%d calls, error %v, want %s", calls, b.gpu.err, tt.want)
				}
			case b.gpu.err != nil || calls != 5 || b.gpu.cache.graph != nil: // one of the calls is the capture
				t.Errorf("%d calls, error %v, graph %v", calls, b.gpu.err, b.gpu.cache.graph)
			}
			b.gpu.err = nil
			if _, err := b.Epoch(t.Context(), 1, 3); err != nil {
				t.Errorf("after a capture that failed: %v", err)
			}
			testonly.Must(t, b.Close())
		})
	}
}

// A failing launch of a graph is an error that names the kernel.
func TestGraphFaults(t *testing.T) {
	p := sample(20)
	p.Hyperparameters.DictionarySteps = 1
	failEachLaunch(t, "accumulate_tf32 body correlate_tf32 decode_tf32 finish_codes graph:accumulate_tf32 graph:body graph:decode_tf32 graph:totals random_codes totals",
		func() error {
			b, err := newTrainer(Device{}, p, 0)
			if err != nil {
				return err
			}
			defer b.Close()
			for epoch := 1; epoch <= 2 && err == nil; epoch++ {
				_, err = b.Epoch(t.Context(), epoch, p.Batch())
			}
			return err
		})
}
