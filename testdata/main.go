// Testdata makes godoc.50d.txt.gz, the small set of real word vectors that the
// tests and examples of this module use. It learns them from the comments of
// the Go source tree that it is run with:
//
//	go generate ./testdata
//
// A word is known by the words around it. Word pairs are counted within a
// window; the counts become positive pointwise mutual information (PPMI); and a
// truncated singular value decomposition of that matrix, M ≈ UΣVᵀ, gives the
// vectors, the rows of U√Σ. See Levy, Goldberg and Dagan, "Improving
// Distributional Similarity with Lessons Learned from Word Embeddings" (TACL
// 2015). README.md says what came of it.
package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"go/build"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"overcomplete/internal/atomicfile"
)

//go:generate go run . godoc.50d.txt.gz

const (
	vocabularySize = 5000
	dimensions     = 50
	window         = 10 // words to either side that count as context
	meanNorm       = 3  // of the vectors written; the scale that training is tuned to
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

// generate learns the vectors and writes them to w as gzipped GloVe text. The
// same Go version gives the same bytes.
func generate(w io.Writer) error {
	src := filepath.Join(build.Default.GOROOT, "src")
	text, err := readComments(os.DirFS(src))
	if err != nil {
		return fmt.Errorf("reading the comments of the Go source tree in %s: %w", src, err)
	}
	words := vocabulary(text, vocabularySize)
	u, sigma := svd(ppmi(count(text, words, window)), dimensions, seed)
	vectors := embed(u, sigma, meanNorm)

	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeText(compressed, words, vectors); err != nil {
		return err
	}
	return compressed.Close()
}

// embed returns U√Σ, scaled to the given mean Euclidean norm of a row.
func embed(u *mat.Dense, sigma []float64, meanNorm float64) *mat.Dense {
	root := make([]float64, len(sigma))
	for i, s := range sigma {
		root[i] = math.Sqrt(s)
	}
	var x mat.Dense
	x.Mul(u, mat.NewDiagDense(len(root), root))

	rows, _ := x.Dims()
	var sum float64
	for i := range rows {
		sum += mat.Norm(x.RowView(i), 2)
	}
	x.Scale(meanNorm*float64(rows)/sum, &x)
	return &x
}

// writeText writes a line a word: the word and its vector, separated by spaces.
func writeText(w io.Writer, words []string, x *mat.Dense) error {
	buffered := bufio.NewWriter(w)
	var line []byte
	for i, word := range words {
		line = append(line[:0], word...)
		for _, v := range x.RawRowView(i) {
			line = append(line, ' ')
			line = strconv.AppendFloat(line, v, 'f', 4, 64)
		}
		buffered.Write(append(line, '\n')) // Flush reports the error
	}
	return buffered.Flush()
}
