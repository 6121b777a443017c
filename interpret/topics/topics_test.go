package topics

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/internal/cluster"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
	"overcomplete/vectors"
)

// subjects lists words of the texts of each topic.
var subjects = [][]string{{"rain", "cloud", "storm"}, {"bank", "money", "loan"}, {"cat", "purr", "whisker"}}

// testModel returns a model of texts with seven themes in four topics. Row i has the topic i%3, and the theme
// 2·topic or 2·topic+1. The last topic has no rows. The last two texts are blank, and the text before them has
// a code of zeros.
func testModel() *model.Model {
	rng := rand.New(rand.NewPCG(1, 2))
	s := &vectors.Sparse{Texts: &vectors.Texts{Columns: []vectors.Column{{Name: "kind"}}}, CSR: vectors.CSR{Cols: 7}}
	for i := range 93 {
		s.IDs = append(s.IDs, fmt.Sprintf("d%d", i))
		text := fmt.Sprintf("%s and %s %s", subjects[i%3][i%2], subjects[i%3][2], strings.Repeat("x", 1+i))
		theme := int32(2*(i%3) + i/3%2)
		switch {
		case i >= 91:
			text = " \n"
			s.AppendRow([]int32{1}, []float32{1})
		case i == 90:
			s.AppendRow(nil, nil)
		case i == 0: // theme 0 is nearest, and then themes of two other topics
			s.AppendRow([]int32{0, 3, 5}, []float32{0.62, 0.5, 0.6})
		default:
			s.AppendRow([]int32{theme}, []float32{1 + rng.Float32()})
		}
		s.Texts.Add(text, []string{[]string{"wet", "dry", ""}[i%3]})
	}
	m := &model.Model{Codes: s, Dictionary: model.Dictionary{Dim: 7, Atoms: make([]float32, 49), Themes: make([]float32, 49)}}
	for k := range 7 {
		m.Dictionary.Atoms[8*k], m.Dictionary.Themes[8*k] = 2, 1
	}
	m.Info.Training.Themes = &model.Themes{Topics: 4, Splits: []int32{2, 4, 6, 1, 3, 5}}
	return m
}

func tableOf(t *testing.T, m *model.Model, number int) *Table {
	t.Helper()
	table, err := New(t.Context(), m, interpret.NewIndex(m.Codes), number)
	testonly.Must(t, err)
	return table
}

