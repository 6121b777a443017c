package encode

import (
	"context"
	"fmt"
	"iter"
	"math"

	"overcomplete/model"
	"overcomplete/vectors"
)

// Block is the number of rows that are encoded together. Shards consist of whole blocks
// of an input, except for its last block.
const Block = 8192

// maxUnreachedIDs bounds the number of rows that an [model.Encoding] names because
// their duality gap exceeds [Options.Gap].
const maxUnreachedIDs = 5

// Model encodes the vectors x, V×L, on a device. It returns a model with the rows and
// codes of x and the dictionary of m.
//
// It returns an error if x and the dictionary differ in L, if the device can't encode
// with the dictionary and o (see [Device]), or, wrapping [ErrOverflow], if a row can't be
// encoded. If ctx is cancelled, it returns ctx.Err().
//
// The model doesn't record the file of x. [File] encodes a file and records it.
func Model(ctx context.Context, m *model.Model, x *vectors.Dense, device Device, o Options) (encoded *model.Model, err error) {
	if x.Dim != m.Dictionary.Dim {
		return nil, fmt.Errorf("encode: vectors differ in length from the atoms (got %d numbers, want %d)", x.Dim, m.Dictionary.Dim)
	}
	e, err := device.Encoder(&m.Dictionary, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := e.Close(); err == nil {
			err = closed
		}
	}()
	codes := &vectors.Sparse{IDs: x.IDs, Texts: x.Texts, CSR: vectors.CSR{Cols: m.Dictionary.Len(), Ptr: make([]int64, 1, x.Len()+1)}}
	var blocks []*vectors.CSR
	nonzeros := 0
	s := &Stream{Encoder: e, Dictionary: &m.Dictionary}
	for block, err := range s.Codes(ctx, func(yield func(*vectors.Dense, error) bool) { yield(x, nil) }) {
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, &block.CSR)
		nonzeros += block.Nonzeros()
	}
	codes.Index, codes.Value = make([]int32, 0, nonzeros), make([]float32, 0, nonzeros)
	for i, block := range blocks {
		codes.Append(block)
		blocks[i] = nil // free its memory
	}
	encoding := s.Encoding()
	encoding.Input = model.Input{Rows: x.Len(), Dim: x.Dim}
	encoding.SetKind(x.Texts)
	encoded = &model.Model{Info: m.Info, Codes: codes, Dictionary: m.Dictionary}
	encoded.Info.Encoding = &encoding
	return encoded, nil
}

// A Stream encodes rows that need not fit in memory, and measures their codes. Its memory is a few
// times [Block] rows: one block that is read ahead and one that waits, and one per encoder. [File] encodes a
// file.
type Stream struct {
	Encoder Encoder

	// Dictionary is the dictionary of Encoder, whose mean the variance needs. If it is nil,
	// Encoding reports no variance.
	Dictionary *model.Dictionary

	// Shard, if not nil, selects the blocks to encode by Index and Of. The Stream sets its other
	// fields.
	Shard *model.Shard

	tally tally
	spare chan vectors.Dense // memory of encoded blocks
}

// A block is a run of rows that are encoded together.
type block struct {
	number int // index in the input
	*vectors.Dense
	reusable bool // the stream allocated the rows
	wait     func() (*Codes, error)
}

