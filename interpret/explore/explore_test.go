package explore

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/testonly/encodetest"
	"overcomplete/train"
	"overcomplete/vectors"
)

// oddWords are valid words that pages must show unchanged.
var oddWords = []string{
	"<img src=x onerror=hacked=1>", "</script><script>hacked=1</script>", "a/b", "..", "%41", `"'&amp;`,
	"New York", "__proto__", "constructor", "#/word/bank", "été", "日本", "210", "\u2028", "null", "?word=x", "Bank",
}

const testWords, testAtoms, testDim = 300, 40, 8

// testModel returns a model of the words bank, river, money, shore, oddWords and others. Each dimension has values
// of both signs, except the last, whose atom is dead.
func testModel() *model.Model {
	rng := rand.New(rand.NewPCG(1, 2))
	h := train.Paper()
	h.Atoms = testAtoms
	training := model.Training{
		Input:  model.Input{Name: "test.txt", Rows: testWords, Dim: testDim},
		Recipe: h, Lambda: h.Lambda, Epochs: []model.Epoch{{Epoch: 1, Error: .25}},
	}
	m := &model.Model{
		Info: model.Info{Format: model.FormatVersion, Training: training, Encoding: training.PaperEncoding()},
		Codes: &vectors.Sparse{
			IDs: slices.Concat([]string{"bank", "river", "money", "shore"}, oddWords),
			CSR: vectors.CSR{Rows: testWords, Cols: testAtoms, Ptr: []int64{0}},
		},
		Dictionary: model.Dictionary{Dim: testDim, Atoms: make([]float32, testAtoms*testDim)},
	}
	for i := len(m.Codes.IDs); i < testWords; i++ {
		m.Codes.IDs = append(m.Codes.IDs, "w"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	for i := range testWords {
		for k := range testAtoms - 1 {
			if (i != 50 && rng.IntN(6) == 0) || (i < 2 && k < 5) { // word 50 has a code of zeros
				m.Codes.Index = append(m.Codes.Index, int32(k))
				m.Codes.Value = append(m.Codes.Value, float32(rng.NormFloat64()+1))
			}
		}
		m.Codes.Ptr = append(m.Codes.Ptr, int64(len(m.Codes.Index)))
	}
	for i := range m.Dictionary.Atoms {
		m.Dictionary.Atoms[i] = float32(rng.NormFloat64())
	}
	return m
}

func newExplorer(t testing.TB, m *model.Model, name string) *Explorer {
	t.Helper()
	return newWith(t, m, name, Options{})
}

func newWith(t testing.TB, m *model.Model, name string, o Options) *Explorer {
	t.Helper()
	x, err := New(m, name, o)
	testonly.Must(t, err)
	return x
}

func sign(v float64) float64 { return float64(cmp.Compare(v, 0)) }

// The answers for dimensions agree with their definitions on the dense matrix.
func TestDimension(t *testing.T) {
	m := testModel()
	x := newExplorer(t, m, "test")
	codes := clitest.Matrix(m.Codes)
	opposite := false
	for k := range testAtoms {
		got := x.dimension(k)
		signs := column(codes, k, sign)
		if words := testWords - int(count(signs, 0)); got.Dimension != k || got.Words != words {
			t.Errorf("dimension %d: %d words, want %d", k, got.Words, words)
		}
		values := column(codes, k, func(v float64) float64 { return v })
		checkHistogram(t, fmt.Sprint("dimension ", k), got.Histogram, slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v == 0 }))
		if want := ranked(m.Codes.IDs, values, 1, listWords); len(got.Top) != len(want) || len(want) > 0 && got.Top[0].Word != want[0] {
			t.Errorf("dimension %d: top %v, want %v", k, got.Top, want)
		}
		var want []pair
		for other := range testAtoms - 1 {
			others := column(codes, other, sign)
			products := floats.MulTo(make([]float64, testWords), signs, others)
			p := pair{Dimension: other, Words: int(count(products, 1)), Correlation: stat.Correlation(signs, others, nil)}
			product := 1.0
			if n := int(count(products, -1)); n > p.Words {
				product, p.Opposite, p.Words, p.Correlation = -1, true, n, -p.Correlation
			}
			// Expected number of rows if the signs were independent.
			for _, s := range []float64{-1, 1} {
				p.Expected += count(signs, s) * count(others, s*product) / testWords
			}
			if other != k && p.Correlation > 0 {
				want = append(want, p)
			}
		}
		slices.SortStableFunc(want, func(p, q pair) int { return cmp.Compare(q.Correlation, p.Correlation) })
		want = want[:min(maxTogether, len(want))]
		if !slices.EqualFunc(got.Together, want, func(p, q pair) bool {
			near := math.Abs(p.Expected-q.Expected) < 1e-9 && math.Abs(p.Correlation-q.Correlation) < 1e-9
			opposite = opposite || p.Opposite
			p.Expected, p.Correlation = q.Expected, q.Correlation
			return near && p == q
		}) {
			t.Errorf("dimension %d: together with %+v, want %+v", k, got.Together, want)
		}
	}
	if !opposite {
		t.Error("no opposite poles co-occur: the test shows nothing")
	}
}

// ranked returns up to n words with the largest values of a sign.
func ranked(words []string, values []float64, side float64, n int) []string {
	var rows []int
	for i, v := range values {
		if v*side > 0 {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(values[j]*side, values[i]*side) })
	picked := []string{}
	for _, i := range rows[:min(n, len(rows))] {
		picked = append(picked, words[i])
	}
	return picked
}

