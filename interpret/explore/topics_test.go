package explore

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// Exceptional rows of testTopics.
const (
	emptyRow    = 1
	topiclessOf = 50
	outlier     = 77
	copyOf      = 199
	copied      = 200
)

// testTopics returns testTexts with two topics of two themes each. Row i has theme i%4, and a small cosine with the
// next theme. Five more dimensions have small values and the longest atoms.
func testTopics() *model.Model {
	const dim, themes = 300, 4
	m := testTexts()
	d := model.Dictionary{Dim: dim, Themes: make([]float32, themes*dim)}
	for k := range testAtoms {
		atom := make([]float32, dim)
		for l, v := range m.Dictionary.Atom(k) {
			atom[l] = 1e-8 * v
		}
		d.Atoms = append(d.Atoms, atom...)
	}
	for theme := range themes + 1 {
		atom := make([]float32, dim)
		atom[dim-1-theme] = 1
		d.Atoms = append(d.Atoms, atom...)
		if theme < themes {
			copy(d.Themes[theme*dim:], atom)
		}
	}
	m.Dictionary = d
	m.Info.Training.Input.Dim, m.Info.Encoding.Input.Dim = dim, dim
	h := m.Info.Training.Recipe.(model.Paper)
	h.Atoms += themes + 1
	m.Info.Training.Recipe = h
	m.Info.Training.Themes = &model.Themes{Topics: 2, Splits: []int32{2, 1, 3}} // themes 0 and 1 are topic 5, the others 6
	codes := vectors.CSR{Cols: h.Atoms, Ptr: []int64{0}}
	for i := range m.Codes.Rows {
		from, cosine := i, 0.5+0.4*float64(i)/testWords
		switch i {
		case outlier:
			cosine = 0.1
		case copied:
			from = copyOf
		}
		index, value := m.Codes.Row(from)
		if i != emptyRow && i != topiclessOf {
			var cosines [themes + 1]float64
			cosines[i%themes], cosines[(i+1)%themes] = cosine, cosine/4
			cosines[themes] = math.Sqrt(1 - cosine*cosine*17/16)
			for k, c := range cosines {
				if c != 0 {
					index, value = append(index, int32(testAtoms+k)), append(value, float32(0.001*c))
				}
			}
		}
		codes.AppendRow(index, value)
	}
	m.Codes.CSR = codes
	m.Codes.Texts.Columns[0].Values = slices.Clone(m.Codes.Texts.Columns[0].Values)
	m.Codes.Texts.Columns = append(m.Codes.Texts.Columns, vectors.Column{Name: "day <b>"})
	for i := range m.Codes.Rows {
		m.Codes.Texts.Columns[0].Values[i] = []string{"low", "high"}[i%4/2] // equal to the topics
		if i%10 == 0 {
			m.Codes.Texts.Columns[0].Values[i] = "low"
		}
		m.Codes.Texts.Columns[2].Values = append(m.Codes.Texts.Columns[2].Values, testDay(i))
		if strings.Contains(m.Codes.Texts.Text[i], "common") {
			m.Codes.Texts.Text[i] += " theme" + string(rune('a'+i%themes))
		}
	}
	return m
}

// testDay returns the date of row i of testTopics. Dates of topic 5 are from all of 2024, dates of topic 6 from its
// first half. Row 0 has an old date and row 8 has none.
func testDay(i int) string {
	switch {
	case i == 0:
		return "1066-10-14"
	case i == 8:
		return ""
	}
	return time.Date(2024, 1, 1+i/(1+i%4/2), 23, 0, 0, 0, time.FixedZone("", -5*60*60)).Format(time.RFC3339)
}

// A column of dates is counted over time for each topic and theme, as [topics.Table.OverTime] does.
func TestCourses(t *testing.T) {
	m := testTopics()
	x := newExplorer(t, m, "test")
	got := answered[struct {
		Columns []breakdown
		Courses []course
	}](t, x.Handler(""), "/data/topics")
	table, err := topics.New(t.Context(), m, x.index, 2)
	testonly.Must(t, err)
	testonly.Must(t, table.OverTime(m.Codes.Texts.Columns[2].Values, ""))
	if len(got.Courses) != 1 || slices.ContainsFunc(got.Columns, func(b breakdown) bool { return b.Name == "day <b>" }) {
		t.Fatalf("%d courses, columns %+v", len(got.Courses), got.Columns)
	}
	c := got.Courses[0]
	if c.Name != "day <b>" || c.By != "week" || !slices.Equal(c.Periods, table.Periods) || len(c.Topics) != len(table.Topics) || len(c.Subtopics) != len(table.Subtopics) {
		t.Errorf("%+v", c)
	}
	for j, topic := range slices.Concat(table.Topics, table.Subtopics) {
		for p, v := range topic.Values {
			if n := slices.Concat(c.Topics, c.Subtopics)[j][p]; n != v.Count {
				t.Errorf("topic %d: %d rows in %s, want %d", topic.ID, n, v.Value, v.Count)
			}
		}
	}
}

