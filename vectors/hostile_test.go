package vectors

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"overcomplete/internal/memory"
	"overcomplete/internal/npy"
	"overcomplete/testonly"
)

// archive returns a .npz file of an n×1 array of zeros.
func archive(t *testing.T, method uint16, n int) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "vectors.npy", Method: method})
	testonly.Must(t, err)
	testonly.Must(t, npy.Write(w, []int{n, 1}, make([]float32, n)))
	testonly.Must(t, z.Close())
	return b.String()
}

// The sizes that a file declares are checked before memory or time is spent on them. These
// files are small and declare more than a test could read.
func TestReadExplainsSizes(t *testing.T) {
	var empty bytes.Buffer
	testonly.Must(t, npy.WriteHeader(&empty, npy.Header{Type: "<f4", Fortran: true, Shape: []int{4e18, 0}}))
	for _, tt := range []struct {
		name, content string
		list          string // "" for none
		message       string
		most          uint64 // bytes to allocate
	}{
		{"rows of nothing", empty.String(), "a\n", "FILE: the array is not a matrix of rows × dimensions (got shape [4000000000000000000 0])", 8 << 20},
		{"word2vec binary of many rows", "9223372036854775807 1048576\na \x00\x00\x80\x3f", "", "FILE: the file is cut short: its header declares more rows (got 0, want 9223372036854775807)", 32 << 20},
		{"text of many rows", "9223372036854775807 1048576\na 1 2 3\n", "", `FILE:2: word "a": the vector has the wrong length (got 3, want 1048576 numbers)`, 32 << 20},
		{"an array without its rows", npyHeader("<f4", 1e9, 1000), "", "FILE: truncated: an array of type <f4 and shape [1000000000 1000] needs 4000000000000 bytes, has 0", 8 << 20},
		{"a tensor without its rows", "\x50\x00\x00\x00\x00\x00\x00\x00" + fmt.Sprintf("%-80s", `{"x":{"dtype":"F32","shape":[1000000000,1000],"data_offsets":[0,4000000000000]}}`), "",
			"FILE: truncated: the tensors need 4000000000000 bytes, the file has 0", 8 << 20},
		{"compressed rows of nothing", gzipped(empty.String()), "a\n", "FILE: the array is not a matrix of rows × dimensions (got shape [4000000000000000000 0])", 8 << 20},
		{"compressed rows whose numbers take four times their bytes", gzipped(npyHeader("|u1", 1<<62, 1) + string(bytes.Repeat([]byte{1, 2, 3}, 1<<14))), "",
			"FILE: no array can have type |u1 and shape [4611686018427387904 1]", 8 << 20},
		{"deflated rows, and one word in a list", archive(t, zip.Deflate, 8<<20), "a\n", ": the word list has fewer words than rows (got 1 words)", 48 << 20},
		{"an archive that expands", gzipped(archive(t, zip.Store, 20<<20)), "",
			" bytes expand to more than 100 times their size; if this is intended, decompress the file first", 96 << 20},
		{"tensors that expand", zstandard(string(bytes.Repeat([]byte{8, 0, 0, 0, 0, 0, 0, 0, '{'}, 10<<20))), "",
			" bytes expand to more than 100 times their size; if this is intended, decompress the file first", 96 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := ReadOptions{}
			if tt.list != "" {
				o.WordList = tempFile(t, tt.list)
			}
			path := tempFile(t, tt.content)
			allocated := testonly.CountBytes()
			_, _, err := Read(t.Context(), []string{path}, o)
			if err == nil || !strings.HasSuffix(strings.ReplaceAll(err.Error(), path, "FILE"), tt.message) {
				t.Errorf("error %v, want %q", err, tt.message)
			}
			if n := allocated(); n > tt.most {
				t.Errorf("%d bytes allocated for a file of %d", n, len(tt.content))
			}
		})
	}
}

// A sample of the rows that a compressed array declares must fit into memory. Rows beyond the maximum aren't counted.
func TestReadDeclaredRows(t *testing.T) {
	if _, ok := memory.Total(); !ok {
		t.Skip("the memory of this machine is unknown")
	}
	var numbers strings.Builder
	for i := range blockRows {
		binary.Write(&numbers, binary.LittleEndian, float32(1+i))
	}
	path := tempFile(t, gzipped(npyHeader("<f4", 1e13, 1)+numbers.String()+numbers.String()))
	_, _, err := Read(t.Context(), []string{path}, ReadOptions{Keep: func(*Dense) (int, *Sample) { return 0, NewSample(1<<42, 1) }})
	if !errors.Is(err, memory.ErrTooLarge) {
		t.Errorf("sample: error %v, want one of memory", err)
	}
	if _, _, err = Read(t.Context(), []string{path}, ReadOptions{MaxRows: 5}); errors.Is(err, memory.ErrTooLarge) {
		t.Errorf("five rows: error %v", err)
	}
}

// An endless word list is read only up to the number of rows.
func TestReadEndlessWordList(t *testing.T) {
	w := standardInput(t)
	go func() {
		for err := error(nil); err == nil; { // until the reader closes
			_, err = w.WriteString("word\n")
		}
	}()
	checkError(t, tempFile(t, npyFile(&Dense{IDs: []string{"a", "b"}, Dim: 1, Data: []float32{1, 2}}, false)), ReadOptions{WordList: "-"},
		"stdin: the word list has more words than rows (got more than 2 words)")
}

// An input that exceeds the machine's memory is an error that states the need. The files are
// sparse: only their beginnings are stored on disk.
func TestReadBeyondMemory(t *testing.T) {
	if _, ok := memory.Total(); !ok {
		t.Skip("the memory of this machine is unknown")
	}
	const rows, dim = 2_000_000, 1 << 20 // 8.4 TB
	list := tempFile(t, strings.Repeat("a\n", rows))
	tensor := fmt.Sprintf(`{"vectors":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]}}`, rows, dim, 4*rows*dim)
	tensor = string([]byte{byte(len(tensor)), 0, 0, 0, 0, 0, 0, 0}) + tensor
	for name, begin := range map[string]string{"array": npyHeader("<f4", rows, dim), "tensor": tensor} {
		path := tempFile(t, begin)
		if err := os.Truncate(path, int64(len(begin))+4*rows*dim); err != nil {
			t.Skip(err) // this file system has no such files
		}
		_, _, err := Read(t.Context(), []string{path}, ReadOptions{WordList: list})
		if err == nil || !strings.Contains(err.Error(), "2000000 rows of 1048576 numbers: 8388.6 GB doesn't fit into memory: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
