// Testdata makes godoc.50d.txt.gz, the real word vectors that the tests and examples of this module
// use. It learns them from the comments of the Go source tree that it is run with:
//
//	go generate ./testdata
//
// It counts word pairs within a window, converts the counts to positive pointwise mutual information
// (PPMI), and takes a truncated singular value decomposition M ≈ UΣVᵀ. The vectors are the rows of
// U√Σ. See Levy, Goldberg and Dagan, "Improving Distributional Similarity with Lessons Learned from
// Word Embeddings" (TACL 2015). README.md describes the result.
package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"go/build"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"overcomplete/internal/atomicfile"
)

//go:generate go run . godoc.50d.txt.gz

const (
	vocabularySize = 5000
	dimensions     = 50
	window         = 10 // words of context on either side
	meanNorm       = 3  // of the vectors; the scale that training is tuned to
	seed           = 1
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./testdata FILE.txt.gz")
		os.Exit(2)
	}
	if err := atomicfile.WriteFile(context.Background(), os.Args[1], true, generate); err != nil {
		fmt.Fprintln(os.Stderr, "testdata:", err)
		os.Exit(1)
	}
}

// generate learns the vectors and writes them to w as gzipped GloVe text. The same version of Go
// gives the same bytes.
func generate(w io.Writer) error {
	src := filepath.Join(build.Default.GOROOT, "src")
	text, err := readComments(os.DirFS(src))
	if err != nil {
		return fmt.Errorf("reading the comments of the Go source tree in %s: %w", src, err)
	}
	words := vocabulary(text, vocabularySize)
	x, sigma := svd(ppmi(count(text, words)), dimensions)
	for j, s := range sigma {
		column := x.ColView(j).(*mat.VecDense)
		column.ScaleVec(math.Sqrt(s), column)
	}
	var norms float64
	for i := range words {
		norms += mat.Norm(x.RowView(i), 2)
	}
	x.Scale(meanNorm*float64(len(words))/norms, x)

	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(compressed)
	for i, word := range words {
		line := []byte(word)
		for _, v := range x.RawRowView(i) {
			line = strconv.AppendFloat(append(line, ' '), v, 'f', 4, 64)
		}
		buffered.Write(append(line, '\n')) // Flush reports the error
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return compressed.Close()
}

// count returns the symmetric matrix C of co-occurrence. C[i][j] sums window+1−d over all pairs of
// words[i] and words[j] in a paragraph at a distance d ≤ window. Other words are removed first, which
// lets the window reach further.
func count(text [][]string, words []string) [][]uint32 {
	index := make(map[string]int, len(words))
	counts := make([][]uint32, len(words))
	for i, w := range words {
		index[w] = i
		counts[i] = make([]uint32, len(words))
	}
	var known []int
	for _, paragraph := range text {
		known = known[:0]
		for _, w := range paragraph {
			if i, ok := index[w]; ok {
				known = append(known, i)
			}
		}
		for at, i := range known {
			for d := 1; d <= window && d <= at; d++ {
				j := known[at-d]
				counts[i][j] += uint32(window + 1 - d)
				counts[j][i] += uint32(window + 1 - d)
			}
		}
	}
	return counts
}

// sparse is a square matrix: row i has the value value[i][p] in column column[i][p].
type sparse struct {
	column [][]int
	value  [][]float64
}

// ppmi returns the positive pointwise mutual information of symmetric counts C,
//
//	M[i][j] = max(0, log(C[i][j]·ΣC / (Σ_k C[i][k] · Σ_k C[k][j])))
func ppmi(counts [][]uint32) *sparse {
	sums := make([]float64, len(counts)) // of rows and of columns
	var total float64
	for i, row := range counts {
		for _, c := range row {
			sums[i] += float64(c)
		}
		total += sums[i]
	}
	m := &sparse{column: make([][]int, len(counts)), value: make([][]float64, len(counts))}
	for i, row := range counts {
		for j, c := range row {
			if pmi := math.Log(float64(c) * total / (sums[i] * sums[j])); c > 0 && pmi > 0 {
				m.column[i] = append(m.column[i], j)
				m.value[i] = append(m.value[i], pmi)
			}
		}
	}
	return m
}

// The iteration carries more columns than asked for. It converges by σ_{k+oversampling+1}/σ_k per step.
const (
	oversampling = 50
	iterations   = 100
)

// svd returns the k largest singular values of the symmetric matrix m in decreasing order, and the left
// singular vectors as the columns of u. The largest component of a singular vector, whose sign is
// arbitrary, is positive.
//
// This is simultaneous iteration from a random start: Q becomes the left singular vectors of MQ. Once Q
// spans an invariant subspace of M with eigenvalues Λ, they are those of M: for Q = UR with R orthogonal,
// (MQ)(MQ)ᵀ = UΛRRᵀΛUᵀ = UΛ²Uᵀ.
func svd(m *sparse, k int) (u *mat.Dense, sigma []float64) {
	n := len(m.value)
	rng := rand.New(rand.NewPCG(seed, 0))
	q := mat.NewDense(n, min(n, k+oversampling), nil)
	q.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, q)
	var f mat.SVD
	for range iterations {
		if !f.Factorize(m.mul(q), mat.SVDThin) {
			panic("svd: no convergence") // requires NaN or Inf, which PPMI excludes
		}
		f.UTo(q)
	}
	u = mat.DenseCopyOf(q.Slice(0, n, 0, k))
	for j := range k {
		column := u.ColView(j).(*mat.VecDense)
		if mat.Max(column) < -mat.Min(column) {
			column.ScaleVec(-1, column)
		}
	}
	return u, f.Values(nil)[:k]
}

// mul returns MX.
func (m *sparse) mul(x *mat.Dense) *mat.Dense {
	_, cols := x.Dims()
	y := mat.NewDense(len(m.value), cols, nil)
	for i, columns := range m.column {
		row := y.RawRowView(i)
		for p, j := range columns {
			floats.AddScaled(row, m.value[i][p], x.RawRowView(j))
		}
	}
	return y
}
