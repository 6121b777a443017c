package explore

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"overcomplete/interpret"
	"overcomplete/model"
)

// Answers to sums and texts add up to the cosines that they show, over dense codes.
func TestAsk(t *testing.T) {
	m := testModel()
	handler := newExplorer(t, m, "test").Handler("")
	codes := dense(m.Codes)
	unit := func(row int) []float64 {
		length := 0.0
		for _, v := range codes[row] {
			length += v * v
		}
		u := make([]float64, testAtoms)
		for k, v := range codes[row] {
			u[k] = v / math.Sqrt(length)
		}
		return u
	}
	for question, weights := range map[string]map[string]float64{
		"bank - river + money":               {"bank": 1, "river": -1, "money": 1},
		`"the bank; the river, the bank"`:    {"bank": 2, "river": 1},
		"shore: money, river—bank Bank “w” ": {"shore": 1, "money": 1, "Bank": 1},
	} {
		w := get(handler, "/data/query?query="+url.QueryEscape(question))
		var got queryAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", question, w.Code, w.Body)
		}
		sum := make([]float64, testAtoms)
		for i, word := range got.Words {
			if weights[word] != got.Weights[i] || len(got.Words) != len(weights) {
				t.Errorf("%s: the weight of %s is %v, want %v", question, word, got.Weights[i], weights[word])
			}
			for k, v := range unit(slices.Index(m.Codes.Words, word)) {
				sum[k] += got.Weights[i] * v
			}
		}
		length := 0.0
		for _, v := range sum {
			length += v * v
		}
		length = math.Sqrt(length)
		last := math.Inf(1)
		for _, d := range got.Dimensions {
			parts := 0.0
			for _, p := range d.Parts {
				parts += p
			}
			if want := sum[d.Dimension] / length; math.Abs(d.Value-want) > 1e-6 || math.Abs(parts-want) > 1e-6 || math.Abs(want) > last+1e-6 {
				t.Errorf("%s: dimension %d is %v, of parts %v, want %v", question, d.Dimension, d.Value, d.Parts, want)
			}
			last = math.Abs(d.Value)
		}
		nonzero := 0
		for _, v := range sum {
			if v != 0 {
				nonzero++
			}
		}
		if len(got.Dimensions) != min(listedSum, nonzero) || len(got.Nearest) != answers {
			t.Errorf("%s: %d dimensions, %d words", question, len(got.Dimensions), len(got.Nearest))
		}
		for _, n := range got.Nearest {
			if _, own := weights[n.Word]; own {
				t.Errorf("%s: %s is in the question", question, n.Word)
			}
			u := unit(slices.Index(m.Codes.Words, n.Word))
			cosine := 0.0
			for k, v := range u {
				cosine += v * sum[k] / length
			}
			parts := n.Rest
			for _, p := range n.Parts {
				parts += p.Part
				if want := u[p.Dimension] * sum[p.Dimension] / length; math.Abs(p.Part-want) > 1e-6 || math.Abs(p.Value-u[p.Dimension]) > 1e-6 {
					t.Errorf("%s: the part of dimension %d in %s is %v, want %v", question, p.Dimension, n.Word, p, want)
				}
			}
			if math.Abs(n.Cosine-cosine) > 1e-6 || math.Abs(parts-cosine) > 1e-6 || n.Cosine > got.Nearest[0].Cosine {
				t.Errorf("%s: the cosine of %s is %v, of parts %v, want %v", question, n.Word, n.Cosine, parts, cosine)
			}
		}
	}
}

// What has a page of its own is only said.
func TestAskLeadsToPages(t *testing.T) {
	handler := newExplorer(t, testModel(), "test").Handler("")
	for question, want := range map[string]queryAnswer{
		"River":      {Kind: interpret.QueryWords, Words: []string{"river"}, Weights: []float64{1}},
		"bank river": {Kind: interpret.QueryWords, Words: []string{"bank", "river"}, Weights: []float64{1, 1}},
		"New York":   {Kind: interpret.QueryWords, Words: []string{"New York"}, Weights: []float64{1}},
		"39":         {Kind: interpret.QueryDimension, Dimension: 39, Words: []string{}, Weights: []float64{}},
	} {
		want.Unknown = []string{}
		wanted, _ := json.Marshal(want)
		if got := get(handler, "/data/query?query="+url.QueryEscape(question)); got.Code != http.StatusOK || got.Body.String() != string(wanted) {
			t.Errorf("%s: %d %s, want %s", question, got.Code, got.Body, wanted)
		}
	}
	w := get(handler, "/data/query?query=bank+rivre")
	var e requestError
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != 404 || e.Word != "rivre" || !slices.Contains(e.Closest, "river") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, question := range []string{"", "bank -", strings.Repeat("a ", 2001)} {
		if w := get(handler, "/data/query?query="+url.QueryEscape(question)); w.Code != 400 {
			t.Errorf("%.10q: %d", question, w.Code)
		}
	}
}

// The error is that of the codes that are there, and scores are those of dimensions.
func TestAboutTellsWhatWasMeasured(t *testing.T) {
	m := testModel()
	if got := newExplorer(t, m, "").about.Error; got != .25 {
		t.Errorf("trained: error %v", got)
	}
	m.Info.Encoding = &model.Encoding{Error: .125}
	x := newExplorer(t, m, "")
	if got := x.about.Error; got != .125 {
		t.Errorf("encoded: error %v", got)
	}
	x = newWith(t, m, "", Options{Judge: "other.txt", Accuracy: map[interpret.Pole]float64{{Dimension: 3}: .7, {Dimension: 5}: 0, {Dimension: 3, Negative: true}: .2}})
	for k, d := range x.about.Dimensions {
		if (k == 3) != (d.BottomAccuracy != nil) || k == 3 && *d.BottomAccuracy != .2 {
			t.Errorf("dimension %d: accuracy %v of the negative pole", k, d.BottomAccuracy)
		}
		switch {
		case k == 3 && (d.Accuracy == nil || *d.Accuracy != .7), k == 5 && (d.Accuracy == nil || *d.Accuracy != 0), k != 3 && k != 5 && d.Accuracy != nil:
			t.Errorf("dimension %d: accuracy %v", k, d.Accuracy)
		}
	}
	if x.about.Judge != "other.txt" {
		t.Errorf("judge %q", x.about.Judge)
	}
}
