package columnar

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// Texts that Python wrote, with ids and columns, are read row by row, in Arrow and in Parquet's
// encodings.
func TestReadTexts(t *testing.T) {
	texts := []string{"first\nsecond line", "", "a <b>tag</b> \x1b[31mred", "", "a <b>tag</b> \x1b[31mred", "שלום e\u0301 ไทย", strings.Repeat("x", 100)}
	ids := []string{"d-0", "d-1", "d-2", "d-3", "d-4", "d-5", "d-6"}
	numbers := []string{"0", "1", "2", "3", "4", "5", "6"}
	columns := []vectors.Column{
		{Name: "label", Values: []string{"0", "1", "-2", "", "0", "1", "0"}},
		{Name: "seen", Values: []string{"true", "false", "", "true", "true", "false", "false"}},
		{Name: "score", Values: []string{"0.5", "", "1", "2", "3", "0.3333333333333333", "123456789.125"}},
		{Name: "kind", Values: []string{"a", "a", "b", "a", "b", "b", "a"}},
		{Name: "when", Values: slices.Repeat([]string{"1970-01-01T00:00:01"}, 7)},
		{Name: "size", Values: slices.Repeat([]string{"4294967295"}, 7)},
	}
	withIDs := slices.Insert(slices.Clone(columns), 0, vectors.Column{Name: "doc_id", Values: ids})
	data := []float32{0, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 1, 6, 1}
	for _, name := range append(both("texts"), "texts2.parquet") {
		for _, tt := range []struct {
			o       vectors.ReadOptions
			ids     []string
			columns []vectors.Column
			about   string
		}{
			{vectors.ReadOptions{}, ids, columns, `texts of column "text", ids of "doc_id", with 6, such as ["label" "seen" "score" "kind" "when"]`},
			{vectors.ReadOptions{IDColumn: "none"}, numbers, withIDs, `texts of column "text", with 7, such as ["doc_id" "label" "seen" "score" "kind"]`},
			{vectors.ReadOptions{Rows: vectors.KindTexts, TextColumn: "text", IDColumn: "doc_id", VectorColumns: "embedding"}, ids, columns,
				`texts of column "text", ids of "doc_id", with 6, such as ["label" "seen" "score" "kind" "when"]`},
		} {
			d, source, err := read(t, name, tt.o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := &vectors.Dense{IDs: tt.ids, Dim: 2, Data: data, Texts: &vectors.Texts{Text: texts, Columns: tt.columns}}
			if !reflect.DeepEqual(d, want) {
				t.Errorf("%s: %+v\n%+v, want\n%+v\n%+v", name, d, d.Texts, want, want.Texts)
			}
			if source.Kind != vectors.KindTexts || source.Columns != tt.about || len(source.Warnings) > 0 {
				t.Errorf("%s: %+v", name, source)
			}
		}
	}
	d, _, err := read(t, "delta.parquet", vectors.ReadOptions{})
	if err != nil || !slices.Equal(d.IDs, numbers[:2]) || !slices.Equal(d.Texts.Columns[0].Values, []string{"1", "2"}) {
		t.Errorf("%+v, %v", d, err)
	}
	// A table names the rows of other vectors.
	numbersOnly := filepath.Join(t.TempDir(), "numbers.txt")
	testonly.Must(t, os.WriteFile(numbersOnly, []byte(strings.Repeat("0.5 1\n", 7)), 0o666))
	for _, name := range append(both("texts"), "texts2.parquet") {
		d, source, err := vectors.Read(t.Context(), []string{numbersOnly}, vectors.ReadOptions{WordList: filepath.Join("testdata", name)})
		if err != nil || !reflect.DeepEqual(d.Texts, &vectors.Texts{Text: texts, Columns: columns}) || !slices.Equal(d.IDs, ids) || source.Kind != vectors.KindTexts {
			t.Errorf("%s: %+v of %+v, error %v", name, d, source, err)
		}
	}
	// A named column has texts, unless Rows is KindWords.
	d, _, err = read(t, "words.parquet", vectors.ReadOptions{TextColumn: "last"})
	if err != nil || d.Texts == nil || d.Texts.Text[0] != "b" || d.Texts.Columns[0].Name != "first" {
		t.Errorf("%+v, %v", d, err)
	}
	d, _, err = read(t, "words.parquet", vectors.ReadOptions{TextColumn: "last", Rows: vectors.KindWords})
	if err != nil || d.Texts != nil || d.IDs[0] != "b" {
		t.Errorf("%+v, %v", d, err)
	}
}

// If rows have only ids, the ids are the words. Numbers can be ids.
func TestReadIDs(t *testing.T) {
	uuids := []string{"00000000-0000-1eef-0000-000000000000", "00000000-0000-1eef-0000-000000000001", "00000000-0000-1eef-0000-000000000002"}
	for _, tt := range []struct {
		name  string
		o     vectors.ReadOptions
		words []string
		texts bool
	}{
		{"uuids", vectors.ReadOptions{}, uuids, false},
		{"numbers_only", vectors.ReadOptions{IDColumn: "id"}, []string{"100", "200", "300"}, false},
		{"numbers_only", vectors.ReadOptions{}, []string{"100", "200", "300"}, false},
		{"numbers_only", vectors.ReadOptions{IDColumn: "none"}, []string{"0", "1", "2"}, false},
		{"floats", vectors.ReadOptions{}, []string{"123456781", "2", "3"}, true},
		{"repeated", vectors.ReadOptions{TextColumn: "text", IDColumn: "none"}, []string{"0", "1", "2"}, true},
		{"badid", vectors.ReadOptions{TextColumn: "id"}, []string{"0", "1", "2"}, true},
		{"words", vectors.ReadOptions{IDColumn: "last"}, []string{"b"}, true},
		{"words", vectors.ReadOptions{IDColumn: "last", TextColumn: "first"}, []string{"b"}, true},
	} {
		for _, name := range both(tt.name) {
			d, _, err := read(t, name, tt.o)
			if err != nil || !slices.Equal(d.IDs, tt.words) || (d.Texts != nil) != tt.texts {
				t.Errorf("%s: %+v, %v", name, d, err)
			}
		}
	}
}

// Files with other columns keep their ids. Otherwise, rows are named by their numbers in the file.
func TestReadTextsSkipsBad(t *testing.T) {
	for name, want := range map[string][]string{"noid": {"x", "z"}, "novector": {"0", "2"}} {
		for _, name := range both(name) {
			d, _, err := read(t, name, vectors.ReadOptions{SkipBad: true})
			if err != nil || !slices.Equal(d.IDs, want) || !slices.Equal(d.Texts.Text, []string{"a b c", "e f g"}) {
				t.Errorf("%s: %v, %v", name, d, err)
			}
		}
	}
}
