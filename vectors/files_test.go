package vectors

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"overcomplete/internal/npy"
	"overcomplete/testonly"
)

// folder returns a new folder with files of the given contents.
func folder(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range contents {
		path := filepath.Join(dir, name)
		testonly.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testonly.Must(t, os.WriteFile(path, []byte(content), 0o666))
	}
	return dir
}

// randomRows returns rows of random numbers with distinct words.
func randomRows(n, dim int) *Dense {
	d := &Dense{Dim: dim}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		d.IDs = append(d.IDs, fmt.Sprint("w", i))
		for range dim {
			d.Data = append(d.Data, rng.Float32())
		}
	}
	return d
}

// Reading the files of a folder, a pattern or a list gives the rows of one file with all rows.
func TestReadFiles(t *testing.T) {
	all := randomRows(1000, 20)
	parts := []*Dense{all.Slice(0, 400), all.Slice(400, 401), all.Slice(401, 1000)}
	for name, write := range map[string]func(d *Dense) string{
		"text":        func(d *Dense) string { return textRows(d, "\n") },
		"header":      func(d *Dense) string { return headerLine(d) + textRows(d, "\n") },
		"binary":      func(d *Dense) string { return gzipped(headerLine(d) + binaryRows(d, "\n")) },
		"array":       func(d *Dense) string { return npyFile(d, false) },
		"columns":     func(d *Dense) string { return npyFile(d, true) },
		"archive":     func(d *Dense) string { return npzFile(d, "vectors") },
		"safetensors": func(d *Dense) string { return tensorFile(d, "vectors") },
	} {
		t.Run(name, func(t *testing.T) {
			one := []string{tempFile(t, write(all))}
			dir := folder(t, map[string]string{"a/1": write(parts[0]), "a/2": write(parts[1]), "b": write(parts[2]), "_SUCCESS": "", ".b.crc": "x"})
			for _, paths := range [][]string{{dir}, {dir + "/*"}, {dir + "/a", dir + "/b"}, {dir + "/a/1", dir + "/a/2", dir + "/b"}} {
				for _, o := range []ReadOptions{{}, {MaxRows: 450}} {
					want, _, err := Read(t.Context(), one, o)
					testonly.Must(t, err)
					got, source, err := Read(t.Context(), paths, o)
					if err != nil || !reflect.DeepEqual(got, want) {
						t.Fatalf("%q: other rows, %v", paths, err)
					}
					sums := ""
					for i, f := range source.Files {
						sum := sha256.Sum256([]byte(write(parts[i])))
						if f.SHA256 != hex.EncodeToString(sum[:]) || f.Rows != min(parts[i].Len(), max(0, want.Len()-[]int{0, 400, 401}[i])) {
							t.Errorf("%q: %+v", paths, f)
						}
						sums += f.SHA256 + "\n"
					}
					if sum := sha256.Sum256([]byte(sums)); len(source.Files) != 3 || source.SHA256 != hex.EncodeToString(sum[:]) {
						t.Errorf("%q: %+v", paths, source)
					}
				}
			}
		})
	}
}

// A word list names the rows of all files, and words repeated across files are detected.
func TestReadFilesTogether(t *testing.T) {
	dir := folder(t, map[string]string{"1.npy": npyFile(randomRows(2, 3), false), "2.npy": npyFile(randomRows(2, 3), false)})
	d, source, err := Read(t.Context(), []string{dir}, ReadOptions{WordList: tempFile(t, "a\nb\nc\na\n")})
	if err != nil || !slices.Equal(d.IDs, []string{"a", "b", "c"}) || source.Rows != 3 || source.Files[1].Rows != 1 || source.Name != filepath.Base(dir) {
		t.Errorf("%q, %+v, %v", d.IDs, source, err)
	}
	for list, message := range map[string]string{"a\nb\nc\n": "LIST: the word list has fewer words than rows (got 3 words)", "a\nb\nc\nd\ne\n": "LIST: the word list has more words than rows (got more than 4 words)"} {
		checkError(t, dir, ReadOptions{WordList: tempFile(t, list)}, message)
	}
}

