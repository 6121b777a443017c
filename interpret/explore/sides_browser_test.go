package explore

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"overcomplete/interpret"
)

// sideName is what a side of a dimension is to be called.
func sideName(x *Explorer, k int, negative bool) string {
	return interpret.Labels{}.Of(x.index, k, negative)
}

// Each side of a dimension has one name wherever it is mentioned, and a score of its own.
func TestBrowserSides(t *testing.T) {
	const k = 3 // has larger negative values than positive ones, as every third dimension
	b := openBrowser(t)
	x := New(turned(), "test")
	negative, positive := sideName(x, k, true), sideName(x, k, false)
	if !x.index.Stronger(k) || positive == "" || negative == "−"+positive {
		t.Fatalf("%q and %q, the first is the stronger: %v", negative, positive, x.index.Stronger(k))
	}
	x.UseCoherence(&interpret.Coherence{
		Reference: "other.txt",
		Scores:    []interpret.Score{{Dimension: k, Matched: .9}},
		Negative:  &interpret.Coherence{Scores: []interpret.Score{{Dimension: k, Matched: .3}, {Dimension: 6, Matched: .8}}},
	})
	server := httptest.NewServer(x.Handler(""))
	defer server.Close()
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+fmt.Sprint("/#/dimension/", k)))
	b.waitHeading(fmt.Sprint("dimension ", k))
	got := evaluate[string](b, `[document.querySelector(".title.weak")?.textContent, document.querySelector(".lead:not(.weak)")?.textContent, ...[...document.querySelectorAll(".note > b")].map((e) => e.textContent), document.title].join("|")`)
	want := strings.Join([]string{negative, "Its positive side, of smaller values: " + positive, "coherence 30 %", "coherence 90 %", fmt.Sprintf("%s, dimension %d", negative, k)}, "|")
	if !strings.HasPrefix(got, want) {
		t.Errorf("its page says\n%s, want\n%s", got, want)
	}

	// The word with the most negative value, and that with the largest: a word's page calls the
	// dimension by the side that the word is on, and lists call it by the stronger one.
	link := func(page, name string, weak bool) {
		t.Helper()
		evaluate[chromedp.Void](b, `document.querySelector("main").replaceChildren()`) // which may have the same link
		b.do(chromedp.Navigate(server.URL + "/#/" + page))
		selector := fmt.Sprintf(`.dims a.name[href="#/dimension/%d"]`, k)
		b.wait(`document.querySelector(%s)?.textContent === %s`, quote(selector), quote(name+" dimension "+fmt.Sprint(k)+map[bool]string{true: " (weak: an intruder among its top words is found in 30 % of questions, by guessing in 20 %)"}[weak]))
		if got := evaluate[bool](b, `document.querySelector(%s).matches(".weak")`, quote(selector)); got != weak {
			t.Errorf("%s: weak is %v, want %v", page, got, weak)
		}
	}
	evaluate[chromedp.Void](b, `document.querySelectorAll(".more").forEach((more) => more.click())`)
	link("dimensions", negative, true)
	link("ask/"+x.model.Codes.Words[x.index.Bottom(k, 1)[0].Row], negative, true)
	link("ask/"+x.model.Codes.Words[x.index.Top(k, 1)[0].Row], positive, false)
	evaluate[chromedp.Void](b, `askFor(%s)`, quote(positive))
	b.waitHeading(fmt.Sprint("dimension ", k))
	evaluate[chromedp.Void](b, `askFor(%s)`, quote(negative))
	b.waitHeading(fmt.Sprint("dimension ", k))
}

// Without scores, dimensions are in the order of how alike the strongest words of their stronger
// sides are.
func TestBrowserLikeness(t *testing.T) {
	b := openBrowser(t)
	x := New(turned(), "test")
	likeness := func(k int) float64 { return x.index.Likeness(k, x.index.Stronger(k)) }
	first := 1
	for k := range testAtoms {
		if likeness(k) > likeness(first) {
			first = k
		}
	}
	server := httptest.NewServer(x.Handler(""))
	defer server.Close()
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/#/dimensions"))
	b.waitHeading("Dimensions")
	b.do(chromedp.Click(chromedp.CSS(".dims a.name")))
	b.waitHeading(fmt.Sprint("dimension ", first))
	b.wait(`document.querySelector(".note").textContent.startsWith(%s)`, quote(fmt.Sprintf("likeness %.2f: ", likeness(first))))
}

// Matched dimensions of two models are shown by the stronger side of the one, and the side of
// the other that is like it.
func TestBrowserMatchedSides(t *testing.T) {
	b := openBrowser(t)
	both := two()
	server := httptest.NewServer(both.Handler(""))
	defer server.Close()
	signs := map[bool]int{}
	b.do(chromedp.EmulateViewport(1280, 900))
	for path, xs := range map[string][2]*Explorer{"/": {both, both.other}, beside + "/": {both.other, both}} {
		x, other := xs[0], xs[1]
		b.do(chromedp.Navigate(server.URL + path + "#/both"))
		b.wait(`document.querySelector("main .lead")?.textContent.includes(" are alike, of ")`)
		evaluate[chromedp.Void](b, `document.querySelectorAll(".more").forEach((more) => more.click())`)
		b.wait(`document.querySelectorAll(".sides").length === %d`, testAtoms-1)
		rows := evaluate[map[string][3]string](b, `Object.fromEntries([...document.querySelectorAll(".sides")].map((row) => {
			const [first, second] = row.querySelectorAll("a.name");
			const name = (link) => link.textContent.replace(/ dimension [0-9]+$/, "");
			return [first.href.split("/").pop(), [name(first), name(second), row.closest("li").querySelector("rect").getAttribute("class")]];
		}))`)
		for k := range testAtoms {
			match := x.matches().First[k]
			if match.Dimension < 0 {
				continue
			}
			negative, opposite := x.index.Stronger(k), match.Cosine < 0
			signs[negative]++
			want := [3]string{sideName(x, k, negative), sideName(other, match.Dimension, negative != opposite), map[bool]string{false: "positive", true: "negative"}[opposite]}
			if got := rows[fmt.Sprint(k)]; got != want || strings.TrimPrefix(want[0], "−") != strings.TrimPrefix(want[1], "−") {
				t.Errorf("%s: dimension %d: %q, want %q", path, k, got, want)
			}
		}
	}
	if signs[true] == 0 || signs[false] == 0 {
		t.Errorf("the stronger sides are %v", signs)
	}
}
