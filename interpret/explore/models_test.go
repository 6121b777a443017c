package explore

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"overcomplete/model"
)

// turned returns the test model with its dimensions reversed, every third one negated, and one removed. The expected
// matches are therefore known.
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
	// The handler guards the second model, too.
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

func TestBrowserTwoModels(t *testing.T) {
	b := openBrowser(t)
	x := two(t)
	base := b.serve(x)
	b.do(chromedp.Navigate(base))
	b.waitHeading("first")
	b.do(chromedp.Click(chromedp.CSS(`header nav a[href="#/both"]`)))
	b.waitHeading("first and <i>second</i>")
	evaluate[chromedp.Void](b, `document.querySelectorAll(".more").forEach((more) => more.click())`)
	b.wait(`document.querySelectorAll("main section:nth-of-type(1) .sides").length === %d`, testAtoms-1)
	wrong := evaluate[string](b, `[...document.querySelectorAll(".sides")].map((row) => [...row.querySelectorAll("a.name")].map((a) => a.getAttribute("href"))).filter(([a, b]) => !a.startsWith("#/dimension/") || b !== "other/#/dimension/" + (%d - a.split("/").pop())).join()`, testAtoms-1)
	if wrong != "" {
		t.Errorf("matched %s", wrong)
	}

	// A word: both models have all of its dimensions.
	b.do(chromedp.SendKeys(chromedp.CSS("main input"), "bank"+kb.Enter))
	b.waitHeading("bank in first and <i>second</i>")
	n := len(x.word(0, 0).Active)
	want := fmt.Sprintf("%d,%d,%d,100 %%,100 %%", n, n, n)
	b.wait(`[...document.querySelectorAll(".facts dd")].map((e) => e.textContent).join() === %s`, quote(want))
	var nearest []string // in both models
	for _, e := range x.word(0, 0).Nearest {
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

	// To the page of the second model, and back.
	b.do(chromedp.Click(chromedp.CSS(".sides > :nth-child(2) a.name")))
	k := testAtoms - 1 - x.word(0, 0).Active[0].Dimension
	b.waitHeading(fmt.Sprint("dimension ", k))
	b.wait(`location.pathname === "/other/" && document.getElementById("brand").textContent === "<i>second</i>"`)
	b.do(chromedp.Click(chromedp.CSS("header nav .other")))
	b.waitHeading("first")
	b.wait(`document.querySelectorAll("main i, header i").length === 0`)
}
