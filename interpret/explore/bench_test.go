package explore

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// largeModel returns codes of 400,000 words × 3,000 dimensions with a sparsity of 91 %. Half of the words use the
// first dimensions, and one in thirty the last.
var largeModel = sync.OnceValue(func() *model.Model {
	const words, atoms, dim = 400_000, 3000, 300
	rng := rand.New(rand.NewPCG(1, 2))
	h := train.Paper()
	h.Atoms = atoms
	training := model.Training{Input: model.Input{Name: "large", Rows: words, Dim: dim}, Recipe: h}
	m := &model.Model{
		Info:       model.Info{Training: training, Encoding: training.PaperEncoding()},
		Codes:      &vectors.Sparse{IDs: make([]string, words), CSR: vectors.CSR{Rows: words, Cols: atoms, Ptr: make([]int64, 1, words+1)}},
		Dictionary: model.Dictionary{Dim: dim, Atoms: make([]float32, atoms*dim)},
	}
	for i := range words {
		m.Codes.IDs[i] = fmt.Sprintf("%c%s", 'a'+i%26, fmt.Sprint(i*7919))
		for k := rng.IntN(3); k < atoms; k += 1 + rng.IntN(3+k/45) {
			m.Codes.Index = append(m.Codes.Index, int32(k))
			m.Codes.Value = append(m.Codes.Value, rng.Float32()+1e-6)
		}
		m.Codes.Ptr = append(m.Codes.Ptr, int64(len(m.Codes.Index)))
	}
	for i := range m.Dictionary.Atoms {
		m.Dictionary.Atoms[i] = float32(rng.NormFloat64())
	}
	return m
})

// BenchmarkStart measures the time until the first page and until the maps.
func BenchmarkStart(b *testing.B) {
	m := largeModel()
	for b.Loop() {
		start := time.Now()
		x := newExplorer(b, m, "large")
		b.ReportMetric(time.Since(start).Seconds(), "s/new")
		x.rowMap()
		b.ReportMetric(time.Since(start).Seconds(), "s/maps")
	}
}

// BenchmarkClick measures the mean time of each kind of request.
func BenchmarkClick(b *testing.B) {
	m := largeModel()
	x := newExplorer(b, m, "large")
	x.rowMap()
	handler := x.Handler("")
	for _, click := range []struct {
		name   string
		target func(i int) string
		status int
	}{
		{"model", func(int) string { return "/data/model" }, http.StatusOK},
		{"word", func(i int) string { return "/data/word?word=" + m.Codes.IDs[i*7919%len(m.Codes.IDs)] }, http.StatusOK},
		{"largest dimension", func(int) string { return "/data/dimension?dimension=1" }, http.StatusOK},
		{"dimension", func(i int) string { return fmt.Sprint("/data/dimension?dimension=", i*79%3000) }, http.StatusOK},
		{"sum", func(i int) string {
			return "/data/query?query=" + url.QueryEscape(fmt.Sprintf("%s - %s + %s", m.Codes.IDs[i*7919%len(m.Codes.IDs)], m.Codes.IDs[i*104729%len(m.Codes.IDs)+1], m.Codes.IDs[i*1299709%len(m.Codes.IDs)+2]))
		}, http.StatusOK},
		{"text of 100 words", func(i int) string {
			return "/data/query?query=" + url.QueryEscape(strings.Join(m.Codes.IDs[i*7919%len(m.Codes.IDs):][:100], " "))
		}, http.StatusOK},
		{"complete", func(i int) string { return "/data/complete?prefix=" + m.Codes.IDs[i*79%len(m.Codes.IDs)][:1+i%4] }, http.StatusOK},
		{"unknown word", func(i int) string { return "/data/word?word=" + url.QueryEscape(fmt.Sprint("unknown", i)) }, http.StatusNotFound},
	} {
		b.Run(click.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if w := get(handler, click.target(i)); w.Code != click.status {
					b.Fatalf("%s: %d", click.target(i), w.Code)
				}
			}
		})
	}
}
