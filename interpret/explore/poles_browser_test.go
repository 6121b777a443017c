package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"overcomplete/interpret"
)

func poleName(x *Explorer, k int, negative bool) string {
	return interpret.Labels{}.Name(x.index, interpret.Pole{Dimension: k, Negative: negative})
}

// Each side of a dimension has one name wherever it is mentioned, and a score of its own.
func TestBrowserPoles(t *testing.T) {
	const k = 3 // has larger negative values than positive ones, as every third dimension
	b := openBrowser(t)
	x := newExplorer(t, turned(), "test")
	negative, positive := poleName(x, k, true), poleName(x, k, false)
	if !x.summary.Dimensions[k].Negative || positive == "" || negative == "−"+positive {
		t.Fatalf("%q and %q, the first is the stronger: %v", negative, positive, x.summary.Dimensions[k].Negative)
	}
	x = newWith(t, turned(), "test", Options{Judge: "other.txt",
		Accuracy: map[interpret.Pole]float64{{Dimension: k}: .9, {Dimension: k, Negative: true}: .3, {Dimension: 6, Negative: true}: .8}})
	base := b.serve(x)
	b.do(chromedp.Navigate(base + fmt.Sprint("/#/dimension/", k)))
	b.waitHeading(fmt.Sprint("dimension ", k))
	got := evaluate[string](b, `[document.querySelector(".title.weak")?.textContent, document.querySelector(".lead:not(.weak)")?.textContent, ...[...document.querySelectorAll(".note > b")].map((e) => e.textContent), document.title].join("|")`)
	want := strings.Join([]string{negative, "Its positive pole, with smaller values: " + positive, "word intrusion accuracy 30 %", "word intrusion accuracy 90 %", fmt.Sprintf("%s, dimension %d", negative, k)}, "|")
	if !strings.HasPrefix(got, want) {
		t.Errorf("its page says\n%s, want\n%s", got, want)
	}

	// The word with the most negative value, and that with the largest: a word's page calls the
	// dimension by the side that the word is on, and lists call it by the stronger one.
	link := func(page, name string, weak bool) {
		t.Helper()
		evaluate[chromedp.Void](b, `document.querySelector("main").replaceChildren()`) // which may have the same link
		b.do(chromedp.Navigate(base + "/#/" + page))
		selector := fmt.Sprintf(`.dims a.name[href="#/dimension/%d"]`, k)
		b.wait(`document.querySelector(%s)?.textContent === %s`, quote(selector), quote(name+" dimension "+fmt.Sprint(k)+map[bool]string{true: " (weak: word intrusion accuracy 30 %, by guessing 20 %)"}[weak]))
		if got := evaluate[bool](b, `document.querySelector(%s).matches(".weak")`, quote(selector)); got != weak {
			t.Errorf("%s: weak is %v, want %v", page, got, weak)
		}
	}
	evaluate[chromedp.Void](b, `document.querySelectorAll(".more").forEach((more) => more.click())`)
	link("dimensions", negative, true)
	link("query/"+x.model.Codes.Words[x.index.Top(interpret.Pole{Dimension: k, Negative: true}, 1)[0].Row], negative, true)
	link("query/"+x.model.Codes.Words[x.index.Top(interpret.Pole{Dimension: k}, 1)[0].Row], positive, false)
	evaluate[chromedp.Void](b, `askFor(%s)`, quote(positive))
	b.waitHeading(fmt.Sprint("dimension ", k))
	evaluate[chromedp.Void](b, `askFor(%s)`, quote(negative))
	b.waitHeading(fmt.Sprint("dimension ", k))
}

// Without scores, dimensions are in the order of how alike the strongest words of their stronger
// sides are.
func TestBrowserCoherence(t *testing.T) {
	b := openBrowser(t)
	x := newExplorer(t, turned(), "test")
	coherence := func(k int) float64 {
		return x.index.Coherence(interpret.Pole{Dimension: k, Negative: x.summary.Dimensions[k].Negative})
	}
	first := 1
	for k := range testAtoms {
		if coherence(k) > coherence(first) {
			first = k
		}
	}
	base := b.serve(x)
	b.do(chromedp.Navigate(base + "/#/dimensions"))
	b.waitHeading("Dimensions")
	b.do(chromedp.Click(chromedp.CSS(".dims a.name")))
	b.waitHeading(fmt.Sprint("dimension ", first))
	b.wait(`document.querySelector(".note").textContent.startsWith(%s)`, quote(fmt.Sprintf("coherence %.2f: ", coherence(first))))
}
