package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A browser shows a page, and notes what goes wrong there.
type browser struct {
	*testing.T
	ctx context.Context
}

// openBrowser starts the Chromium that OVERCOMPLETE_CHROMIUM names. The test fails
// if a page throws or logs an error, such as what its security policy forbids,
// other than that an answer has a status of 4xx.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := os.Getenv("OVERCOMPLETE_CHROMIUM")
	if path == "" {
		t.Skip("needs a browser: set OVERCOMPLETE_CHROMIUM to the path of Chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox) // root has no sandbox
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	b := &browser{t, ctx}
	b.do() // starts it
	var listener sync.WaitGroup
	console := chromedp.Console(ctx)
	listener.Go(func() {
		for m, err := range console {
			if err == nil && (m.IsException() || m.Type == "error") && !strings.Contains(m.Text, "status of 4") {
				t.Errorf("in the browser: %s", m)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Wait()
	})
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// evaluate returns the value of a JavaScript expression.
func evaluate[T any](b *browser, format string, args ...any) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](fmt.Sprintf(format, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return value
}

// wait looks at each frame until a JavaScript condition is true.
func (b *browser) wait(format string, args ...any) {
	b.Helper()
	condition := fmt.Sprintf(format, args...)
	found := evaluate[string](b, `new Promise((done) => {
		const end = performance.now() + 10_000;
		const look = () => {
			if (%s) done("");
			else if (performance.now() > end) done(location.href + "\n" + document.body.innerText);
			else requestAnimationFrame(look);
		};
		look();
	})`, condition)
	if found != "" {
		b.Fatalf("never %s; the page is %s", condition, found)
	}
}

// waitHeading waits for a page by its title.
func (b *browser) waitHeading(text string) {
	b.Helper()
	b.wait(`document.querySelector("h1")?.textContent === %s`, quote(text))
}

// quote returns a string as JavaScript writes it.
func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

const search = "header input"

// The way that somebody takes through the pages.
func TestBrowser(t *testing.T) {
	b := openBrowser(t)
	m := testModel()
	x := New(m, "test")
	server := httptest.NewServer(x.Handler(""))
	defer server.Close()
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL))
	b.waitHeading("test")

	// Search, with completion.
	// As one event, so that a page that handles the key keeps it from the field.
	key := input.DispatchKeyEventParams{Type: kb.KeyDown, Key: "/", Text: "/"}
	if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, key); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.KeyEvent("ba"))
	b.wait(`[...document.querySelectorAll("[role=option]")].map((o) => o.textContent).join() === "bank,Bank"`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`document.querySelector(%s).getAttribute("aria-activedescendant") === document.querySelector("[aria-selected=true]").id`, quote(search))
	b.do(chromedp.KeyEvent(kb.Enter))
	b.waitHeading("bank")
	const rows = `document.querySelectorAll("main section:first-child .bars li").length === %d`
	active := x.word(0).Active
	b.wait(rows, min(20, len(active)))

	// Word to dimension to word.
	strongest := active[0].Dimension
	b.do(chromedp.Click(chromedp.CSS("main .bars a.number")))
	b.waitHeading(fmt.Sprint("dimension ", strongest))
	answer := x.dimension(strongest)
	top := answer.Top[0].Word
	b.do(chromedp.Click(chromedp.CSS("main .values a")))
	b.waitHeading(top)

	// Back, twice, and forward, to where one was.
	b.do(chromedp.NavigateBack())
	b.waitHeading(fmt.Sprint("dimension ", strongest))
	b.do(chromedp.NavigateBack())
	b.waitHeading("bank")
	b.do(chromedp.NavigateForward())
	b.waitHeading(fmt.Sprint("dimension ", strongest))
	b.do(chromedp.EmulateViewport(800, 400))
	evaluate[chromedp.Void](b, `scrollTo(0, 321)`)
	b.wait(`history.state?.y === 321`)
	evaluate[chromedp.Void](b, `document.querySelector("main .values a").click()`)
	b.waitHeading(top)
	b.wait(`scrollY === 0`)
	b.do(chromedp.NavigateBack())
	b.wait(`scrollY === 321`)
	b.do(chromedp.EmulateViewport(1280, 900))

	// A dimension by its number, and what is a word too.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "7"))
	b.wait(`document.querySelector("[role=option]")?.textContent === "dimension 7"`)
	b.do(chromedp.Click(chromedp.CSS("[role=option]")))
	b.waitHeading("dimension 7")

	// A page that is opened anew, by its address.
	b.do(chromedp.Navigate(server.URL+"/#/word/river"), chromedp.Reload())
	b.waitHeading("river")

	// Compare two words, then three.
	b.do(chromedp.SendKeys(chromedp.CSS("main input"), "bank"+kb.Enter))
	b.waitHeading("river and bank")
	b.wait(`document.querySelector("main section h2").textContent === %s`, quote(fmt.Sprintf("Both share %d dimensions", shared(m.Codes, 1, 0))))
	b.do(chromedp.SendKeys(chromedp.CSS("main input"), "money"+kb.Enter))
	b.waitHeading("river and bank and money")
	b.wait(`document.querySelectorAll("main section").length === 7`)
	b.do(chromedp.Click(chromedp.CSS(".tools a:last-child")))
	b.waitHeading("river and bank")

	// A word that is none.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "bnak"+kb.Enter))
	b.waitHeading("Not found")
	b.do(chromedp.Click(chromedp.CSS(".suggestions a")))
	b.waitHeading("bank")

	// A word without anything.
	evaluate[chromedp.Void](b, `go("word", %s)`, quote(m.Words[50]))
	b.waitHeading(m.Words[50])
	b.wait(rows, 0)

	// Addresses that are none.
	for _, address := range []string{"#/word/%zz", "#/word", "#/word/a/b", "#/nothing", "#/dimension/x", "#/dimension/40", "#/map/39", "#/compare/bank"} {
		evaluate[chromedp.Void](b, `location.hash = %s`, quote(address))
		b.wait(`location.hash === %s && document.title.startsWith("not found")`, quote(address))
	}
}