func TestTopics(t *testing.T) {
	m := testTopics()
	x := newExplorer(t, m, "test")
	handler := x.Handler("")
	type listed struct {
		ID, Count int
		Label     string
		Examples  []struct{ Word, Text string }
	}
	got := answered[struct {
		Topics, Subtopics []listed
		Columns           []breakdown
		Blank             int
		Outliers          []neighbour
		Texts             map[string]string
		Rows              any
	}](t, handler, "/data/topics")
	counts := map[int]int{7: 1} // other
	for i := range testWords {
		if i != emptyRow && i != topiclessOf {
			counts[5+i%4/2]++
		}
	}
	if len(got.Topics) != 3 || len(got.Subtopics) != 4 || got.Blank != 1 || got.Rows != nil {
		t.Fatalf("%+v", got)
	}
	for _, topic := range got.Topics {
		if topic.Count != counts[topic.ID] || topic.Label == "" {
			t.Errorf("topic %+v, want %d rows", topic, counts[topic.ID])
		}
		for _, e := range topic.Examples {
			if e.Text == "" || len(e.Text) > 4*listedText {
				t.Errorf("example %+v", e)
			}
		}
	}
	// The column that agrees with the topics comes first.
	low, all := 0, 0
	for i, value := range m.Codes.Texts.Columns[0].Values {
		if value == "low" {
			all++
			if i%4/2 == 0 && i != emptyRow && i != topiclessOf {
				low++
			}
		}
	}
	c := got.Columns[0]
	i := slices.IndexFunc(got.Topics, func(t listed) bool { return t.ID == 5 })
	if c.Name != "label" || c.All[0].Value != "low" || c.All[0].Count != all || c.Topics[i][0].Count != low || math.Abs(c.Topics[i][0].Share-float64(low)/float64(counts[5])) > 1e-12 {
		t.Errorf("column %+v, want %d of all and %d of topic 5", c, all, low)
	}
	words := m.Codes.IDs
	if got.Outliers[0].Word != words[outlier] || math.Abs(got.Outliers[0].Cosine-0.1) > 1e-6 || len(got.Outliers) != unusualRows {
		t.Errorf("outliers %+v", got.Outliers)
	}
	duplicates := answered[duplicatesAnswer](t, handler, "/data/duplicates")
	if duplicates.Repeated != 1 || len(duplicates.Pairs) != 1 || duplicates.Pairs[0].Words != [2]string{words[copyOf], words[copied]} || math.Abs(duplicates.Pairs[0].Cosine-1) > 1e-6 || len(duplicates.Texts) != 2 {
		t.Errorf("near-duplicates: %+v", duplicates)
	}

	// A search counts the texts with all words by topic.
	query := answered[queryAnswer](t, handler, "/data/query?query=subjecta")
	found := map[topics.ID]int{}
	for i, text := range m.Codes.Texts.Text {
		if slices.Contains(strings.Fields(text), "subjecta") {
			found[x.topics().table.Rows[i]]++
		}
	}
	if len(query.Topics) != len(found) || query.Total <= 50 || len(query.Of) != len(query.Words) {
		t.Errorf("%d texts in %v, want %v", query.Total, query.Topics, found)
	}
	for i, f := range query.Topics {
		if f.Texts != found[f.Topic] || i > 0 && f.Texts > query.Topics[i-1].Texts {
			t.Errorf("found %+v, want %v", query.Topics, found)
		}
	}
	for i, id := range query.Words {
		row, _ := x.index.Row(id)
		if want := topics.ID(row % 4); query.Of[i] != want && row != topiclessOf {
			t.Errorf("row %d is of %d, want %d", row, query.Of[i], want)
		}
	}

	// The typical rows of a theme.
	theme := answered[typicalAnswer](t, handler, "/data/topic?topic=3")
	if len(theme.Top) != typicalRows || slices.ContainsFunc(theme.Top, func(e topics.Example) bool { return e.Row%4 != 3 }) || theme.Rows < typicalRows || len(theme.Matching) == 0 {
		t.Errorf("theme 3: %+v", theme)
	}
	for _, target := range []string{"/data/topic?topic=4", "/data/topic?topic=x", "/data/topic?topic=-1", "/data/topics?topics=3"} {
		if w := get(handler, target); w.Code != 404 && w.Code != 400 {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	for target, want := range map[string]int{"bank": 0, words[1]: -1, words[2]: 2, words[3]: 3, words[topiclessOf]: 7} {
		topic := answered[struct{ Topic *int }](t, handler, "/data/word?word="+url.QueryEscape(target)).Topic
		if want < 0 != (topic == nil) || want >= 0 && *topic != want {
			t.Errorf("the topic of %s: %v, want %d", target, topic, want)
		}
	}

	// On the map, regions are topics.
	rows := x.rowMap()
	for i, row := range rows.Rows {
		want := topics.ID(row % 4)
		if row == topiclessOf {
			want = 7
		}
		r := rows.Region[i]
		if row == emptyRow {
			if r != -1 {
				t.Errorf("the empty row is in region %d", r)
			}
		} else if *rows.Regions[r].Topic != want || row != topiclessOf && *rows.Regions[rows.Regions[r].Parent].Topic != 5+want/2 {
			t.Errorf("row %d is in region %+v, want topic %d", row, rows.Regions[r], want)
		}
	}
}

// With Options.Embed, a search also finds texts by meaning, even if no text contains its words.
func TestBrowserMeaning(t *testing.T) {
	b := openBrowser(t)
	m := testTopics()
	failure := error(nil)
	x := newWith(t, m, "test", Options{Embed: func(of *model.Model, text string) (interpret.Code, error) {
		index, value := of.Codes.Row(copied)
		return interpret.Code{Index: index, Value: value}, failure
	}})
	base := b.serve(x)
	b.do(chromedp.Navigate(base + "/#/query/zebra"))
	b.wait(`document.querySelector(".lead")?.textContent === " No text has zebra."`)
	b.wait(`document.querySelector(".excerpts a").hash === %s`, quote("#/word/"+m.Codes.IDs[copied]))
	failure = errors.New("it ended")
	b.do(chromedp.Navigate(base + "/#/query/common"))
	b.wait(`document.querySelector("[role=alert]")?.textContent === "it ended" && document.querySelectorAll(".excerpts li").length > 1`)
}

// Links lead from the topics to a theme, to a text, and to unusual texts.
func TestBrowserTopics(t *testing.T) {
	b := openBrowser(t)
	m := testTopics()
	x := newWith(t, m, "test", Options{Labels: filepath.Join(t.TempDir(), "labels.json"), CheckModel: func() error { return nil }})
	b.do(chromedp.Navigate(b.serve(x)))
	b.wait(`document.querySelectorAll(".topics li").length === 3`)
	b.waitMap(len(x.rowMap().Rows))
	table := x.topics()
	b.wait(`document.querySelector("h1").textContent === "Topics of 300 texts" && document.querySelector(".aside ul").textContent.startsWith("1 text almost equal to another")`)
	// The table lists the tree.
	lines := "\ufeffid,parent,label,share,texts\r\n"
	for _, topic := range slices.Concat(table.Topics, table.Subtopics) {
		parent := ""
		if topic.Parent != topics.None {
			parent = fmt.Sprint(topic.Parent)
		}
		label := topic.Label
		if strings.Contains(label, ",") {
			label = `"` + label + `"`
		}
		lines += fmt.Sprintf("%d,%s,%s,%.5f,%d\r\n", topic.ID, parent, label, topic.Share, topic.Count)
	}
	evaluate[chromedp.Void](b, `saved = ""; tableOf(document.getElementById("main")).then((text) => (saved = text)); 0`)
	b.wait(`saved === %s`, quote(lines))
	// A topic unfolds in place, by keyboard, and stays so.
	b.do(chromedp.Focus(".topics summary"), chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelectorAll(".topics .topics li").length === 2 && document.querySelector(".topics .topics a.name").hash === "#/topic/%d"`, table.table.Children(table.Topics[0].ID)[0].ID)
	evaluate[chromedp.Void](b, `document.querySelector(".topics a.name").click()`)
	b.wait(`document.querySelector(".title")?.textContent === %s && document.querySelectorAll("main .excerpts li").length === 8`, quote(table.Topics[0].Label))
	b.wait(`document.documentElement.scrollHeight < 3 * innerHeight`)
	b.wait(`document.querySelector("main svg[role=img]").ariaLabel.startsWith("texts by week: from 1066-10-08 to 2024-10-21, most in ")`)
	b.do(chromedp.Focus("main details summary"), chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelector("main details").innerText.startsWith("As a list\n1066-10-08\n1\n… 2024-01-01\n")`)
	evaluate[chromedp.Void](b, `document.querySelector(".parts a.name").click()`)
	b.wait(`document.querySelector("h1")?.textContent === "subtopic"`)
	evaluate[chromedp.Void](b, `document.querySelector(".excerpts a").click()`)
	b.wait(`document.querySelector(".aside a.name")?.hash === "#/topic/%d"`, table.Topics[0].ID)
	b.do(chromedp.Click("#brand"))
	b.wait(`document.querySelectorAll(".topics .topics li").length === 2`)
	evaluate[chromedp.Void](b, `go("unusual")`)
	b.waitHeading("Unusual texts")
	b.wait(`document.querySelector(".pair a").hash === %s`, quote(fmt.Sprint("#/word/", m.Codes.IDs[copyOf])))
	// A label shows on the topic's page, in the list and on the map.
	evaluate[chromedp.Void](b, `go("topic", 5)`)
	b.wait(`document.querySelector(".edit")`)
	evaluate[chromedp.Void](b, `document.querySelector(".edit").click(); document.querySelector(".editor input").value = "<b>Mine</b>"; document.querySelector(".editor button").click()`)
	b.wait(`document.querySelector(".title")?.textContent === "<b>Mine</b>"`)
	evaluate[chromedp.Void](b, `location.hash = "#/"`)
	b.wait(`[...document.querySelectorAll(".topics a.name")].some((a) => a.hash === "#/topic/5" && a.textContent === "<b>Mine</b>")`)
	b.wait(`[...document.querySelectorAll(".map text")].some((text) => text.textContent === "<b>Mine</b>")`)
	evaluate[chromedp.Void](b, `location.hash = "#/rows"`)
	b.wait(`document.title.startsWith("map of") && document.querySelectorAll(".beside li button").length === 2`)
	// An exported page contains the tree and the map.
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(b.export(x, []string{"bank"}, nil)))
	b.wait(`document.querySelectorAll(".topics li").length === 3`)
	b.waitMap(len(x.rowMap().Rows))
	b.wait(`document.querySelector('.aside a[href="#/word/bank"]')`)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(b.export(x, nil, nil)))
	b.wait(`document.querySelectorAll(".topics li").length === 3 && !document.getElementById("search").hidden`)
	// It searches in the beginnings of its texts, and shows each. More than a quarter of them contain "common".
	counts := map[topics.ID]int{}
	total, first := 0, ""
	for i, text := range m.Codes.Texts.Text {
		if words := strings.Fields(text); slices.Contains(words, "subjecta") && slices.Contains(words, "common") && i != emptyRow {
			total++
			counts[x.topics().table.Rows[i]]++
		}
	}
	b.visit("#/query/common%20SUBJECTA%20zebra")
	b.wait(`document.querySelector(".lead").textContent.startsWith("%d texts have subjecta") && document.querySelector(".lead").textContent.endsWith(" No text has zebra.")`, total)
	for id, n := range counts {
		b.wait(`document.querySelector(".aside a[href='#/topic/%d']").closest("li").querySelector(".value").textContent === "%d"`, id, n)
	}
	b.wait(`[...document.querySelectorAll(".excerpts li")].every((li) => li.querySelectorAll("mark").length >= 1 && li.querySelector(".about a.name"))`)
	first = evaluate[string](b, `decodeURIComponent(document.querySelector(".excerpts a").hash.split("/")[2])`)
	b.do(chromedp.Click(".excerpts a"))
	b.wait(`document.querySelector(".body")?.textContent === %s && document.querySelector(".aside a.name")`, quote(m.Codes.Texts.Text[slices.Index(m.Codes.IDs, first)]))
	b.visit("#/query/zebra")
	b.waitHeading("Not found")
	b.visit("#/")
	evaluate[chromedp.Void](b, `document.querySelector(".topics summary").click()`)
	b.wait(`document.querySelector(".topics .topics a.name")`)
	evaluate[chromedp.Void](b, `document.querySelector(".topics .topics a.name").click()`)
	b.wait(`location.hash.startsWith("#/topic/") && document.querySelectorAll("main .excerpts li").length === 8`)
	evaluate[chromedp.Void](b, `go("topic", 5)`)
	b.wait(`document.querySelector(".title")?.textContent === "<b>Mine</b>" && !document.querySelector(".edit")`)
	evaluate[chromedp.Void](b, `go("unusual")`)
	b.waitHeading("Unusual texts")
	evaluate[chromedp.Void](b, `go("rows")`)
	b.wait(`document.querySelectorAll(".beside li button").length === 2`)
}

