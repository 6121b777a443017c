package encode

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"

	"overcomplete/internal/memory"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Block is the number of rows that are encoded together. Shards consist of whole blocks of an input; only the last
// block of the input may have fewer rows.
const Block = 8192

// maxUnreachedIDs is the largest number of rows that a [model.Encoding] lists in UnreachedIDs: rows whose duality gap
// exceeds [Options.Gap].
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
	s := &Stream{Encoder: e}
	for block, err := range s.Codes(ctx, func(yield func(*vectors.Dense, error) bool) { yield(x, nil) }) {
		if err != nil {
			return nil, err
		}
		if n := block.Nonzeros(); n > cap(codes.Index)-len(codes.Index) { // assume as many nonzeros in the other blocks
			all := n * ((x.Len()-codes.Rows-1)/block.Rows + 1)
			codes.Index, codes.Value = slices.Grow(codes.Index, all), slices.Grow(codes.Value, all)
		}
		codes.Append(&block.CSR)
	}
	encoding := s.Encoding()
	encoding.Input = model.Input{Rows: x.Len(), Dim: x.Dim}
	encoding.SetKind(x.Texts)
	encoded = &model.Model{Info: m.Info, Codes: codes, Dictionary: m.Dictionary}
	encoded.Info.Encoding = &encoding
	return encoded, nil
}

// A Stream encodes rows that need not fit in memory, and measures their codes. Its memory holds four blocks of [Block]
// rows with their codes. [File] encodes a file.
type Stream struct {
	Encoder Encoder

	// Shard, if not nil, selects the blocks to encode by its fields Index and Of. The Stream sets the other fields.
	Shard *model.Shard

	dim     int  // length of the dictionary's atoms, if rows of another length are the fault of a file; else 0
	recycle bool // only this Stream uses the rows: their memory is recycled
	tally   tally
}

// A block is a run of rows that are encoded together. One goroutine owns it at a time: the reader sets its rows, the
// encoder its codes, another goroutine its sums. The caller of [Stream.Codes] uses the codes, and returns the block to
// the reader.
type block struct {
	number   int            // index in the input
	rows     *vectors.Dense // a copy, or a part of the input's rows
	copied   vectors.Dense
	codes    Codes
	wait     func() error
	err      error
	sums     blockSums
	measured chan struct{} // receives a value when sums are set
}

// Codes yields the codes of all rows, a block at a time, in the order of the rows. Each value of the iterator is V×L.
// Other goroutines read rows ahead, encode, and measure codes; they end before Codes does. The rows must not change
// until their codes are yielded or Codes ends. The codes and their words are valid until the next iteration.
//
// Codes ends after the first error: an error of rows or of the encoder, or a [*vectors.InputError] that wraps
// [ErrOverflow] for a row that can't be encoded. The error of a block may come late, after more rows have been read.
func (s *Stream) Codes(ctx context.Context, rows iter.Seq2[*vectors.Dense, error]) iter.Seq2[*vectors.Sparse, error] {
	return func(yield func(*vectors.Sparse, error) bool) {
		if p := s.Shard; p != nil && (p.Index < 1 || p.Index > p.Of) {
			yield(nil, fmt.Errorf("encode: there is no shard %d of %d", p.Index, p.Of))
			return
		}
		// One block is being read, two are being encoded, and one is being measured and used. Each channel has room for
		// all blocks, so that only the reader waits.
		const blocks = 4
		free, read, encoded := make(chan *block, blocks), make(chan *block, blocks), make(chan *block, blocks)
		for range blocks {
			free <- &block{measured: make(chan struct{}, 1)}
		}
		within, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() {
			defer close(read)
			s.read(within, rows, free, read)
		})
		running.Go(func() {
			defer close(encoded)
			s.encode(within, read, free, encoded)
		})
		for b := range encoded {
			<-b.measured
			codes, err := s.finish(b)
			if !yield(codes, err) || err != nil {
				return
			}
			if s.recycle && b.rows != &b.copied {
				memory.Recycle(b.rows.Data)
			}
			b.rows = nil // free its memory
			free <- b
		}
		if err := ctx.Err(); err != nil { // the reader has stopped
			yield(nil, err)
		}
	}
}

// s.read splits rows into blocks of [Block] rows (the last may have fewer), and sends them to the channel read.
func (s *Stream) read(ctx context.Context, rows iter.Seq2[*vectors.Dense, error], free <-chan *block, read chan<- *block) {
	number, dim := 0, s.dim
	next := func() *block {
		select {
		case b := <-free:
			b.number, b.err = number, nil
			b.copied = vectors.Dense{IDs: b.copied.IDs[:0], Data: b.copied.Data[:0]}
			number++
			return b
		case <-ctx.Done():
			return nil
		}
	}
	b := next()
	if b == nil {
		return
	}
	for d, err := range rows {
		if err == nil && dim == 0 {
			dim = d.Dim
		}
		if err == nil && s.dim > 0 && d.Dim != s.dim {
			err = &vectors.InputError{Err: fmt.Errorf("vectors differ in length from the dictionary's atoms (got %d numbers, want %d)", d.Dim, s.dim)}
		}
		if err == nil && (d.Dim != dim || len(d.Data) != d.Len()*d.Dim) {
			err = fmt.Errorf("encode: rows have inconsistent sizes (got %d numbers for %d rows, want %d per row)", len(d.Data), d.Len(), dim)
		}
		if err != nil {
			b.err = err
			read <- b
			return
		}
		for lo := 0; lo < d.Len(); {
			hi := min(lo+Block-b.copied.Len(), d.Len())
			b.rows = d.Slice(lo, hi)
			if hi-lo < Block {
				b.copied.Append(b.rows)
				if s.recycle {
					memory.Recycle(b.rows.Data)
				}
				b.rows = &b.copied
			}
			lo = hi
			if b.rows.Len() < Block {
				break
			}
			read <- b
			if b = next(); b == nil {
				return
			}
		}
	}
	if b.copied.Len() > 0 {
		read <- b
	}
}

