package interpret

import (
	"cmp"
	"context"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"overcomplete/vectors"
)

// Index answers questions about the words and the dimensions of one matrix of codes
// without going through all of it. It has the nonzeros by word and by dimension, which
// takes 6 bytes a nonzero beside the 8 of the codes, and some 50 a word. Its methods may be
// called at the same time.
type Index struct {
	Codes *vectors.Sparse // A, V×K, and a word for each row

	// Known is how many words people know, the first ones, or 0 for all. A whole vocabulary is
	// mostly names and misspellings, and these would stand for what is everybody's. So of the
	// words with at least half of the largest value, the known ones come first in all lists.
	// It is for who makes the index to set.
	Known int

	rowOf  map[string]int32
	norms  []float64      // ‖a_i‖ of each row
	scale  []float64      // see relevanceScale, of each row
	terms  func() *terms  // of texts, counted when they are first asked for
	chance func() float64 // mean cosine of any two rows, when it is first asked for

	// Nonzeros by column, and in each by row. Rows are in blocks of blockRows: those of
	// column k in block b are low[starts[k·blocks+b]:starts[k·blocks+b+1]].
	blocks int
	starts []int64
	low    []uint16 // rows, from the first of their block
	value  []float32
}

// blockRows is how many rows there are in a block, for whose numbers 16 bits are enough
// and whose sums stay in a processor's cache.
const blockRows = 1 << 14

// Weight is the value of a dimension in a word.
type Weight struct {
	Dimension int
	Value     float32
}

// Neighbour is a word with the cosine of its code and another's.
type Neighbour struct {
	Row    int // of the word
	Cosine float64
}

// NewIndex returns an index of codes, V×K, whose row i is the code of words[i]. The
// codes must be valid ([vectors.CSR.Validate]) and must not change afterwards. If a
// word is there more than once, its first row is found. NewIndex and what looks for near
// words use a processor for each 16,384 rows; results do not depend on their number.
func NewIndex(codes *vectors.Sparse) *Index {
	x := &Index{
		Codes: codes,
		norms: make([]float64, codes.Rows),
		scale: make([]float64, codes.Rows),
		low:   make([]uint16, codes.Nonzeros()),
		value: make([]float32, codes.Nonzeros()),
	}
	x.terms = sync.OnceValue(func() *terms { return newTerms(codes.Texts.Text) })
	x.chance = sync.OnceValue(func() float64 { return x.meanCosine(allRows(codes.Rows), -1) })
	var lookup sync.WaitGroup
	lookup.Go(func() {
		x.rowOf = make(map[string]int32, codes.Rows)
		for i, w := range codes.Words {
			if _, ok := x.rowOf[w]; !ok {
				x.rowOf[w] = int32(i)
			}
		}
	})
	x.transpose()
	lookup.Wait()
	return x
}

// transpose fills in the columns, as counting sort does: each block of rows counts its
// nonzeros in every column, and so it is known where they belong.
func (x *Index) transpose() {
	x.blocks = (x.Codes.Rows + blockRows - 1) / blockRows
	x.starts = make([]int64, x.Codes.Cols*x.blocks+1)
	parallel(context.Background(), x.blocks, func(b int) {
		lo, hi := x.block(b)
		counts := make([]int64, x.Codes.Cols) // of its own, so that processors don't share what they write
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
	parallel(context.Background(), x.blocks, x.scatter)
}

// block returns the rows of a block, from lo to hi.
func (x *Index) block(b int) (lo, hi int) {
	return b * blockRows, min((b+1)*blockRows, x.Codes.Rows)
}

// scatter puts the nonzeros of a block's rows where they belong, and computes the rows'
// norms and scales. It takes a tile of rows and columns at a time: to write to all columns
// at once takes more memory pages than a processor has at hand.
func (x *Index) scatter(b int) {
	const tileRows, tileCols = 2048, 256
	next := make([]int64, x.Codes.Cols)
	for k := range next {
		next[k] = x.starts[k*x.blocks+b]
	}
	var at [tileRows]int64 // how far each row of the tile is done
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

// parallel calls f with 0 to n-1 on all processors. If ctx is done before it has
// begun them all, it leaves out the rest and returns ctx's error.
func parallel(ctx context.Context, n int, f func(i int)) error {
	var next atomic.Int64
	var group sync.WaitGroup
	var left atomic.Bool
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if ctx.Err() != nil {
					left.Store(true)
					return
				}
				f(int(i))
			}
		})
	}
	group.Wait()
	if left.Load() {
		return ctx.Err()
	}
	return nil
}