func TestReadFilesRefuses(t *testing.T) {
	a := "a 1 2\nb 3 4\n"
	for _, tt := range []struct {
		contents map[string]string
		message  string
	}{
		{map[string]string{"_SUCCESS": "a 1 2\n"}, "FILE: no data files in this folder (names that begin with . or _ are skipped)"},
		{map[string]string{"a": a, "b": ""}, "FILE/b: the file is empty"},
		{map[string]string{"a": a, "b": "c 1 2 3\n"}, "FILE/b: has vectors of 3 numbers, but FILE/a has vectors of 2 numbers: all files of an input must have the same schema"},
		{map[string]string{"a": a, "b": "1 2\nc 5 6\n"}, "FILE/b: has format word2vec text, but FILE/a has format GloVe text: all files of an input must have the same schema"},
		{map[string]string{"k=1/a": a, "k=2/a": a, "l=3/a": a}, `FILE/l=3/a: has folder "l=…", but FILE/k=1/a has folder "k=…": all files of an input must have the same schema`},
		{map[string]string{"a": a, "k=2/a": a}, `FILE/k=2/a: has folder "k=…", which FILE/a lacks: all files of an input must have the same schema`},
		{map[string]string{"a": a, "b": "c 5 6\nd x 6\n"}, `FILE/b:2: word "d": value 1 is not a finite number (got "x")`},
		{map[string]string{"a": "2 2\n" + a, "b": "2 2\nc 5 6\n"}, "FILE/b: the file is cut short: its header declares more rows (got 1, want 2)"},
		{map[string]string{"model.json": "{}", "codes.npz": ""}, "FILE: is a model, not dense vectors; export its codes in a dense format first"},
	} {
		checkError(t, folder(t, tt.contents), ReadOptions{}, tt.message)
	}
	_, _, err := Read(t.Context(), nil, ReadOptions{})
	if err == nil || err.Error() != "no file of vectors is named" {
		t.Errorf("error %v of no paths", err)
	}
}

// A file that grows, shrinks, changes or vanishes during the read is refused.
func TestReadFilesThatChange(t *testing.T) {
	var many strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&many, "w%d %d 1\n", i, i)
	}
	size := many.Len()
	for change, message := range map[string]string{
		"append":   fmt.Sprintf("a: the file changed during reading (from %d bytes to %d)", size, size+1),
		"truncate": fmt.Sprintf("a: the file changed during reading (from %d bytes to 0)", size),
		"touch":    "a: the file changed during reading (it was written at 2026-01-02 03:04:05)",
		"remove":   "b: no such file or directory",
	} {
		dir := folder(t, map[string]string{"a": many.String(), "b": "x 1 2\n"})
		path := filepath.Join(dir, "a")
		var failed error
		first := true
		for _, err := range Stream(t.Context(), []string{dir}, ReadOptions{Distinct: true}, new(Source)) {
			switch failed = err; {
			case err != nil || !first:
			case change == "append":
				f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
				testonly.Must(t, err)
				f.WriteString("\n")
				f.Close()
			case change == "truncate":
				os.Truncate(path, 0)
			case change == "touch":
				os.Chtimes(path, time.Time{}, time.Date(2026, 1, 2, 3, 4, 5, 6, time.Local))
			default:
				os.Remove(filepath.Join(dir, "b"))
			}
			first = false
		}
		if failed == nil || failed.Error() != filepath.Join(dir, message) {
			t.Errorf("%s: error %v, want %s", change, failed, message)
		}
	}
}