// encode receives blocks from the channel read, encodes the shard's blocks, and sends them in order to the channel
// encoded. It starts a block before it waits for the previous one. Other goroutines measure the blocks.
func (s *Stream) encode(ctx context.Context, read <-chan *block, free, encoded chan<- *block) {
	var started []*block // in order
	var measuring sync.WaitGroup
	defer measuring.Wait()
	finish := func(left int) {
		for ; len(started) > left; started = started[1:] {
			b := started[0]
			b.err = b.wait()
			measuring.Go(func() {
				s.measure(b)
				b.measured <- struct{}{}
			})
			encoded <- b
		}
	}
	for b := range read {
		if s.Shard != nil && b.err == nil {
			s.Shard.Rows += b.rows.Len()
			if b.number%s.Shard.Of != s.Shard.Index-1 {
				free <- b
				continue
			}
		}
		if err := b.err; err != nil {
			b.wait = func() error { return err }
		} else {
			b.wait = s.Encoder.Start(ctx, b.rows.Data, &b.codes)
		}
		started = append(started, b)
		finish(1)
	}
	finish(0)
}

func (s *Stream) measure(b *block) {
	if b.err == nil && b.codes.Rows != b.rows.Len() {
		b.err = fmt.Errorf("encode: the encoder's atoms differ in length from the vectors (got %d codes for %d rows of %d numbers)", b.codes.Rows, b.rows.Len(), b.rows.Dim)
	}
	if b.err != nil {
		return
	}
	b.sums = blockSums{used: b.sums.used}
	for i, l := range b.codes.Loss {
		if l-l != 0 { // infinite or NaN
			b.err = b.rowError(i, ErrOverflow)
			return
		}
		b.sums.loss += l
		b.sums.squares += b.codes.Squares[i]
	}
	b.sums.addCodes(&b.codes.CSR)
}

// finish adds the sums of a block to the tally and returns the block's codes.
func (s *Stream) finish(b *block) (*vectors.Sparse, error) {
	if b.err != nil {
		return nil, b.err
	}
	if gap := s.Encoder.Options().Gap; gap > 0 {
		for i, g := range b.codes.Gap {
			s.tally.worstGap = max(s.tally.worstGap, g)
			if !(g <= gap) {
				s.tally.unreached++
				s.tally.addUnreached(i, b.rows.IDs[i])
			}
		}
	}
	if s.Shard != nil {
		s.Shard.Losses, s.Shard.Squares = append(s.Shard.Losses, b.sums.loss), append(s.Shard.Squares, b.sums.squares)
	}
	s.tally.addBlock(&b.codes.CSR, &b.sums)
	return &vectors.Sparse{IDs: b.rows.IDs, Texts: b.rows.Texts, CSR: b.codes.CSR}, nil
}

func (b *block) rowError(i int, err error) error {
	return &vectors.InputError{Row: b.number*Block + i + 1, ID: b.rows.IDs[i], Err: err}
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

// A tally accumulates metrics of codes, block by block. It adds sums per block, so that merged shards have the same
// bits as a single encoding.
type tally struct {
	worstGap      float64
	unreached     int
	unreachedRows []int // up to maxUnreachedIDs
	unreachedIDs  []string

	rows     int
	nonzeros int64
	loss, l1 float64
	squares  float64 // Σ‖x − μ‖²
	used     []bool  // used[k] reports whether a code uses atom k
	atoms    int     // number of used atoms
}

// addUnreached records that the gap of row i of the next block is too large. It records up to maxUnreachedIDs rows.
func (t *tally) addUnreached(i int, id string) {
	if len(t.unreachedIDs) < maxUnreachedIDs {
		t.unreachedRows, t.unreachedIDs = append(t.unreachedRows, t.rows+i), append(t.unreachedIDs, id)
	}
}

// blockSums are the sums over a block of rows.
type blockSums struct {
	loss, l1 float64 // Σ‖y − aD‖², Σ‖a‖₁
	squares  float64 // Σ‖x − μ‖²
	used     []bool  // used[k] reports whether a code uses atom k
}

// addCodes adds the block's codes to l1, and sets used.
func (s *blockSums) addCodes(codes *vectors.CSR) {
	used, l1 := slices.Grow(s.used[:0], codes.Cols)[:codes.Cols], 0.0
	clear(used)
	for n, v := range codes.Value {
		l1 += math.Abs(float64(v)) // l1 is in a register, unlike s.l1
		used[codes.Index[n]] = true
	}
	s.used, s.l1 = used, l1
}

func (t *tally) addBlock(codes *vectors.CSR, s *blockSums) {
	if t.used == nil {
		t.used = make([]bool, codes.Cols)
	}
	for k, used := range s.used {
		if used && !t.used[k] {
			t.used[k] = true
			t.atoms++
		}
	}
	t.rows += codes.Rows
	t.nonzeros += int64(codes.Nonzeros())
	t.loss += s.loss
	t.squares += s.squares
	t.l1 += s.l1
}

// report sets the metrics of e. The caller has set e.Lambda. Without rows the metrics are zero.
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
