//go:build gpu

package main

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/kernels"
	"overcomplete/model"
)

// What encode does by default, at a density of 8 %.
const encodeSteps, encodeShare = 20, 0.08

// encode measures encoding with a dictionary that is learned for it.
func (b *gpuBench) encode() {
	for _, method := range methods {
		_, learned, err := b.learn(b.job(b.compareWords, b.compareEpochs, method, kernels.TF32))
		dictionary, _ := learned.dictionary.([]float32)
		o := encode.Options{
			Lambda: model.Defaults().Lambda, Nonnegative: method == "B",
			Steps: encodeSteps, Most: max(1, int(encodeShare*float64(b.atoms))),
		}
		var onCPU encoded
		if err == nil {
			var e *cpu.Encoder
			if e, err = cpu.NewEncoder(dictionary, b.dim, nil, o, 0); err == nil {
				onCPU, err = encodeAll(e, b.vectors[:b.compareWords*b.dim], b.dim, true)
			}
		}
		for _, precision := range precisions {
			e := Encoding{Method: method, Precision: string(precision), Words: b.words, Dim: b.dim, Atoms: b.atoms, Steps: o.Steps, Most: o.Most}
			failure := err
			if failure == nil {
				failure = b.measureEncoding(&e, dictionary, o, onCPU)
			}
			if failure != nil {
				e.Problem = failure.Error()
				b.fail("encoding, method %s, %s: %w", method, precision, failure)
			}
			b.report.Encodings = append(b.report.Encodings, e)
		}
	}
}

// measureEncoding compares encoding on the GPU with that on the CPU, and times it.
func (b *gpuBench) measureEncoding(e *Encoding, dictionary []float32, o encode.Options, onCPU encoded) error {
	encoder, err := kernels.NewEncoder(dictionary, b.dim, nil, o, b.device, kernels.Precision(e.Precision))
	if err != nil {
		return err
	}
	defer encoder.Close()
	compared, all := b.vectors[:b.compareWords*b.dim], b.vectors[:b.words*b.dim]
	first, err := encodeAll(encoder, compared, b.dim, true)
	if err != nil {
		return err
	}
	again, err := encodeAll(encoder, compared, b.dim, true)
	if err != nil {
		return err
	}
	e.Error, e.Objective = first.error, first.objective(o.Lambda)
	e.CPUError, e.CPUObjective = onCPU.error, onCPU.objective(o.Lambda)
	e.CPUWordsPerSecond = float64(b.compareWords) / onCPU.seconds
	e.Shared = first.shared(onCPU)
	e.SameBits = reflect.DeepEqual(first.codes, again.codes)
	e.Agree = math.Abs(e.Objective/e.CPUObjective-1) <= objectiveBand && e.Shared >= sharedBand && e.SameBits
	if !e.Agree {
		return fmt.Errorf("objective %.5g on the GPU and %.5g on the CPU; %.2f %% of nonzeros shared; the same bits in two runs: %t",
			e.Objective, e.CPUObjective, 100*e.Shared, e.SameBits)
	}
	for range b.repeats {
		run, err := encodeAll(encoder, all, b.dim, false)
		if err != nil {
			return err
		}
		e.Repeats = append(e.Repeats, run.seconds)
	}
	e.Seconds = median(e.Repeats)
	e.WordsPerSecond = float64(b.words) / e.Seconds
	encoder.StartProfile()
	if _, err := encodeAll(encoder, all, b.dim, false); err != nil {
		return err
	}
	times, err := encoder.Profile()
	e.Kernels = b.report.Peaks.kernels(times)
	return err
}

// sharedBand is the least share of nonzeros that codes on two devices have in
// common.
const sharedBand = 0.99

// encoded is what encoding words gave.
type encoded struct {
	seconds   float64
	error, l1 float64 // means over words
	codes     []*encode.Codes
}

func (e encoded) objective(lambda float64) float64 { return e.error + lambda*e.l1 }

// shared is the share of want's nonzeros that are nonzeros of e.
func (e encoded) shared(want encoded) float64 {
	nonzeros, common := 0, 0
	for n, w := range want.codes {
		for i := range w.Rows {
			index, _ := w.Row(i)
			ours, _ := e.codes[n].Row(i)
			here := make(map[int32]bool)
			for _, k := range ours {
				here[k] = true
			}
			for _, k := range index {
				nonzeros++
				if here[k] {
					common++
				}
			}
		}
	}
	return float64(common) / float64(max(1, nonzeros))
}

// encodeAll encodes rows as encode.Stream does, and measures and keeps their codes
// if that is asked for.
func encodeAll(e encode.Encoder, x []float32, dim int, keep bool) (out encoded, err error) {
	start := time.Now()
	for lo := 0; lo < len(x); lo += encode.Block * dim {
		codes, err := e.Encode(context.Background(), x[lo:min(lo+encode.Block*dim, len(x))])
		if err != nil {
			return out, err
		}
		if keep {
			out.codes = append(out.codes, codes)
		}
	}
	out.seconds = time.Since(start).Seconds()
	words := float64(len(x) / dim)
	for _, c := range out.codes {
		for _, l := range c.Loss {
			out.error += l / words
		}
		for _, v := range c.Value {
			out.l1 += math.Abs(float64(v)) / words
		}
	}
	return out, nil
}