func TestTable(t *testing.T) {
	m := testModel()
	s := m.Codes
	table := tableOf(t, m, 4)
	if len(table.Topics) != 4 || len(table.Subtopics) != 6 || table.Blank != 2 {
		t.Fatalf("%d topics, %d subtopics, %d blank", len(table.Topics), len(table.Subtopics), table.Blank)
	}
	for i, id := range table.Rows {
		if want := ID(10 + i%3); i > 90 && id != None || i == 90 && id != 13 || i < 90 && id != want {
			t.Errorf("row %d has the topic %v", i, id)
		}
	}
	if other := table.Topics[3]; other.ID != 13 || other.Label != "other" || other.Count != 1 || len(other.Examples) != 1 || len(table.Children(13)) != 0 {
		t.Errorf("%+v", other)
	}
	for _, topic := range table.Topics[:3] {
		if topic.Count != 30 || topic.Share != 30./93 || topic.Parent != None || !strings.Contains(topic.Label, subjects[topic.ID-10][2]) {
			t.Errorf("%+v", topic)
		}
		if n := len(table.Children(topic.ID)); n != 2 {
			t.Errorf("topic %d has %d subtopics", topic.ID, n)
		}
		if len(topic.Examples) != 3 {
			t.Fatalf("%d examples", len(topic.Examples))
		}
		for _, e := range topic.Examples { // the length of texts increases with their row
			if ID(10+e.Row%3) != topic.ID || e.Row < 20 || e.Row > 70 || e.Text != s.Texts.Text[e.Row] || e.Word != s.IDs[e.Row] {
				t.Errorf("the example %+v of topic %d", e, topic.ID)
			}
		}
	}
	for _, theme := range table.Subtopics {
		if theme.Parent != 10+theme.ID/2 || theme.Count != 15 || len(theme.Examples) != 3 || theme.Examples[0].Row%6 != int(theme.ID)/2+3*(int(theme.ID)%2) {
			t.Errorf("%+v", theme)
		}
	}
	table.AssignDimensions(&m.Codes.CSR)
	if want := []ID{0, 1, 2, 3, 4, 5, None}; !slices.Equal(table.Dimensions, want) {
		t.Errorf("themes of dimensions: %v, want %v", table.Dimensions, want)
	}
	table.Rename(interpret.Labels{{ID: 5, Name: "a dimension"}, {ID: 4, Name: "a theme", Topic: true}, {ID: 10, Name: "a topic", Topic: true}})
	for _, topic := range slices.Concat(table.Topics, table.Subtopics) {
		if want := map[ID]string{4: "a theme", 10: "a topic", 13: "other"}[topic.ID]; !strings.HasPrefix(topic.Label, cmp.Or(want, strings.Join(topic.Words, ", "))) { // a number may follow
			t.Errorf("topic %d is called %q", topic.ID, topic.Label)
		}
	}
	table.BreakDown(s.Texts.Columns[0].Values, 1)
	for _, topic := range table.Topics {
		want := []Value{{[]string{"wet", "dry", "", "wet"}[topic.ID-10], topic.Count, 1, false}}
		if topic.ID == 12 { // the value is empty
			want = nil
		}
		if !slices.Equal(topic.Values, want) {
			t.Errorf("values %+v, want %+v", topic.Values, want)
		}
	}
	text, err := json.Marshal(table.Rows[88:])
	if want := "[11,12,13,null,null]"; err != nil || string(text) != want {
		t.Errorf("rows are %s, want %s, error %v", text, want, err)
	}
}

// Rows are counted by topic, theme and period.
func TestOverTime(t *testing.T) {
	m := testModel()
	table := tableOf(t, m, 4)
	column := make([]string, len(table.Rows))
	for i := range column { // topic 10 in March, topic 11 in March and May, topic 12 without dates
		switch i % 3 {
		case 0:
			column[i] = fmt.Sprintf("2024-03-%02dT23:30:00-05:00", 1+i/3)
		case 1:
			column[i] = fmt.Sprintf("2024-%02d-07", 3+i/3%2*2)
		}
	}
	if err := table.OverTime(column, "month"); err != nil || table.By != "month" {
		t.Fatal(table.By, err)
	}
	if want := []Value{{"2024-03", 47, 47. / 93, false}, {"2024-04", 0, 0, false}, {"2024-05", 15, 15. / 93, false}}; !slices.Equal(table.Periods, want) {
		t.Errorf("periods %v, want %v", table.Periods, want)
	}
	for _, topic := range table.Topics[:3] {
		want := [][]Value{{{"2024-03", 30, 1, false}, {"2024-04", 0, 0, false}, {"2024-05", 0, 0, false}}, {{"2024-03", 15, 0.5, false}, {"2024-04", 0, 0, false}, {"2024-05", 15, 0.5, false}}, {{"2024-03", 0, 0, false}, {"2024-04", 0, 0, false}, {"2024-05", 0, 0, false}}}[topic.ID-10]
		if !slices.Equal(topic.Values, want) {
			t.Errorf("topic %d: %v, want %v", topic.ID, topic.Values, want)
		}
		for p := range want {
			sum := 0
			for _, theme := range table.Children(topic.ID) {
				sum += theme.Values[p].Count
			}
			if sum != want[p].Count {
				t.Errorf("themes of topic %d have %d rows in %s, want %d", topic.ID, sum, want[p].Value, want[p].Count)
			}
		}
	}
	if err := table.OverTime(column, ""); err != nil || table.By != "week" || len(table.Periods) != 11 {
		t.Errorf("%d periods of a %s, %v", len(table.Periods), table.By, err)
	}
	column[1] = "9999-12-31"
	if err := table.OverTime(column, ""); err != nil || table.By != "week" || len(table.Periods) != 12 || table.Periods[11] != (Value{"9999-12-27", 1, 1. / 93, true}) {
		t.Errorf("periods %+v, %v", table.Periods, err)
	}
	column[4] = "soon"
	if err := table.OverTime(column, ""); err == nil || !strings.Contains(err.Error(), "row 5") || table.By != "week" {
		t.Errorf("%s, error %v", table.By, err)
	}
}

