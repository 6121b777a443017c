package explore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// turned returns the test's model with its dimensions in the opposite order, every third
// of them of the opposite sign, and without one: what must be found is known.
func turned() *model.Model {
	m := testModel()
	codes := m.Codes.CSR
	for i := range codes.Rows {
		lo, hi := codes.Ptr[i], codes.Ptr[i+1]
		for j := range (hi - lo) / 2 {
			codes.Index[lo+j], codes.Index[hi-1-j] = codes.Index[hi-1-j], codes.Index[lo+j]
			codes.Value[lo+j], codes.Value[hi-1-j] = codes.Value[hi-1-j], codes.Value[lo+j]
		}
		for j := lo; j < hi; j++ {
			codes.Index[j] = testAtoms - 1 - codes.Index[j]
			if codes.Index[j]%3 == 0 {
				codes.Value[j] = -codes.Value[j]
			}
		}
	}
	return m
}

func two(t *testing.T) *Explorer {
	return newWith(t, testModel(), "first", Options{Other: newExplorer(t, turned(), "<i>second</i>")})
}

func TestServesTwoModels(t *testing.T) {
	handler := two(t).Handler("")
	for path, sign := range map[string]int{"": 1, "/other": -1} {
		w := get(handler, path+"/data/matches")
		var got matches
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || got.Words != testWords {
			t.Fatalf("%s: %d %.100s", path, w.Code, w.Body)
		}
		for k, m := range got.First {
			second := testAtoms - 1 - k
			cosine := 1.0
			if sign > 0 && second%3 == 0 || sign < 0 && k%3 == 0 {
				cosine = -1
			}
			live := k != testAtoms-1
			if sign < 0 {
				live = k != 0
			}
			if live && (m.Dimension != second || math.Abs(m.Cosine-cosine) > 1e-9) || !live && m.Dimension != -1 {
				t.Errorf("%s: dimension %d is %+v, want %d with %v", path, k, m, second, cosine)
			}
		}
	}
	for target, status := range map[string]int{"/other/": 200, "/other": 404, "/other/explore.js": 200, "/other/data/word?word=bank": 200, "/other/other/": 404} {
		if w := get(handler, target); w.Code != status {
			t.Errorf("%s: %d, want %d", target, w.Code, status)
		}
	}
	// The second is guarded, too.
	for _, field := range []string{"Origin: http://other.example", "Host: other.example", "Sec-Fetch-Site: cross-site"} {
		for _, target := range []string{"/other/data/model", "/data/matches"} {
			if w := get(handler, target, field); w.Code != 403 {
				t.Errorf("%s %s: %d", target, field, w.Code)
			}
		}
	}
	if w := get(newExplorer(t, testModel(), "").Handler(""), "/data/matches"); w.Code != 404 {
		t.Errorf("of one model: %d", w.Code)
	}
}

// Of models of one file, or where one is like the other, atoms are compared, one to one.
func TestMatchesAtoms(t *testing.T) {
	const dim = 32
	for _, like := range []bool{false, true} {
		a, b := testModel(), testModel()
		for _, m := range []*model.Model{a, b} {
			rng := rand.New(rand.NewPCG(1, 2))
			m.Dictionary = model.Dictionary{Dim: dim, Atoms: make([]float32, testAtoms*dim)}
			for i := range m.Dictionary.Atoms {
				m.Dictionary.Atoms[i] = float32(rng.NormFloat64())
			}
		}
		b.Dictionary.Atoms = b.Dictionary.Atoms[:(testAtoms-3)*dim]
		b.Codes.Cols -= 3
		b.Codes.Ptr, b.Codes.Index, b.Codes.Value = make([]int64, testWords+1), nil, nil // which don't matter
		for k := range b.Dictionary.Len() / 2 {
			other := b.Dictionary.Len() - 1 - k
			for j := range dim {
				x, y := &b.Dictionary.Atom(k)[j], &b.Dictionary.Atom(other)[j]
				*x, *y = *y, *x
			}
		}
		best := train.Best()
		b.Info.Training.Recipe = best
		if like {
			best.Like = vectors.SHA256(b.Dictionary.Atoms)
		} else {
			a.Info.Training.Input.SHA256, b.Info.Training.Input.SHA256 = "5ha", "5ha"
		}
		a.Info.Training.Recipe = best
		x := newWith(t, a, "first", Options{Other: newExplorer(t, b, "second")})
		got := x.matches()
		if !got.Atoms || len(got.First) != testAtoms || len(got.Other) != testAtoms-3 {
			t.Fatalf("%d words, %d and %d matches", got.Words, len(got.First), len(got.Other))
		}
		for k, m := range got.First {
			want := testAtoms - 4 - k
			if want < 0 {
				want = -1
			} else if back := got.Other[want]; back.Dimension != k || math.Abs(m.Cosine-1) > 1e-6 {
				t.Errorf("dimension %d of the other is %+v", want, back)
			}
			if m.Dimension != want {
				t.Errorf("dimension %d is %+v, want %d", k, m, want)
			}
		}
	}
}

