package encode

import (
	"context"
	"errors"
	"fmt"
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
	var blocks []*vectors.CSR
	nonzeros := 0
	s := &Stream{Encoder: e, Dictionary: &m.Dictionary, Add: func(block *vectors.Sparse) error {
		blocks = append(blocks, &block.CSR)
		nonzeros += block.Nonzeros()
		return nil
	}}
	if err := s.Rows(ctx, x); err != nil {
		return nil, err
	}
	encoding, err := s.Finish(ctx)
	if err != nil {
		return nil, err
	}
	encoding.Input = model.Input{Words: x.Len(), Dim: x.Dim}
	encoding.DescribeRows(x.Texts)
	codes := &vectors.Sparse{Words: x.Words, Texts: x.Texts, CSR: vectors.CSR{
		Cols: m.Dictionary.Len(), Ptr: make([]int64, 1, x.Len()+1), Index: make([]int32, 0, nonzeros), Value: make([]float32, 0, nonzeros),
	}}
	for i, block := range blocks {
		codes.Append(block)
		blocks[i] = nil // its memory can be had again
	}
	encoded = &model.Model{Info: m.Info, Codes: codes, Dictionary: m.Dictionary}
	encoded.Info.Encoding = &encoding
	return encoded, nil
}

// A Stream encodes rows that come a few at a time and need not fit in memory: it holds
// some [Block] of them, one that becomes full and one for each encoder. It also measures the
// codes. [File] does all of this with a file.
type Stream struct {
	Encoder Encoder // or a [Several]

	// Add is called with each block's words and codes, in order. It may keep the codes,
	// but not the words. If it returns an error, so does the Stream.
	Add func(block *vectors.Sparse) error

	// Dictionary is that of the Encoder, whose mean tells how much there is to explain; if it is
	// nil that is not measured.
	Dictionary *model.Dictionary

	// Shard, if not nil, says which blocks to encode. Index and Of must be set; the
	// Stream sets the rest.
	Shard *model.Shard

	dim    int // of the rows so far
	tally  tally
	blocks int
	rest   vectors.Dense   // rows that are not yet a block
	spare  []vectors.Dense // memory of blocks that are done with
	begun  []begun         // blocks that are encoded, in order: one for each encoder at most
}

// begun is a block whose codes are still to be waited for.
type begun struct {
	number int
	rows   *vectors.Dense
	own    bool // rows are in memory of the stream's
	wait   func() (*Codes, error)
}

// Rows takes the next rows of the input, V×L with the same L each time. It encodes
// them as soon as a block is full. Its errors are those of the encoder and of Add, and
// one that wraps [ErrOverflow] for a row that cannot be encoded.
func (s *Stream) Rows(ctx context.Context, d *vectors.Dense) error {
	if s.dim == 0 {
		s.dim = d.Dim
	}
	if d.Dim != s.dim || len(d.Data) != d.Len()*d.Dim {
		return fmt.Errorf("encode: %d numbers are no vectors of length %d for %d words", len(d.Data), s.dim, d.Len())
	}
	lent := false // whether a block that is encoded is of d, which is the caller's
	for lo := 0; lo < d.Len(); {
		hi := min(lo+Block-s.rest.Len(), d.Len())
		rows := d.Slice(lo, hi)
		own := rows.Len() < Block
		if lo = hi; own { // or else they are a block as they are
			s.rest.Append(rows)
			if s.rest.Len() < Block {
				break
			}
			rows = s.rest.Slice(0, Block)
			s.rest = vectors.Dense{}
			if n := len(s.spare); n > 0 {
				s.rest, s.spare = s.spare[n-1], s.spare[:n-1]
			}
		}
		if err := s.block(ctx, rows, own); err != nil {
			return err
		}
		lent = lent || !own
	}
	if lent {
		return s.finish(0)
	}
	return nil
}

