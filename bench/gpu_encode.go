//go:build gpu

package main

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/kernels"
	"overcomplete/model"
)

const (
	encodeShare = 0.08 // of a code's dimensions that may be nonzeros
	sharedBand  = 0.99 // the least share of nonzeros that codes on two devices have in common
)

// encode measures encoding with a dictionary that is learned for it.
func (b *gpuBench) encode() {
	b.report.Encodings = nil
	for _, method := range methods {
		var o encode.Options
		var onCPU encoded
		_, m, err := b.learn(b.job(b.compareWords, b.compareEpochs, method, kernels.TF32))
		if err == nil {
			o = encode.Defaults(m.Info)
			o.Nonzeros = model.Nonzeros(1-encodeShare, b.atoms)
			onCPU, err = b.encodeOnCPU(&m.Dictionary, o)
		}
		for _, precision := range precisions {
			e := Encoding{Method: string(method), Precision: string(precision), Words: b.words, Dim: b.dim, Atoms: b.atoms, Steps: o.Steps, Most: o.Nonzeros}
			failure := err
			if failure == nil {
				failure = b.measureEncoding(&e, &m.Dictionary, o, onCPU)
			}
			if failure != nil {
				e.Problem = failure.Error()
				b.fail("encoding, method %s, %s: %w", method, precision, failure)
			}
			add(b, &b.report.Encodings, e)
		}
	}
}

// encodeOnCPU encodes the words that both devices encode.
func (b *gpuBench) encodeOnCPU(d *model.Dictionary, o encode.Options) (encoded, error) {
	encoder, err := cpu.Device{}.Encoder(d, o)
	if err != nil {
		return encoded{}, err
	}
	defer encoder.Close()
	return encodeWords(encoder, b.first(b.compareWords).Data)
}

// measureEncoding compares encoding on the GPU with that on the CPU, and times it.
func (b *gpuBench) measureEncoding(e *Encoding, d *model.Dictionary, o encode.Options, onCPU encoded) error {
	opened, err := kernels.Device{Index: b.device, Precision: kernels.Precision(e.Precision)}.Encoder(d, o)
	if err != nil {
		return err
	}
	defer opened.Close()
	encoder := opened.(*kernels.Encoder)
	all := b.first(b.words).Data
	compared := b.first(b.compareWords).Data
	one, err := encodeWords(encoder, compared)
	if err != nil {
		return err
	}
	again, err := encodeWords(encoder, compared)
	if err != nil {
		return err
	}
	e.Error, e.Objective = one.error, one.objective
	e.CPUError, e.CPUObjective = onCPU.error, onCPU.objective
	e.CPUWordsPerSecond = float64(b.compareWords) / onCPU.seconds
	e.Shared = one.shared(onCPU)
	e.SameBits = reflect.DeepEqual(one.codes, again.codes)
	e.Agree = math.Abs(e.Objective/e.CPUObjective-1) <= objectiveBand && e.Shared >= sharedBand && e.SameBits
	if !e.Agree {
		return fmt.Errorf("objective %.5g on the GPU and %.5g on the CPU; %.2f %% of nonzeros shared; the same bits in two runs: %t",
			e.Objective, e.CPUObjective, 100*e.Shared, e.SameBits)
	}
	encodeAll := func() error { // as encode.Stream does
		wait := encoder.Start(context.Background(), nil)
		for block := range slices.Chunk(all, encode.Block*b.dim) {
			next := encoder.Start(context.Background(), block)
			if _, err := wait(); err != nil {
				return err
			}
			wait = next
		}
		_, err := wait()
		return err
	}
	for range b.repeats {
		start := time.Now()
		if err := encodeAll(); err != nil {
			return err
		}
		e.Repeats = append(e.Repeats, time.Since(start).Seconds())
	}
	e.Seconds = median(e.Repeats)
	e.WordsPerSecond = float64(b.words) / e.Seconds
	encoder.StartProfile()
	if err := encodeAll(); err != nil {
		return err
	}
	times, err := encoder.Profile()
	e.Kernels = b.report.Peaks.kernels(times)
	return err
}

// encoded is what encoding words gave.
type encoded struct {
	codes            *encode.Codes
	seconds          float64
	error, objective float64 // means over words
}

// encodeWords encodes rows and measures their codes.
func encodeWords(e encode.Encoder, x []float32) (out encoded, err error) {
	start := time.Now()
	if out.codes, err = e.Encode(context.Background(), x); err != nil {
		return out, err
	}
	out.seconds = time.Since(start).Seconds()
	words := float64(out.codes.Rows)
	for _, l := range out.codes.Loss {
		out.error += l / words
	}
	out.objective = out.error
	for _, v := range out.codes.Value {
		out.objective += e.Options().Lambda * math.Abs(float64(v)) / words
	}
	return out, nil
}

// shared is the share of want's nonzeros that are nonzeros of e.
func (e encoded) shared(want encoded) float64 {
	common := 0
	for i := range want.codes.Rows {
		index, _ := want.codes.Row(i)
		ours, _ := e.codes.Row(i)
		for _, k := range index {
			if _, found := slices.BinarySearch(ours, k); found {
				common++
			}
		}
	}
	return float64(common) / float64(max(1, want.codes.Nonzeros()))
}
