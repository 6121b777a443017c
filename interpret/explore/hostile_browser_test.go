package explore

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"overcomplete/interpret"
	"overcomplete/testonly"
)

// Texts, ids, columns, labels and the name of a model never run or show as HTML. This holds for pages of the server,
// whose policy would report a violation, and for saved pages. A text of 10 MB is shown, too.
func TestBrowserHostileModel(t *testing.T) {
	b := openBrowser(t)
	const hostile = "\x1b[2J\u202e\u2067<img src=x onerror=hacked=1>\"'><script>hacked=1</script>&lt;svg onload=hacked=1&gt;javascript:hacked=1 </style>{{hacked=1}}"
	m := testTopics()
	texts := m.Codes.Texts
	for i := range texts.Text {
		m.Codes.IDs[i] = fmt.Sprint(i, hostile)
		texts.Text[i] = hostile + " " + texts.Text[i]
		for c := range texts.Columns {
			texts.Columns[c].Values[i] = fmt.Sprint(i%3, hostile)
		}
	}
	texts.Text[0] = strings.Repeat(hostile, 10<<20/len(hostile))
	m.Codes.IDs[2], m.Codes.IDs[3] = "constructor", "__proto__" // properties of all objects of JavaScript
	texts.Columns[0].Name = hostile
	file := t.TempDir() + "/labels.json"
	x := newWith(t, m, hostile, Options{Labels: file, CheckModel: func() error { return nil }})
	for _, label := range []interpret.Label{{ID: 3, Name: "</script><img src=x onerror=hacked=1>\u202e", Note: strings.TrimPrefix(hostile, "\x1b")}, {ID: 5, Name: "<b onclick=hacked=1>five", Topic: true, Proposed: true}, {ID: 6, Name: "\u200b", Topic: true}} {
		testonly.Must(t, x.setLabel(t.Context(), label))
	}
	b.do(chromedp.Navigate(b.serve(x)))
	b.wait(`typeof shown === "number" && shown > 0 && !document.getElementById("main").ariaBusy`)
	clean := func(page string) {
		t.Helper()
		if found := evaluate[string](b, `String(typeof hacked) + document.querySelectorAll("main img, main script, main style, main iframe, main object, main form[action], main [onclick], main [onerror], main a[href^='javascript:']").length`); found != "undefined0" {
			t.Errorf("%s: %s", page, found)
		}
	}
	clean("/")
	word := url.PathEscape(m.Codes.IDs[1])
	pages := []string{"#/dimension/3", "#/dimension/0", "#/topic/5", "#/map", "#/rows", "#/query/common", "#/query/" + url.PathEscape(hostile), "#/word/" + word,
		"#/word/" + url.PathEscape(m.Codes.IDs[0]), "#/compare/" + word + "/" + url.PathEscape(m.Codes.IDs[2]), "#/" + url.PathEscape(hostile), "#/query/x?steer=" + url.PathEscape(hostile)}
	for _, page := range pages {
		b.visit(page)
		clean(page)
		if found := evaluate[string](b, `painted(pictureOf(document.getElementById("main"))).then(() => "", String)`); found != "" {
			t.Errorf("the picture of %s: %s", page, found)
		}
	}
	b.wait(`topicName({ id: 6 }) === "U+200B"`) // an invisible label
	b.do(chromedp.Navigate(b.export(x, []string{m.Codes.IDs[1]}, []int{3})))
	b.wait(`typeof shown === "number" && shown > 0`)
	clean("the saved page")
	for _, id := range m.Codes.IDs[2:4] {
		evaluate[chromedp.Void](b, `Object.assign(document.querySelector(%s), { value: %s }).dispatchEvent(new Event("input"))`, quote(search), quote(id))
		b.wait(`[...document.querySelectorAll("[role=option]")].some((e) => e.textContent.startsWith(%s))`, quote(id+" \x1b"))
	}
	t.Logf("cases: %d", len(pages)+2)
}
