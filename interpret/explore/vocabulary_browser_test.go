package explore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// All pages of a vocabulary of 300,000 words × 1,000 dimensions, with ten of a word: what is rare is
// found as well.
func TestBrowserVocabulary(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes long with such a model")
	}
	b := openBrowser(t)
	const words, groups, members = 300_000, 100, 10
	m := planted(groups, members, 0)
	rng := rand.New(rand.NewPCG(7, 8))
	c := m.Codes
	c.Rows = words
	for i := range words {
		c.Words = append(c.Words, fmt.Sprint("w", i))
		for k := range members { // each of its group, or of another one's
			group := i % groups
			if rng.IntN(10) == 0 {
				group = rng.IntN(groups)
			}
			c.Index, c.Value = append(c.Index, int32(k*groups+group)), append(c.Value, rng.Float32()+.5)
		}
		c.Ptr = append(c.Ptr, int64(len(c.Index)))
	}
	x := newExplorer(t, m, "vocabulary")
	base := b.serve(x)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(base))
	b.waitHeading("vocabulary")
	b.wait(`document.querySelector(".lead").textContent.startsWith("300,000 words in 1,000 sparse dimensions")`)

	b.do(chromedp.SendKeys(chromedp.CSS(search), "w29999"))
	b.wait(`document.querySelectorAll("[role=option]").length === 10`) // w29999 and nine that begin so
	b.do(chromedp.KeyEvent("7"), chromedp.KeyEvent(kb.Enter))
	b.waitHeading("w299997")
	b.wait(`document.querySelector(".lead").textContent === "Word 299,998 of 300,000, with 10 of 1,000 dimensions active."`)
	b.wait(`document.querySelectorAll(".nearest a[href^='#/word/']").length === %d`, nearestWords)
	for _, e := range x.word(299_997).Nearest {
		var row int
		if fmt.Sscanf(e.Word, "w%d", &row); row%groups != 97 {
			t.Errorf("w299997 is near to %s", e.Word)
		}
	}
	b.do(chromedp.SendKeys(chromedp.CSS(search), "w299997 - w97 + w1"+kb.Enter))
	b.waitHeading("w299997 − w97 + w1")
	evaluate[chromedp.Void](b, `go("dimension", "997")`)
	b.waitHeading("dimension 997")
	evaluate[chromedp.Void](b, `go("dimensions")`)
	b.waitHeading("Dimensions")
	evaluate[chromedp.Void](b, `go("map")`)
	b.wait(`document.querySelectorAll(".dot").length === 1000 && document.querySelectorAll(".names text").length > 0`)
	evaluate[chromedp.Void](b, `go("rows", "w3999")`)
	b.wait(`document.querySelectorAll(".dot").length === %d && document.querySelector(".card:not([hidden])")?.textContent === "w3999"`, maxRows)
	b.wait(`document.querySelector(".lead").textContent.endsWith("These are 4,000 of 300,000, the first that have any.")`)
	evaluate[chromedp.Void](b, `go("rows", "w4000")`)
	b.waitHeading("Not found")
	b.do(chromedp.Click(chromedp.CSS(".suggestions a")))
	b.waitHeading("w4000")
}
