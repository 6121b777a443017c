package main

import (
	"context"
	"encoding/binary"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"strconv"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/npy"
	"overcomplete/internal/parallel"
	"overcomplete/vectors"
)

// Generated vectors imitate word2vec's 300-dimensional vectors of GoogleNews. These statistics were measured on its
// 8,000 most frequent words.
const (
	meanNorm     = 2.93 // mean norm of a vector
	meanOffset   = 0.25 // norm of the mean vector, relative to meanNorm
	normSpread   = 0.15 // standard deviation of the logarithm of norms
	decay        = 0.54 // covariance's j-th eigenvalue ∝ (j + decayOffset)^−decay, j = 1, 2, …
	decayOffset  = 2
	clusterShare = 0.85  // fraction of the variance due to cluster centres
	clusters     = 50000 // number of clusters; the fraction of words in cluster c is ∝ 1/(c + clusterStart)
	clusterStart = 200
)

// seed is the seed of all vectors and trainings.
const seed = 1

// Streams of random numbers.
const (
	rowStream = iota
	clusterStream
)

func init() {
	commands["vectors"] = command{"write generated vectors to FILE.npy, for other programs to train on", benchVectors}
}

func benchVectors(flags *flag.FlagSet, args []string, _ io.Writer) error {
	var rows, dim int
	positive(flags, &rows, "words", 400000, "number of vectors")
	positive(flags, &dim, "dim", 300, "length of vectors")
	if err := parse(flags, args, 1); err != nil {
		return err
	}
	x := generate(seed, rows, dim)
	return atomicfile.WriteFile(context.Background(), flags.Arg(0), true, func(w io.Writer) error {
		return npy.Write(w, []int{rows, dim}, x.Data)
	})
}

// generate returns vectors with the spectrum and the norms of real vectors, and similar cosines between neighbours. A
// vector depends only on the seed and its row, so that a smaller set is a prefix of a larger set.
//
// A vector is its cluster's centre plus Gaussian noise, scaled to a heavy-tailed norm, and rotated to mix the axes.
func generate(seed uint64, rows, dim int) *vectors.Dense {
	deviation := deviations(dim)
	x := &vectors.Dense{IDs: make([]string, rows), Dim: dim, Data: make([]float32, rows*dim)}
	parallel.Ranges(rows, func(lo, hi int) {
		g := generator{seed: seed, deviation: deviation, row: make([]float64, dim)}
		for i := lo; i < hi; i++ {
			x.IDs[i] = "word" + strconv.Itoa(i)
			g.vector(x.Row(i), i)
		}
	})
	return x
}

// deviations returns the square roots of the covariance's eigenvalues.
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

func (g *generator) random(stream, row int) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], g.seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(stream))
	binary.LittleEndian.PutUint64(key[16:], uint64(row))
	return rand.New(rand.NewChaCha8(key))
}

func (g *generator) vector(x []float32, i int) {
	own := g.random(rowStream, i)
	cluster := clusterStart * (math.Pow(clusters/clusterStart+1, own.Float64()) - 1)
	centre := g.random(clusterStream, int(cluster))
	norm := math.Exp(normSpread*own.NormFloat64() - normSpread*normSpread)
	for j, d := range g.deviation {
		g.row[j] = norm * d * (math.Sqrt(clusterShare)*centre.NormFloat64() + math.Sqrt(1-clusterShare)*own.NormFloat64())
	}
	rotate(g.row)
	for j := range x {
		x[j] = float32(g.row[j] + meanNorm*meanOffset/math.Sqrt(float64(len(x))))
	}
}

// rotate rotates a vector in several planes, so that each coordinate mixes with others.
func rotate(x []float64) {
	sin, cos := math.Sincos(1)
	for apart := 1; apart < len(x); apart *= 2 {
		for i := range x {
			j := (i + apart) % len(x)
			x[i], x[j] = cos*x[i]-sin*x[j], sin*x[i]+cos*x[j]
		}
	}
}
