package explore

import (
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// shownMap is a JavaScript expression for the map of the page.
const shownMap = `maps.find((m) => m.frame.isConnected)`

// waitMap waits until the map has n points at their places.
func (b *browser) waitMap(n int) {
	b.Helper()
	b.wait(`maps.some((m) => m.frame.isConnected && m.points.length === %d && m.points.every((p) => isFinite(p.left)))`, n)
}

// point returns the place on the screen of the point of a map whose key has a value.
func (b *browser) point(key string, value any) (left, top float64) {
	b.Helper()
	at := evaluate[[2]float64](b, `(() => { const m = %s, p = m.points.find((p) => String(p.%s) === "%v"), box = m.frame.firstChild.getBoundingClientRect(); return [box.left + p.left, box.top + p.top]; })()`, shownMap, key, value)
	return at[0], at[1]
}

// listed returns the keys of the points in the list beside a map.
func listed(key string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".beside [data-%s]")].map((e) => e.dataset.%[1]s).join()`, key)
}

func joined(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

// The map of dimensions works by mouse and by keyboard. Its address stores the view and the slider. A legend dims
// regions, and a word highlights its dimensions.
func TestBrowserMap(t *testing.T) {
	b := openBrowser(t)
	x := newExplorer(t, testModel(), "test")
	c := x.dimensionMap()
	var all []int
	for _, p := range c.Points {
		all = append(all, p.Dimension)
	}
	b.do(chromedp.Navigate(b.serve(x) + "/#/map"))
	b.waitMap(x.summary.Live)
	b.wait(listed("dimension")+` === %s`, quote(joined(all)))
	b.wait(`document.querySelectorAll(".names .region").length > 0`)

	// Each dot is on the canvas.
	b.wait(`(() => { const m = %s, dots = m.frame.firstChild.getContext("2d"); return m.points.every((p) => dots.getImageData(p.left * devicePixelRatio, p.top * devicePixelRatio, 1, 1).data[3] > 0); })()`, shownMap)

	// The mouse, then the keyboard from the dimension's place.
	k := all[0]
	left, top := b.point("dimension", k)
	b.do(chromedp.MouseEvent("mouseMoved", left, top))
	b.wait(`document.querySelector(".card").textContent.startsWith("dimension %d ")`, k)
	b.do(chromedp.MouseClickXY(left, top))
	b.waitHeading(fmt.Sprint("dimension ", k))
	b.do(chromedp.Click(chromedp.CSS(".steps a:nth-child(2)")))
	b.wait(`document.querySelector(".card")?.textContent.startsWith("dimension %d ")`, k)
	b.do(chromedp.Focus(chromedp.CSS("[role=application]")), chromedp.KeyEvent("-"), chromedp.KeyEvent("-"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowRight))
	next := evaluate[string](b, `document.querySelector(".card").textContent.match(/^dimension (\d+)/)[1]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.waitHeading("dimension " + next)

	// The address.
	evaluate[chromedp.Void](b, `go("map")`)
	b.waitMap(x.summary.Live)
	const view = `[document.querySelector(".slider b")?.textContent, ...%s.points.map((p) => Math.round(p.left) + " " + Math.round(p.top))].join()`
	b.do(chromedp.Click(chromedp.CSS(`[aria-label="zoom in"]`)), chromedp.Focus(chromedp.CSS(`[role=application]`)), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowDown),
		chromedp.Focus(chromedp.CSS(`input[type=range]`)), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	b.wait(`location.hash.startsWith("#/map?at=") && location.hash.includes("words=0.02")`)
	shown, link := evaluate[string](b, view, shownMap), evaluate[string](b, `location.href`)
	evaluate[chromedp.Void](b, `go("dimension", "3")`)
	b.waitHeading("dimension 3")
	evaluate[chromedp.Void](b, `history.back()`)
	b.wait(`maps.some((m) => m.frame.isConnected) && `+view+` === %s`, shownMap, quote(shown))
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.wait(`typeof maps === "object" && maps.some((m) => m.frame.isConnected) && `+view+` === %s`, shownMap, quote(shown))
	for _, nonsense := range []string{"at=x+y&only=x", "at=9+-9+1e9&words=7&only=99", "%zz"} {
		b.visit("#/map?" + nonsense)
		b.waitMap(x.summary.Live)
	}

	// A slider hides dimensions of few words.
	b.visit("#/map")
	b.wait(listed("dimension")+` === %s`, quote(joined(all)))
	b.do(chromedp.Focus(chromedp.CSS(`input[type=range]`)), chromedp.KeyEvent(kb.End))
	least := evaluate[int](b, `Number(document.querySelector(".slider b").textContent)`)
	left2 := slices.DeleteFunc(slices.Clone(all), func(k int) bool { return x.summary.Dimensions[k].Words < least })
	if len(left2) == 0 || len(left2) == len(all) {
		t.Fatalf("%d dimensions have %d words", len(left2), least)
	}
	b.wait(listed("dimension")+` === %s`, quote(joined(left2)))
	b.do(chromedp.KeyEvent(kb.Home))

	// The legend dims all but a region.
	b.do(chromedp.Click(chromedp.CSS("button.link")))
	var first []int
	for _, p := range c.Points {
		if p.Region == 0 {
			first = append(first, p.Dimension)
		}
	}
	b.wait(listed("dimension")+` === %s && location.hash.endsWith("only=0")`, quote(joined(first)))
	b.do(chromedp.Click(chromedp.CSS("button.link")))
	b.wait(listed("dimension")+` === %s`, quote(joined(all)))

	// A link of the list selects a dot and opens a dimension.
	b.do(chromedp.Focus(chromedp.CSS(`.beside [data-dimension="5"] a`)))
	b.wait(`document.querySelector(".card").textContent.startsWith("dimension 5 ")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.waitHeading("dimension 5")

	// A word highlights its dimensions, strongest first.
	evaluate[chromedp.Void](b, `go("map")`)
	b.waitHeading("Map of dimensions")
	b.do(chromedp.SendKeys(chromedp.CSS("main [role=combobox]"), "bank"+kb.Enter))
	b.waitHeading("bank on the map")
	var active []int
	for _, w := range x.word(0).Active {
		active = append(active, w.Dimension)
	}
	b.wait(listed("dimension")+` === %s`, quote(joined(active)))
}

// The map of texts has colours by topic and by column, filters, a lasso, and a table of the texts inside.
func TestBrowserRowMap(t *testing.T) {
	b := openBrowser(t)
	m := testTopics()
	x := newExplorer(t, m, "test")
	c := x.rowMap()
	b.do(chromedp.Navigate(b.serve(x) + "/#/map"))
	b.wait(`document.querySelector(".tabs")`)
	b.do(chromedp.Click(chromedp.CSS("header nav a:last-child"))) // texts first
	b.waitHeading("Map of texts")
	b.waitMap(len(c.Rows))
	b.wait(`document.querySelector("header nav [aria-current]")?.textContent === "Map" && document.querySelector(".tabs [aria-current]")?.textContent === "texts"`)
	rows := func(wanted func(i int) bool) (found []int) {
		for i, row := range c.Rows {
			if wanted(i) && len(found) < 40 {
				found = append(found, row)
			}
		}
		return found
	}
	shows := func(what string, wanted func(i int) bool) {
		t.Helper()
		found := rows(wanted)
		if len(found) == 0 {
			t.Fatalf("%s: no row", what)
		}
		b.wait(listed("row")+` === %s`, quote(joined(found)))
	}
	topicOf := func(i int) int { // broad
		r := c.Region[i]
		for r >= 0 && c.Regions[r].Parent >= 0 {
			r = c.Regions[r].Parent
		}
		return r
	}
	shows("all", func(int) bool { return true })
	b.do(chromedp.Click(chromedp.CSS("button.link")))
	shows("the first topic", func(i int) bool { return topicOf(i) == 0 })
	b.do(chromedp.Click(chromedp.CSS("li:nth-child(2) button.link")))
	shows("two topics", func(i int) bool { return topicOf(i) == 0 || topicOf(i) == 1 })

	// Values of a column determine colours. The legend counts them. Filters combine. The address stores all.
	set := func(selector, value string) {
		t.Helper()
		evaluate[bool](b, `(() => { const e = document.querySelector(%s); e.value = %s; return e.dispatchEvent(new Event("change")); })()`, quote(selector), quote(value))
	}
	set("main select", "label")
	for i, value := range c.Columns[0].Values {
		n := len(slices.DeleteFunc(slices.Clone(c.Columns[0].Of), func(of int) bool { return of != i }))
		b.wait(`document.querySelector(".beside li:nth-child(%d) button").textContent === %s`, i+1, quote(fmt.Sprint(value, n)))
	}
	b.do(chromedp.Click(chromedp.CSS("li:nth-child(2) button.link")))
	day := func(i int) int32 {
		if d := c.Dates[0].Days[i]; d != nil {
			return *d
		}
		return -1 << 20
	}
	b.do(chromedp.Click(chromedp.CSS(".only summary")))
	set("input[type=date]", "2024-02-01")
	february := func(i int) bool { return c.Columns[0].Of[i] == 1 && day(i) >= 19754 }
	shows("a value after a day", february)
	b.wait(`location.hash.includes("colour=label") && location.hash.includes("only=1") && location.hash.includes("from.")`)
	link := evaluate[string](b, `location.href`)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.wait(`document.querySelector("main select")?.value === "label"`)
	shows("the address", february)
	set(".only select", "0")
	b.wait(`document.querySelector(".beside [role=status]").textContent === "0 texts in view" && document.querySelector(".beside li.note")`)

	// A change that is saved late doesn't replace an address that is opened meanwhile.
	evaluate[chromedp.Void](b, `window.atOnce = fetch; window.fetch = async (...what) => { await new Promise((r) => setTimeout(r, 600)); return atOnce(...what); }; 0`)
	set(".only select", "2")
	b.visit("#/rows")
	b.wait(`location.hash === "#/rows"`)
	evaluate[chromedp.Void](b, `window.fetch = atOnce; 0`)

	// The lasso lists texts, and the table has them with topic and columns.
	b.visit("#/rows")
	shows("all again", func(int) bool { return true })
	b.do(chromedp.Click(chromedp.CSS(`[aria-label="lasso"]`)))
	left, top := b.point("row", 7)
	b.do(chromedp.MouseEvent("mouseMoved", left-20, top-20), chromedp.MouseEvent("mousePressed", left-20, top-20, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	for _, corner := range [][2]float64{{20, -20}, {20, 20}, {-20, 20}} {
		b.do(chromedp.MouseEvent("mouseMoved", left+corner[0], top+corner[1], chromedp.ButtonLeft))
	}
	b.do(chromedp.MouseEvent("mouseReleased", left-20, top+20, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	inside := evaluate[[]int](b, `%s.points.filter((p) => Math.abs(p.left - %s.points[%d].left) < 20 && Math.abs(p.top - %[2]s.points[%[3]d].top) < 20).map((p) => p.row)`, shownMap, shownMap, slices.Index(c.Rows, 7))
	b.wait(listed("row")+` === %s && document.querySelector(".beside [role=status]").textContent.endsWith(" in the lasso")`, quote(joined(inside)))
	table, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(evaluate[string](b, `tableOf(document.getElementById("main"))`), "\ufeff"))).ReadAll()
	if err != nil || len(table) != 1+len(inside) || !slices.Equal(table[0], []string{"id", "topic", "label", "<b>", "day <b>", "text"}) {
		t.Fatalf("the table of %d texts: %q, %v", len(inside), table, err)
	}
	own, i := table[1+slices.Index(inside, 7)], slices.Index(c.Rows, 7)
	path := strings.Join(c.Regions[topicOf(i)].Words, ", ") + " › " + strings.Join(c.Regions[c.Region[i]].Words, ", ")
	if want := []string{m.Codes.IDs[7], path, "high", "", testDay(7), m.Codes.Texts.Text[7]}; !slices.Equal(own, want) {
		t.Errorf("row 7 is %q, want %q", own, want)
	}
	b.do(chromedp.Focus(chromedp.CSS("[role=application]")), chromedp.KeyEvent(kb.Escape))
	shows("without a lasso", func(int) bool { return true })

	// The search finds a text, and the keyboard opens it. A text that the map lacks is an error.
	b.do(chromedp.SendKeys(chromedp.CSS("main [role=combobox]"), "money"+kb.Enter))
	b.wait(`document.querySelector(".card:not([hidden])")?.textContent.includes("day <b>: " + %s)`, quote(testDay(2)))
	b.do(chromedp.Focus(chromedp.CSS("[role=application]")), chromedp.KeyEvent(kb.Enter))
	b.wait(`location.hash === "#/word/money"`)
	evaluate[chromedp.Void](b, `location.hash = "#/rows/second%%20line"`) // words of one text only
	b.wait(`document.querySelector(".card:not([hidden])")?.textContent.startsWith("The first line,")`)
	evaluate[chromedp.Void](b, `location.hash = "#/rows/bnak"`)
	b.waitHeading("Not found")
}

// The Tab key reaches each control of a page once, in order, and then leaves it. The control with the focus has an outline.
func TestBrowserKeyboard(t *testing.T) {
	b := openBrowser(t)
	m := testTopics()
	x := newWith(t, m, "test", Options{Labels: filepath.Join(t.TempDir(), "labels.json"), CheckModel: func() error { return nil }})
	for _, base := range []string{b.serve(x) + "/", b.export(x, nil, nil)} {
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(base))
		b.wait(`document.querySelectorAll(".topics li").length === 3`)
		for _, address := range []string{"#/", "#/topic/5", "#/rows", "#/word/" + m.Codes.IDs[copyOf], "#/unusual", "#/query/common%20subjecta"} {
			b.visit(address)
			b.wait(`!document.querySelector("[data-loading]") && maps.every((m) => !m.frame.isConnected || m.points.every((p) => isFinite(p.left))) && (!document.querySelector(".beside") || document.querySelector(".beside [data-row]"))`)
			evaluate[chromedp.Void](b, `document.activeElement.blur(); document.getSelection().removeAllRanges(); scrollTo(0, 0); controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) => (e.tabIndex >= 0 || e.matches(".compare")) && e.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true })); document.body.tabIndex = -1; document.body.focus(); 0`)
			n := evaluate[int](b, `controls.length`)
			for i := range n {
				b.do(chromedp.KeyEvent(kb.Tab))
				if got := evaluate[string](b, `document.activeElement !== controls[%d] ? "focus on " + document.activeElement.outerHTML.slice(0, 200) + ", not on " + controls[%[1]d].outerHTML.slice(0, 200) : getComputedStyle(document.activeElement).outlineStyle === "none" ? "no outline of " + document.activeElement.outerHTML.slice(0, 200) : ""`, i); got != "" {
					t.Errorf("%s%s, control %d of %d: %s", base[:4], address, i, n, got)
					break
				}
			}
			b.do(chromedp.KeyEvent(kb.Tab))
			if evaluate[bool](b, `controls.slice(1).includes(document.activeElement)`) {
				t.Errorf("%s%s: the focus doesn't leave the page", base[:4], address)
			}
		}
	}
}
