package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
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
	"gonum.org/v1/gonum/floats"

	"overcomplete/interpret"
	"overcomplete/testonly"
)

// A browser is a tab of Chromium.
type browser struct {
	*testing.T
	ctx     context.Context
	servers []*httptest.Server // closed after the tab, which may still request data
}

// chromium is the browser process of all tests.
var chromium struct {
	start sync.Once
	ctx   context.Context
	stop  context.CancelFunc
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	os.Exit(code)
}

// openBrowser opens a tab of the Chromium that OVERCOMPLETE_CHROMIUM names. The test fails if a page
// throws or logs an error, such as a violation of its security policy, except a status of 4xx.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := os.Getenv("OVERCOMPLETE_CHROMIUM")
	if path == "" {
		t.Skip("needs a browser: set OVERCOMPLETE_CHROMIUM to the path of Chromium")
	}
	t.Parallel()
	chromium.start.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox) // root has no sandbox
		ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
		chromium.ctx, _ = chromedp.NewContext(ctx)
		chromium.stop = stop
		(&browser{T: t, ctx: chromium.ctx}).do()
	})
	ctx, cancel := chromedp.NewContext(chromium.ctx) // a new tab
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	b := &browser{T: t, ctx: ctx}
	b.do(chromedp.EmulateViewport(1280, 900))
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
		for _, server := range b.servers {
			server.Close()
		}
	})
	return b
}

// serve serves the page of x until the test ends, and returns its address.
func (b *browser) serve(x *Explorer) string {
	server := httptest.NewServer(x.Handler(""))
	b.servers = append(b.servers, server)
	return server.URL
}

// export writes the page of words and dimensions to a file, and returns its address.
func (b *browser) export(x *Explorer, words []string, dimensions []int) string {
	b.Helper()
	var page bytes.Buffer
	testonly.Must(b, x.WritePage(&page, words, dimensions))
	path := filepath.Join(b.TempDir(), "page.html")
	testonly.Must(b, os.WriteFile(path, page.Bytes(), 0o666))
	return "file://" + path
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	testonly.Must(b, chromedp.Do(b.ctx, steps...))
}

// evaluate returns the value of a JavaScript expression.
func evaluate[T any](b *browser, format string, args ...any) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](fmt.Sprintf(format, args...), chromedp.EvalAwaitPromise))
	testonly.Must(b, err)
	return value
}

// wait evaluates a JavaScript condition in each frame until it is true. It continues after a navigation.
func (b *browser) wait(format string, args ...any) {
	b.Helper()
	condition := fmt.Sprintf(format, args...)
	look := chromedp.Evaluate[string](fmt.Sprintf(`new Promise((done) => {
		const end = performance.now() + 10_000;
		const look = () => {
			if (%s) done("");
			else if (performance.now() > end) done(location.href + "\n" + document.body.innerText.slice(0, 600));
			else requestAnimationFrame(look);
		};
		look();
	})`, condition), chromedp.EvalAwaitPromise)
	found, err := chromedp.Run(b.ctx, look)
	if err != nil && strings.Contains(err.Error(), "(-32000)") { // the page was replaced
		found, err = chromedp.Run(b.ctx, look)
	}
	testonly.Must(b, err)
	if found != "" {
		b.Fatalf("never %s; the page is %s", condition, found)
	}
}

// visit opens the page of an address within the site, and waits until it is shown.
func (b *browser) visit(address string) {
	b.Helper()
	before := evaluate[int](b, `shown`)
	evaluate[chromedp.Void](b, `location.hash === %s ? show() : (location.hash = %[1]s); 0`, quote(address))
	b.wait(`shown > %d && !document.getElementById("main").ariaBusy`, before)
}

// waitHeading waits for a page with a heading.
func (b *browser) waitHeading(text string) {
	b.Helper()
	b.wait(`document.querySelector("h1")?.textContent === %s`, quote(text))
}

// quote returns a string or strings as a literal of JavaScript.
func quote[T string | []string](value T) string {
	quoted, _ := json.Marshal(value)
	return string(quoted)
}

const search = "header input"

