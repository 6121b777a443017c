package vectors

import (
	"math/rand/v2"

	"overcomplete/internal/memory"
)

// A Sample is a uniform random sample of the rows of a stream (Vitter's algorithm R). Its
// memory is bounded by its size.
type Sample struct {
	Rows Dense // the sampled rows, in no particular order
	Seen int   // number of rows of the stream so far

	size int
	rng  *rand.Rand
}

// NewSample returns an empty sample, which Add fills to at most size rows.
func NewSample(size int, seed uint64) *Sample {
	return &Sample{size: size, rng: rand.New(rand.NewPCG(seed, 0))}
}

// Add adds the next rows of the stream. All rows must have the same length.
func (s *Sample) Add(d *Dense) {
	if room := min(s.size-s.Rows.Len(), d.Len()); room > 0 {
		s.grow(s.Rows.Len()+room, d.Dim)
		s.Rows.Append(d.Slice(0, room))
		s.Seen += room
		d = d.Slice(room, d.Len())
	}
	for i, id := range d.IDs {
		s.Seen++
		if at := s.rng.IntN(s.Seen); at < s.size {
			s.Rows.IDs[at] = id
			copy(s.Rows.Row(at), d.Row(i))
			if d.Texts != nil {
				s.Rows.Texts.set(at, d.Texts.Text[i], d.Texts.row(i))
			}
		}
	}
}

// grow reserves memory for the given number of rows, of dim numbers each, up to the size of the sample. Memory that
// must grow at least doubles, because copies and page faults take longer than sampling.
func (s *Sample) grow(rows, dim int) {
	if data := s.Rows.Data; cap(data) < min(rows, s.size)*dim {
		s.Rows.Data = append(memory.Zeros[float32](min(max(rows, 2*s.Rows.Len()), s.size) * dim)[:0], data...)
	}
}