// Finish encodes the last block, which may not be full, and returns what was measured
// of all codes. It does not know the Input of the result. Its errors are those of [Stream.Rows].
func (s *Stream) Finish(ctx context.Context) (e model.Encoding, err error) {
	if rows := s.rest; rows.Len() > 0 {
		s.rest = vectors.Dense{}
		if err := s.block(ctx, &rows, true); err != nil {
			return e, err
		}
	}
	if err := s.finish(0); err != nil {
		return e, err
	}
	o := s.Encoder.Options()
	e = model.Encoding{Device: s.Encoder.Device(), Lambda: o.Lambda, Gap: o.Gap, Shard: s.Shard}
	if e.Gap == 0 {
		e.Steps, e.Nonzeros, e.FirstLambda = o.Steps, o.Nonzeros, Shrinkage(o.Lambda, 0, o.Steps)
	}
	s.tally.report(&e)
	if s.Shard != nil {
		s.Shard.UnreachedRows = s.tally.unreachedRows
	}
	return e, nil
}

// block begins to encode the next block, if it is of the shard, and finishes the one for whose
// encoder it is.
func (s *Stream) block(ctx context.Context, rows *vectors.Dense, own bool) error {
	next := begun{s.blocks, rows, own, nil}
	s.blocks++
	if s.Shard != nil {
		if s.Shard.Index < 1 || s.Shard.Index > s.Shard.Of {
			return fmt.Errorf("encode: there is no shard %d of %d", s.Shard.Index, s.Shard.Of)
		}
		s.Shard.Words += rows.Len()
		if next.number%s.Shard.Of != s.Shard.Index-1 {
			s.giveUp(next)
			return nil
		}
	}
	next.wait = s.Encoder.Start(ctx, rows.Data)
	s.begun = append(s.begun, next)
	encoders := 1
	if several, ok := s.Encoder.(*Several); ok {
		encoders = len(several.Encoders)
	}
	return s.finish(encoders)
}

// giveUp keeps the memory of a block that is done with, if it is the stream's.
func (s *Stream) giveUp(b begun) {
	if b.own {
		s.spare = append(s.spare, vectors.Dense{Words: b.rows.Words[:0], Data: b.rows.Data[:0]})
	}
}

// finish waits for the codes of the first blocks that were begun, but for the last left, measures
// them and hands them on.
func (s *Stream) finish(left int) error {
	for len(s.begun) > left {
		b := s.begun[0]
		s.begun = append(s.begun[:0], s.begun[1:]...)
		codes, err := b.wait()
		if row, ok := errors.AsType[*RowError](err); ok { // of the block's
			err = &RowError{Row: b.number*Block + row.Row, Word: b.rows.Words[row.Row], Err: row.Err}
		}
		if err == nil {
			err = s.add(b.number, b.rows, codes)
		}
		if err != nil {
			return err
		}
		s.giveUp(b)
	}
	return nil
}

// add measures the codes of a block and hands them on.
func (s *Stream) add(number int, rows *vectors.Dense, codes *Codes) error {
	words := rows.Words
	if codes.Rows != len(words) {
		return fmt.Errorf("encode: %d codes for %d words: the encoder's atoms are not of length %d", codes.Rows, len(words), s.dim)
	}
	var loss float64
	for i, l := range codes.Loss {
		if l-l != 0 { // infinite or NaN
			return &RowError{Row: number*Block + i, Word: words[i], Err: ErrOverflow}
		}
		loss += l
		if gap := s.Encoder.Options().Gap; gap > 0 {
			s.tally.worstGap = max(s.tally.worstGap, codes.Gap[i])
			if !(codes.Gap[i] <= gap) {
				s.tally.unreached++
				s.tally.name(i, words[i])
			}
		}
	}
	squares := 0.0
	if s.Dictionary != nil {
		squares = s.Dictionary.Squares(rows.Data)
	}
	if s.Shard != nil {
		s.Shard.Losses, s.Shard.Squares = append(s.Shard.Losses, loss), append(s.Shard.Squares, squares)
	}
	s.tally.block(&codes.CSR, loss, squares)
	return s.Add(&vectors.Sparse{Words: words, Texts: rows.Texts, CSR: codes.CSR})
}

// tally measures codes, block by block. Sums over blocks are sums of their sums,
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