// shared returns how many dimensions have the same sign in two rows.
func shared(s interface {
	Row(i int) ([]int32, []float32)
}, a, b int) (n int) {
	index, value := s.Row(a)
	others, values := s.Row(b)
	for i, k := range index {
		if j := slices.Index(others, k); j >= 0 && value[i]*values[j] > 0 {
			n++
		}
	}
	return n
}

// Words are text, whatever is in them.
func TestBrowserShowsWordsAsText(t *testing.T) {
	b := openBrowser(t)
	server := httptest.NewServer(New(testModel(), "<b>test</b>").Handler(""))
	defer server.Close()
	b.do(chromedp.Navigate(server.URL))
	b.waitHeading("<b>test</b>")
	for i, word := range oddWords {
		evaluate[chromedp.Void](b, `go("word", %s)`, quote(word))
		b.waitHeading(word)
		evaluate[chromedp.Void](b, `go("compare", %s, "bank")`, quote(word))
		b.waitHeading(word + " and bank")
		if i < 3 { // as it is typed
			b.do(chromedp.SendKeys(chromedp.CSS(search), word))
			b.wait(`[...document.querySelectorAll("[role=option]")].some((o) => o.textContent === %s)`, quote(word))
			b.do(chromedp.KeyEvent(kb.Enter))
			b.waitHeading(word)
		}
	}
	b.wait(`typeof hacked === "undefined" && document.querySelectorAll("main img, main script, main b b").length === 0`)
}

