package interpret

import (
	"fmt"
	"runtime"
	"testing"

	"overcomplete/vectors"
)

// The estimates are upper limits of the memory that remains in use, and at most four times as large. Labels use the words
// of a sample of texts, or of all.
func TestMemory(t *testing.T) {
	for _, rows := range []int{maxSample, 200_000} {
		codes := &vectors.Sparse{Texts: &vectors.Texts{}, CSR: vectors.CSR{Cols: 16}}
		for i := range rows {
			codes.IDs = append(codes.IDs, fmt.Sprint(i))
			codes.Texts.Text = append(codes.Texts.Text, fmt.Sprintf("text %d of %d", i, i%100))
			codes.AppendRow([]int32{int32(i % 4), int32(4 + i%5), int32(9 + i%7)}, []float32{1, 2, 3})
		}
		index, search := Memory(codes)
		before := inUse()
		x := NewIndex(codes)
		x.Label(Pole{})
		after := inUse()
		x.Search("text", 1)
		end := inUse()
		for what, sizes := range map[string][2]uint64{"index": {index, after - before}, "index and search": {index + search, end - before}} {
			if estimate, used := sizes[0], sizes[1]; used > estimate || estimate > 4*used {
				t.Errorf("%s of %d texts: %d bytes, estimated %d", what, rows, used, estimate)
			}
		}
		runtime.KeepAlive(x)
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