// The tree is the same for any number of broad topics: a topic keeps its rows and label, its subtopics have the same
// rows, and small branches are subtopics of "other".
func TestTree(t *testing.T) {
	m := testModel()
	type shown struct {
		label string
		rows  []int32
	}
	all := map[ID]shown{}
	for number := 1; number <= 7; number++ {
		table := tableOf(t, m, number)
		rows, labels := 0, map[string]bool{}
		for _, topic := range table.Topics {
			rows += topic.Count
			for _, i := range topic.rows {
				if table.Rows[i] != topic.ID {
					t.Errorf("%d topics: row %d has topic %d, want %d", number, i, table.Rows[i], topic.ID)
				}
			}
		}
		if rows != 91 || len(table.Topics) != min(number, 3)+max(0, number-4)+1 {
			t.Errorf("%d topics: %d topics of %d rows", number, len(table.Topics), rows)
		}
		for _, topic := range slices.Concat(table.Topics, table.Subtopics) {
			now := shown{topic.Label, topic.rows}
			if before, ok := all[topic.ID]; ok && !reflect.DeepEqual(now, before) {
				t.Errorf("%d topics: topic %d is %v, before %v", number, topic.ID, now, before)
			}
			all[topic.ID] = now
			if labels[topic.Label] {
				t.Errorf("%d topics: two are called %q", number, topic.Label)
			}
			labels[topic.Label] = true
			var below []int32
			for _, sub := range table.Children(topic.ID) {
				below = append(below, sub.rows...)
			}
			slices.Sort(below)
			if want := slices.Sorted(slices.Values(topic.rows)); len(below) > 0 && !slices.Equal(below, want) {
				t.Errorf("%d topics: subtopics of %d have rows %d, want %d", number, topic.ID, below, want)
			}
		}
	}
	for i := range 90 { // topic 12 keeps five rows, of 1,091 in all topics
		if i%3 == 2 && i > 14 {
			m.Codes.Index[m.Codes.Ptr[i]] = 0
		}
	}
	for range 1000 {
		m.Codes.IDs = append(m.Codes.IDs, "")
		m.Codes.Texts.Add("rain", []string{""})
		m.Codes.AppendRow([]int32{2}, []float32{1})
	}
	table := tableOf(t, m, 4)
	if other := table.Topics[len(table.Topics)-1]; len(table.Topics) != 3 || other.ID != 13 || other.Count != 6 || table.Rows[2] != 13 || len(table.Children(13)) != 1 || table.Children(13)[0].Count != 5 {
		t.Errorf("other is %+v, with subtopics %+v", other, table.Children(13))
	}
}

// A tree divides a branch at the splits nearest to the root. Other branches keep their ids.
func TestDivide(t *testing.T) {
	tree := newTree(&model.Themes{Splits: []int32{2, 3, 1}})
	for n, want := range [][]int32{{4}, {6, 5}, {6, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}} {
		if got := tree.divide(tree.root(), n+1); !slices.Equal(got, want) {
			t.Errorf("%d branches: %d, want %d", n+1, got, want)
		}
	}
	tree = newTree(new(model.Themes))
	if got := tree.divide(tree.root(), 2); !slices.Equal(got, []int32{0}) {
		t.Errorf("one theme: %d", got)
	}
}