// Codes yields the codes of rows, a block at a time, in the order of the rows. Each value of rows is
// V×L, with the same L. Another goroutine reads rows ahead of the encoder; it ends before Codes does.
// The rows must not change until their codes are yielded or Codes ends. Codes ends after the first
// error: an error of rows, of the encoder, or a [*vectors.InputError] that wraps [ErrOverflow] for a
// row that can't be encoded. The caller may keep the codes, but not their rows.
func (s *Stream) Codes(ctx context.Context, rows iter.Seq2[*vectors.Dense, error]) iter.Seq2[*vectors.Sparse, error] {
	encoders := 1
	if multi, ok := s.Encoder.(*multiEncoder); ok {
		encoders = len(multi.encoders)
	}
	return func(yield func(*vectors.Sparse, error) bool) {
		s.spare = make(chan vectors.Dense, encoders+1)
		var started []block // in order
		ctx, cancel := context.WithCancel(ctx)
		defer func() {
			cancel()
			for _, b := range started {
				b.wait()
			}
		}()
		finish := func(left int) bool {
			for len(started) > left {
				b := started[0]
				started = started[1:]
				codes, err := s.finish(b)
				if !yield(codes, err) || err != nil {
					return false
				}
				s.recycle(b)
			}
			return true
		}
		for b, err := range readAhead(s.blocks(rows)) {
			if err != nil {
				yield(nil, err)
				return
			}
			if s.Shard != nil {
				s.Shard.Rows += b.Len()
				if b.number%s.Shard.Of != s.Shard.Index-1 {
					s.recycle(b)
					continue
				}
			}
			b.wait = s.Encoder.Start(ctx, b.Data)
			started = append(started, b)
			if !finish(encoders) {
				return
			}
		}
		finish(0)
	}
}

// blocks splits rows into blocks of [Block] rows. The last one may have fewer.
func (s *Stream) blocks(rows iter.Seq2[*vectors.Dense, error]) iter.Seq2[block, error] {
	return func(yield func(block, error) bool) {
		if p := s.Shard; p != nil && (p.Index < 1 || p.Index > p.Of) {
			yield(block{}, fmt.Errorf("encode: there is no shard %d of %d", p.Index, p.Of))
			return
		}
		var rest vectors.Dense // rows of an incomplete block
		dim, number := 0, 0
		for d, err := range rows {
			if err == nil && dim == 0 {
				dim = d.Dim
			}
			if err == nil && (d.Dim != dim || len(d.Data) != d.Len()*d.Dim) {
				err = fmt.Errorf("encode: rows have inconsistent sizes (got %d numbers for %d words, want %d per word)", len(d.Data), d.Len(), dim)
			}
			if err != nil {
				yield(block{}, err)
				return
			}
			for lo := 0; lo < d.Len(); {
				hi := min(lo+Block-rest.Len(), d.Len())
				part, partial := d.Slice(lo, hi), hi-lo < Block
				lo = hi
				if partial {
					rest.Append(part)
					if rest.Len() < Block {
						break
					}
					part = rest.Slice(0, Block)
					select {
					case rest = <-s.spare:
					default:
						rest = vectors.Dense{}
					}
				}
				if !yield(block{number: number, Dense: part, reusable: partial}, nil) {
					return
				}
				number++
			}
		}
		if rest.Len() > 0 {
			yield(block{number: number, Dense: &rest}, nil)
		}
	}
}

// recycle stores the memory of an encoded block for a later one.
func (s *Stream) recycle(b block) {
	if !b.reusable {
		return
	}
	select {
	case s.spare <- vectors.Dense{IDs: b.IDs[:0], Data: b.Data[:0]}:
	default:
	}
}

// readAhead yields blocks. A goroutine reads the next block in the meantime.
func readAhead(blocks iter.Seq2[block, error]) iter.Seq2[block, error] {
	type result struct {
		block
		error
	}
	return func(yield func(block, error) bool) {
		results, done := make(chan result), make(chan struct{})
		go func() {
			defer close(results)
			for b, err := range blocks {
				select {
				case results <- result{b, err}:
				case <-done:
					return
				}
			}
		}()
		defer func() {
			close(done)
			for range results {
			}
		}()
		for r := range results {
			if !yield(r.block, r.error) {
				return
			}
		}
	}
}

