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
		ids            func(i int) string
		columns, files string // separated by spaces
	}{
		{names, "", "binary-id.parquet binary-text-and-id.parquet duckdb-v2-delta-text.parquet embedding-in-csv.csv huggingface-saved int8.parquet no-eos.arrow " +
			"openai.jsonl polars.arrow spark-vector.parquet string-embedding.parquet"},
		{names, "price", "int8-and-price.parquet string-embedding-and-price.parquet wide-and-price.parquet"},
		{names, "score", "spark-vector-and-score.parquet"},
		{names, "when day", "timestamps.parquet"},
		{numbers, "", "byte-stream-split-id.parquet duckdb-v2-delta-id.parquet"},
		{numbers, "year", "duckdb-integers.parquet"},
		{numbers, "stars n", "fastparquet.parquet"},
		{uuids, "", "duckdb-uuid.parquet"},
		{rows, "label", "binary-text.parquet"},
		{rows, "", "javascript.arrow"},
	} {
		for file := range strings.FieldsSeq(tt.files) {
			d, _, err := read(file)
			if err != nil || d.Texts == nil {
				t.Errorf("%s: %+v, error %v", file, d, err)
				continue
			}
			data, ids := slices.Clone(want.Data), slices.Clone(want.IDs)
			for i, x := range data {
				if strings.HasPrefix(file, "int8") {
					data[i] = float32(math.RoundToEven(16 * float64(x)))
				}
			}
			for i := range ids {
				ids[i] = tt.ids(i)
			}
			otherTexts := file == "duckdb-v2-delta-id.parquet"
			if !slices.Equal(d.Data, data) || !slices.Equal(d.IDs, ids) || !otherTexts && !slices.Equal(d.Texts.Text, want.Texts.Text) || strings.Join(d.Texts.Names(), " ") != tt.columns {
				t.Errorf("%s: other vectors, ids, texts or columns: %v…, %.100q, %.100q, %q", file, d.Data[:3], d.IDs, d.Texts.Text, d.Texts.Names())
			}
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
