package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"overcomplete/interpret"
	"overcomplete/model"
)

func poleName(x *Explorer, k int, negative bool) string {
	return interpret.Labels{}.Name(x.index, interpret.Pole{Dimension: k, Negative: negative})
}

// turned returns the test model with its dimensions reversed and every third one negated.
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

// Each pole of a dimension has the same name on all pages, and its own accuracy.
func TestBrowserPoles(t *testing.T) {
	const k = 3 // its negative pole is stronger, as in every third dimension
	b := openBrowser(t)
	x := newExplorer(t, turned(), "test")
	negative, positive := poleName(x, k, true), poleName(x, k, false)
	if !x.summary.Dimensions[k].Negative || positive == "" || negative == "−"+positive {
		t.Fatalf("%q and %q, the first is the stronger: %v", negative, positive, x.summary.Dimensions[k].Negative)
	}
	// Without accuracies, dimensions are in decreasing order of the coherence of their stronger poles.
	coherence := func(k int) float64 {
		return x.index.Coherence(interpret.Pole{Dimension: k, Negative: x.summary.Dimensions[k].Negative})
	}
	first := 1
	for k := range testAtoms {
		if coherence(k) > coherence(first) {
			first = k
		}
	}
	b.do(chromedp.Navigate(b.serve(x) + "/#/dimensions"))
	b.waitHeading("Dimensions")
	b.do(chromedp.Click(chromedp.CSS(".dims a.name")))
	b.waitHeading(fmt.Sprint("dimension ", first))
	b.wait(`document.querySelector(".note").textContent.startsWith(%s)`, quote(fmt.Sprintf("coherence %.2f: ", coherence(first))))

	x = newWith(t, turned(), "test", Options{Judge: "other.txt",
		Accuracy: map[interpret.Pole]float64{{Dimension: k}: .9, {Dimension: k, Negative: true}: .3, {Dimension: 6, Negative: true}: .8}})
	base := b.serve(x)
	b.do(chromedp.Navigate(base + fmt.Sprint("/#/dimension/", k)))
	b.waitHeading(fmt.Sprint("dimension ", k))
	got := evaluate[string](b, `[document.querySelector(".title.weak")?.textContent, document.querySelector(".lead:not(.weak)")?.textContent, ...[...document.querySelectorAll(".note > b")].map((e) => e.textContent), document.title].join("|")`)
	want := strings.Join([]string{negative, "Weaker pole (positive): " + positive, "word intrusion accuracy 30 %", "word intrusion accuracy 90 %", fmt.Sprintf("%s, dimension %d", negative, k)}, "|")
	if !strings.HasPrefix(got, want) {
		t.Errorf("the page of the dimension shows\n%s, want\n%s", got, want)
	}

	// The page of a word names a dimension after the word's pole. Lists name it after the stronger pole.
	link := func(page, name string, weak bool) {
		t.Helper()
		evaluate[chromedp.Void](b, `document.querySelector("main").replaceChildren()`) // the previous page may contain the same link
		b.do(chromedp.Navigate(base + "/#/" + page))
		selector := fmt.Sprintf(`.dims a.name[href="#/dimension/%d"]`, k)
		b.wait(`document.querySelector(%s)?.textContent === %s && document.querySelector(%[1]s).matches(".weak") === %[3]t`, quote(selector), quote(name+" dimension "+fmt.Sprint(k)+map[bool]string{true: " (weak: word intrusion accuracy 30 %, chance 20 %)"}[weak]), weak)
	}
	evaluate[chromedp.Void](b, `document.querySelectorAll(".more").forEach((more) => more.click())`)
	link("dimensions", negative, true)
	link("query/"+x.model.Codes.IDs[x.index.Top(interpret.Pole{Dimension: k, Negative: true}, 1)[0].Row], negative, true)
	link("query/"+x.model.Codes.IDs[x.index.Top(interpret.Pole{Dimension: k}, 1)[0].Row], positive, false)
	evaluate[chromedp.Void](b, `askFor(%s)`, quote(positive))
	b.waitHeading(fmt.Sprint("dimension ", k))
	evaluate[chromedp.Void](b, `askFor(%s)`, quote(negative))
	b.waitHeading(fmt.Sprint("dimension ", k))
}