// A user's path through the pages works: links, search, history.
func TestBrowser(t *testing.T) {
	b := openBrowser(t)
	m := testModel()
	x := newExplorer(t, m, "test")
	base := b.serve(x)
	b.do(chromedp.Navigate(base))
	b.waitHeading("test")

	// Search, with completion.
	// One event, so that a page that handles the key can prevent the default.
	key := input.DispatchKeyEventParams{Type: kb.KeyDown, Key: "/", Text: "/"}
	_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, key)
	testonly.Must(t, err)
	b.do(chromedp.KeyEvent("ba"))
	b.wait(`[...document.querySelectorAll("[role=option]")].map((o) => o.textContent).join().startsWith("bank,Bank")`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`document.querySelector(%s).getAttribute("aria-activedescendant") === document.querySelector("[aria-selected=true]").id`, quote(search))
	b.do(chromedp.KeyEvent(kb.Enter))
	b.waitHeading("bank")
	const rows = `document.querySelectorAll("main section:first-child .bars li").length === %d`
	active := x.word(0).Active
	b.wait(rows, min(20, len(active)))

	// Word to dimension to word.
	strongest := active[0].Dimension
	b.do(chromedp.Click(chromedp.CSS("main .bars a.name")))
	b.waitHeading(fmt.Sprint("dimension ", strongest))
	answer := x.dimension(strongest)
	top := answer.Top[0].Word
	b.do(chromedp.Click(chromedp.CSS("main .values a")))
	b.waitHeading(top)

	// Back twice, and forward, with the scroll position.
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

	// A dimension by its number.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "7"))
	b.wait(`document.querySelector("[role=option]")?.textContent === "dimension 7"`)
	b.do(chromedp.Click(chromedp.CSS("[role=option]")))
	b.waitHeading("dimension 7")

	// A new page, by its address.
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(base+"/#/word/river"))
	b.waitHeading("river")

	// Compare two words, then three.
	b.do(chromedp.SendKeys(chromedp.CSS("main input"), "bank"+kb.Enter))
	b.waitHeading("river and bank")
	b.wait(`document.querySelectorAll("main section").length === 3`)
	b.do(chromedp.SendKeys(chromedp.CSS("main input"), "money"+kb.Enter))
	b.waitHeading("river and bank and money")
	b.wait(`document.querySelectorAll("main section").length === 4`)
	b.do(chromedp.Click(chromedp.CSS(".tools a:last-child")))
	b.waitHeading("river and bank")

	// An unknown word.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "bnak"+kb.Enter))
	b.waitHeading("Not found")
	b.do(chromedp.Click(chromedp.CSS(".suggestions a")))
	b.waitHeading("bank")

	// A code of zeros, and a dead atom.
	evaluate[chromedp.Void](b, `go("word", %s)`, quote(m.Codes.IDs[50]))
	b.waitHeading(m.Codes.IDs[50])
	b.wait(rows, 0)
	evaluate[chromedp.Void](b, `go("dimension", 39)`)
	b.waitHeading("dimension 39")
	b.wait(`document.querySelector("main").textContent.includes("No word uses this dimension.")`)

	// Malformed addresses.
	for _, address := range []string{"#/word/%zz", "#/word", "#/word/a/b", "#/nothing", "#/dimension/x", "#/dimension/40", "#/map/39", "#/map/word", "#/map/word/nothing", "#/compare/bank", "#/compare/bank/river/money/shore/bank", "#/query/zz", "#/query/bank%20-"} {
		evaluate[chromedp.Void](b, `location.hash = %s`, quote(address))
		b.wait(`location.hash === %s && document.title.startsWith("not found")`, quote(address))
	}
}

// A listRow is a row of a list: its link, its numbers, its bars in percent of their width, and its words.
type listRow struct {
	Link   string    `json:"link"`
	Values []float64 `json:"values"`
	Bars   []drawn   `json:"bars"`
	Words  []string  `json:"words"`
}

type drawn struct {
	X     float64 `json:"x"`
	Width float64 `json:"width"`
	Class string  `json:"class"`
}

// rows reads the rows of the list of a CSS selector.
func (b *browser) rows(list string) []listRow {
	b.Helper()
	return evaluate[[]listRow](b, `[...document.querySelectorAll(%s + " li")].map((li) => ({
		link: decodeURIComponent(li.querySelector("a").hash),
		values: (li.querySelector(".value").children.length ? [...li.querySelector(".value").children] : [li.querySelector(".value")]).map((e) => parseFloat(e.textContent.replace("−", "-"))),
		bars: [...li.querySelectorAll("rect")].map((r) => ({ x: parseFloat(r.getAttribute("x")), width: parseFloat(r.getAttribute("width")), class: r.getAttribute("class") })),
		words: [...(li.querySelector(".words")?.children ?? [])].map((e) => e.textContent),
	}))`, quote(list))
}

