package model

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// rowsOf returns the rows of m from lo to hi.
func rowsOf(m *Model, lo, hi int) *vectors.Sparse {
	part := &vectors.Sparse{IDs: m.Codes.IDs[lo:hi], Texts: m.Codes.Texts.Slice(lo, hi), CSR: vectors.CSR{Cols: m.Codes.Cols, Ptr: []int64{0}}}
	for i := lo; i < hi; i++ {
		part.AppendRow(m.Codes.Row(i))
	}
	return part
}

// saveRows saves m a few rows at a time.
func saveRows(ctx context.Context, dir string, m *Model) error {
	w, err := (&Model{Info: m.Info, Dictionary: m.Dictionary}).NewWriter(dir, false)
	if err != nil {
		return err
	}
	for lo := 0; lo < m.Codes.Rows; lo += 7 {
		if err := w.Add(rowsOf(m, lo, min(lo+7, m.Codes.Rows))); err != nil {
			return w.Abort(err)
		}
	}
	_, err = w.Commit(ctx, *m.Info.Encoding)
	return w.Abort(err)
}

func TestWriterFails(t *testing.T) {
	m := testModel(20, 3, 11, false)
	mine := errors.New("enough")
	dir := filepath.Join(t.TempDir(), "model")
	w, err := m.NewWriter(dir, false)
	testonly.Must(t, err)
	row := rowsOf(m, 0, 1)
	row.IDs = []string{"two\nlines"}
	testonly.ErrorSays(t, "a newline", w.Add(row), "line break")
	row.IDs = nil
	if err := w.Add(row); err == nil {
		t.Error("no error for a code without a word")
	}
	if err := w.Abort(mine); err != mine {
		t.Errorf("error %v, want %v", err, mine)
	}
	m.Dictionary.Atoms = m.Dictionary.Atoms[3:]
	testonly.ErrorSays(t, "a longer row", saveRows(t.Context(), dir, m), "rows of 11 columns for a matrix of 10")
	expectNames(t, filepath.Dir(dir))
}

// readAll reads a model a few rows at a time.
func readAll(dir string) (*Model, error) {
	m, err := OpenDictionary(dir)
	if err != nil {
		return nil, err
	}
	m.Codes = &vectors.Sparse{CSR: vectors.CSR{Cols: m.Dictionary.Len(), Ptr: []int64{0}}}
	for rows, err := range m.Rows(dir, 6) {
		if err != nil {
			return nil, err
		}
		m.Codes.IDs = append(m.Codes.IDs, rows.IDs...)
		m.Codes.Texts = m.Codes.Texts.Join(rows.Texts)
		m.Codes.Append(&rows.CSR)
	}
	return m, nil
}

// Rows refuses a model that has replaced the opened one.
func TestRowsReplaced(t *testing.T) {
	dir := saved(t, testModel(4, 2, 3, false))
	m, err := OpenDictionary(dir)
	testonly.Must(t, err)
	save(t, dir, true, testModel(5, 2, 3, false))
	for _, err := range m.Rows(dir, 2) {
		testonly.ErrorSays(t, "replaced", err, "has been replaced")
	}
}
