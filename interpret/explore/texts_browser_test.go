package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"overcomplete/model"
	"overcomplete/vectors"
	_ "overcomplete/vectors/columnar"
)

// testTexts is testModel with texts for words, whose ids are the words.
func testTexts() *model.Model {
	m := testModel()
	m.Codes.Texts = &vectors.Texts{Columns: []vectors.Column{{Name: "label", Values: make([]string, testWords)}, {Name: "<b>", Values: make([]string, testWords)}}}
	for i := range testWords {
		index, _ := m.Codes.Row(i)
		words := []string{"common"}
		for _, k := range index[:min(2, len(index))] {
			words = append(words, fmt.Sprintf("subject%c", 'a'+k))
		}
		m.Codes.Texts.Text = append(m.Codes.Texts.Text, strings.Join(words, " "))
		m.Codes.Texts.Columns[0].Values[i] = fmt.Sprint(i % 3)
	}
	text := m.Codes.Texts.Text
	text[0] = "The first line,\nthe second <img src=x onerror=hacked=1> line"
	text[1] = "" // called by its id
	text[2] = "שלום e\u0301 \u202eright to left"
	text[3] = strings.Repeat("long ", 10000)
	m.Info.Encoding.SetKind(m.Codes.Texts)
	return m
}

// Texts are searched, shown as they are, and addressed by their ids.
func TestBrowserTexts(t *testing.T) {
	b := openBrowser(t)
	m := testTexts()
	x := newExplorer(t, m, "test")
	base := b.serve(x)
	b.do(chromedp.Navigate(base))
	b.waitHeading("test")
	if lead := evaluate[string](b, `document.querySelector(".lead").textContent`); !strings.HasPrefix(lead, "300 texts in 40 sparse dimensions. Ask for a text, ") {
		t.Errorf("summary: %q", lead)
	}

	// A query leads to the only text that contains it, or to a list.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "SECOND  "+kb.Enter))
	b.waitHeading(m.Codes.Texts.Text[0])
	b.wait(`location.hash === "#/word/bank"`)
	facts := evaluate[string](b, `[...document.querySelectorAll("main .facts div")].map((e) => e.innerText.replace("\n", "=")).join(" ")`)
	if want := "id=bank label=0 <b>=–"; facts != want {
		t.Errorf("facts %q, want %q", facts, want)
	}
	b.do(chromedp.SendKeys(chromedp.CSS(search), "common subjecta"+kb.Enter))
	b.waitHeading("common subjecta")
	_, total := x.index.Search("common subjecta", 1)
	if lead := evaluate[string](b, `document.querySelector(".lead").textContent`); total < 2 || !strings.HasPrefix(lead, fmt.Sprintf("%d texts contain it", total)) {
		t.Errorf("%q of %d texts", lead, total)
	}
	b.do(chromedp.Click(chromedp.CSS(".texts a")))
	b.wait(`location.hash.startsWith("#/word/") && document.activeElement.matches("h1.text")`) // it takes the focus

	// Completions have the text beside the id.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "first line"))
	b.wait(`document.querySelector("[role=option]")?.textContent.startsWith("bank The first line, the second <img")`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.waitHeading(m.Codes.Texts.Text[0])

	// Keywords name a dimension.
	b.do(chromedp.Navigate(base + "/#/dimension/0"))
	b.wait(`document.querySelector("main .title")?.textContent.includes("subjecta")`)
	if got := evaluate[string](b, `document.querySelector("main .values a").textContent`); strings.HasPrefix(got, "w") {
		t.Errorf("the first text is %q", got)
	}
	b.do(chromedp.Navigate(base + "/#/compare/bank/river"))
	b.wait(`document.querySelector("h1")?.textContent.includes("onerror")`)
	b.do(chromedp.Navigate(base + "/#/map/0"))
	b.wait(`document.querySelector(".card:not([hidden])")?.textContent.includes("texts")`)
	if card := evaluate[string](b, `document.querySelector(".card").textContent`); strings.Contains(card, "false") {
		t.Errorf("card %q", card)
	}
	if evaluate[bool](b, `window.hacked !== undefined`) {
		t.Error("a text was taken for markup")
	}

	// An exported page has the texts of its rows.
	b.do(chromedp.Navigate(b.export(x, nil, []int{0}) + "#/dimension/0"))
	b.wait(`document.querySelector("main .values")?.textContent.includes("common subjecta")`)
	b.do(chromedp.SendKeys(chromedp.CSS(search), "common"))
	b.wait(`document.querySelector("[role=option]")?.textContent.includes("common subjecta")`)
}
