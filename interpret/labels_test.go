package interpret

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"overcomplete/vectors"
)

// Against LDAvis's formula as it is written, with probabilities from counts: that of a
// word in a dimension, and that of a word.
func TestDistinctive(t *testing.T) {
	s := randomCodes(5, 60, 12, .4)
	x := NewIndex(s)
	codes := dense(s)
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
		for _, negative := range []bool{false, true} {
			relevance := func(i int) float64 {
				inDimension := math.Abs(codes[i][k]) / ofDimension[k]
				return 0.8*math.Log(inDimension) + 0.2*math.Log(inDimension/(ofWord[i]/total))
			}
			var want []int
			for i := range s.Rows {
				if v := codes[i][k]; v > 0 && !negative || v < 0 && negative {
					want = append(want, i)
				}
			}
			slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(relevance(b), relevance(a)) })
			want = want[:min(7, len(want))]
			var got []int
			for _, e := range x.Distinctive(k, 7, negative) {
				got = append(got, e.Row)
				if float64(e.Value) != codes[e.Row][k] {
					t.Errorf("dimension %d, row %d: value %v, want %v", k, e.Row, e.Value, codes[e.Row][k])
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("dimension %d, negative %v: rows %v, want %v", k, negative, got, want)
			}
			other = other || !negative && len(got) > 0 && x.Top(k, 1)[0].Row != got[0]
		}
	}
	if !other {
		t.Error("the most distinctive word is always that of the largest value: the test shows nothing")
	}
}

// A label has no word twice, in two forms.
func TestLabel(t *testing.T) {
	s := &vectors.Sparse{
		Words: []string{"approve", "Approved", "car", "cars", "to", "too", "cat", "APPROVE", "last"},
		CSR:   vectors.CSR{Rows: 9, Cols: 2, Ptr: []int64{0}},
	}
	for i := range s.Words {
		s.Index, s.Value = append(s.Index, 0), append(s.Value, float32(20-i))
		if i == 3 {
			s.Index, s.Value = append(s.Index, 1), append(s.Value, -1)
		}
		s.Ptr = append(s.Ptr, int64(len(s.Index)))
	}
	x := NewIndex(s)
	if got := x.Label(0, false); !slices.Equal(got, []string{"approve", "car", "to"}) {
		t.Errorf("%q", got)
	}
	if got := x.Label(1, false); len(got) != 0 {
		t.Errorf("a side without words: %q", got)
	}
	labels := Labels{0: {0, "verbs", ""}, 1: {1, "", "only a note"}}
	for _, tt := range []struct {
		k        int
		negative bool
		want     string
	}{{0, false, "verbs"}, {0, true, "−verbs"}, {1, true, "−cars"}, {1, false, ""}} {
		if got := labels.Of(x, tt.k, tt.negative); got != tt.want {
			t.Errorf("dimension %d, negative %v: %q, want %q", tt.k, tt.negative, got, tt.want)
		}
	}
}

func TestLabelsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "labels.json")
	read := func() Labels {
		t.Helper()
		ls, err := ReadLabels(path, 30)
		if err != nil {
			t.Fatal(err)
		}
		return ls
	}
	ls := read()
	if len(ls) != 0 {
		t.Fatalf("before any: %v", ls)
	}
	for _, l := range []Label{{10, " <b>kings</b> & queens ", ""}, {2, "", "not clear"}, {29, "日本", "where\u00a0it is"}, {3, "gone", "soon"}, {3, "", " "}} {
		if err := ls.Set(l, 30); err != nil {
			t.Fatal(err)
		}
	}
	want := Labels{10: {10, "<b>kings</b> & queens", ""}, 2: {2, "", "not clear"}, 29: {29, "日本", "where\u00a0it is"}}
	for range 2 { // the second time in place of the first
		if err := ls.Save(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if got := read(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if got := fmt.Sprint(ls.List()); got != "[{2  not clear} {10 <b>kings</b> & queens } {29 日本 where\u00a0it is}]" {
		t.Errorf("list %s", got)
	}
}

func TestLabelsRefuse(t *testing.T) {
	ls := Labels{}
	for _, tt := range []struct {
		l    Label
		want string
	}{
		{Label{30, "a", ""}, "no dimension 30: they are 0 to 29"},
		{Label{-1, "a", ""}, "no dimension -1"},
		{Label{1, "a\nb", ""}, `the name of dimension 1 is "a\nb", want one line of text`},
		{Label{1, "", "\x1b[2J"}, `the note of dimension 1 is "\x1b[2J", want one line`},
		{Label{1, "\xff", ""}, `the name of dimension 1 is "\xff"`},
		{Label{1, strings.Repeat("a", 101), ""}, "the name of dimension 1 has 101 bytes, want 100 at most"},
		{Label{1, "", strings.Repeat("a", 2001)}, "the note of dimension 1 has 2001 bytes, want 2000 at most"},
	} {
		if err := ls.Set(tt.l, 30); err == nil || !strings.Contains(err.Error(), tt.want) || len(ls) > 0 {
			t.Errorf("%v: %v, want %s", tt.l, err, tt.want)
		}
	}
	path := filepath.Join(t.TempDir(), "labels.json")
	for _, tt := range []struct{ text, want string }{
		{"", "unexpected end"},
		{"{}", "cannot unmarshal"},
		{`[{"dimension": 30, "name": "a"}]`, "no dimension 30"},
		{`[{"dimension": 1, "name": "a"}, {"dimension": 1, "name": "b"}]`, "dimension 1 is there twice"},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLabels(path, 30); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %s: …%s", tt.text, err, path, tt.want)
		}
	}
}

// Nobody who changes a label undoes what somebody else did at the same time.
func TestChangeLabelsAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no locks on directories")
	}
	path := filepath.Join(t.TempDir(), "labels.json")
	const n = 40
	var wait sync.WaitGroup
	for k := range n {
		wait.Go(func() {
			_, err := ChangeLabels(t.Context(), path, n, func(ls Labels) error { return ls.Set(Label{Dimension: k, Name: fmt.Sprint(k)}, n) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if ls, err := ReadLabels(path, n); err != nil || len(ls) != n {
		t.Errorf("%d labels, error %v", len(ls), err)
	}
}
