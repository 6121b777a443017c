package columnar

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// Tables from public reports of other tools' users have the vectors of a reference, with their ids and columns.
func TestReadReported(t *testing.T) {
	folder := testonly.Data(t, "reported")
	read := func(name string) (*vectors.Dense, *vectors.Source, error) {
		return vectors.Read(t.Context(), []string{filepath.Join(folder, name)}, vectors.ReadOptions{})
	}
	want, _, err := read("reference.parquet")
	if err != nil {
		t.Fatal(err)
	}
	names := func(i int) string { return fmt.Sprint("d", i) }
	numbers := func(i int) string { return fmt.Sprint(1000 + 3*i) }
	uuids := func(i int) string { return fmt.Sprintf("00000010-0000-0000-0000-%012x", 7919*i) }
	rows := func(i int) string { return fmt.Sprint(i) }
	for _, tt := range []struct {
		file    string
		ids     func(i int) string
		columns string // separated by spaces
		warning string
	}{
		{"binary-id.parquet", names, "", ""},
		{"binary-text-and-id.parquet", names, "", ""},
		{"binary-text.parquet", rows, "label", ""},
		{"byte-stream-split-id.parquet", numbers, "", ""},
		{"duckdb-integers.parquet", numbers, "year", ""},
		{"duckdb-uuid.parquet", uuids, "", ""},
		{"duckdb-v2-delta-id.parquet", numbers, "", ""},
		{"duckdb-v2-delta-text.parquet", names, "", ""},
		{"embedding-in-csv.csv", names, "", ""},
		{"fastparquet.parquet", numbers, "stars n", ""},
		{"huggingface-saved", names, "", ""},
		{"int8-and-price.parquet", names, "price", ""},
		{"int8.parquet", names, "", ""},
		{"javascript.arrow", rows, "", ""},
		{"no-eos.arrow", names, "", ""},
		{"openai.jsonl", names, "", ""},
		{"polars.arrow", names, "", ""},
		{"spark-vector-and-score.parquet", names, "score", ""},
		{"spark-vector.parquet", names, "", ""},
		{"string-embedding-and-price.parquet", names, "price", ""},
		{"string-embedding.parquet", names, "", ""},
		{"timestamps.parquet", names, "when day", `columns not read: "tags" (list of string)`},
		{"wide-and-price.parquet", names, "price", ""},
	} {
		d, source, err := read(tt.file)
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		data := slices.Clone(want.Data)
		if strings.HasPrefix(tt.file, "int8") {
			for i, x := range data {
				data[i] = float32(math.RoundToEven(16 * float64(x)))
			}
		}
		if !slices.Equal(d.Data, data) {
			t.Errorf("%s: other vectors", tt.file)
		}
		for i, id := range d.IDs {
			if want := tt.ids(i); id != want {
				t.Errorf("%s: row %d has the id %s, want %s", tt.file, i, id, want)
				break
			}
		}
		if d.Texts == nil {
			t.Errorf("%s: rows are words", tt.file)
			continue
		}
		if !slices.Equal(d.Texts.Text, want.Texts.Text) && tt.file != "duckdb-v2-delta-id.parquet" { // which has other texts
			t.Errorf("%s: other texts, such as %q", tt.file, d.Texts.Text[0])
		}
		if columns := strings.Join(d.Texts.Names(), " "); columns != tt.columns {
			t.Errorf("%s: columns %s, want %s", tt.file, columns, tt.columns)
		}
		if warnings := strings.Join(source.Warnings, "\n"); warnings != tt.warning {
			t.Errorf("%s: warnings %s, want %s", tt.file, warnings, tt.warning)
		}
	}
	if _, _, err := read("text-and-price-only.parquet"); err == nil || !strings.Contains(err.Error(), `no column has vectors`) {
		t.Errorf("no vectors: error %v", err)
	}
}

// Words and texts of vectors without them are in tables, and what isn't vectors is named.
func TestReadReportedLists(t *testing.T) {
	read := func(name string, o vectors.ReadOptions) *vectors.Dense {
		t.Helper()
		d, _, err := vectors.Read(t.Context(), []string{testonly.Data(t, "reported/"+name)}, o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := read("reference.parquet", vectors.ReadOptions{})
	wide := read("wide.csv", vectors.ReadOptions{})
	projector := read("projector-vectors.tsv", vectors.ReadOptions{WordList: testonly.Data(t, "reported/metadata-with-header.tsv")})
	texts := read("projector-vectors.tsv", vectors.ReadOptions{WordList: testonly.Data(t, "reported/reference.parquet")})
	if !slices.Equal(wide.Data, want.Data) || wide.IDs[95] != "w095" || !reflect.DeepEqual(projector, wide) || !reflect.DeepEqual(texts, want) {
		t.Errorf("%q, %q, %q", wide.IDs, projector.IDs, texts.IDs)
	}
	for name, message := range map[string]string{
		"glove.tar": "is a tar archive", "glove.tar.gz": "is a tar archive", "fasttext-model.bin": "is a fastText model", "object-array.npy": "array holds Python objects",
	} {
		_, _, err := vectors.Read(t.Context(), []string{testonly.Data(t, "reported/"+name)}, vectors.ReadOptions{SkipBad: true})
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
