//go:build unix

package encode_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/testonly"
)

// A row that can't be encoded ends the encoding of a pipe whose writer stays open.
func TestFileStopsReading(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pipe")
	testonly.Must(t, syscall.Mkfifo(path, 0o666))
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	testonly.Must(t, err)
	defer w.Close()
	const dim, rows = 64, 5 * encode.Block / 2 // two blocks, but not three
	go w.WriteString(strings.Repeat("a"+strings.Repeat(" 3e38", dim)+"\n", rows))
	m := untrained(dim, slices.Repeat([]float32{1, -1}, dim)...)
	o := encode.Options{Lambda: 0.1, Steps: encode.DefaultSteps, Nonzeros: 2}
	_, _, err = encode.File(t.Context(), m, []string{path}, filepath.Join(dir, "out"), cpu.Device{}, o, encode.FileOptions{})
	if !errors.Is(err, encode.ErrOverflow) || !strings.HasPrefix(err.Error(), path+": row 1: ") {
		t.Errorf("error %v", err)
	}
}
