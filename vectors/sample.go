package vectors

import "math/rand/v2"

// A Sample keeps rows of a stream, such as that of [Stream], so that each has the same
// chance (Vitter's algorithm R). It takes no more memory than the rows that it keeps.
type Sample struct {
	Rows Dense // those that are kept, in no order
	Seen int   // how many there were

	most int
	rng  *rand.Rand
}

// NewSample returns a sample of most rows, or of all if there are fewer. Seed chooses
// which.
func NewSample(most int, seed uint64) *Sample {
	return &Sample{most: most, rng: rand.New(rand.NewPCG(seed, 0))}
}

// Add adds the next rows of the stream, all of one length.
func (s *Sample) Add(d *Dense) {
	if room := min(s.most-s.Rows.Len(), d.Len()); room > 0 {
		s.Rows.Append(d.Slice(0, room))
		s.Seen += room
		d = d.Slice(room, d.Len())
	}
	for i, word := range d.Words {
		s.Seen++
		if at := s.rng.IntN(s.Seen); at < s.most {
			s.Rows.Words[at] = word
			copy(s.Rows.Row(at), d.Row(i))
			if d.Texts != nil {
				s.Rows.Texts.set(at, d.Texts.Text[i], d.Texts.row(i))
			}
		}
	}
}
