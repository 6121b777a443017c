package explore

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/testonly"
)

// One field answers all kinds of queries, and going back skips redirected queries.
func TestBrowserAsks(t *testing.T) {
	b := openBrowser(t)
	m := testModel()
	x := newExplorer(t, m, "test")
	b.do(chromedp.Navigate(b.serve(x)))
	b.waitHeading("test")
	asked := func(question, title string) {
		t.Helper()
		b.do(chromedp.SendKeys(chromedp.CSS(search), question+kb.Enter))
		b.waitHeading(title)
	}
	asked("shore", "shore")
	asked("bank river", "bank and river")
	b.wait(`location.hash === "#/compare/bank/river"`)
	b.do(chromedp.NavigateBack())
	b.waitHeading("shore")
	asked("7", "dimension 7")
	asked("dimension 210", "Not found") // no such dimension, but the word is suggested
	asked("210", "210")
	asked("New York", "New York")

	// The last word is completed in place.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "bank − riv"))
	b.wait(`document.querySelector("[role=option]")?.textContent === "bank − river"`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent("+ money"), chromedp.KeyEvent(kb.Enter))
	b.waitHeading("bank − river + money")

	// The parts of each nearest word's cosine add up.
	got, err := x.answerQuery("bank − river + money", "")
	testonly.Must(t, err)
	rows := b.rows(".nearest")
	if len(rows) != len(got.Nearest) {
		t.Fatalf("%d nearest words, want %d", len(rows), len(got.Nearest))
	}
	for i, n := range got.Nearest {
		b.checkRow(rows[i], listRow{"#/word/" + n.Word, []float64{n.Cosine}, []drawn{{0, 100 * n.Cosine, "positive"}}, []string{}}, 0.01)
	}
	for _, i := range []int{0, 3} {
		b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(".nearest li:nth-child(%d) button", i+1))))
		b.wait(`document.querySelectorAll(".halves h2")[1].textContent === %s`, quote(fmt.Sprintf("Dimensions shared with %s cosine %.2f =", got.Nearest[i].Word, got.Nearest[i].Cosine)))
		shares := evaluate[[]float64](b, `[...document.querySelectorAll(".halves section:nth-child(2) .value")].map((e) => parseFloat(e.textContent.replace("−", "-")))`)
		sum := 0.0
		for j, s := range shares {
			sum += s
			if j < len(got.Nearest[i].Parts) && math.Abs(s-100*got.Nearest[i].Parts[j].Part/got.Nearest[i].Cosine) > 0.1 {
				t.Errorf("%s: part %d is %v %%, want %v of %v", got.Nearest[i].Word, j, s, got.Nearest[i].Parts[j].Part, got.Nearest[i].Cosine)
			}
		}
		if math.Abs(sum-100) > 0.1*float64(len(shares)) { // rounding
			t.Errorf("%s: parts %v add up to %v %%", got.Nearest[i].Word, shares, sum)
		}
	}

	// A text with unknown words and with characters of HTML.
	const text = `"the bank and the <b>river</b>"`
	asked(text, text)
	b.wait(`document.querySelector(".lead").textContent === "The mean of 1 word: bank  Not in the model: the, and, the, <b>river</b>."`)

	// A suggested word replaces only the unknown word of a query.
	asked("bank − rivre", "Not found")
	b.do(chromedp.Click(chromedp.CSS(".suggestions a")))
	b.waitHeading("bank − river")
	evaluate[chromedp.Void](b, `go("compare", "bank", "rivre", "money")`)
	b.waitHeading("Not found")
	b.do(chromedp.Click(chromedp.CSS(".suggestions a")))
	b.waitHeading("bank and river and money")
}

// The links beside dimensions exclude dimensions from the query.
func TestBrowserWithoutDimension(t *testing.T) {
	b := openBrowser(t)
	x := newExplorer(t, testModel(), "test")
	b.do(chromedp.Navigate(b.serve(x) + "/#/word/bank"))
	b.waitHeading("bank")
	first := x.word(0).Active[0].Dimension
	query := fmt.Sprintf("bank - #%d", first)
	b.do(chromedp.Click(chromedp.CSS(".dims li:first-child .compare")))
	b.wait(`location.hash === "#/query/" + encodeURIComponent(%s) && document.querySelector("h1").textContent.startsWith("bank without ")`, quote(query))
	answer, err := x.answerQuery(query, "")
	testonly.Must(t, err)
	var words []string
	for _, n := range answer.Nearest {
		words = append(words, n.Word)
	}
	b.wait(`[...document.querySelectorAll(".nearest li > a")].map((a) => decodeURIComponent(a.hash.split("/")[2])).join(" ") === %s`, quote(strings.Join(words, " ")))
	b.do(chromedp.Click(chromedp.CSS("section:last-of-type .dims li:first-child .compare")))
	b.wait(`location.hash === "#/query/" + encodeURIComponent("%s - #%d")`, query, answer.Dimensions[0].Dimension)
}