// Row returns the row of a word. If the vocabulary does not have the word as it stands,
// it is looked up in lower case, because many vocabularies have no other words.
func (x *Index) Row(word string) (row int, ok bool) {
	i, ok := x.rowOf[word]
	if !ok {
		i, ok = x.rowOf[strings.ToLower(word)]
	}
	return int(i), ok
}

// Closest returns up to n words whose spelling is closest to that of word, closest
// first, by Levenshtein's edit distance without regard to case. Words at equal distance
// are in row order. Words at a distance of more than a third of the length of word,
// rounded up, are left out.
func (x *Index) Closest(word string, n int) []string {
	type match struct{ row, distance int }
	found := best[match]{n: n, compare: func(a, b match) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.row, b.row))
	}}
	from := appendLower(nil, word)
	limit := (len(from) + 2) / 3
	var to []rune
	var distances []int
	for i, w := range x.Codes.Words {
		// A rune is one to four bytes.
		if len(w) < len(from)-limit || len(w) > 4*(len(from)+limit) {
			continue
		}
		if found.full {
			limit = found.elements[n-1].distance
		}
		to = appendLower(to[:0], w)
		var d int
		if d, distances = editDistance(from, to, limit, distances); d <= limit {
			found.add(match{i, d})
		}
	}
	var words []string
	for _, m := range found.sorted() {
		words = append(words, x.Codes.Words[m.row])
	}
	return words
}

func appendLower(runes []rune, s string) []rune {
	for _, r := range s {
		runes = append(runes, unicode.ToLower(r))
	}
	return runes
}

// editDistance returns the number of insertions, deletions and substitutions
// that turn a into b, or limit+1 if that is more than limit. Only the diagonals
// that limit allows are filled in (Ukkonen 1985). The row of the table is
// memory that it may use, and returns to be used again.
func editDistance(a, b []rune, limit int, row []int) (distance int, memory []int) {
	over := limit + 1
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return over, row
	}
	row = row[:0]
	for j := range len(b) + 1 {
		row = append(row, min(j, over))
	}
	// A cell right of the band still has the value over of this first row.
	for i, r := range a {
		lo, hi := max(i+1-limit, 1), min(i+1+limit, len(b))
		diagonal := row[lo-1]
		left := over
		if lo == 1 {
			left = min(i+1, over)
		}
		row[lo-1] = left
		least := left
		for j := lo; j <= hi; j++ {
			d := diagonal
			if r != b[j-1] {
				d = min(diagonal, left, row[j]) + 1
			}
			diagonal, left = row[j], min(d, over)
			row[j] = left
			least = min(least, left)
		}
		if least == over {
			return over, row
		}
	}
	return row[len(b)], row
}

// Complete returns the first n words that begin with prefix, without regard to case.
// They are in row order; in most files of vectors that is the order of frequency.
func (x *Index) Complete(prefix string, n int) []string {
	var words []string
	for _, w := range x.Codes.Words {
		if len(words) >= n {
			break
		}
		if len(w) >= len(prefix) && strings.EqualFold(w[:len(prefix)], prefix) {
			words = append(words, w)
		}
	}
	return words
}

// Dimension returns the rows, in increasing order, whose value in dimension k is not
// zero, and these [Index.Values].
func (x *Index) Dimension(k int) (rows []int32, values []float32) {
	values = x.Values(k)
	rows = make([]int32, 0, len(values))
	for i := range x.nonzeros(k) {
		rows = append(rows, int32(i))
	}
	return rows, values
}

