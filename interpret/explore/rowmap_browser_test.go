package explore

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The map of texts works: dots, colours by region and by column, search, and address.
func TestBrowserRowMap(t *testing.T) {
	b := openBrowser(t)
	x := newExplorer(t, testTexts(), "test")
	base := b.serve(x)
	c := x.rowMap()
	b.do(chromedp.Navigate(base + "/#/map"))
	b.wait(`document.querySelector(".tabs")`)
	b.do(chromedp.Click(chromedp.CSS(".tabs a:nth-child(2)")))
	b.waitHeading("Map of texts")
	b.wait(`document.querySelectorAll(".dot").length === %d`, len(c.Points))
	b.wait(`document.querySelector("header nav [aria-current]")?.textContent === "Map" && document.querySelector(".tabs [aria-current]")?.textContent === "texts"`)
	colours := func(of func(i int) int) {
		t.Helper()
		for i, p := range c.Points[:40] {
			b.wait(`document.querySelector(".dot[data-row='%d']").classList.contains("region%d")`, p.Row, of(i))
		}
	}
	colours(func(i int) int { return c.Regions[c.Points[i].Region].Colour })
	b.wait(`document.querySelectorAll(".beside [data-row]").length === 40`)

	// Values of a column determine colours. The legend counts them, and the address stores the column.
	b.do(chromedp.SetValue(chromedp.CSS("main select"), "label"))
	evaluate[chromedp.Void](b, `document.querySelector("main select").dispatchEvent(new Event("change"))`)
	colours(func(i int) int { return c.Columns[0].Of[i] })
	counts := make([]int, 3)
	for _, of := range c.Columns[0].Of {
		counts[of]++
	}
	for i, n := range counts {
		b.wait(`document.querySelector(".beside li:nth-child(%d)").textContent === %s`, i+1, quote(fmt.Sprint(c.Columns[0].Values[i], n)))
	}
	b.wait(`location.hash.endsWith("colour=label")`)
	link := evaluate[string](b, `location.href`)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.wait(`document.querySelector("main select")?.value === "label" && document.querySelectorAll(".dot").length > 0`)
	colours(func(i int) int { return c.Columns[0].Of[i] })

	// The search finds a text, and the keyboard opens it. A text that the map lacks is an error.
	b.do(chromedp.SendKeys(chromedp.CSS("main [role=combobox]"), "river"+kb.Enter))
	b.wait(`document.querySelector(".card:not([hidden])") && document.querySelector(".current").dataset.row === "%d"`, 1)
	b.do(chromedp.Focus(chromedp.CSS("[role=application]")), chromedp.KeyEvent(kb.Enter))
	b.wait(`location.hash === "#/word/river"`)
	b.do(chromedp.Navigate(base + "/#/rows/second%20line")) // words of one text only
	b.wait(`document.querySelector(".card:not([hidden])")?.textContent.startsWith("The first line,")`)
	b.do(chromedp.Navigate(base + "/#/rows/bnak"))
	b.waitHeading("Not found")
}
