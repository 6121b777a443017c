package vectors

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// The kind of rows is detected from their names, unless an option sets it. Every text is kept, but
// only the first row of each word.
func TestReadKinds(t *testing.T) {
	d := &Dense{IDs: []string{"a", "b", "c"}, Dim: 1, Data: []float32{1, 2, 3}}
	npy := npyFile(d, false)
	for _, tt := range []struct {
		name, list string
		rows       Kind
		words      []string
		texts      []string
	}{
		{"words", "a\nb\na\n", "", []string{"a", "b"}, nil},
		{"words read as texts", "a\n\na\n", KindTexts, []string{"0", "1", "2"}, []string{"a", "", "a"}},
		{"sentences", "it rains cats\nyes\nit rains cats\n", "", []string{"0", "1", "2"}, []string{"it rains cats", "yes", "it rains cats"}},
		{"phrases read as words", "New York\nbank\nNew York\n", KindWords, []string{"New York", "bank"}, nil},
		{"sentences without spaces", "今日は雨が降っています\n私は猫が好きです\n犬\n", "", []string{"0", "1", "2"}, []string{"今日は雨が降っています", "私は猫が好きです", "犬"}},
		{"not UTF-8", "a\xffb c d\nd e f\nf g h\n", "", []string{"0", "1", "2"}, []string{"a\uFFFDb c d", "d e f", "f g h"}},
	} {
		got, source, err := Read(t.Context(), []string{tempFile(t, npy)}, ReadOptions{WordList: tempFile(t, tt.list), Rows: tt.rows})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var texts []string
		if got.Texts != nil {
			texts = got.Texts.Text
		}
		if !slices.Equal(got.IDs, tt.words) || !slices.Equal(texts, tt.texts) || (source.Kind == KindTexts) != (tt.texts != nil) {
			t.Errorf("%s: words %q, texts %q, %s", tt.name, got.IDs, texts, source.Kind)
		}
		if bad := strings.Contains(tt.list, "\xff"); bad != (len(source.Warnings) > 0) && tt.texts != nil {
			t.Errorf("%s: warnings %q", tt.name, source.Warnings)
		}
	}
	// Rows of a text file are words, also if they have spaces.
	got, _, err := Read(t.Context(), []string{tempFile(t, "it rains cats 1 2\nit rains cats 3 4\n")}, ReadOptions{Rows: KindTexts})
	want := &Dense{IDs: []string{"0", "1"}, Dim: 2, Data: []float32{1, 2, 3, 4}, Texts: &Texts{Text: []string{"it rains cats", "it rains cats"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	checkError(t, tempFile(t, "a 1\n"), ReadOptions{IDColumn: "id"}, "FILE: "+errColumns.Error())
}

// Stream yields the same texts as Read, including rows of zeros, and a sample keeps the texts of its
// rows.
func TestStreamTexts(t *testing.T) {
	d := &Dense{IDs: []string{"a", "b", "c"}, Dim: 1, Data: []float32{1, 0, 3}}
	path, o := tempFile(t, npyFile(d, false)), ReadOptions{WordList: tempFile(t, "it rains cats\nit snows today\nit rains cats\n")}
	all, _, err := streamed(t, path, o)
	testonly.Must(t, err)
	want, _, err := Read(t.Context(), []string{path}, o)
	if err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%+v, want %+v, %v", all, want, err)
	}
	s := NewSample(2, 1)
	for range 20 {
		s.Add(want)
	}
	for i, text := range s.Rows.Texts.Text {
		if at := slices.Index(want.IDs, s.Rows.IDs[i]); want.Texts.Text[at] != text || s.Rows.Data[i] != want.Data[at] {
			t.Errorf("row %d is %q of %s with %v", i, text, s.Rows.IDs[i], s.Rows.Data[i])
		}
	}
}

// Column names that are taken get underscores, so that all names are distinct.
func TestTable(t *testing.T) {
	s := &Sparse{IDs: []string{"a"}}
	if got := s.Table("word", "values"); len(got) != 1 || got[0].Name != "word" || got[0].Values[0] != "a" {
		t.Errorf("%q", got)
	}
	s.Texts = &Texts{Text: []string{"A b."}}
	for _, name := range []string{"values", "values_", "label", "names", "values__", "Names"} {
		s.Texts.Columns = append(s.Texts.Columns, Column{name, []string{"of " + name}})
	}
	var got []string
	for _, c := range s.Table("word", "values", "names") {
		got = append(got, c.Name+"="+c.Values[0])
	}
	want := []string{"id=a", "text=A b.", "values___=of values", "values_=of values_", "label=of label", "names_=of names", "values__=of values__", "Names__=of Names"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Texts.Columns[0].Name != "values" {
		t.Error("the model's column has another name now")
	}
}
