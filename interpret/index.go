// Package interpret explains dimensions, words and similarities (Faruqui et al. 2015, §4).
//
// The words with the largest values describe a dimension ([Index.Top], [Index.Label]). The strongest
// dimensions describe a word ([Code.Weights]). [Compare] splits the cosine of two codes into a part per
// dimension. [MatchAtoms] matches the dimensions of two models.
//
// This prints the dimensions of a word with their top words, and the nearest words:
//
//	m, err := model.Open("godoc.model")
//	x := interpret.NewIndex(m.Codes)
//	row, ok := x.Row("mutex")
//	code := x.Code(row)
//	for _, w := range code.Weights() {
//		fmt.Println(w.Dimension, w.Value, x.Words(w.Pole(), 8))
//	}
//	for _, n := range x.Nearest(code, 10, row) {
//		fmt.Println(m.Codes.IDs[n.Row], n.Cosine)
//	}
//
// [FromDense] converts dense vectors, so that an index explores them, too.
package interpret

import (
	"context"
	"iter"
	"math"
	"strings"
	"sync"

	"overcomplete/internal/parallel"
	"overcomplete/internal/text"
	"overcomplete/vectors"
)

// An Index finds the rows of a dimension, and the rows nearest to a code, without a scan of all codes.
// It stores the nonzeros a second time, by dimension. This requires 6 bytes per nonzero and about 50
// bytes per row in addition to the codes. Its methods may be called concurrently.
type Index struct {
	Codes *vectors.Sparse // V×K, with a word for each row

	// Known is the number of frequent words, which are the first rows. 0 means all rows. Lists begin
	// with the frequent words whose value is at least half of the largest, because most words of a
	// whole vocabulary are names and misspellings. Set Known before the first use.
	Known int

	rowOf     map[string]int32
	norms     []float64 // ‖a_i‖ of each row
	scale     []float64 // relevanceScale of each row
	maxSample int

	// Each of these functions computes its result at the first call, and stores it.
	terms      func() *text.Terms
	postings   func() *text.Postings
	sample     func() *sample // an index of up to maxSample rows
	lines      func() *text.Lines
	meanCosine func() float64                    // mean cosine of all pairs of up to maxSample rows
	poleWords  func() (words, labels [][]string) // by Pole.index, if rows are texts

	stop map[string]bool // see WithStopWords

	// The nonzeros are sorted by column, then by row. Rows are in blocks of blockRows. The rows of
	// column k in block b are low[starts[k·blocks+b]:starts[k·blocks+b+1]].
	blocks int
	starts []int64
	low    []uint16 // row numbers within their block
	value  []float32
}

// blockRows is the number of rows of a block. Row numbers within a block fit 16 bits, and the sums of
// a block fit a processor's cache.
const blockRows = 1 << 14

// NewIndex returns an index of codes, V×K. The codes must be valid ([vectors.CSR.Validate]) and must not
// change afterwards. A repeated word refers to its first row. Results don't depend on the number of
// processors.
func NewIndex(codes *vectors.Sparse) *Index {
	x := &Index{
		Codes: codes,
		norms: make([]float64, codes.Rows),
		scale: make([]float64, codes.Rows),
		low:   make([]uint16, codes.Nonzeros()),
		value: make([]float32, codes.Nonzeros()),
	}
	x.terms = sync.OnceValue(func() *text.Terms { return text.NewTerms(codes.Texts.Text, codes.Rows <= x.maxSample) })
	x.postings = sync.OnceValue(func() *text.Postings { return text.NewPostings(x.terms()) })
	x.lines = sync.OnceValue(func() *text.Lines { return text.NewLines(codes.Texts.Text) })
	x.maxSample = maxSample
	x.sample = sync.OnceValue(x.drawSample)
	x.meanCosine = sync.OnceValue(func() float64 {
		rows := make([]int32, min(codes.Rows, x.maxSample))
		for i := range rows {
			rows[i] = int32(i * codes.Rows / len(rows))
		}
		return x.meanCosineOf(rows, -1, make([]float64, codes.Cols))
	})
	x.poleWords = sync.OnceValues(x.describePoles)
	var lookup sync.WaitGroup
	lookup.Go(func() {
		x.rowOf = make(map[string]int32, codes.Rows)
		for i, w := range codes.IDs {
			if _, ok := x.rowOf[w]; !ok {
				x.rowOf[w] = int32(i)
			}
		}
	})
	x.transpose()
	lookup.Wait()
	return x
}

// WithStopWords returns an index that shares the codes of x. Its labels and descriptions of texts leave out the given
// words, or phrases of two words, and phrases that contain one of the words. Case doesn't matter.
func (x *Index) WithStopWords(words []string) *Index {
	y := *x
	y.stop = make(map[string]bool, len(words))
	for _, word := range words {
		y.stop[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), "’", "'")] = true
	}
	y.poleWords = sync.OnceValues(y.describePoles)
	return &y
}

// isStop reports whether a word or phrase is left out of labels.
func (x *Index) isStop(word string) bool {
	first, second, _ := strings.Cut(word, " ")
	return x.stop[word] || x.stop[first] || second != "" && x.stop[second]
}

