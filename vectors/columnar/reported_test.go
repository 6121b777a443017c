package columnar

import (
	"reflect"
	"slices"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// Files from public reports of other tools' users contain the vectors of a reference. TestReadWriters lacks the writers
// of these files. Words and texts without vectors are in tables, and other files are named.
func TestReadReported(t *testing.T) {
	read := func(name string, o vectors.ReadOptions) *vectors.Dense {
		t.Helper()
		d, _, err := vectors.Read(t.Context(), []string{testonly.Data(t, "reported/"+name)}, o)
		testonly.Must(t, err)
		return d
	}
	want := read("reference.parquet", vectors.ReadOptions{})
	for _, name := range []string{"javascript.arrow", "openai.jsonl", "embedding-in-csv.csv"} {
		if d := read(name, vectors.ReadOptions{}); !slices.Equal(d.Data, want.Data) || !slices.Equal(d.Texts.Text, want.Texts.Text) {
			t.Errorf("%s: other vectors or texts", name)
		}
	}
	wide := read("wide.csv", vectors.ReadOptions{})
	projector := read("projector-vectors.tsv", vectors.ReadOptions{WordList: testonly.Data(t, "reported/metadata-with-header.tsv")})
	texts := read("projector-vectors.tsv", vectors.ReadOptions{WordList: testonly.Data(t, "reported/reference.parquet")})
	if !slices.Equal(wide.Data, want.Data) || wide.IDs[95] != "w095" || !reflect.DeepEqual(projector, wide) || !reflect.DeepEqual(texts, want) {
		t.Errorf("%q, %q, %q", wide.IDs, projector.IDs, texts.IDs)
	}
	for name, message := range map[string]string{
		"glove.tar": "is a tar archive", "glove.tar.gz": "is a tar archive", "fasttext-model.bin": "is a fastText model", "object-array.npy": "array holds Python objects",
		"text-and-price-only.parquet": "no column has vectors",
	} {
		_, _, err := vectors.Read(t.Context(), []string{testonly.Data(t, "reported/"+name)}, vectors.ReadOptions{SkipBad: true})
		testonly.ErrorSays(t, name, err, message)
	}
}
