package main

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"

	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// Generated vectors stand in for word2vec's 300-dimensional ones of GoogleNews,
// whose numbers, measured on its 8,000 most frequent words, these are.
const (
	meanNorm     = 2.93  // of a vector
	meanOffset   = 0.25  // of the mean vector, relative to meanNorm
	normSpread   = 0.15  // standard deviation of the logarithm of norms
	decay        = 0.54  // covariance's j-th eigenvalue ∝ (j + decayOffset)^−decay, j = 1, 2, …
	decayOffset  = 2     //
	clusterShare = 0.85  // of the variance: that of clusters' centres
	clusters     = 50000 // of which the c-th has a share of words ∝ 1/(c + clusterOffset)
	clusterStart = 200   //
)

// seed is that of all vectors and trainings here.
const seed = 1

// Streams keep random numbers for different purposes apart.
const (
	wordStream = iota
	clusterStream
)

// generate returns words with vectors that have the spectrum, the norms and about
// the nearness to each other of real ones. A vector is a function of the seed
// and its row alone: fewer words are the first of more.
//
// A word is its cluster's centre plus noise, both Gaussian, times a number with a
// heavy tail, and turned so that no axis is special.
func generate(seed uint64, words, dim int) *vectors.Dense {
	return generateFrom(seed, 0, words, dim)
}

// generateFrom returns words of which the first is row first.
func generateFrom(seed uint64, first, words, dim int) *vectors.Dense {
	deviation := deviations(dim)
	x := &vectors.Dense{Words: make([]string, words), Dim: dim, Data: make([]float32, words*dim)}
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() {
			g := generator{seed: seed, deviation: deviation, row: make([]float64, dim)}
			for i := w; i < words; i += workers {
				x.Words[i] = "word" + strconv.Itoa(first+i)
				g.word(x.Row(i), first+i)
			}
		})
	}
	group.Wait()
	return x
}

// deviations are the square roots of the covariance's eigenvalues.
func deviations(dim int) []float64 {
	deviation := make([]float64, dim)
	var total float64
	for j := range deviation {
		deviation[j] = math.Pow(float64(j+1)+decayOffset, -decay/2)
		total += deviation[j] * deviation[j]
	}
	for j := range deviation {
		deviation[j] *= meanNorm * math.Sqrt((1-meanOffset*meanOffset)/total)
	}
	return deviation
}

type generator struct {
	seed      uint64
	deviation []float64
	row       []float64
}

// random returns the numbers that belong to a row of a stream.
func (g *generator) random(stream, row int) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], g.seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(stream))
	binary.LittleEndian.PutUint64(key[16:], uint64(row))
	return rand.New(rand.NewChaCha8(key))
}

func (g *generator) word(x []float32, i int) {
	own := g.random(wordStream, i)
	cluster := clusterStart * (math.Pow(clusters/clusterStart+1, own.Float64()) - 1)
	centre := g.random(clusterStream, int(cluster))
	norm := math.Exp(normSpread*own.NormFloat64() - normSpread*normSpread)
	for j, d := range g.deviation {
		g.row[j] = norm * d * (math.Sqrt(clusterShare)*centre.NormFloat64() + math.Sqrt(1-clusterShare)*own.NormFloat64())
	}
	turn(g.row)
	for j := range x {
		x[j] = float32(g.row[j] + meanNorm*meanOffset/math.Sqrt(float64(len(x))))
	}
}

// toUnit scales each vector to norm 1.
func toUnit(x *vectors.Dense) {
	for i := range x.Len() {
		row := x.Row(i)
		var squares float64
		for _, v := range row {
			squares += float64(v) * float64(v)
		}
		for j := range row {
			row[j] = float32(float64(row[j]) / math.Sqrt(squares))
		}
	}
}

// turn rotates a vector by rotations in planes, which leave no coordinate as it
// was.
func turn(x []float64) {
	sin, cos := math.Sincos(1)
	for apart := 1; apart < len(x); apart *= 2 {
		for i := range x {
			j := (i + apart) % len(x)
			x[i], x[j] = cos*x[i]-sin*x[j], sin*x[i]+cos*x[j]
		}
	}
}

// writeVectors writes vectors as NumPy's .npy.
func writeVectors(path string, x []float32, dim int) error {
	return writeFile(path, func(w io.Writer) error { return npy.Write(w, []int{len(x) / dim, dim}, x) })
}