// Atoms of the paper's trainer have either sign, those of other vectors are of another space, and
// those of one dictionary are the same whatever they encode.
func TestSameSpace(t *testing.T) {
	learned := func(recipe model.Recipe, from, encoded string) *model.Model {
		m := testModel()
		m.Info.Training.Recipe, m.Info.Training.Input.SHA256, m.Info.Encoding.Input.SHA256 = recipe, from, cmp.Or(encoded, from)
		return m
	}
	best, paper := train.Best(), train.Paper()
	of := learned(best, "x", "")
	for i, tt := range []struct {
		m    *model.Model
		want bool
	}{
		{learned(best, "x", ""), true}, {learned(best, "x", "other"), true}, {learned(best, "other", "x"), false},
		{learned(best, "other", ""), false}, {learned(paper, "x", ""), false}, {learned(best, "", ""), false},
	} {
		if sameSpace(of, tt.m) != tt.want || sameSpace(tt.m, of) != tt.want {
			t.Errorf("%d: not %v", i, tt.want)
		}
	}
	for _, none := range []*model.Model{learned(best, "", ""), learned(best, "", "x")} {
		if sameSpace(none, none) {
			t.Error("vectors of nobody knows what are of one space")
		}
	}
}

func TestBrowserTwoModels(t *testing.T) {
	b := openBrowser(t)
	x := two(t)
	base := b.serve(x)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(base))
	b.waitHeading("first")
	b.do(chromedp.Click(chromedp.CSS(`header nav a[href="#/both"]`)))
	b.waitHeading("first and <i>second</i>")
	evaluate[chromedp.Void](b, `document.querySelectorAll(".more").forEach((more) => more.click())`)
	b.wait(`document.querySelectorAll("main section:nth-of-type(1) .sides").length === %d`, testAtoms-1)
	wrong := evaluate[string](b, `[...document.querySelectorAll(".sides")].map((row) => [...row.querySelectorAll("a.name")].map((a) => a.getAttribute("href"))).filter(([a, b]) => !a.startsWith("#/dimension/") || b !== "other/#/dimension/" + (%d - a.split("/").pop())).join()`, testAtoms-1)
	if wrong != "" {
		t.Errorf("matched %s", wrong)
	}

	// A word: all that the one has, the other has.
	b.do(chromedp.SendKeys(chromedp.CSS("main input"), "bank"+kb.Enter))
	b.waitHeading("bank in first and <i>second</i>")
	n := len(x.word(0).Active)
	want := fmt.Sprintf("%d,%d,%d,100 %%,100 %%", n, n, n)
	b.wait(`[...document.querySelectorAll(".facts dd")].map((e) => e.textContent).join() === %s`, quote(want))
	var nearest []string // in both, whose dimensions are in another order
	for _, e := range x.word(0).Nearest {
		nearest = append(nearest, e.Word)
	}
	slices.Sort(nearest)
	for i, path := range []string{"", "other/"} {
		got := evaluate[string](b, `[...document.querySelectorAll(".nearest")[%d].querySelectorAll("a")].map((a) => a.getAttribute("href")).filter((href) => href.startsWith("%s#/word/")).map((href) => decodeURIComponent(href.split("/").pop())).sort().join(" ")`, i, path)
		if want := strings.Join(nearest, " "); got != want {
			t.Errorf("nearest %q, want %q", got, want)
		}
	}
	b.do(chromedp.SendKeys(chromedp.CSS("main input"), "bnak"+kb.Enter))
	b.waitHeading("Not found")
	b.do(chromedp.Click(chromedp.CSS(".suggestions a")))
	b.waitHeading("bank in first and <i>second</i>")

	// To the second model's own page, and back.
	b.do(chromedp.Click(chromedp.CSS(".sides > :nth-child(2) a.name")))
	k := testAtoms - 1 - x.word(0).Active[0].Dimension
	b.waitHeading(fmt.Sprint("dimension ", k))
	b.wait(`location.pathname === "/other/" && document.getElementById("brand").textContent === "<i>second</i>"`)
	b.do(chromedp.Click(chromedp.CSS("header nav .other")))
	b.waitHeading("first")
	b.wait(`document.querySelectorAll("main i, header i").length === 0`)
}
