package columnar

import (
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
			if !slices.Equal(d.IDs, want.IDs) {
				t.Errorf("ids %.200q, want %.200q", d.IDs, want.IDs)
			}
			if !slices.Equal(d.Data, want.Data) {
				t.Errorf("vectors %v…, want %v…", d.Data[:10], want.Data[:10])
			}
			if !slices.Equal(source.Warnings, want.Warnings) {
				t.Errorf("warnings %q, want %q", source.Warnings, want.Warnings)
			}
			if (d.Texts == nil) != (want.Texts == nil) {
				t.Fatalf("texts %t, want %t", d.Texts != nil, want.Texts != nil)
			} else if d.Texts == nil {
				return
			}
			if !slices.Equal(d.Texts.Text, want.Texts) {
				t.Errorf("texts %.300q, want %.300q", d.Texts.Text, want.Texts)
			}
			if len(d.Texts.Columns) != len(want.Columns) {
				t.Errorf("%d columns, want %d", len(d.Texts.Columns), len(want.Columns))
			}
			for _, c := range d.Texts.Columns {
				if !slices.Equal(c.Values, want.Columns[c.Name]) {
					t.Errorf("column %s: %.300q, want %.300q", c.Name, c.Values, want.Columns[c.Name])
				}
			}
		})
	}
}