// checkRow compares a row. It tolerates half of the last digit of numbers, and the rounding of bars.
func (b *browser) checkRow(got, want listRow, digit float64) {
	b.Helper()
	ok := got.Link == want.Link && slices.Equal(got.Words, want.Words) && len(got.Values) == len(want.Values) && len(got.Bars) == len(want.Bars)
	for i := range got.Values {
		ok = ok && math.Abs(got.Values[i]-want.Values[i]) < 0.501*digit
	}
	for i := range got.Bars {
		g, w := got.Bars[i], want.Bars[i]
		ok = ok && math.Abs(g.X-w.X) < 1e-3 && math.Abs(g.Width-w.Width) < 1e-3 && g.Class == w.Class
	}
	if !ok {
		b.Errorf("row\n%+v, want\n%+v", got, want)
	}
}

// The pages show the numbers of the answers, which explore_test.go checks.
func TestBrowserShowsNumbers(t *testing.T) {
	b := openBrowser(t)
	m := testModel()
	x := newExplorer(t, m, "test")
	// ends returns the words beside a dimension's name.
	ends := func(k int, value float64) []string {
		d := x.summary.Dimensions[k]
		end, label := d.Top, d.Label
		if value < 0 {
			end, label = d.Bottom, d.BottomLabel
		}
		return slices.DeleteFunc(slices.Clone(end), func(w string) bool { return slices.Contains(label, w) })
	}

	// A word: its first dimensions, and the nearest words.
	b.do(chromedp.Navigate(b.serve(x) + "/#/word/bank"))
	b.waitHeading("bank")
	bank := x.word(0)
	low, high := 0., 0.
	for _, w := range bank.Active {
		low, high = min(low, float64(w.Value)), max(high, float64(w.Value))
	}
	if max(high, -low) < 1 || max(high, -low) >= 10 {
		t.Fatalf("values from %v to %v do not have two decimals", low, high)
	}
	got := append(b.rows(".columns section:nth-child(1) > ul.bars"), b.rows(".columns section:nth-child(1) > details ul.bars")...)
	if len(got) != len(bank.Active) || len(got) > 20 {
		t.Fatalf("%d dimensions of %d", len(got), len(bank.Active))
	}
	weak := func(w interpret.Weight) bool { return w.Value < 0 != x.summary.Dimensions[w.Dimension].Negative }
	active := slices.Clone(bank.Active) // values at the weaker poles come last
	slices.SortStableFunc(active, func(v, w interpret.Weight) int {
		return map[bool]int{true: 1}[weak(v)] - map[bool]int{true: 1}[weak(w)]
	})
	negative := false
	for i, row := range got {
		w := active[i]
		v := float64(w.Value)
		negative = negative || v < 0
		bar := drawn{100 * (min(v, 0) - low) / (high - low), 100 * math.Abs(v) / (high - low), map[bool]string{false: "positive", true: "negative"}[v < 0]}
		b.checkRow(row, listRow{fmt.Sprint("#/dimension/", w.Dimension), []float64{v}, []drawn{bar}, ends(w.Dimension, v)}, 0.01)
	}
	if !negative {
		t.Error("no negative value is shown")
	}
	got = b.rows(".nearest")
	if len(got) != len(bank.Nearest) {
		t.Fatalf("%d nearest words, want %d", len(got), len(bank.Nearest))
	}
	for i, n := range bank.Nearest {
		b.checkRow(got[i], listRow{"#/word/" + n.Word, []float64{n.Cosine}, []drawn{{0, 100 * n.Cosine, "positive"}}, []string{}}, 0.01)
	}

	// A dimension: all of its top words, after a click.
	evaluate[chromedp.Void](b, `go("dimension", 3)`)
	b.waitHeading("dimension 3")
	dimension := x.dimension(3)
	b.do(chromedp.Click(chromedp.CSS("section:nth-child(2) .more")))
	const top = ".columns section:nth-child(2) > h2:first-child + .toggle + div ol.values"
	b.wait(`document.querySelectorAll(%s).length === %d`, quote(top+" li"), len(dimension.Top))
	for i, row := range b.rows(top) {
		e := dimension.Top[i]
		b.checkRow(row, listRow{"#/word/" + e.Word, []float64{float64(e.Value)}, []drawn{{0, 100 * float64(e.Value) / float64(dimension.Top[0].Value), "positive"}}, []string{}}, 0.01)
	}

	// A comparison: the parts of every list add up to the number above it.
	for _, words := range [][]string{{"bank", "river"}, {"bank", "river", "money"}, {"shore", "money", "bank", "river"}} {
		var codes []interpret.Code
		for _, w := range words {
			row, _ := x.index.Row(w)
			codes = append(codes, x.index.Code(row))
		}
		shared, apart := interpret.Compare(codes...)
		cosine := 0.0
		for _, c := range shared {
			cosine += c.Part
		}
		evaluate[chromedp.Void](b, `go("compare", ...%s)`, quote(words))
		b.waitHeading(strings.Join(words, " and "))
		heads := evaluate[[]float64](b, `[...document.querySelectorAll("main section h2 small")].map((e) => parseFloat(e.textContent.match(/−?[0-9.]+/)[0].replace("−", "-")))`)
		sum := floats.Sum(heads)
		if len(heads) != len(words)+1 || math.Abs(heads[0]-cosine) > 0.00501 || math.Abs(sum-1) > 0.00501*float64(len(heads)) {
			t.Errorf("%q: numbers %v, want %v and 1 − cosine", words, heads, cosine)
		}
		evaluate[chromedp.Void](b, `document.querySelectorAll(".more").forEach((more) => more.click())`)
		lists := evaluate[[]map[int]float64](b, `[...document.querySelectorAll("main section")].map((section) => Object.fromEntries([...section.querySelectorAll("li:not(.rest)")].map((li) => [
			li.querySelector("a.name").hash.split("/").pop(), parseFloat(li.querySelector(".value").title.replace("−", "-"))])))`)
		got := map[string]map[int]float64{"shared": lists[0], "apart": {}} // parts by dimension; the first list is shared
		for _, list := range lists[1:] {
			maps.Copy(got["apart"], list)
		}
		for name, wanted := range map[string][]interpret.Contribution{"shared": shared, "apart": apart} {
			if len(got[name]) != len(wanted) {
				t.Errorf("%q: %d dimensions %s, want %d", words, len(got[name]), name, len(wanted))
			}
			for _, c := range wanted {
				if part, ok := got[name][c.Dimension]; !ok || math.Abs(part-c.Part) > 0.000051 {
					t.Errorf("%q: dimension %d %s is %v, want %v", words, c.Dimension, name, part, c.Part)
				}
			}
		}
	}

	// Repeated words count once.
	evaluate[chromedp.Void](b, `go("compare", "bank", "River", "bank")`)
	b.wait(`document.querySelector("h1").textContent === "bank and river" && document.querySelectorAll("main section").length === 3 && location.hash.endsWith("/bank")`)
	evaluate[chromedp.Void](b, `go("compare", "river", "River")`)
	b.waitHeading("river")
}