// A small topic is a part of "other" if few of its texts contain a word of its label. The topic of all texts is called
// "all".
func TestUntelling(t *testing.T) {
	m := testModel()
	for i := range 91 {
		switch {
		case i%3 == 2 && i < 50:
			m.Codes.Index[m.Codes.Ptr[i]] = int32(i / 3 % 2) // 14 rows of branch 9 stay
		case i%3 == 2:
			m.Codes.Texts.Text[i] = fmt.Sprintf("%c%[1]cword%[1]c", 'a'+i%26)
		}
	}
	m.Codes.Texts.Text[50] = "meow"
	for i := range 2 {
		m.Codes.Texts.Text[53+3*i] = "meow"
		table := tableOf(t, m, 3)
		broad := slices.ContainsFunc(table.Topics, func(topic Topic) bool { return topic.ID == 9 })
		if broad != (i == 1) || broad == (len(table.Children(13)) == 1) {
			t.Errorf("a word in %d of 14 texts: %+v", i+2, table.Topics)
		}
	}
	if all := tableOf(t, m, 1).Topics[0]; all.Label != "all" {
		t.Errorf("all texts are called %+v", all)
	}
}

// A model of some of the rows has the same topics for them, although some branches have no rows.
func TestIDsOfPart(t *testing.T) {
	m := testModel()
	var rows []int
	for i := range 91 {
		if i%6 != 3 && i%3 != 2 { // none in themes 1, 4 and 5
			rows = append(rows, i)
		}
	}
	part := *m
	part.Codes = interpret.SelectRows(m.Codes, rows)
	for number := 1; number <= 7; number++ {
		table, whole := tableOf(t, &part, number), tableOf(t, m, number)
		for at, i := range rows {
			if got, want := table.Rows[at], whole.Rows[i]; got != want {
				t.Errorf("%d topics: row %d has topic %d, want %d", number, i, got, want)
			}
		}
		listed := map[ID]bool{}
		for _, topic := range slices.Concat(table.Topics, table.Subtopics) {
			if listed[topic.ID] {
				t.Errorf("%d topics: %d is listed twice", number, topic.ID)
			}
			listed[topic.ID] = true
		}
		for _, theme := range table.ThemeOf {
			if theme != None && !listed[theme] {
				t.Errorf("%d topics: theme %d isn't listed", number, theme)
			}
		}
	}
}

// A row follows the side of a split with the half that has the larger sum of powers.
func TestDescend(t *testing.T) {
	tree := newTree(&model.Themes{Splits: []int32{2, 4, 1, 3}}) // from the root: 0, 1 | 2, 3, 4; then 2, 3 | 4; then 0 | 1; then 2 | 3
	for _, c := range []struct {
		themes []int32
		powers []float32
		want   ID
	}{
		{nil, nil, None},
		{[]int32{3}, []float32{1}, 3},
		{[]int32{0, 1, 2}, []float32{3, 6, 5}, 1},
		{[]int32{0, 1, 2}, []float32{3, 4, 5}, 2},             // sides have sums 7 > 5, but halves 4 < 5
		{[]int32{0, 2, 3, 4}, []float32{4, 2, 3, 1}, 3},       // 2 and 3 together exceed 4
		{[]int32{2, 3, 4}, []float32{2, 3, 4}, 4},             // themes have no halves: 3 < 4
		{[]int32{1, 3, 4}, []float32{1, 1, 1}, 1},             // equal, so the first
		{[]int32{0, 1, 2, 3, 4}, []float32{1, 1, 1, 1, 1}, 2}, // 1 < 2; then equal
	} {
		if got := tree.descend(c.themes, c.powers); got != c.want {
			t.Errorf("themes %d, powers %v: %d, want %d", c.themes, c.powers, got, c.want)
		}
	}
	if got := power(0.25); got != 1./32 {
		t.Errorf("power of 0.25: %v", got)
	}
}