// nonzeros goes through the rows, and values, of Dimension.
func (x *Index) nonzeros(k int) iter.Seq2[int, float32] {
	return func(yield func(row int, value float32) bool) {
		for b := range x.blocks {
			i := k*x.blocks + b
			values := x.value[x.starts[i]:x.starts[i+1]]
			for j, low := range x.low[x.starts[i]:x.starts[i+1]] {
				if !yield(b*blockRows+int(low), values[j]) {
					return
				}
			}
		}
	}
}

// Values returns the values of dimension k that are not zero, in the order of rows. They
// are a part of the index, not a copy.
func (x *Index) Values(k int) []float32 {
	lo, hi := x.starts[k*x.blocks], x.starts[(k+1)*x.blocks]
	return x.value[lo:hi:hi]
}

// Top returns up to n words with the largest positive values in a dimension, largest
// first. Equal values are in row order.
func (x *Index) Top(dimension, n int) []Entry {
	return x.extremes(dimension, n, false, compareEntries)
}

// Bottom returns up to n words with the most negative values in a dimension, most
// negative first. Equal values are in row order.
func (x *Index) Bottom(dimension, n int) []Entry {
	return x.extremes(dimension, n, true, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Row, b.Row))
	})
}

// Side returns what [Index.Top] does or, with negative, what [Index.Bottom] does.
func (x *Index) Side(dimension, n int, negative bool) []Entry {
	if negative {
		return x.Bottom(dimension, n)
	}
	return x.Top(dimension, n)
}

// extremes returns the first n words, in the order of compare, of those whose values in a
// dimension are negative, or positive.
func (x *Index) extremes(dimension, n int, negative bool, compare func(a, b Entry) int) []Entry {
	all, known := best[Entry]{n: n, compare: compare}, best[Entry]{n: n, compare: compare}
	for i, v := range x.nonzeros(dimension) {
		if v != 0 && v < 0 == negative {
			all.add(Entry{i, v})
			if i < x.Known {
				known.add(Entry{i, v})
			}
		}
	}
	return knownFirst(x, all.sorted(), known.sorted(), func(e Entry) (int, float64) { return e.Row, math.Abs(float64(e.Value)) })
}

// knownFirst returns as many elements as there are in all, which are the first in an order by
// size, and known the first of those that people know: the known ones that are at least half
// as large as the largest, and then others. The function of returns the row of an element's word, and the element's size.
func knownFirst[T any](x *Index, all, known []T, of func(T) (row int, size float64)) []T {
	list := make([]T, 0, len(all))
	first := func(e T) bool { // of the list
		_, largest := of(all[0])
		row, size := of(e)
		return row < x.Known && 2*size >= largest
	}
	for _, e := range known {
		if first(e) {
			list = append(list, e)
		}
	}
	for _, e := range all {
		if len(list) < len(all) && !first(e) {
			list = append(list, e)
		}
	}
	return list
}

// Active returns the dimensions in which the code of a row is not zero, in decreasing
// order of absolute value.
func (x *Index) Active(row int) []Weight {
	return byStrength(x.Codes.Row(row))
}

// byStrength returns the dimensions of a code by decreasing absolute value.
func byStrength(index []int32, value []float32) []Weight {
	active := make([]Weight, len(index))
	for j, k := range index {
		active[j] = Weight{int(k), value[j]}
	}
	slices.SortStableFunc(active, func(a, b Weight) int {
		return cmp.Compare(max(b.Value, -b.Value), max(a.Value, -a.Value))
	})
	return active
}

// Explained is a dimension of a code with words that show what it means.
type Explained struct {
	Dimension int      `json:"dimension"`
	Weight    float32  `json:"weight"` // the code's value in the dimension
	Words     []string `json:"words"`  // top words of the dimension
}

