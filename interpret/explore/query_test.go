package explore

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/testonly/clitest"
)

// rowsOf returns a function that returns the code of a word in norm 1.
func rowsOf(m *model.Model) func(word string) []float64 {
	codes := clitest.Matrix(m.Codes)
	return func(word string) []float64 {
		code := codes[slices.Index(m.Codes.IDs, word)]
		return floats.ScaleTo(make([]float64, len(code)), 1/floats.Norm(code, 2), code)
	}
}

// The parts of answers to sums and texts add up, and agree with dense codes.
func TestAnswerQuery(t *testing.T) {
	m := testModel()
	handler := newExplorer(t, m, "test").Handler("")
	row := rowsOf(m)
	for query, weights := range map[string]map[string]float64{
		"bank - river + money":               {"bank": 1, "river": -1, "money": 1},
		`"the bank; the river, the bank"`:    {"bank": 2, "river": 1},
		"shore: money, river—bank Bank “w” ": {"shore": 1, "money": 1, "Bank": 1},
	} {
		got := answered[queryAnswer](t, handler, "/data/query?query="+url.QueryEscape(query))
		if len(got.Words) != len(weights) {
			t.Fatalf("%s: words %q", query, got.Words)
		}
		sum := make([]float64, testAtoms)
		for i, word := range got.Words {
			if weights[word] != got.Weights[i] {
				t.Errorf("%s: the weight of %s is %v, want %v", query, word, got.Weights[i], weights[word])
			}
			floats.AddScaled(sum, got.Weights[i], row(word))
		}
		floats.Scale(1/floats.Norm(sum, 2), sum)
		for _, d := range got.Dimensions {
			parts := floats.Sum(d.Parts)
			if want := sum[d.Dimension]; math.Abs(d.Value-want) > 1e-6 || math.Abs(parts-want) > 1e-6 {
				t.Errorf("%s: dimension %d is %v, of parts %v, want %v", query, d.Dimension, d.Value, d.Parts, want)
			}
		}
		nonzero := floats.Count(func(v float64) bool { return v != 0 }, sum)
		if len(got.Dimensions) != min(listedSum, nonzero) || len(got.Nearest) != answers {
			t.Errorf("%s: %d dimensions, %d words", query, len(got.Dimensions), len(got.Nearest))
		}
		for _, n := range got.Nearest {
			u := row(n.Word)
			parts := n.Rest
			for _, p := range n.Parts {
				parts += p.Part
				if want := u[p.Dimension] * sum[p.Dimension]; math.Abs(p.Part-want) > 1e-6 || math.Abs(p.Value-u[p.Dimension]) > 1e-6 {
					t.Errorf("%s: the part of dimension %d in %s is %v, want %v", query, p.Dimension, n.Word, p, want)
				}
			}
			if want := floats.Dot(u, sum); math.Abs(n.Cosine-want) > 1e-6 || math.Abs(parts-want) > 1e-6 || weights[n.Word] != 0 {
				t.Errorf("%s: the cosine of %s is %v, of parts %v, want %v", query, n.Word, n.Cosine, parts, want)
			}
		}
	}
}

// A steered score is the cosine plus the parts of the steered dimensions.
func TestSteeredQuery(t *testing.T) {
	m := testModel()
	handler := newExplorer(t, m, "test").Handler("")
	row, got := rowsOf(m), answered[queryAnswer](t, handler, "/data/query?query=bank&steer=3:0.5,7:-2")
	if len(got.Nearest) == 0 {
		t.Fatalf("%+v", got)
	}
	last := math.Inf(1)
	for _, n := range got.Nearest {
		u := row(n.Word)
		score := n.Cosine + n.Steered[0].Part + n.Steered[1].Part
		if want := floats.Dot(u, row("bank")) + .5*u[3] - 2*u[7]; math.Abs(score-want) > 1e-6 || score > last {
			t.Errorf("%s: score %v, want %v: %+v", n.Word, score, want, n)
		}
		last = score
	}
	for _, steer := range []string{"x", "3", "3:", "3:x", "-1:1", "1000000:1", "3:NaN", "3:inf", "3:1,", "3:1000001", "3:-1e7", "3:1,3:2", strings.Repeat("3:1,", 100) + "3:1"} {
		if got := get(handler, "/data/query?query=bank&steer="+steer); got.Code/100 != 4 {
			t.Errorf("%s: %d %s", steer, got.Code, got.Body)
		}
	}
}

// Queries that other pages answer are only parsed.
func TestQueriesOfPages(t *testing.T) {
	handler := newExplorer(t, testModel(), "test").Handler("")
	for query, want := range map[string]queryAnswer{
		"River":      {Kind: interpret.QueryWords, Words: []string{"river"}, Weights: []float64{1}},
		"bank river": {Kind: interpret.QueryWords, Words: []string{"bank", "river"}, Weights: []float64{1, 1}},
		"New York":   {Kind: interpret.QueryWords, Words: []string{"New York"}, Weights: []float64{1}},
		"39":         {Kind: interpret.QueryDimension, Dimension: 39, Words: []string{}, Weights: []float64{}},
	} {
		want.Unknown = []string{}
		wanted, _ := json.Marshal(want)
		if got := get(handler, "/data/query?query="+url.QueryEscape(query)); got.Code != http.StatusOK || got.Body.String() != string(wanted) {
			t.Errorf("%s: %d %s, want %s", query, got.Code, got.Body, wanted)
		}
	}
	w := get(handler, "/data/query?query=bank+rivre")
	var e RequestError
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != 404 || e.Word != "rivre" || !slices.Contains(e.Closest, "river") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, query := range []string{"", "bank -", strings.Repeat("a ", 2001)} {
		if w := get(handler, "/data/query?query="+url.QueryEscape(query)); w.Code != 400 {
			t.Errorf("%.10q: %d", query, w.Code)
		}
	}
}