// finish waits for the codes of a block and measures them.
func (s *Stream) finish(b block) (*vectors.Sparse, error) {
	codes, err := b.wait()
	if err != nil {
		return nil, err
	}
	if codes.Rows != b.Len() {
		return nil, fmt.Errorf("encode: the encoder's atoms differ in length from the vectors (got %d codes for %d words of %d numbers)", codes.Rows, b.Len(), b.Dim)
	}
	var loss float64
	for i, l := range codes.Loss {
		if l-l != 0 { // infinite or NaN
			return nil, b.rowError(i, ErrOverflow)
		}
		loss += l
		if gap := s.Encoder.Options().Gap; gap > 0 {
			s.tally.worstGap = max(s.tally.worstGap, codes.Gap[i])
			if !(codes.Gap[i] <= gap) {
				s.tally.unreached++
				s.tally.addUnreached(i, b.IDs[i])
			}
		}
	}
	squares := 0.0
	if s.Dictionary != nil {
		squares = s.Dictionary.Squares(b.Data)
	}
	if s.Shard != nil {
		s.Shard.Losses, s.Shard.Squares = append(s.Shard.Losses, loss), append(s.Shard.Squares, squares)
	}
	s.tally.addBlock(&codes.CSR, loss, squares)
	return &vectors.Sparse{IDs: b.IDs, Texts: b.Texts, CSR: codes.CSR}, nil
}

// rowError returns the error for row i of the block, which can't be encoded.
func (b *block) rowError(i int, err error) error {
	return &vectors.InputError{Row: b.number*Block + i + 1, ID: b.IDs[i], Err: err}
}

// Encoding returns the options and metrics of all codes that Codes has yielded. The caller sets
// Input.
func (s *Stream) Encoding() model.Encoding {
	o := s.Encoder.Options()
	e := model.Encoding{Device: s.Encoder.Device(), Lambda: o.Lambda, Gap: o.Gap, Shard: s.Shard}
	if e.Gap == 0 {
		e.Steps, e.Nonzeros, e.FirstLambda = o.Steps, o.Nonzeros, Shrinkage(o.Lambda, 0, o.Steps)
		e.Search = SearchVersion
	}
	s.tally.report(&e)
	if s.Shard != nil {
		s.Shard.UnreachedRows = s.tally.unreachedRows
	}
	return e
}

// A tally accumulates metrics of codes, block by block. It adds up sums per block, so that
// merged shards have the same bits as an input that is encoded at once.
type tally struct {
	worstGap      float64
	unreached     int
	unreachedRows []int // up to maxUnreachedIDs
	unreachedIDs  []string

	rows     int
	nonzeros int64
	loss, l1 float64
	squares  float64 // Σ‖x − μ‖²
	used     []bool  // by atom
	atoms    int     // number of used atoms
}

// addUnreached records a row whose gap is too large, row i of the next block, up to
// maxUnreachedIDs.
func (t *tally) addUnreached(i int, id string) {
	if len(t.unreachedIDs) < maxUnreachedIDs {
		t.unreachedRows, t.unreachedIDs = append(t.unreachedRows, t.rows+i), append(t.unreachedIDs, id)
	}
}

// addBlock adds the metrics of a block; loss is its Σ‖y − aD‖², squares its Σ‖x − μ‖².
func (t *tally) addBlock(codes *vectors.CSR, loss, squares float64) {
	if t.used == nil {
		t.used = make([]bool, codes.Cols)
	}
	var l1 float64
	for n, v := range codes.Value {
		l1 += math.Abs(float64(v))
		if k := codes.Index[n]; !t.used[k] {
			t.used[k] = true
			t.atoms++
		}
	}
	t.rows += codes.Rows
	t.nonzeros += int64(codes.Nonzeros())
	t.loss += loss
	t.squares += squares
	t.l1 += l1
}

// report sets the metrics of e, whose Lambda is set. Without rows they are zero.
func (t *tally) report(e *model.Encoding) {
	e.WorstGap, e.Unreached, e.UnreachedIDs = t.worstGap, t.unreached, t.unreachedIDs
	if t.rows == 0 {
		return
	}
	rows := float64(t.rows)
	e.Variance, e.Error, e.L1 = t.squares/rows, t.loss/rows, t.l1/rows
	e.Objective = e.Error + e.Lambda*e.L1
	e.Sparsity = 1 - float64(t.nonzeros)/(rows*float64(len(t.used)))
	e.UnusedAtoms = len(t.used) - t.atoms
}