// checkHistogram compares the counts of bins with the values between their edges.
func checkHistogram(t *testing.T, name string, h histogram, values []float64) {
	t.Helper()
	if len(values) == 0 && len(h.Counts) == 0 {
		return
	}
	edges := floats.Span(make([]float64, len(h.Counts)+1), h.From, h.To)
	edges[len(h.Counts)] = math.Nextafter(h.To, math.Inf(1)) // the last bin contains its upper edge
	slices.Sort(values)
	for b, want := range stat.Histogram(nil, edges, values, nil) {
		if got := h.Counts[b]; float64(got) != want {
			t.Errorf("%s: %d values from %v to %v, want %v", name, got, edges[b], edges[b+1], want)
		}
	}
}

// column returns f of the values of a column.
func column(rows [][]float64, k int, f func(float64) float64) []float64 {
	values := make([]float64, len(rows))
	for i := range rows {
		values[i] = f(rows[i][k])
	}
	return values
}

func count(values []float64, value float64) (n float64) {
	for _, v := range values {
		if v == value {
			n++
		}
	}
	return n
}

func TestAbout(t *testing.T) {
	m := testModel()
	x := newExplorer(t, m, "test")
	a := x.summary
	if a.Name != "test" || a.Words != testWords || a.Live != testAtoms-1 || len(a.Dimensions) != testAtoms || a.Nonzeros != len(m.Codes.Value) || a.Error != .25 {
		t.Errorf("got %+v", a)
	}
	m.Info.Encoding = &model.Encoding{Error: .125}
	if got := newExplorer(t, m, "").summary.Error; got != .125 {
		t.Errorf("error %v of the current codes", got)
	}
	codes := clitest.Matrix(m.Codes)
	var perWord, perDimension []float64
	for _, row := range codes {
		perWord = append(perWord, testAtoms-count(row, 0))
	}
	for k, d := range a.Dimensions {
		values := column(codes, k, func(v float64) float64 { return v })
		words := testWords - count(values, 0)
		if words > 0 {
			perDimension = append(perDimension, words)
		}
		want := dimension{
			Words: int(words), Top: ranked(m.Codes.IDs, values, 1, labelWords), Bottom: ranked(m.Codes.IDs, values, -1, labelWords),
			Label: x.index.Label(interpret.Pole{Dimension: k}), BottomLabel: x.index.Label(interpret.Pole{Dimension: k, Negative: true}), // tested by package interpret
		}
		if poles := x.index.Poles(k); len(poles) > 0 {
			coherence := x.index.Coherence(poles[0])
			if d.Coherence == nil || math.Abs(*d.Coherence-coherence) > .0005001 {
				t.Errorf("dimension %d: coherence %v, want %v", k, d.Coherence, coherence)
			}
		}
		if d.Coherence = nil; !reflect.DeepEqual(d, want) {
			t.Errorf("dimension %d: %v, want %v", k, d, want)
		}
	}
	checkHistogram(t, "active dimensions", a.PerWord, perWord)
	checkHistogram(t, "words of dimensions", a.PerDim, perDimension)
	if len(a.Strongest) != testAtoms-1 || slices.Contains(a.Strongest, testAtoms-1) {
		t.Errorf("strongest: %v", a.Strongest)
	}
}

// Empty models and codes of zeros have pages.
func TestAboutNothing(t *testing.T) {
	for _, words := range [][]string{nil, {"a", "b"}} {
		m := &model.Model{
			Info:       model.Info{Training: model.Training{Recipe: train.Paper()}, Encoding: new(model.Encoding)},
			Codes:      &vectors.Sparse{IDs: words, CSR: vectors.CSR{Rows: len(words), Cols: 3, Ptr: make([]int64, len(words)+1)}},
			Dictionary: model.Dictionary{Dim: 2, Atoms: make([]float32, 6)},
		}
		x := newExplorer(t, m, "nothing")
		mustJSON(x.summary)
		mustJSON(x.dimension(1))
		for i := range words {
			mustJSON(x.word(i))
		}
		if points := x.dimensionMap().Points; len(points) > 0 {
			t.Errorf("%d points of no live dimension", len(points))
		}
	}
}

func TestHistogram(t *testing.T) {
	for _, tt := range []struct {
		name     string
		values   []float32
		whole    bool
		from, to float64
		bins     int
	}{
		{"none", nil, false, 0, 0, 0},
		{"positive", []float32{1, 2, 4}, false, 0, 4, bins},
		{"negative", []float32{-3, -1}, false, -3, 0, bins},
		{"both signs", []float32{-1, 3}, false, -1, 3, bins},
		{"denormal", []float32{1e-45, 1e-45}, false, 0, 1.401298464324817e-45, bins},
		{"largest", []float32{-math.MaxFloat32, math.MaxFloat32}, false, -math.MaxFloat32, math.MaxFloat32, bins},
		{"whole", []float32{3, 5, 5}, true, 3, 6, 3},
		{"one whole", []float32{0}, true, 0, 1, 1},
		{"many whole", []float32{1, 1000}, true, 1, 1025, bins},
		{"bins of 1", []float32{0.9, 32, 1.5, 31.5}, false, 0, 32, bins},
	} {
		h := newHistogram(tt.values, tt.whole)
		if h.From != tt.from || h.To != tt.to || len(h.Counts) != tt.bins {
			t.Errorf("%s: %+v", tt.name, h)
		}
		checkHistogram(t, tt.name, h, encodetest.Widen(tt.values))
	}
}