// transpose fills the columns by a counting sort. Each block of rows counts its nonzeros in every
// column. The counts determine the positions of the nonzeros.
func (x *Index) transpose() {
	x.blocks = (x.Codes.Rows + blockRows - 1) / blockRows
	x.starts = make([]int64, x.Codes.Cols*x.blocks+1)
	parallel.Each(context.Background(), x.blocks, func(b int) {
		lo, hi := x.block(b)
		counts := make([]int64, x.Codes.Cols) // private, so that processors don't share cache lines
		for _, k := range x.Codes.Index[x.Codes.Ptr[lo]:x.Codes.Ptr[hi]] {
			counts[k]++
		}
		for k, n := range counts {
			x.starts[k*x.blocks+b] = n
		}
	})
	total := int64(0)
	for i, n := range x.starts {
		x.starts[i], total = total, total+n
	}
	parallel.Each(context.Background(), x.blocks, x.scatter)
}

// block returns the range of block b: the rows lo to hi−1.
func (x *Index) block(b int) (lo, hi int) {
	return b * blockRows, min((b+1)*blockRows, x.Codes.Rows)
}

// scatter copies the nonzeros of a block into the columns, and computes the norms and scales of the block's rows. It
// works on tiles of rows and columns, because writes to all columns at once would touch more memory pages than the TLB
// holds.
func (x *Index) scatter(b int) {
	const tileRows, tileCols = 2048, 256
	next := make([]int64, x.Codes.Cols)
	for k := range next {
		next[k] = x.starts[k*x.blocks+b]
	}
	var at [tileRows]int64 // the next nonzero of each row of the tile
	first, hi := x.block(b)
	for lo := first; lo < hi; lo += tileRows {
		ends := x.Codes.Ptr[lo+1 : min(lo+tileRows, hi)+1]
		copy(at[:], x.Codes.Ptr[lo:])
		for right := int32(0); int(right) < x.Codes.Cols; {
			right += tileCols
			for i, end := range ends {
				j := at[i]
				sum, squares := 0.0, 0.0
				for ; j < end && x.Codes.Index[j] < right; j++ {
					k, v := x.Codes.Index[j], x.Codes.Value[j]
					x.low[next[k]], x.value[next[k]] = uint16(lo+i-first), v
					next[k]++
					sum += math.Abs(float64(v))
					squares += float64(v) * float64(v)
				}
				at[i] = j
				x.scale[lo+i] += sum
				x.norms[lo+i] += squares
			}
		}
		for i := range ends {
			x.norms[lo+i] = math.Sqrt(x.norms[lo+i])
			x.scale[lo+i] = relevanceScale(x.scale[lo+i])
		}
	}
}

// Row returns the row of a word. If the vocabulary lacks the word, Row looks it up in lower case,
// because many vocabularies are lower-case only.
func (x *Index) Row(word string) (row int, ok bool) {
	i, ok := x.rowOf[word]
	if !ok {
		i, ok = x.rowOf[strings.ToLower(word)]
	}
	return int(i), ok
}

// Dimension returns the rows, in increasing order, and the values of the nonzeros of dimension k. The
// values share the memory of the index.
func (x *Index) Dimension(k int) (rows []int32, values []float32) {
	values = x.Values(k)
	rows = make([]int32, 0, len(values))
	for i := range x.nonzeros(k) {
		rows = append(rows, int32(i))
	}
	return rows, values
}

// nonzeros iterates over the rows and values that Dimension returns.
func (x *Index) nonzeros(k int) iter.Seq2[int, float32] {
	return func(yield func(row int, value float32) bool) {
		for b := range x.blocks {
			rows, values := x.blockColumn(k, b)
			for j, low := range rows {
				if !yield(b*blockRows+int(low), values[j]) {
					return
				}
			}
		}
	}
}

// blockColumn returns the nonzeros of dimension k in a block, with rows relative to the block.
func (x *Index) blockColumn(k, b int) (rows []uint16, values []float32) {
	lo, hi := x.starts[k*x.blocks+b], x.starts[k*x.blocks+b+1]
	return x.low[lo:hi], x.value[lo:hi]
}

// Values returns the nonzeros of dimension k, in row order. They share the memory of the index.
func (x *Index) Values(k int) []float32 {
	lo, hi := x.starts[k*x.blocks], x.starts[(k+1)*x.blocks]
	return x.value[lo:hi:hi]
}

// Variances returns the variance of each dimension over all V rows, zeros included:
// Σ_i (a_ik − mean_k)²/V.
func (x *Index) Variances() []float64 {
	variances := make([]float64, x.Codes.Cols)
	parallel.Each(context.Background(), len(variances), func(k int) {
		values, n := x.Values(k), float64(x.Codes.Rows)
		sum := 0.0
		for _, v := range values {
			sum += float64(v)
		}
		mean := sum / n
		squares := mean * mean * (n - float64(len(values)))
		for _, v := range values {
			squares += (float64(v) - mean) * (float64(v) - mean)
		}
		if n > 0 {
			variances[k] = squares / n
		}
	})
	return variances
}

// Excerpt returns the most informative sentence of a row's text on one line, and the sentences after it that fit into
// length characters. Ellipses mark where a longer sentence is cut. Excerpt prefers whole sentences that contain the given
// words and are in the author's own words. Repeated lines, headers, quotations, attributions and signatures aren't the
// author's own words. Excerpt also reports whether the sentence is in the author's own words and contains a given word.
// If no words are given, any sentence in the author's own words counts.
func (x *Index) Excerpt(row int, words []string, length int) (excerpt string, telling bool) {
	return x.sample().lines().Excerpt(x.Codes.Texts.Text[row], words, length)
}

// Snippet returns the sentences of a row's text that contain the most words of a query, on one line of up to length
// characters. Unlike [Index.Excerpt], it also returns quotations and headers.
func (x *Index) Snippet(row int, words []string, length int) string {
	return x.sample().lines().Snippet(x.Codes.Texts.Text[row], words, length)
}