// Explain returns the dimensions of a code in decreasing order of absolute value: at
// most as many as dimensions says, or all if that is 0. With each dimension come up to
// words words with the largest values in it or, where the code's value is negative,
// with the most negative values.
//
// The code is given by its nonzero values and their columns. It can be a row of Codes,
// or the code of a new word from package encode.
func (x *Index) Explain(index []int32, value []float32, dimensions, words int) []Explained {
	active := byStrength(index, value)
	if dimensions > 0 {
		active = active[:min(dimensions, len(active))]
	}
	explained := make([]Explained, len(active))
	for i, w := range active {
		explained[i] = Explained{w.Dimension, w.Value, x.Words(w.Dimension, words, w.Value < 0)}
	}
	return explained
}

// Nearest returns up to n other words whose codes have the largest positive cosines
// with the code of a row, largest first.
func (x *Index) Nearest(row, n int) []Neighbour {
	index, value := x.Codes.Row(row)
	return x.NearestTo(index, value, n, row)
}

// NearestTo returns up to n words, but for the rows without, whose codes have the largest
// positive cosines with a code that is given by its nonzero values and their columns, which
// increase, largest first.
func (x *Index) NearestTo(index []int32, value []float32, n int, without ...int) []Neighbour {
	own := norm(value)
	compare := func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Row, b.Row))
	}
	// Either way, each word's product is added up in the order of dimensions.
	products := x.productsByColumn
	looked := 0
	for _, k := range index {
		looked += len(x.Values(int(k)))
	}
	if 4*looked > 3*x.Codes.Nonzeros() { // to read all of it in order is faster
		products = x.productsByRow
	}
	found, foundKnown := make([][]Neighbour, x.blocks), make([][]Neighbour, x.blocks)
	parallel(context.Background(), x.blocks, func(b int) {
		nearest, known := best[Neighbour]{n: n, compare: compare}, best[Neighbour]{n: n, compare: compare}
		first, _ := x.block(b)
		for i, product := range products(index, value, b) {
			if row := first + i; product > 0 && !slices.Contains(without, row) {
				of := Neighbour{row, product / (own * x.norms[row])}
				nearest.add(of)
				if row < x.Known {
					known.add(of)
				}
			}
		}
		found[b], foundKnown[b] = nearest.sorted(), known.sorted()
	})
	first := func(found [][]Neighbour) []Neighbour {
		all := slices.Concat(found...)
		slices.SortFunc(all, compare)
		return all[:min(max(n, 0), len(all))]
	}
	return knownFirst(x, first(found), first(foundKnown), func(n Neighbour) (int, float64) { return n.Row, n.Cosine })
}

// productsByColumn returns the products of a code and those of the rows of a block. It
// looks only at the code's own dimensions.
func (x *Index) productsByColumn(index []int32, value []float32, b int) []float64 {
	lo, hi := x.block(b)
	products := make([]float64, hi-lo)
	for j, k := range index {
		weight := float64(value[j])
		i := int(k)*x.blocks + b
		values := x.value[x.starts[i]:x.starts[i+1]]
		for l, low := range x.low[x.starts[i]:x.starts[i+1]] {
			products[low] += weight * float64(values[l])
		}
	}
	return products
}

// productsByRow is productsByColumn for codes with many dimensions.
func (x *Index) productsByRow(index []int32, value []float32, b int) []float64 {
	weights := make([]float64, x.Codes.Cols)
	for j, k := range index {
		weights[k] = float64(value[j])
	}
	lo, hi := x.block(b)
	products := make([]float64, hi-lo)
	for i := range products {
		columns, values := x.Codes.Row(lo + i)
		sum := 0.0
		for j, k := range columns {
			sum += weights[k] * float64(values[j])
		}
		products[i] = sum
	}
	return products
}

// Variances returns the variance of each dimension over all V words, including those
// with the value 0: Σ_i (a_ik − mean_k)²/V.
func (x *Index) Variances() []float64 {
	variances := make([]float64, x.Codes.Cols)
	parallel(context.Background(), len(variances), func(k int) {
		variances[k] = variance(x.Values(k), x.Codes.Rows)
	})
	return variances
}

// variance returns that of n values, of which those not given are zero.
func variance(values []float32, n int) float64 {
	if n == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	mean := sum / float64(n)
	squares := mean * mean * float64(n-len(values))
	for _, v := range values {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	return squares / float64(n)
}
