package vectors

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"overcomplete/testonly"
)

// manyBlocks returns vectors that fill several blocks. The rows in bad contain an infinite number.
func manyBlocks(bad ...int) *Dense {
	d := randomRows(3*blockRows+7, 5)
	for i := range d.IDs {
		d.IDs[i] = strconv.Itoa(i) // as the rows of formats without words are named
	}
	for _, i := range bad {
		d.Row(i)[1] = float32(math.Inf(1))
	}
	return d
}

// The rows, errors and warnings of blocks don't depend on the number of CPUs that read them.
func TestBlocks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	bad := []int{5, blockRows - 1, blockRows, 2*blockRows + 3}
	d := manyBlocks(bad...)
	want := &Dense{Dim: d.Dim}
	for i, word := range d.IDs {
		if !slices.Contains(bad, i) {
			want.Append(&Dense{IDs: []string{word}, Dim: d.Dim, Data: d.Row(i)})
		}
	}
	for name, content := range map[string]string{
		"npy":             npyFile(d, false),
		"npy, Fortran":    npyFile(d, true),
		"npy, gzip":       gzipped(npyFile(d, false)),
		"npz":             npzFile(d, "vectors"),
		"safetensors":     tensorFile(d, "vectors"),
		"word2vec binary": headerLine(d) + binaryRows(d, "\n"),
	} {
		path := tempFile(t, content)
		for _, cpus := range []int{1, 16} {
			runtime.GOMAXPROCS(cpus)
			_, _, err := Read(t.Context(), []string{path}, ReadOptions{})
			testonly.ErrorSays(t, fmt.Sprintf("%s, %d CPUs", name, cpus), err, path+`: row 6: word "5": value 2 is not a finite number`)
			source := checkRead(t, path, ReadOptions{SkipBad: true}, want)
			if warnings := strings.Join(source.Warnings, "\n"); !strings.Contains(warnings, "malformed rows dropped: 4 ("+path+": row 6: word") {
				t.Errorf("%s, %d CPUs: warnings %s", name, cpus, warnings)
			}
			checkRead(t, path, ReadOptions{SkipBad: true, MaxRows: blockRows + 1}, want.Slice(0, blockRows+1))
		}
	}
}

// A changed number of a .npz file, which is read in any order, is an error.
func TestBlocksChecksum(t *testing.T) {
	damaged := []byte(npzFile(manyBlocks(), "vectors"))
	damaged[len(damaged)/4] ^= 1
	if _, _, err := Read(t.Context(), []string{tempFile(t, string(damaged))}, ReadOptions{}); !errors.Is(err, zip.ErrChecksum) {
		t.Errorf("error %v", err)
	}
}

// All goroutines of a reading end if the caller stops, if ctx is cancelled, after an error and if the file is cut
// short meanwhile.
func TestReadersEnd(t *testing.T) {
	d := manyBlocks(2 * blockRows)
	for name, content := range map[string]string{
		"npy":             npyFile(d, false),
		"npy, gzip":       gzipped(npyFile(d, false)),
		"npz":             npzFile(d, "vectors"),
		"word2vec binary": headerLine(d) + binaryRows(d, "\n"),
		"text":            textRows(d, "\n"),
	} {
		for _, end := range []string{"stop", "cancel", "error", "truncate"} {
			path := tempFile(t, content)
			synctest.Test(t, func(t *testing.T) { // waits for all goroutines
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var failed error
				var source Source
				for _, err := range Stream(ctx, []string{path}, ReadOptions{}, &source) {
					if failed = err; err != nil || end == "stop" {
						break
					}
					switch end {
					case "cancel":
						cancel()
					case "truncate":
						os.Truncate(path, 100)
					}
				}
				ok := failed != nil
				switch end {
				case "stop":
					ok = failed == nil && source.Format == "" // set at the end
				case "cancel":
					ok = errors.Is(failed, context.Canceled)
				case "truncate":
					ok = ok && strings.Contains(failed.Error(), "the file changed during reading")
				}
				if !ok {
					t.Errorf("%s, %s: error %v, source %+v", name, end, failed, source)
				}
			})
		}
	}
}

// A nameSet has the names that were added, as a map does. Its table grows only if growth says so.
func TestNameSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s nameSet
	want := map[string]bool{}
	for range 20000 {
		name, before, growth := strconv.Itoa(rng.IntN(9000)), len(s.table), s.growth(1)
		if s.add(name) == want[name] {
			t.Fatalf("%s: added is %t", name, want[name])
		}
		if after := len(s.table); after != before && growth != 16*uint64(after) {
			t.Fatalf("a table of %d names needs %d bytes", after, growth)
		}
		want[name] = true
	}
}
