package vectors

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What rows are is told from their words, unless it is said; texts keep every row, whatever
// they are, and words are each there once.
func TestReadKinds(t *testing.T) {
	d := &Dense{Words: []string{"a", "b", "c"}, Dim: 1, Data: []float32{1, 2, 3}}
	npy := npyFile(d, false)
	for _, tt := range []struct {
		name, list string
		rows       Kind
		words      []string
		texts      []string
	}{
		{"words", "a\nb\na\n", "", []string{"a", "b"}, nil},
		{"words that are said to be texts", "a\n\na\n", KindTexts, []string{"0", "1", "2"}, []string{"a", "", "a"}},
		{"sentences", "it rains cats\nyes\nit rains cats\n", "", []string{"0", "1", "2"}, []string{"it rains cats", "yes", "it rains cats"}},
		{"phrases that are said to be words", "New York\nbank\nNew York\n", KindWords, []string{"New York", "bank"}, nil},
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
		if !slices.Equal(got.Words, tt.words) || !slices.Equal(texts, tt.texts) || (source.Kind == KindTexts) != (tt.texts != nil) {
			t.Errorf("%s: words %q, texts %q, %s", tt.name, got.Words, texts, source.Kind)
		}
		if bad := strings.Contains(tt.list, "\xff"); bad != (len(source.Warnings) > 0) && tt.texts != nil {
			t.Errorf("%s: warnings %q", tt.name, source.Warnings)
		}
	}
	// Of a text file, words have what is before the numbers.
	got, _, err := Read(t.Context(), []string{tempFile(t, "it rains cats 1 2\nit rains cats 3 4\n")}, ReadOptions{Rows: KindTexts})
	want := &Dense{Words: []string{"0", "1"}, Dim: 2, Data: []float32{1, 2, 3, 4}, Texts: &Texts{Text: []string{"it rains cats", "it rains cats"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	checkError(t, tempFile(t, "a 1\n"), ReadOptions{IDColumn: "id"}, "FILE: columns can be named only in tables, such as Parquet, whose rows have no word list")
}

// A stream has the same rows as Read, of zeros, too, and a sample's texts are those of its rows.
func TestStreamTexts(t *testing.T) {
	d := &Dense{Words: []string{"a", "b", "c"}, Dim: 1, Data: []float32{1, 0, 3}}
	path, o := tempFile(t, npyFile(d, false)), ReadOptions{WordList: tempFile(t, "it rains cats\nit snows today\nit rains cats\n")}
	var all Dense
	for d, err := range Stream(t.Context(), []string{path}, o, new(Source)) {
		if err != nil {
			t.Fatal(err)
		}
		all.Append(d)
	}
	want, _, err := Read(t.Context(), []string{path}, o)
	if err != nil || !reflect.DeepEqual(&all, want) {
		t.Errorf("%+v, want %+v, %v", all, want, err)
	}
	s := NewSample(2, 1)
	for range 20 {
		s.Add(want)
	}
	for i, text := range s.Rows.Texts.Text {
		if at := slices.Index(want.Words, s.Rows.Words[i]); want.Texts.Text[at] != text || s.Rows.Data[i] != want.Data[at] {
			t.Errorf("row %d is %q of %s with %v", i, text, s.Rows.Words[i], s.Rows.Data[i])
		}
	}
}

func TestTextsValidate(t *testing.T) {
	column := func(name string, n int) Column { return Column{name, make([]string, n)} }
	for _, tt := range []struct {
		texts *Texts
		want  string
	}{
		{nil, ""},
		{&Texts{Text: []string{"a", ""}, Columns: []Column{column("x", 2), column("y", 2)}}, ""},
		{&Texts{Text: []string{"a"}}, "1 texts for 2 rows"},
		{&Texts{Text: []string{"a", "b"}, Columns: []Column{column("x", 1)}}, `1 values of column "x" for 2 rows`},
		{&Texts{Text: []string{"a", "b"}, Columns: []Column{column("x", 2), column("x", 2)}}, `two columns are called "x"`},
		{&Texts{Text: []string{"a", "b"}, Columns: []Column{column("id", 2)}}, `two columns are called "id"`},
	} {
		if err := tt.texts.Validate(2); (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// Names that are taken get underscores, and no two columns have one name.
func TestTable(t *testing.T) {
	s := &Sparse{Words: []string{"a"}}
	if got := s.Table("word", "values"); len(got) != 1 || got[0].Name != "word" || got[0].Values[0] != "a" {
		t.Errorf("%q", got)
	}
	s.Texts = &Texts{Text: []string{"A b."}}
	for _, name := range []string{"values", "values_", "label", "names", "values__"} {
		s.Texts.Columns = append(s.Texts.Columns, Column{name, []string{"of " + name}})
	}
	var got []string
	for _, c := range s.Table("word", "values", "names") {
		got = append(got, c.Name+"="+c.Values[0])
	}
	want := []string{"id=a", "text=A b.", "values___=of values", "values_=of values_", "label=of label", "names_=of names", "values__=of values__"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Texts.Columns[0].Name != "values" {
		t.Error("the model's column has another name now")
	}
}
