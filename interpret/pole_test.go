package interpret

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// Distinctive agrees with LDAvis's formula. Its probabilities, of a word in a dimension and of a word in general, are
// computed from absolute values instead of counts.
func TestDistinctive(t *testing.T) {
	s := clitest.RandomCodes(5, 60, 12, .4)
	x := NewIndex(s)
	codes := clitest.Matrix(s)
	total := 0.0
	ofWord, ofDimension := make([]float64, s.Rows), make([]float64, s.Cols)
	for i, row := range codes {
		for k, v := range row {
			total += math.Abs(v)
			ofWord[i] += math.Abs(v)
			ofDimension[k] += math.Abs(v)
		}
	}
	other := false
	for k := range s.Cols {
		for _, p := range []Pole{{k, false}, {k, true}} {
			relevance := func(i int) float64 {
				inDimension := math.Abs(codes[i][k]) / ofDimension[k]
				return 0.8*math.Log(inDimension) + 0.2*math.Log(inDimension/(ofWord[i]/total))
			}
			rows := ranked(codes, p)
			slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(relevance(b), relevance(a)) })
			var want []Entry
			for _, i := range rows[:min(7, len(rows))] {
				want = append(want, Entry{i, float32(codes[i][k])})
			}
			got := x.Distinctive(p, 7)
			if !slices.Equal(got, want) {
				t.Errorf("%v: %v, want %v", p, got, want)
			}
			other = other || len(got) > 0 && x.Top(p, 1)[0].Row != got[0].Row
		}
	}
	if !other {
		t.Error("the most distinctive word always has the largest value: the test shows nothing")
	}
}

// A label doesn't repeat a word in another form.
func TestLabel(t *testing.T) {
	s := &vectors.Sparse{
		IDs: []string{"approve", "Approved", "car", "cars", "to", "too", "cat", "APPROVE", "last"},
		CSR: vectors.CSR{Rows: 9, Cols: 2, Ptr: []int64{0}},
	}
	for i := range s.IDs {
		s.Index, s.Value = append(s.Index, 0), append(s.Value, float32(20-i))
		if i == 3 {
			s.Index, s.Value = append(s.Index, 1), append(s.Value, -1)
		}
		s.Ptr = append(s.Ptr, int64(len(s.Index)))
	}
	x := NewIndex(s)
	if got := x.Label(Pole{}); !slices.Equal(got, []string{"approve", "car", "to"}) {
		t.Errorf("%q", got)
	}
	if got := x.Label(Pole{Dimension: 1}); len(got) != 0 {
		t.Errorf("a pole without words: %q", got)
	}
	labels := Labels{{0, "verbs", "", false, false}, {1, "", "only a note", false, false}}
	for p, want := range map[Pole]string{{0, false}: "verbs", {0, true}: "−verbs", {1, true}: "−cars", {1, false}: ""} {
		if got := labels.Name(x, p); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
}

// Coherence agrees with the cosines of all pairs of dense rows.
func TestCoherence(t *testing.T) {
	s := clitest.RandomCodes(5, 60, 12, .4)
	s.Value[3] = 0
	x, codes := NewIndex(s), clitest.Matrix(s)
	mean := func(rows []int, without int) float64 {
		sum, n := 0.0, 0.0
		for _, i := range rows {
			for _, j := range rows {
				a, b := slices.Clone(codes[i]), slices.Clone(codes[j])
				if without >= 0 {
					a[without], b[without] = 0, 0
				}
				if i != j {
					n++
					if c := cosine(a, b); c == c { // not NaN
						sum += c
					}
				}
			}
		}
		return sum / n
	}
	all := make([]int, s.Rows)
	for i := range all {
		all[i] = i
	}
	for k := range s.Cols {
		for _, p := range []Pole{{k, false}, {k, true}} {
			rows := ranked(codes, p)
			want := mean(rows[:min(8, len(rows))], k) - mean(all, -1)
			if got := x.Coherence(p); math.Abs(got-want) > 1e-12 && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%v: %v, want %v", p, got, want)
			}
		}
	}
}

func TestStrongest(t *testing.T) {
	s := clitest.RandomCodes(1, 0, 4, 0)
	s.IDs = []string{"a", "b", "c"}
	s.AppendRow([]int32{0, 1, 2}, []float32{3, 2, -9})
	s.AppendRow([]int32{0, 1}, []float32{3, 2})
	s.AppendRow([]int32{1}, []float32{2.5})
	for n, want := range map[int][]int{1: {0, 1, 2, 3}, 3: {1, 0, 2, 3}} {
		if got := NewIndex(s).Strongest(n); !slices.Equal(got, want) {
			t.Errorf("by %d words: %v, want %v", n, got, want)
		}
	}
}

// Words share a prefix if they are equal or begin with the same five letters. They also do if one has three or four
// letters and begins the other.
func TestSharesPrefix(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"house", "houses", true}, {"House", "HOUSES", true}, {"house", "hound", false}, {"hous", "housing", true},
		{"car", "cart", true}, {"ca", "cart", false}, {"ca", "CA", true}, {"", "", true}, {"", "a", false},
		{"Äpfelbaum", "äpfelkern", true}, {"日本", "日本語", false},
	} {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			if got := sharesPrefix(pair[0], []string{"other", pair[1]}); got != tt.want {
				t.Errorf("%q: %v, want %v", pair, got, tt.want)
			}
		}
	}
}
