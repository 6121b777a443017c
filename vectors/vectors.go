// Package vectors stores dense and sparse vectors of words and texts, and reads and
// writes their files.
//
// [Read] reads the formats in which embeddings are published. It detects the format from
// the file's content and parses text on all cores:
//
//	x, source, err := vectors.Read(ctx, []string{"glove.6B.300d.txt.gz"}, vectors.ReadOptions{})
//	for i, id := range x.IDs {
//		fmt.Println(id, x.Row(i))
//	}
//
// [Stream] reads files that are larger than memory. The Write functions write sparse
// vectors in the formats of other tools. They return the errors of their io.Writer
// unchanged.
//
// Rows are words or texts. The id of a row is its word, or the id of its text.
package vectors

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"overcomplete/internal/float32s"
	"overcomplete/internal/npy"
)

// Dense is a V×L matrix of dense vectors. Row i is the vector of IDs[i].
type Dense struct {
	IDs   []string  // words, or the ids of texts; [Read] returns no duplicates
	Texts *Texts    // nil if rows are words
	Dim   int       // L, the length of a vector
	Data  []float32 // V×L, row-major
}

// Validate returns an error unless d has at least one row and Dim finite numbers per row. The results of [Read] are
// valid.
func (d *Dense) Validate() error {
	if d.Dim < 1 || d.Len() < 1 || len(d.Data)%d.Dim != 0 || len(d.Data)/d.Dim != d.Len() {
		return fmt.Errorf("vectors have inconsistent sizes (got %d numbers for %d rows of length %d)", len(d.Data), d.Len(), d.Dim)
	}
	if i := float32s.NotFinite(d.Data); i >= 0 {
		return fmt.Errorf("%.100q: value %d of the vector is not a finite number (got %v)", d.IDs[i/d.Dim], i%d.Dim+1, d.Data[i])
	}
	return nil
}

// Len returns the number of rows, V.
func (d *Dense) Len() int { return len(d.IDs) }

// Row returns the vector of row i, of length Dim. It shares the memory of d.Data.
func (d *Dense) Row(i int) []float32 { return d.Data[i*d.Dim : (i+1)*d.Dim : (i+1)*d.Dim] }

// Slice returns rows lo to hi−1, which share the memory of d.
func (d *Dense) Slice(lo, hi int) *Dense {
	return &Dense{IDs: d.IDs[lo:hi:hi], Texts: d.Texts.Slice(lo, hi), Dim: d.Dim, Data: d.Data[lo*d.Dim : hi*d.Dim : hi*d.Dim]}
}

// Append appends the rows of other, which must have the same kind, Dim and columns.
func (d *Dense) Append(other *Dense) {
	if d.Len() == 0 {
		d.Dim, d.Texts = other.Dim, nil
		if other.Texts != nil {
			d.Texts = newTexts(other.Texts.Names())
		}
	}
	d.IDs, d.Texts, d.Data = append(d.IDs, other.IDs...), d.Texts.Join(other.Texts), append(d.Data, other.Data...)
}

// Mean returns the mean of all V vectors, of length L. It sums in float64.
func (d *Dense) Mean() []float32 {
	sum := make([]float64, d.Dim)
	for i := range d.IDs {
		for j, x := range d.Row(i) {
			sum[j] += float64(x)
		}
	}
	mean := make([]float32, d.Dim)
	for j := range mean {
		mean[j] = float32(sum[j] / float64(d.Len()))
	}
	return mean
}

// SHA256 returns the SHA-256 of x as little-endian float32, in hexadecimal.
func SHA256(x []float32) string {
	hash := sha256.New()
	npy.WriteElements(hash, x) // a hash returns no errors
	return hex.EncodeToString(hash.Sum(nil))
}

// Sparse is a V×K matrix of sparse vectors. Row i is the vector of IDs[i].
type Sparse struct {
	IDs   []string // words, or the ids of texts
	Texts *Texts   // nil if rows are words
	CSR
}

// Binary returns s with every nonzero value replaced by 1: the paper's binary vectors
// of method B (§2.2). The result shares all but the values with s.
func (s *Sparse) Binary() *Sparse {
	b := *s
	b.Value = slices.Repeat([]float32{1}, len(s.Value))
	return &b
}

// CSR is a Rows×Cols matrix in compressed sparse rows, the layout of scipy.sparse.csr_array.
// The nonzero values of row i are Value[Ptr[i]:Ptr[i+1]]; their columns are
// Index[Ptr[i]:Ptr[i+1]], in increasing order. No stored value is zero.
type CSR struct {
	Rows, Cols int
	Ptr        []int64 // Rows+1 offsets into Index and Value
	Index      []int32
	Value      []float32
}

// Row returns the columns of the nonzeros of row i, in increasing order, and their
// values. Both share the memory of s.
func (s *CSR) Row(i int) (index []int32, value []float32) {
	lo, hi := s.Ptr[i], s.Ptr[i+1]
	return s.Index[lo:hi:hi], s.Value[lo:hi:hi]
}

// Nonzeros returns the number of stored values in all rows.
func (s *CSR) Nonzeros() int { return len(s.Value) }
