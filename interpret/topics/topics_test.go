package topics

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"overcomplete/interpret"
	"overcomplete/vectors"
)

// subjects are words of the texts of each topic.
var subjects = [][]string{{"rain", "cloud", "storm"}, {"bank", "money", "loan"}, {"cat", "purr", "whisker"}}

// topicOf are the topics of seven themes: the last has no rows.
var topicOf = []int32{0, 1, 2, 0, 1, 2, 3}

// rowsOf returns texts: row i is of topic i%3 and theme i%6. The last two texts are blank, and the one before has
// no topic.
func rowsOf() *vectors.Sparse {
	rng := rand.New(rand.NewPCG(1, 2))
	s := &vectors.Sparse{Texts: &vectors.Texts{Columns: []vectors.Column{{Name: "kind"}}}, Themes: &vectors.CSR{Cols: 7}}
	s.Cols = 3
	for i := range 93 {
		s.Words = append(s.Words, fmt.Sprintf("d%d", i))
		s.AppendRow([]int32{int32(i % 3)}, []float32{1 + rng.Float32()})
		text := fmt.Sprintf("%s and %s %s", subjects[i%3][i%2], subjects[i%3][2], strings.Repeat("x", 1+i))
		switch {
		case i >= 91:
			text = " \n"
			s.Themes.AppendRow(nil, nil)
		case i == 90:
			s.Themes.AppendRow(nil, nil)
		case i == 0: // of theme 0, which is the nearest, and theme 5 is not
			s.Themes.AppendRow([]int32{0, 3, 5}, []float32{0.5, 0.4, 0.6})
		default:
			s.Themes.AppendRow([]int32{int32(i % 6)}, []float32{0.5})
		}
		s.Texts.Add(text, []string{[]string{"wet", "dry", ""}[i%3]})
	}
	return s
}

func TestTable(t *testing.T) {
	s := rowsOf()
	table := New(interpret.NewIndex(s), topicOf)
	if len(table.Topics) != 3 || len(table.Themes) != 6 || table.Blank != 2 || table.Other != 1 {
		t.Fatalf("%d topics, %d themes, %d blank, %d others", len(table.Topics), len(table.Themes), table.Blank, table.Other)
	}
	for i, id := range table.Rows {
		if want := ID(i % 3); i >= 90 && id != None || i < 90 && id != want {
			t.Errorf("row %d has the topic %v", i, id)
		}
	}
	for _, topic := range table.Topics {
		if topic.Count != 30 || topic.Share != 30./93 || topic.Parent != None || !strings.Contains(topic.Label, subjects[topic.ID][2]) {
			t.Errorf("%+v", topic)
		}
		if n := len(table.Children(topic.ID)); n != 2 {
			t.Errorf("topic %d has %d themes", topic.ID, n)
		}
		if len(topic.Examples) != 3 {
			t.Fatalf("%d examples", len(topic.Examples))
		}
		for _, e := range topic.Examples { // texts grow with their row
			if ID(e.Row%3) != topic.ID || e.Row < 20 || e.Row > 70 || e.Text != s.Texts.Text[e.Row] || e.Word != s.Words[e.Row] {
				t.Errorf("the example %+v of topic %d", e, topic.ID)
			}
		}
	}
	for _, theme := range table.Themes {
		if theme.Parent != theme.ID%3 || theme.Count != 15 {
			t.Errorf("%+v", theme)
		}
	}
	table.BreakDown(s.Texts.Columns[0].Values, 1)
	for _, topic := range table.Topics {
		want := []Value{{[]string{"wet", "dry", ""}[topic.ID], 30, 1}}
		if topic.ID == 2 { // the value is empty
			want = nil
		}
		if !slices.Equal(topic.Values, want) {
			t.Errorf("values %+v, want %+v", topic.Values, want)
		}
	}
	text, err := json.Marshal(table.Rows[88:])
	if want := "[1,2,null,null,null]"; err != nil || string(text) != want {
		t.Errorf("rows are %s, want %s, error %v", text, want, err)
	}
}

// Labels aren't empty, whatever the texts are; words have labels of words.
func TestLabels(t *testing.T) {
	numbers, alike, words := rowsOf(), rowsOf(), rowsOf()
	for i := range alike.Texts.Text[:91] {
		numbers.Texts.Text[i], alike.Texts.Text[i] = "?!", "the same text"
	}
	words.Texts = nil
	for name, s := range map[string]*vectors.Sparse{"no words": numbers, "alike": alike, "words": words} {
		for _, topic := range New(interpret.NewIndex(s), topicOf).Topics {
			if topic.Label == "" || name == "alike" && len(topic.Examples) != 1 {
				t.Errorf("%s: %+v", name, topic)
			}
		}
	}
	none := New(interpret.NewIndex(&vectors.Sparse{Words: []string{}, Texts: new(vectors.Texts), CSR: vectors.CSR{Ptr: []int64{0}}, Themes: &vectors.CSR{Cols: 7, Ptr: []int64{0}}}), topicOf)
	if len(none.Topics) != 0 || len(none.Rows) != 0 {
		t.Errorf("topics of no rows: %+v", none)
	}
}