// Examples come from all parts of a large group, the most typical first.
func TestExamplesOfLargeGroup(t *testing.T) {
	s := &vectors.Sparse{CSR: vectors.CSR{Cols: 2}}
	var rows []int32
	for i := range 3 * maxRows {
		s.IDs = append(s.IDs, fmt.Sprint(i))
		s.AppendRow([]int32{int32(min(i/maxRows, 1))}, []float32{1})
		rows = append(rows, int32(i))
	}
	var parts []int
	for _, e := range (&Topic{rows: rows}).Typical(interpret.NewIndex(s), exampleRows, exampleText) {
		parts = append(parts, e.Row/maxRows)
		if e.Word != s.IDs[e.Row] {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(parts, []int{1, 2, 0}) {
		t.Errorf("examples of parts %d, want 1, 2, 0", parts)
	}
}

// Only one of the texts that share a passage of eight words is an example, wherever its lines break.
func TestThreads(t *testing.T) {
	s := &vectors.Sparse{Texts: new(vectors.Texts), CSR: vectors.CSR{Cols: 1}}
	var rows []int32
	for i := range 20 {
		text := "I disagree. > Hate the sin but\n> love the sinner, they say on the third day."
		switch i {
		case 3:
			text = "Hate the sin but love the sinner, they say."
		case 11:
			text = "Hate the sin but love the rain." // seven equal words
		case 17:
			text = "Another text"
		case 18:
			text = "another  text!"
		}
		s.IDs = append(s.IDs, fmt.Sprint(i))
		s.Texts.Add(text, nil)
		s.AppendRow([]int32{0}, []float32{1})
		rows = append(rows, int32(i))
	}
	alike := map[string]int{}
	for _, e := range (&Topic{rows: rows}).Typical(interpret.NewIndex(s), 5, exampleText) {
		alike[strings.ToLower(strings.Trim(e.Text[max(0, len(e.Text)-9):], "."))] = e.Alike
	}
	if want := map[string]int{"they say": 16, "the rain": 0, "ther text": 1}; !maps.Equal(alike, want) {
		t.Errorf("examples %v, want %v", alike, want)
	}
}

// Labels are distinct and not empty for any texts, and for words.
func TestLabels(t *testing.T) {
	kinds := map[string]func(i int) string{
		"no words":    func(int) string { return "?!" },
		"alike":       func(int) string { return "the same text" },
		"repeat none": func(i int) string { return fmt.Sprintf("%c%cword", 'a'+i/10, 'a'+i%10) },
		"emoji":       func(i int) string { return []string{"🙂🙂", "🚗", "👩‍👧"}[i%3] },
		"Hebrew":      func(i int) string { return []string{"גשם ענן", "בנק כסף", "חתול"}[i%3] },
		"Chinese":     func(i int) string { return []string{"今天下雨", "银行贷款", "猫"}[i%3] },
		"words":       nil,
	}
	for name, text := range kinds {
		m := testModel()
		for i := range m.Codes.Texts.Text[:91] {
			if text != nil {
				m.Codes.Texts.Text[i] = text(i)
			}
		}
		if text == nil {
			m.Codes.Texts = nil
		}
		labels := map[string]bool{}
		topics := tableOf(t, m, 4).Topics[:3] // without "other"
		for i, topic := range topics {
			labels[topic.Label] = true
			if number := fmt.Sprintf(" (%d)", i+1); name == "alike" && i > 0 != strings.HasSuffix(topic.Label, number) {
				t.Errorf("%s: topic %d is called %q", name, i, topic.Label)
			}
			if slices.ContainsFunc(topic.Words, func(word string) bool { return text != nil && slices.Contains(m.Codes.IDs, word) }) {
				t.Errorf("%s: the name of a row is in the label %q", name, topic.Label)
			}
			if topic.Label == "" || name == "alike" && len(topic.Examples) != 1 {
				t.Errorf("%s: %+v", name, topic)
			}
		}
		if len(topics) != 3 || len(labels) != 3 {
			t.Errorf("%s: %d topics with the labels %v", name, len(topics), labels)
		}
	}
	empty := testModel()
	clear(empty.Codes.Texts.Text)
	if table := tableOf(t, empty, 4); len(table.Topics) != 0 || table.Blank != len(table.Rows) {
		t.Errorf("topics of empty texts: %+v", table)
	}
	none := testModel()
	none.Codes = &vectors.Sparse{IDs: []string{}, Texts: new(vectors.Texts), CSR: vectors.CSR{Cols: 7, Ptr: []int64{0}}}
	if table := tableOf(t, none, 4); len(table.Topics) != 0 || len(table.Rows) != 0 {
		t.Errorf("topics of no rows: %+v", table)
	}
}

// Encode returns the largest positive cosines of reconstructions and themes. They don't depend on the number of
// processors.
func TestEncode(t *testing.T) {
	const rows, atoms, themes, dim = 200, 600, 40, 30
	rng := rand.New(rand.NewPCG(3, 4))
	values := func(n int) (v []float32) {
		for range n {
			v = append(v, float32(rng.NormFloat64()))
		}
		return v
	}
	m := &model.Model{Codes: new(vectors.Sparse), Dictionary: model.Dictionary{Dim: dim, Atoms: values(atoms * dim), Mean: values(dim), Themes: values(themes * dim)}}
	m.Info.Training.Themes = &model.Themes{Topics: 1, Splits: make([]int32, themes-1)}
	cluster.Normalize(m.Dictionary.Themes, dim)
	m.Codes.Cols = atoms
	for range rows {
		m.Codes.AppendRow([]int32{int32(rng.IntN(20)), 20 + int32(rng.IntN(atoms-20))}, values(2))
	}
	got, err := Encode(t.Context(), m)
	if err != nil || got.Rows != rows || got.Cols != themes || got.Validate() != nil {
		t.Fatalf("%d×%d, %v, %v", got.Rows, got.Cols, got.Validate(), err)
	}
	chance := math.Sqrt(2 * math.Log(themes) / dim)
	without := 0
	y := make([]float64, dim)
	for i := range rows {
		index, value := m.Codes.Row(i)
		m.Dictionary.Decode(y, index, value)
		floats.Sub(y, encodetest.Widen(m.Dictionary.Mean))
		var want []float64
		for theme := range slices.Chunk(encodetest.Widen(m.Dictionary.Themes), dim) { // of norm 1
			want = append(want, floats.Dot(y, theme)/floats.Norm(y, 2))
		}
		largest := slices.SortedFunc(slices.Values(want), func(a, b float64) int { return cmp.Compare(b, a) })
		index, value = got.Row(i)
		if largest[0] < min(chance, 0.5) {
			without++
			if len(index) != 0 {
				t.Errorf("row %d has themes, of cosines %v", i, largest)
			}
			continue
		}
		if len(index) != rowThemes {
			t.Fatalf("row %d has %d themes", i, len(index))
		}
		for j, k := range index {
			if math.Abs(float64(value[j])-want[k]) > 1e-5 || want[k] < largest[rowThemes-1]-1e-5 {
				t.Errorf("row %d, theme %d: %v, want %v of %v", i, k, value[j], want[k], largest)
			}
		}
	}
	if without == 0 || without == rows {
		t.Errorf("%d of %d rows have no theme", without, rows)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	if again, err := Encode(t.Context(), m); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("other codes on three processors, error %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Encode(cancelled, m); err != context.Canceled {
		t.Errorf("cancelled: error %v", err)
	}
}

// AssignDimensions uses little memory for many dimensions and themes, and finds the theme of each dimension.
func TestAssignManyDimensions(t *testing.T) {
	const n = 10_000
	codes, themes := &vectors.CSR{Cols: n, Ptr: []int64{0}}, &vectors.CSR{Cols: n, Ptr: []int64{0}}
	codes.AppendRow([]int32{0, 5000, n - 1}, []float32{1, 2, -1})
	codes.AppendRow([]int32{5000, 6000}, []float32{1, 1})
	themes.AppendRow([]int32{2, n - 1}, []float32{0.5, 0.6})
	themes.AppendRow([]int32{1}, []float32{0.9})
	table := &Table{Codes: themes}
	allocated := testonly.CountBytes()
	table.AssignDimensions(codes)
	if used := allocated(); used > 1<<28 {
		t.Errorf("allocates %d bytes", used)
	}
	want := map[int]ID{0: n - 1, 5000: 1, 6000: 1, n - 1: n - 1} // 5000: 2·0.36 < 0.81
	for k, got := range table.Dimensions {
		if theme, ok := want[k]; got != theme && (ok || got != None) {
			t.Errorf("dimension %d has theme %d", k, got)
		}
	}
}