// A word written from right to left doesn't move its neighbours.
func TestBrowserIsolatesWords(t *testing.T) {
	b := openBrowser(t)
	m := testModel()
	m.Codes.IDs[0], m.Codes.IDs[1] = "שלום", "שלומית"
	b.do(chromedp.Navigate(b.serve(newExplorer(t, m, "test"))))
	b.waitHeading("test")
	b.do(chromedp.SendKeys(chromedp.CSS(search), "שלו"))
	b.wait(`document.querySelectorAll("[role=option]").length >= 2`)
	check := func(where, selector string) {
		t.Helper()
		if got := evaluate[string](b, `[...new Set([...document.querySelectorAll(%s)].map((e) => getComputedStyle(e).unicodeBidi))].join()`, quote(selector)); got != "isolate" {
			t.Errorf("%s: unicode-bidi of %s is %q", where, selector, got)
		}
	}
	check("completion", "[role=option], [role=option] bdi")
	for address, selector := range map[string]string{
		"#/word/" + m.Codes.IDs[0]: `h1, main a[href^="#/word/"], .words b`,
		"#/dimension/3":            `main a[href^="#/word/"], .lead.words bdi`,
		"#/compare/" + m.Codes.IDs[0] + "/" + m.Codes.IDs[1]: `h1 a, h2 bdi, .words a, .words b, .name bdi, .who bdi`,
	} {
		b.visit(address)
		check(address, selector)
	}
}

