package encode

import (
	"context"
	"fmt"
	"math"

	"overcomplete/model"
	"overcomplete/vectors"
)

// Block is how many rows are encoded together, and by how many rows an input is
// dealt out to shards.
const Block = 4096

// A Stream encodes rows that come some at a time, however many, and measures their
// codes. It holds a block of them.
type Stream struct {
	Encoder Encoder
	Options Options
	Add     func(words []string, codes *vectors.Sparse) error // takes the codes, block by block; words are for the time of the call
	Shard   *model.Shard                                      // nil for all rows; Words and Losses are filled in

	// Unreached is told of words whose gap is larger than the one asked for. It may
	// be nil.
	Unreached func(word string, gap float64)

	tally  Tally
	blocks int
	words  []string
	data   []float32
}

// Rows encodes more rows, or keeps them for the next block.
func (s *Stream) Rows(ctx context.Context, d *vectors.Dense) error {
	for lo := 0; lo < d.Len(); {
		hi := min(lo+Block-len(s.words), d.Len())
		s.words, s.data = append(s.words, d.Words[lo:hi]...), append(s.data, d.Data[lo*d.Dim:hi*d.Dim]...)
		if lo = hi; len(s.words) == Block {
			if err := s.block(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Finish encodes what is left and writes what was measured into e.
func (s *Stream) Finish(ctx context.Context, e *model.Encoding) error {
	if len(s.words) > 0 {
		if err := s.block(ctx); err != nil {
			return err
		}
	}
	s.tally.Report(e)
	return nil
}

// block encodes the rows at hand, if they are of the shard.
func (s *Stream) block(ctx context.Context) error {
	number := s.blocks
	s.blocks++
	words, data := s.words, s.data
	s.words, s.data = s.words[:0], s.data[:0]
	if s.Shard != nil {
		s.Shard.Words += len(words)
		if number%s.Shard.Of != s.Shard.Index-1 {
			return nil
		}
	}
	codes, err := s.Encoder.Encode(ctx, data)
	if err != nil {
		return err
	}
	var loss float64
	for i, l := range codes.Loss {
		if l-l != 0 { // infinite or NaN
			return fmt.Errorf("%.100q: %w", words[i], ErrOverflow)
		}
		loss += l
		if s.Options.Gap > 0 {
			s.tally.WorstGap = max(s.tally.WorstGap, codes.Gap[i])
			if !(codes.Gap[i] <= s.Options.Gap) {
				s.tally.Unreached++
				if s.Unreached != nil {
					s.Unreached(words[i], codes.Gap[i])
				}
			}
		}
	}
	if s.Shard != nil {
		s.Shard.Losses = append(s.Shard.Losses, loss)
	}
	s.tally.Block(&codes.Sparse, loss)
	return s.Add(words, &codes.Sparse)
}

// Tally measures codes, block by block. Sums over blocks are sums of their sums,
// the same for shards that are merged as for an input encoded at once.
type Tally struct {
	WorstGap  float64
	Unreached int

	rows     int
	nonzeros int64
	loss, l1 float64
	used     []bool
}

// Block adds a block, whose losses are given.
func (t *Tally) Block(codes *vectors.Sparse, loss float64) {
	if t.used == nil {
		t.used = make([]bool, codes.Cols)
	}
	var l1 float64
	for n, v := range codes.Value {
		l1 += math.Abs(float64(v))
		t.used[codes.Index[n]] = true
	}
	t.rows += codes.Rows
	t.nonzeros += int64(codes.Nonzeros())
	t.loss += loss
	t.l1 += l1
}

// Report writes what was measured into e, whose Lambda is known. Without rows it
// is all zero.
func (t *Tally) Report(e *model.Encoding) {
	e.WorstGap, e.Unreached = t.WorstGap, t.Unreached
	if t.rows == 0 {
		return
	}
	rows := float64(t.rows)
	e.Error, e.L1 = t.loss/rows, t.l1/rows
	e.Objective = e.Error + e.Lambda*e.L1
	e.Sparsity = 1 - float64(t.nonzeros)/(rows*float64(len(t.used)))
	e.UnusedAtoms = 0
	for _, used := range t.used {
		if !used {
			e.UnusedAtoms++
		}
	}
}
