package explore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"overcomplete/internal/text"
	"overcomplete/model"
	"overcomplete/vectors"
	_ "overcomplete/vectors/columnar"
)

// testTexts returns testModel with texts. The ids of the texts are the words.
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
	text[1] = "" // named by its id
	text[2] = "שלום e\u0301 \u202eright to left"
	text[3] = strings.Repeat("long ", 10000)
	m.Info.Encoding.SetKind(m.Codes.Texts)
	return m
}

// Pages search texts, show them unchanged, and address them by their ids.
func TestBrowserTexts(t *testing.T) {
	b := openBrowser(t)
	m := testTexts()
	x := newExplorer(t, m, "test")
	base := b.serve(x)
	b.do(chromedp.Navigate(base))
	b.waitHeading("test")
	b.wait(`document.querySelector(".lead").textContent === "300 texts in 40 sparse dimensions."`)

	// A search lists texts with highlighted words, and matching dimensions.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "SECOND  img zebra"+kb.Enter))
	b.waitHeading("SECOND  img zebra")
	b.wait(`document.querySelector(".lead").textContent === "1 text has all of second, img. No text has zebra."`)
	b.wait(`[...document.querySelectorAll(".excerpts mark")].map((e) => e.textContent).join() === "second,img"`)
	b.do(chromedp.Click(chromedp.CSS(".excerpts a")))
	b.wait(`location.hash === "#/word/bank" && document.activeElement.matches("h1")`) // the heading has the focus
	b.wait(`[...document.querySelectorAll("main .facts div")].map((e) => e.innerText.replace("\n", "=")).join(" ") === "label=0 <b>=– row=1 of 300"`)
	b.wait(`document.querySelector(".body").textContent === %s`, quote(m.Codes.Texts.Text[0]))
	b.do(chromedp.SendKeys(chromedp.CSS(search), "common subjecta"+kb.Enter))
	b.waitHeading("common subjecta")
	total := x.index.Search("common subjecta", 1).Total
	b.wait(`%d > 1 && document.querySelector(".lead").textContent.startsWith("%[1]d texts have ")`, total)
	b.wait(`document.querySelector(".aside a.name").hash === "#/dimension/0"`)

	// A long text is clipped initially.
	b.do(chromedp.Navigate(base + "/#/word/shore"))
	b.wait(`document.querySelector(".body")?.clientHeight < 400 && !document.querySelector(".more").hidden`)
	b.do(chromedp.Click(chromedp.CSS(".more")))
	b.wait(`document.querySelector(".body").clientHeight > 1000`)

	// Completions show the text beside the id.
	b.do(chromedp.SendKeys(chromedp.CSS(search), "first line"))
	b.wait(`document.querySelector("[role=option]:nth-child(2)")?.textContent.startsWith("bank The first line, the second <img") && document.querySelector("[role=option]").textContent === "search for first line"`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.waitHeading("text bank")

	// Keywords name a dimension.
	b.do(chromedp.Navigate(base + "/#/dimension/0"))
	b.wait(`document.querySelector("main .title")?.textContent.includes("subjecta")`)
	b.wait(`!document.querySelector("main .excerpts a").textContent.startsWith("w")`) // a text, not an id
	b.do(chromedp.Navigate(base + "/#/compare/bank/river"))
	b.wait(`document.querySelector("h1")?.textContent.includes("onerror")`)
	b.do(chromedp.Navigate(base + "/#/map/0"))
	b.wait(`document.querySelector(".card:not([hidden])")?.textContent.includes("texts") && !document.querySelector(".card").textContent.includes("false")`)

	// An exported page contains the texts of its rows.
	b.do(chromedp.Navigate(b.export(x, nil, []int{0}) + "#/dimension/0"))
	b.wait(`document.querySelector("main .excerpts")?.textContent.includes("common subjecta")`)
	b.do(chromedp.SendKeys(chromedp.CSS(search), "common"))
	b.wait(`[...document.querySelectorAll("[role=option]")].some((o) => o.textContent.includes("common subjecta "))`)
}

// An exported page finds the same texts in the same order as the server, and splits texts into the same words.
func TestBrowserSearchOfExport(t *testing.T) {
	m := testTopics()
	rng := rand.New(rand.NewPCG(1, 0))
	words := strings.Fields("play player players playful don't bus buses 日本語 学校 กินข้าว 👍🏽 👩‍👧 été naïve of of of of of the the the the the the a b3 مدرسة x")
	clear(m.Codes.Texts.Text)
	for _, i := range newExplorer(t, m, "texts").rowMap().Rows { // rows off the map aren't in the export
		var text []string
		for range 5 + rng.IntN(40) {
			text = append(text, words[int(float64(len(words))*math.Pow(rng.Float64(), 1.5))])
		}
		m.Codes.Texts.Text[i] = strings.Join(text, []string{" ", ", ", "\n>> "}[i%3])
	}
	x := newExplorer(t, m, "texts")
	queries := []string{"play", "pla", "playfu bus", "of the player", "the of", "本語", "語学 buses", "don’t BUSES zebra", "naïve été", "👍🏽 👩‍👧", "of", "zebra", "players the the bus player of", "!!"}
	const ask = `unpack().then(() => Promise.all(%s.map((query) => ask("query", "query", query).then(({ words, total, matched, unknown, topics, of }) => JSON.stringify([words, total, matched, unknown, topics, of]), () => "nothing"))))`
	b := openBrowser(t)
	b.do(chromedp.Navigate(b.serve(x)))
	b.waitHeading("Topics of 300 texts")
	want := evaluate[[]string](b, ask, quote(queries))
	b.do(chromedp.Navigate(b.export(x, nil, nil)))
	b.waitHeading("Topics of 300 texts")
	for i, got := range evaluate[[]string](b, ask, quote(queries)) {
		if got != want[i] {
			t.Errorf("%q: %s\nwant %s", queries[i], got, want[i])
		}
	}
	if got := evaluate[string](b, `ask("query", "query", "play").then(({ texts }) => Object.values(texts).join())`); strings.Contains(got, ">") {
		t.Errorf("excerpts with marks of quotation: %s", got)
	}
	texts := []string{"It's 3.5 O'Neill's, rock'n'roll! don’t 'quote' dogs' ''", "naïve e\u0301te\u0301 مَرحبا می\u200cخواهم", "日本語 と ロー 犬 and 猫が好き2 กินข้าว", "<b>x</b>\x1b[31m → _ wow👍🏽🙂🙂! 👩‍👧ok"}
	for i, got := range evaluate[[]string](b, `%s.map((text) => tokenize(text).join("|"))`, quote(texts)) {
		if want := strings.Join(text.Tokenize(texts[i]), "|"); got != want {
			t.Errorf("%q: %s, want %s", texts[i], got, want)
		}
	}
}