// Words are text, even with markup or control characters.
func TestBrowserShowsWordsAsText(t *testing.T) {
	b := openBrowser(t)
	b.do(chromedp.Navigate(b.serve(newExplorer(t, testModel(), "<b>test</b>"))))
	b.waitHeading("<b>test</b>")
	for i, word := range oddWords {
		evaluate[chromedp.Void](b, `go("word", %s)`, quote(word))
		b.waitHeading(word)
		if i == 0 { // can be typed
			b.do(chromedp.SendKeys(chromedp.CSS(search), word))
			b.wait(`[...document.querySelectorAll("[role=option]")].some((o) => o.textContent === %s)`, quote(word))
			b.do(chromedp.KeyEvent(kb.Enter))
			b.waitHeading(word)
		}
	}
	b.visit("#/compare/%E2%80%A8/%3Cimg%20src=x%20onerror=hacked=1%3E") // an invisible link has a visible name
	b.waitHeading("U+2028 and " + oddWords[0])
	b.wait(`typeof hacked === "undefined" && document.querySelectorAll("main img, main script, main b b").length === 0`)
}

// The exported page works without a server.
func TestBrowserExport(t *testing.T) {
	b := openBrowser(t)
	x := newExplorer(t, testModel(), "test")
	b.do(chromedp.Navigate(b.export(x, append([]string{"bank", "river"}, oddWords...), []int{3})))
	b.waitHeading("test")
	b.wait(`document.querySelectorAll(".lead .words a").length === %d`, 2+len(oddWords))
	b.do(chromedp.SendKeys(chromedp.CSS(search), "BAN"))
	b.wait(`[...document.querySelectorAll("[role=option]")].map((o) => o.textContent).join().startsWith("bank,Bank")`)
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
	for _, word := range oddWords[:3] {
		evaluate[chromedp.Void](b, `go("word", %s)`, quote(word))
		b.waitHeading(word)
	}
	evaluate[chromedp.Void](b, `go("map")`)
	b.wait(`document.querySelector(".beside [data-dimension='3'] a") && document.querySelectorAll(".beside a.name").length === 1`)
	b.waitMap(x.summary.Live)
	for query, title := range map[string]string{"bank river": "bank and river", "bank − river": "Not found"} {
		b.do(chromedp.SendKeys(chromedp.CSS(search), query+kb.Enter))
		b.waitHeading(title)
		evaluate[chromedp.Void](b, `location.hash = "#/"`)
		b.waitHeading("test")
	}
	// All links lead to pages of the file.
	evaluate[chromedp.Void](b, `go("word", "money")`)
	b.waitHeading("Not found")
	for _, address := range []string{"#/", "#/word/bank", "#/dimension/3", "#/compare/bank/river"} {
		b.visit(address)
		b.wait(`!document.title.startsWith("not found")`)
		dead := evaluate[string](b, `[...document.querySelectorAll("main a[href]")].map((a) => a.hash.split("/").map(decodeURIComponent)).filter(([, kind, key]) => ["word", "dimension"].includes(kind) && !has(kind, key)).join(" ")`)
		if dead != "" {
			t.Errorf("%s leads to %s", address, dead)
		}
	}
	b.wait(`typeof hacked === "undefined" && performance.getEntriesByType("resource").length === 0`)
}

// The switch sets the theme, which the browser saves.
func TestBrowserTheme(t *testing.T) {
	b := openBrowser(t)
	base := b.serve(newExplorer(t, testModel(), "test"))
	b.do(chromedp.Navigate(base))
	b.waitHeading("test")
	const paper = `getComputedStyle(document.body).backgroundColor`
	light := evaluate[string](b, paper)
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	b.wait(`document.getElementById("theme").ariaLabel === "Theme: light" && %s === %s`, paper, quote(light))
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	b.wait(`document.getElementById("theme").ariaLabel === "Theme: dark" && %s !== %s`, paper, quote(light))
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(base+"/#/word/bank"))
	b.waitHeading("bank")
	b.wait(`document.getElementById("theme").ariaLabel === "Theme: dark" && %s !== %s`, paper, quote(light))
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	b.wait(`document.getElementById("theme").ariaLabel === "Theme: system" && %s === %s`, paper, quote(light))
}