func TestBrowserMap(t *testing.T) {
	b := openBrowser(t)
	x := New(testModel(), "test")
	server := httptest.NewServer(x.Handler(""))
	defer server.Close()
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/#/map"))
	b.wait(`document.querySelectorAll(".dot").length === %d`, x.about.Live)

	// The mouse.
	const box = `document.querySelector(".dot").getBoundingClientRect()`
	left, top := evaluate[float64](b, box+`.left + 2`), evaluate[float64](b, box+`.top + 2`)
	k := evaluate[string](b, `document.querySelector(".dot").dataset.dimension`)
	b.do(chromedp.MouseEvent("mouseMoved", left, top))
	b.wait(`document.querySelector(".card").textContent.startsWith("dimension %s ")`, k)
	b.do(chromedp.MouseClickXY(left, top))
	b.waitHeading("dimension " + k)

	// The keyboard, from the dimension's own place on.
	b.do(chromedp.Click(chromedp.CSS(".steps a:nth-child(2)")))
	b.wait(`document.querySelector(".card")?.textContent.startsWith("dimension %s ")`, k)
	b.do(chromedp.Focus(chromedp.CSS("[role=application]")), chromedp.KeyEvent("-"), chromedp.KeyEvent("-"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowRight))
	next := evaluate[string](b, `document.querySelector(".current").dataset.dimension`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.waitHeading("dimension " + next)
}

// On a phone's width nothing is cut off, and all that can be used has a name.
func TestBrowserPhone(t *testing.T) {
	b := openBrowser(t)
	m := testModel()
	m.Words[1] = strings.Repeat("long", 40)
	m.Words[slices.Index(m.Words, "\u2028")] = "no white space"
	server := httptest.NewServer(New(m, strings.Repeat("name", 30)).Handler(""))
	defer server.Close()
	b.do(chromedp.EmulateViewport(375, 812), chromedp.Navigate(server.URL))
	for _, address := range []string{"#/word/bank", "#/word/" + m.Words[1], "#/dimension/3", "#/compare/bank/" + m.Words[1] + "/money", "#/map", "#/word/nothing", "#/"} {
		before := evaluate[string](b, `document.title`)
		evaluate[chromedp.Void](b, `location.hash = %s`, quote(address))
		b.wait(`document.title !== %s`, quote(before))
		if width := evaluate[int](b, `document.documentElement.scrollWidth`); width > 375 {
			t.Errorf("%.20s is %d pixels wide", address, width)
		}
		nameless := evaluate[int](b, `[...document.querySelectorAll("a[href], button, input, [role=img], [role=application], [role=listbox]")].filter((e) => !(e.ariaLabel ?? e.textContent).trim()).length`)
		if nameless > 0 {
			t.Errorf("%.20s: %d elements without a name", address, nameless)
		}
	}
}

// The exported page, without a server.
func TestBrowserExport(t *testing.T) {
	b := openBrowser(t)
	x := New(testModel(), "test")
	var page bytes.Buffer
	if err := x.WritePage(&page, append([]string{"bank", "river"}, oddWords...), []int{3}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, page.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate("file://" + path))
	b.waitHeading("test")
	b.wait(`document.querySelectorAll(".lead .words a").length === %d`, 2+len(oddWords))
	b.do(chromedp.SendKeys(chromedp.CSS(search), "BAN"))
	b.wait(`[...document.querySelectorAll("[role=option]")].map((o) => o.textContent).join() === "bank,Bank"`)
	b.do(chromedp.KeyEvent("K"), chromedp.KeyEvent(kb.Enter)) // found in lower case
	b.waitHeading("bank")
	b.do(chromedp.SendKeys(chromedp.CSS(search), "river"+kb.Enter))
	b.waitHeading("river")
	b.do(chromedp.SendKeys(chromedp.CSS("main input"), "bank"+kb.Enter))
	b.waitHeading("river and bank")
	b.do(chromedp.NavigateBack())
	b.waitHeading("river")
	b.do(chromedp.Click(chromedp.CSS(`main .bars a[href="#/dimension/3"]`)))
	b.waitHeading("dimension 3")
	b.do(chromedp.NavigateBack())
	b.waitHeading("river")
	for _, word := range oddWords {
		evaluate[chromedp.Void](b, `go("word", %s)`, quote(word))
		b.waitHeading(word)
	}
	evaluate[chromedp.Void](b, `go("map")`)
	b.wait(`document.querySelectorAll(".dot").length === %d && document.querySelectorAll(".dot:not(.faint)").length === 1`, x.about.Live)
	// What is not in it is told, and no link leads there.
	evaluate[chromedp.Void](b, `go("word", "money")`)
	b.waitHeading("Not found")
	for _, address := range []string{"#/", "#/word/bank", "#/dimension/3", "#/compare/bank/river"} {
		before := evaluate[string](b, `document.title`)
		evaluate[chromedp.Void](b, `location.hash = %s`, quote(address))
		b.wait(`document.title !== %s && !document.title.startsWith("not found")`, quote(before))
		dead := evaluate[string](b, `[...document.querySelectorAll("main a[href]")].map((a) => a.hash.split("/").map(decodeURIComponent)).filter(([, kind, key]) => ["word", "dimension"].includes(kind) && !has(kind, key)).join(" ")`)
		if dead != "" {
			t.Errorf("%s leads to %s", address, dead)
		}
	}
	b.wait(`typeof hacked === "undefined" && performance.getEntriesByType("resource").length === 0`)
}