// A label that a user sets on the page of a dimension appears on all pages.
func TestBrowserLabels(t *testing.T) {
	b := openBrowser(t)
	m := testModel()
	file := filepath.Join(t.TempDir(), "labels.json")
	x := newWith(t, m, "test", Options{Labels: file, CheckModel: func() error { return nil }, Judge: "other.txt",
		Accuracy: map[interpret.Pole]float64{{Dimension: 3}: .9, {Dimension: 5}: .2}})
	b.do(chromedp.Navigate(b.serve(x) + "/#/dimension/3"))
	b.waitHeading("dimension 3")
	const label = `<img src=x onerror="hacked=1"> & "kings"`
	b.do(chromedp.Click(chromedp.CSS("button.edit")), chromedp.SendKeys(chromedp.CSS(".editor input"), label+kb.Enter))
	b.wait(`document.querySelector(".title").textContent === %s`, quote(label))
	kept, err := interpret.ReadLabels(file, testAtoms)
	if err != nil || kept[0].Name != label {
		t.Errorf("kept %v, %v", kept, err)
	}
	// The search finds it. A weak dimension is grey, with a reason.
	evaluate[chromedp.Void](b, `go("dimensions")`)
	b.waitHeading("Dimensions")
	const first = `document.querySelector("main .dims li a.name")`
	b.wait(`%s.textContent.startsWith(%s)`, first, quote(label)) // the most coherent dimension
	b.wait(`document.querySelectorAll("main .dims a.weak").length === %d && document.querySelector("a.weak").title.startsWith("weak: ")`, testAtoms-2)
	b.do(chromedp.SendKeys(chromedp.CSS("input[type=search]"), "KINGS"))
	b.wait(`document.querySelector("[role=status]").textContent.startsWith("1 of ")`)
	b.do(chromedp.SendKeys(chromedp.CSS(search), label+kb.Enter))
	b.waitHeading("dimension 3")
	b.wait(`document.title.startsWith(%s)`, quote(label+", dimension 3"))

	// A failure to save shows an error and keeps the input.
	testonly.Must(t, os.Remove(file))
	testonly.Must(t, os.Mkdir(file, 0o777))
	b.do(chromedp.Click(chromedp.CSS("button.edit")), chromedp.KeyEvent("queens"), chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelector(".editor [role=alert]").textContent.startsWith("the label was not saved: ") && document.querySelector(".editor input").value === %s`, quote("queens"))
}

// Sliders sort the nearest words by steered scores, and the page shows the terms of each score.
func TestBrowserSteering(t *testing.T) {
	b := openBrowser(t)
	for _, m := range []*model.Model{testModel(), testTexts()} {
		x := newExplorer(t, m, "test")
		b.do(chromedp.Navigate(b.serve(x) + "/#/word/bank"))
		b.wait(`document.querySelector(".steering summary") !== null`)
		b.do(chromedp.Click(chromedp.CSS(".steering summary")))
		b.wait(`document.querySelectorAll(".steering .slider").length === %d`, min(5, len(x.word(0).Active)))
		slide := func(i int, value float64) {
			evaluate[bool](b, `(() => { const s = document.querySelectorAll(".steering input[type=range]")[%d]; s.value = %v; return s.dispatchEvent(new Event("input")); })()`, i, value)
		}
		other := 0
		for slices.ContainsFunc(x.word(0).Active, func(w interpret.Weight) bool { return w.Dimension == other }) {
			other++
		}
		evaluate[bool](b, `(() => { const o = document.querySelector(".steering input[list]"); o.value = "%d x"; return o.dispatchEvent(new Event("change")); })()`, other)
		first := x.word(0).Active[0]
		last := min(5, len(x.word(0).Active))
		slide(0, -0.5)
		slide(last, 0.75)
		pole := map[bool]float64{false: 1, true: -1}
		steer := fmt.Sprintf("%d:%v,%d:%v", first.Dimension, -0.5*pole[first.Value < 0], other, 0.75*pole[x.summary.Dimensions[other].Negative])
		answer, err := x.answerQuery("bank", steer)
		testonly.Must(t, err)
		n := answer.Nearest[0]
		score := n.Cosine + n.Steered[0].Part + n.Steered[1].Part
		b.wait(`document.querySelector(".steering + div .excerpts .value")?.textContent === %q && document.querySelector(".steering + div .excerpts .about").textContent.includes(" = %s ")`,
			strings.ReplaceAll(fmt.Sprintf("%.2f", score), "-", "−"), strings.ReplaceAll(fmt.Sprintf("%.2f", n.Cosine), "-", "−"))
		b.wait(`document.querySelectorAll(".steering + div .excerpts li").length === %d`, len(answer.Nearest))
		// The address has the sliders. At zero, the list is as before.
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(evaluate[string](b, `location.href`)))
		b.wait(`document.querySelector(".steering + div .excerpts .value")?.textContent === %q`, strings.ReplaceAll(fmt.Sprintf("%.2f", score), "-", "−"))
		slide(0, 0)
		slide(1, 0)
		b.wait(`!location.hash.includes("?") && !document.querySelector(".steering + div").textContent.includes(" = ")`)
		evaluate[bool](b, `(() => { const o = document.querySelector(".steering input[list]"); o.value = "no such label"; return o.dispatchEvent(new Event("change")); })()`)
		b.wait(`document.querySelector(".steering [role=alert]").textContent === "No dimension’s label contains “no such label”."`)
	}
}
