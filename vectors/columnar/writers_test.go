package columnar

import (
	"fmt"
	"slices"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// A written table is the content of a file or folder that testdata/writers.py has written.
type writtenTable struct {
	IDs      []string
	Texts    []string // nil for words
	Data     []float32
	Columns  map[string][]string
	Warnings []string
	Error    string
	Options  vectors.ReadOptions
}

// The tables of pandas, Polars, DuckDB, fastparquet, Hugging Face datasets and pyarrow have the content from which they
// were made.
func TestReadWriters(t *testing.T) {
	script := testonly.ReadFile(t, "testdata/writers.py")
	t.Chdir(t.TempDir())
	tables := testonly.Python[map[string]writtenTable](t, string(script), nil)
	if len(tables) < 100 {
		t.Fatalf("%d tables", len(tables))
	}
	for name, want := range tables {
		t.Run(name, func(t *testing.T) {
			d, source, err := vectors.Read(t.Context(), []string{name}, want.Options)
			if want.Error != "" {
				if got := name + ": " + want.Error; err == nil || err.Error() != got {
					t.Fatalf("error\n%v, want\n%s", err, got)
				}
				return
			}
			testonly.Must(t, err)
			if !slices.Equal(d.Data, want.Data) {
				t.Errorf("vectors %v…, want %v…", d.Data[:10], want.Data[:10])
			}
			var texts []string // nil for words
			columns := map[string][]string{}
			if d.Texts != nil {
				texts = d.Texts.Text
				for _, c := range d.Texts.Columns {
					columns[c.Name] = c.Values
				}
			}
			for what, pair := range map[string][2]any{"ids": {d.IDs, want.IDs}, "warnings": {source.Warnings, want.Warnings}, "texts": {texts, want.Texts}, "columns": {columns, want.Columns}} {
				if got, want := fmt.Sprintf("%q", pair[0]), fmt.Sprintf("%q", pair[1]); got != want {
					t.Errorf("%s %.300s, want %.300s", what, got, want)
				}
			}
		})
	}
}