// The first page changes the stop words, and shows the new labels.
func TestBrowserStopWords(t *testing.T) {
	b := openBrowser(t)
	x := newWith(t, testTopics(), "test", Options{Labels: filepath.Join(t.TempDir(), "labels.json"), CheckModel: func() error { return nil }})
	word := x.topics().Topics[0].Words[0]
	b.do(chromedp.Navigate(b.serve(x)))
	b.wait(`document.querySelector(".topics a.name")?.textContent.split(", ")[0] === %s`, quote(word))
	b.do(chromedp.Click("details.stop:last-of-type > summary"), chromedp.Focus(".stop .stop summary"), chromedp.KeyEvent(kb.Enter), chromedp.SendKeys(".stop textarea", strings.ToUpper(word)+"\n"), chromedp.Click(".stop button"))
	b.wait(`document.querySelector(".stop .stop summary")?.textContent === "Words that labels leave out (1)"`)
	b.wait(`document.querySelector(".topics a.name") && !document.querySelector(".topics").textContent.split(/[\s,·]+/).includes(%s)`, quote(word))
	evaluate[chromedp.Void](b, `document.querySelector(".stop textarea").value = "a".repeat(101); document.querySelector(".stop button").click()`)
	b.wait(`document.querySelector(".stop [role=alert]").textContent.startsWith("line 1: the stop word is too long")`)
}