// A second reading of unchanged files uses the hashes and the repeated names of the first one. A file that has changed
// is read like a new one, and a file that changes later is refused.
func TestReadAgain(t *testing.T) {
	dir := folder(t, map[string]string{"a": "x 1 2\nbad\ny 3 4\nx 5 6\n", "b": "z 7 8\ny 9 10\nw 11 12\n"})
	b := filepath.Join(dir, "b")
	o := ReadOptions{SkipBad: true, Distinct: true}
	want, first, err := Read(t.Context(), []string{dir}, o)
	testonly.Must(t, err)
	if !slices.Equal(first.reading.repeated, []int{4, 6}) {
		t.Errorf("rows %v are repeated", first.reading.repeated)
	}
	o.Earlier = first
	first.reading.files[b] = fileState{first.reading.files[b].info, "the first hash"}
	again, second, err := streamed(t, dir, o)
	testonly.Must(t, err)
	checkDense(t, again, want)
	if second.Files[1].SHA256 != "the first hash" || second.Files[0] != first.Files[0] || !slices.Equal(second.Warnings, first.Warnings) {
		t.Errorf("second source %+v, first %+v", second, first)
	}
	o.Earlier = second
	again, _, err = streamed(t, dir, o)
	testonly.Must(t, err)
	checkDense(t, again, want)
	for range Stream(t.Context(), []string{dir}, o, second) { // a file is replaced after it was compared
		if err = os.Rename(b, b+"2"); err == nil {
			err = os.WriteFile(b, []byte("z 7 8\ny 9 10\nw 11 13\n"), 0o600)
		}
		break
	}
	testonly.Must(t, err)
	os.Remove(b + "2")
	again, second, err = streamed(t, dir, o)
	if err != nil || again.Data[len(again.Data)-1] != 13 || second.Files[1].SHA256 == "the first hash" {
		t.Errorf("replaced file: read %v, source %+v, error %v", again, second, err)
	}
	o.Earlier = second
	for d, streamErr := range Stream(t.Context(), []string{dir}, o, second) {
		if err = streamErr; d != nil && d.IDs[0] == "x" {
			os.Chtimes(b, time.Time{}, time.Unix(1, 0))
		}
	}
	if err == nil || !strings.HasPrefix(err.Error(), b+": the file changed") {
		t.Errorf("file that changes after it was compared: error %v", err)
	}
}

// Memory doesn't grow with the size of an array. The files are sparse files.
func TestStreamArraysInLittleMemory(t *testing.T) {
	const rows, dim, most = 1 << 15, 1 << 11, 64 << 20 // 256 MB
	for _, fortran := range []bool{false, true} {
		var header strings.Builder
		testonly.Must(t, npy.WriteHeader(&header, npy.Header{Type: "<f4", Fortran: fortran, Shape: []int{rows, dim}}))
		path := tempFile(t, header.String())
		if err := os.Truncate(path, int64(header.Len())+4*rows*dim); err != nil {
			t.Skip(err) // this file system has no such files
		}
		n := 0
		for d, err := range Stream(t.Context(), []string{path}, ReadOptions{Distinct: true}, new(Source)) {
			testonly.Must(t, err)
			if n += d.Len(); n%(1<<12) == 0 {
				if used := testonly.BytesInUse(); used > most {
					t.Fatalf("%d bytes in use after %d rows", used, n)
				}
			}
		}
		if n != rows {
			t.Errorf("%d rows, want %d", n, rows)
		}
	}
}

// Progress reports the share of the bytes of all files.
func TestReadFilesProgress(t *testing.T) {
	small, large := randomRows(200, 3), randomRows(100_000, 3)
	for name, write := range map[string]func(d *Dense) string{
		"text":  func(d *Dense) string { return textRows(d, "\n") },
		"array": func(d *Dense) string { return npyFile(d, false) },
	} {
		dir := folder(t, map[string]string{"1": write(small), "2": write(large)})
		var shares []float64
		_, _, err := Read(t.Context(), []string{dir}, ReadOptions{Progress: func(share float64) { shares = append(shares, share) }})
		if n := len(shares); err != nil || !slices.IsSorted(shares) || n < 3 || shares[0] > 0.01 || shares[n-1] != 1 {
			t.Errorf("%s: progress %v, error %v", name, shares, err)
		}
	}
}
