package encode

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"overcomplete/model"
	"overcomplete/vectors"
)

// Block is the number of rows that are encoded together. An input is dealt out to
// shards in blocks of as many rows.
const Block = 4096

// namedWords is how many of the words are named whose gap is larger than it should
// be.
const namedWords = 5

// Model encodes the vectors x, V×L, on a device and returns a model of them: their words
// and codes, with the dictionary of m.
//
// It is an error if x and the dictionary do not have the same L, if the device cannot
// encode with the dictionary and o (see [Device]), or, wrapping [ErrOverflow], if a row
// cannot be encoded. If ctx is cancelled, its error is returned.
//
// Where x is from is not known here: [File] encodes a file, and says which.
func Model(ctx context.Context, m *model.Model, x *vectors.Dense, device Device, o Options) (encoded *model.Model, err error) {
	if x.Dim != m.Dictionary.Dim {
		return nil, fmt.Errorf("encode: vectors of %d numbers, and the atoms have %d", x.Dim, m.Dictionary.Dim)
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
	codes := &vectors.Sparse{Words: x.Words, Texts: x.Texts, CSR: vectors.CSR{Cols: m.Dictionary.Len(), Ptr: make([]int64, 1, x.Len()+1)}}
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
		blocks[i] = nil // frees its memory
	}
	encoding := s.Encoding()
	encoding.Input = model.Input{Words: x.Len(), Dim: x.Dim}
	encoding.SetKind(x.Texts)
	encoded = &model.Model{Info: m.Info, Codes: codes, Dictionary: m.Dictionary}
	encoded.Info.Encoding = &encoding
	return encoded, nil
}

// A Stream encodes rows that need not fit in memory, and measures their codes. It holds some
// [Block] of rows: two that are read ahead, and one for each encoder. [File] encodes a file.
type Stream struct {
	Encoder Encoder // or one of [Several]

	// Dictionary is that of the Encoder, whose mean the variance needs; nil if that is not
	// measured.
	Dictionary *model.Dictionary

	// Shard, if not nil, selects the blocks to encode by Index and Of. The Stream sets its other
	// fields.
	Shard *model.Shard

	tally tally
	spare chan vectors.Dense // memory of blocks that were encoded
}

// A block is a run of rows that are encoded together.
type block struct {
	number int // of all blocks of the input
	*vectors.Dense
	own  bool // rows are in memory of the stream
	wait func() (*Codes, error)
}

