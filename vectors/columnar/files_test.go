package columnar

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// copied returns a folder with copies of files of testdata, keyed by their new names.
func copied(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, from := range files {
		path := filepath.Join(dir, name)
		testonly.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testonly.Must(t, os.WriteFile(path, testonly.ReadFile(t, filepath.Join("testdata", from)), 0o666))
	}
	return dir
}

// The keys of folders become columns, whose names get underscores if they are taken.
func TestReadPartitions(t *testing.T) {
	dir := copied(t, map[string]string{"lang=de/kind=x/lang=1/id=5/0.parquet": "texts.parquet", "lang=en/kind=y/lang=2/id=6/0.parquet": "texts.parquet"})
	d, source, err := vectors.Read(t.Context(), []string{dir}, vectors.ReadOptions{IDColumn: "none"})
	testonly.Must(t, err)
	if names := d.Texts.Names(); !slices.Equal(names, []string{"doc_id", "label", "seen", "score", "kind", "when", "size", "lang", "kind_", "lang_", "id_"}) {
		t.Fatalf("columns %q", names)
	}
	for i, want := range [][]string{{"de", "x", "1", "5"}, {"en", "y", "2", "6"}} {
		for j, column := range d.Texts.Columns[7:] {
			if got := column.Values[7*i : 7*i+7]; !slices.Equal(got, slices.Repeat(want[j:j+1], 7)) {
				t.Errorf("column %s of file %d: %q, want %s", column.Name, i, got, want[j])
			}
		}
	}
	if kind := d.Texts.Columns[4].Values[13]; d.IDs[13] != "13" || kind != "a" || !strings.HasSuffix(source.Columns, `, and ["lang" "kind_" "lang_" "id_"] of folders`) || len(source.Warnings) > 0 {
		t.Errorf("row %s, kind %s, %+v", d.IDs[13], kind, source)
	}
}

// The first valid row of each file must have the vector length of the previous files.
func TestReadFilesOfOtherLengths(t *testing.T) {
	type row struct {
		Word   string    `parquet:"word,dict"`
		Vector []float32 `parquet:"vector"`
	}
	dir := t.TempDir()
	for i, n := range []int{20, 10} {
		rows := []row{{"null", nil}, {fmt.Sprint("w", n), slices.Repeat([]float32{1}, n)}}
		testonly.Must(t, parquet.WriteFile(filepath.Join(dir, fmt.Sprint(i)), rows))
	}
	_, _, err := vectors.Read(t.Context(), []string{dir}, vectors.ReadOptions{SkipBad: true})
	want := fmt.Sprintf("%s/1: has vectors of 10 numbers, but %s/0 has vectors of 20 numbers: all files of an input must have the same schema", dir, dir)
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestReadFilesRefuses(t *testing.T) {
	for _, tt := range []struct{ second, want string }{
		{"texts.parquet", `FILE: row 1: a previous row has the same id, "d-0"`},
		{"lists.parquet", `FILE: has names in column "word", but FIRST has names in column "text": all files of an input must have the same schema`},
		{"texts.arrow", `FILE: has format Arrow, but FIRST has format Parquet: all files of an input must have the same schema`},
	} {
		dir := copied(t, map[string]string{"0": "texts.parquet", "1": tt.second})
		_, _, err := vectors.Read(t.Context(), []string{dir}, vectors.ReadOptions{})
		if err == nil {
			t.Errorf("%s: no error", tt.second)
			continue
		}
		if got := strings.NewReplacer(filepath.Join(dir, "1"), "FILE", filepath.Join(dir, "0"), "FIRST").Replace(err.Error()); got != tt.want {
			t.Errorf("%s: error %s, want %s", tt.second, got, tt.want)
		}
	}
}
