package columnar

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/testonly/realdata"
	"overcomplete/vectors"
)

// Words and texts of vectors without them are in tables, and what isn't vectors is named.
func TestReadReportedLists(t *testing.T) {
	read := func(name string, o vectors.ReadOptions) *vectors.Dense {
		t.Helper()
		d, _, err := vectors.Read(t.Context(), []string{realdata.Path(t, "reported/"+name)}, o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := read("reference.parquet", vectors.ReadOptions{})
	wide := read("wide.csv", vectors.ReadOptions{})
	projector := read("projector-vectors.tsv", vectors.ReadOptions{WordList: realdata.Path(t, "reported/metadata-with-header.tsv")})
	texts := read("projector-vectors.tsv", vectors.ReadOptions{WordList: realdata.Path(t, "reported/reference.parquet")})
	if !slices.Equal(wide.Data, want.Data) || wide.Words[95] != "w095" || !reflect.DeepEqual(projector, wide) || !reflect.DeepEqual(texts, want) {
		t.Errorf("%q, %q, %q", wide.Words, projector.Words, texts.Words)
	}
	for name, message := range map[string]string{
		"glove.tar": "is a tar archive", "glove.tar.gz": "is a tar archive", "fasttext-model.bin": "is a fastText model", "object-array.npy": "array holds Python objects",
	} {
		_, _, err := vectors.Read(t.Context(), []string{realdata.Path(t, "reported/"+name)}, vectors.ReadOptions{SkipBad: true})
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