// Codes yields the codes of rows, V×L with the same L each time, in order and a block at a time. Another
// goroutine reads the rows, while those before are encoded; it ends before Codes does.
// The rows must stay as they are until their codes are there. An error is the last thing that is
// yielded: of rows, of the encoder, or a [*vectors.InputError] that wraps [ErrOverflow] for a row
// that can't be encoded. The caller may keep the codes, but not their words.
func (s *Stream) Codes(ctx context.Context, rows iter.Seq2[*vectors.Dense, error]) iter.Seq2[*vectors.Sparse, error] {
	encoders := 1
	if several, ok := s.Encoder.(*several); ok {
		encoders = len(several.encoders)
	}
	return func(yield func(*vectors.Sparse, error) bool) {
		s.spare = make(chan vectors.Dense, encoders+1)
		var started []block // in order
		finish := func(left int) bool {
			for ; len(started) > left; started = started[1:] {
				codes, err := s.finish(started[0])
				if !yield(codes, err) || err != nil {
					return false
				}
				s.recycle(started[0])
			}
			return true
		}
		for b, err := range ahead(s.blocks(rows)) {
			if err != nil {
				yield(nil, err)
				return
			}
			if s.Shard != nil {
				s.Shard.Words += b.Len()
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

// blocks yields rows in blocks, of which the last may not be full.
func (s *Stream) blocks(rows iter.Seq2[*vectors.Dense, error]) iter.Seq2[block, error] {
	return func(yield func(block, error) bool) {
		if p := s.Shard; p != nil && (p.Index < 1 || p.Index > p.Of) {
			yield(block{}, fmt.Errorf("encode: there is no shard %d of %d", p.Index, p.Of))
			return
		}
		var rest vectors.Dense // rows that are not yet a block
		dim, number := 0, 0
		for d, err := range rows {
			if err == nil && dim == 0 {
				dim = d.Dim
			}
			if err == nil && (d.Dim != dim || len(d.Data) != d.Len()*d.Dim) {
				err = fmt.Errorf("encode: %d numbers are no vectors of length %d for %d words", len(d.Data), dim, d.Len())
			}
			if err != nil {
				yield(block{}, err)
				return
			}
			for lo := 0; lo < d.Len(); {
				hi := min(lo+Block-rest.Len(), d.Len())
				part, own := d.Slice(lo, hi), hi-lo < Block
				lo = hi
				if own {
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
				if !yield(block{number: number, Dense: part, own: own}, nil) {
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

// recycle keeps the memory of a block that is done with, if it is the stream's.
func (s *Stream) recycle(b block) {
	if !b.own {
		return
	}
	select {
	case s.spare <- vectors.Dense{Words: b.Words[:0], Data: b.Data[:0]}:
	default:
	}
}

// ahead yields what next yields, which it calls in a goroutine that is one block ahead.
func ahead(next iter.Seq2[block, error]) iter.Seq2[block, error] {
	type result struct {
		block
		error
	}
	return func(yield func(block, error) bool) {
		results, done := make(chan result), make(chan struct{})
		go func() {
			defer close(results)
			for b, err := range next {
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
	if row, ok := errors.AsType[*vectors.InputError](err); ok { // of the block's
		return nil, b.refuse(row.Row-1, row.Err)
	}
	if err != nil {
		return nil, err
	}
	if codes.Rows != b.Len() {
		return nil, fmt.Errorf("encode: %d codes for %d words: the encoder's atoms are not of length %d", codes.Rows, b.Len(), b.Dim)
	}
	var loss float64
	for i, l := range codes.Loss {
		if l-l != 0 { // infinite or NaN
			return nil, b.refuse(i, ErrOverflow)
		}
		loss += l
		if gap := s.Encoder.Options().Gap; gap > 0 {
			s.tally.worstGap = max(s.tally.worstGap, codes.Gap[i])
			if !(codes.Gap[i] <= gap) {
				s.tally.unreached++
				s.tally.name(i, b.Words[i])
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
	s.tally.block(&codes.CSR, loss, squares)
	return &vectors.Sparse{Words: b.Words, Texts: b.Texts, CSR: codes.CSR}, nil
}

// refuse returns the error for row i of the block, which can't be encoded.
func (b *block) refuse(i int, err error) error {
	return &vectors.InputError{Row: b.number*Block + i + 1, Word: b.Words[i], Err: err}
}

// Encoding returns what was measured of all codes, once they are yielded. It does not know the
// Input of the result.
func (s *Stream) Encoding() model.Encoding {
	o := s.Encoder.Options()
	e := model.Encoding{Device: s.Encoder.Device(), Lambda: o.Lambda, Gap: o.Gap, Shard: s.Shard}
	if e.Gap == 0 {
		e.Steps, e.Nonzeros, e.FirstLambda = o.Steps, o.Nonzeros, Shrinkage(o.Lambda, 0, o.Steps)
	}
	s.tally.report(&e)
	if s.Shard != nil {
		s.Shard.UnreachedRows = s.tally.unreachedRows
	}
	return e
}

// A tally measures codes, block by block. Sums over blocks are sums of their sums,
// the same for shards that are merged as for an input encoded at once.
type tally struct {
	worstGap       float64
	unreached      int
	unreachedRows  []int // of the first
	unreachedWords []string

	rows     int
	nonzeros int64
	loss, l1 float64
	squares  float64 // Σ‖x − μ‖²
	used     []bool
	atoms    int // that are used
}

// name remembers a word whose gap is too large, row i of the block that comes next, unless
// there are namedWords already.
func (t *tally) name(i int, word string) {
	if len(t.unreachedWords) < namedWords {
		t.unreachedRows, t.unreachedWords = append(t.unreachedRows, t.rows+i), append(t.unreachedWords, word)
	}
}

// block adds a block, whose losses and squares are given.
func (t *tally) block(codes *vectors.CSR, loss, squares float64) {
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

// report writes what was measured into e, whose Lambda is known. Without rows it
// is all zero.
func (t *tally) report(e *model.Encoding) {
	e.WorstGap, e.Unreached, e.UnreachedWords = t.worstGap, t.unreached, t.unreachedWords
	if t.rows == 0 {
		return
	}
	rows := float64(t.rows)
	e.Variance, e.Error, e.L1 = t.squares/rows, t.loss/rows, t.l1/rows
	e.Objective = e.Error + e.Lambda*e.L1
	e.Sparsity = 1 - float64(t.nonzeros)/(rows*float64(len(t.used)))
	e.UnusedAtoms = len(t.used) - t.atoms
}