// A comparison row by row finds the same near-duplicates.
func TestNearDuplicates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := &model.Model{Codes: &vectors.Sparse{Texts: new(vectors.Texts), CSR: vectors.CSR{Cols: 9, Ptr: []int64{0}}}}
	for i := range 600 {
		var index []int32
		var value []float32
		for k := range m.Codes.Cols {
			if rng.IntN(3) == 0 {
				index, value = append(index, int32(k)), append(value, float32(rng.IntN(5)-2)+0.5) // ties
			}
		}
		m.Codes.AppendRow(index, value)
		m.Codes.IDs = append(m.Codes.IDs, fmt.Sprint(i))
		m.Codes.Texts.Add([]string{"", "a text"}[min(rng.IntN(9), 1)], nil)
	}
	x := &Explorer{model: m, index: interpret.NewIndex(m.Codes)}
	want, repeated := []rowPair{}, 0
	alike := map[string][]int{}
	for i := range m.Codes.Rows {
		weights := x.index.Code(i).Weights()
		var key []int
		for _, w := range weights[:min(3, len(weights))] {
			key = append(key, w.Dimension)
		}
		slices.Sort(key)
		if len(key) == 0 || m.Codes.Texts.Blank(i) {
			continue
		}
		best, most := -1, duplicateCosine
		for _, other := range alike[fmt.Sprint(key)] {
			a, b := x.index.Code(other), x.index.Code(i)
			product := 0.0
			for j, k := range a.Index {
				product += float64(a.Value[j]) * float64(b.At(int(k)))
			}
			if cosine := product / a.Norm() / b.Norm(); cosine >= most {
				best, most = other, cosine
			}
		}
		if list := alike[fmt.Sprint(key)]; len(list) < 20 {
			alike[fmt.Sprint(key)] = append(list, i)
		}
		if best >= 0 {
			repeated++
			want = append(want, rowPair{[2]string{fmt.Sprint(best), fmt.Sprint(i)}, min(most, 1)})
		}
	}
	if repeated <= unusualRows {
		t.Fatalf("only %d near-duplicates", repeated)
	}
	if got := x.nearDuplicates(); got.Repeated != repeated || !reflect.DeepEqual(got.Pairs, want[:unusualRows]) {
		t.Errorf("%d near-duplicates, want %d: %v, want %v", got.Repeated, repeated, got.Pairs, want[:unusualRows])
	}
}

// The dimension of empty texts doesn't lead the list of coherent dimensions.
func TestEmptyTextsAreNotCoherent(t *testing.T) {
	m := testModel()
	m.Codes.Texts = &vectors.Texts{Text: make([]string, len(m.Codes.IDs))}
	for i := range m.Codes.IDs {
		if index, _ := m.Codes.Row(i); !slices.Contains(index, 0) {
			m.Codes.Texts.Text[i] = "river bank"
		}
	}
	dimensions := newExplorer(t, m, "texts").summary.Dimensions
	if dimensions[0].Coherence != nil || dimensions[1].Coherence == nil {
		t.Errorf("coherence %v of empty texts, %v of others", dimensions[0].Coherence, dimensions[1].Coherence)
	}
}
