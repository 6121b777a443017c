package vectors

import (
	"math"
	"strconv"
	"testing"
)

// Every row is sampled with the same probability, with its word and vector.
func TestSample(t *testing.T) {
	const rows, most, seeds = 50, 10, 2000
	var kept [rows]float64
	for seed := range uint64(seeds) {
		s := NewSample(most, seed)
		for i := 0; i < rows; i += 5 { // in parts
			d := &Dense{Dim: 2}
			for j := i; j < i+5; j++ {
				d.IDs, d.Data = append(d.IDs, strconv.Itoa(j)), append(d.Data, float32(j), float32(-j))
			}
			s.Add(d)
		}
		if s.Seen != rows || s.Rows.Len() != most || s.Rows.Dim != 2 {
			t.Fatalf("%d rows of %d", s.Rows.Len(), s.Seen)
		}
		seen := map[string]bool{}
		for i, id := range s.Rows.IDs {
			j, _ := strconv.Atoi(id)
			if row := s.Rows.Row(i); seen[id] || row[0] != float32(j) || row[1] != float32(-j) {
				t.Fatalf("row %q is %v", id, row)
			}
			seen[id] = true
			kept[j]++
		}
	}
	// Binomial: 400 ± 18; the tolerance is five standard deviations.
	const mean = seeds * most / rows
	for j, n := range kept {
		if math.Abs(n-mean) > 5*math.Sqrt(mean*(1-float64(most)/rows)) {
			t.Errorf("row %d was kept %v times, want about %d", j, n, mean)
		}
	}
	s := NewSample(most, 1)
	s.Add(&Dense{IDs: []string{"a", "b"}, Dim: 1, Data: []float32{1, 2}})
	if s.Rows.Len() != 2 || s.Rows.IDs[0] != "a" {
		t.Errorf("of fewer rows, %q are kept", s.Rows.IDs)
	}
}
