package columnar

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"overcomplete/internal/memory"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// The writer holds a row group at most once beside the codes, even if it can't be compressed, and less than the reserve of
// package memory.
func TestWritersMemory(t *testing.T) {
	const reserve = 8 << 20
	random := rand.NewChaCha8([32]byte{})
	codes := &vectors.Sparse{Texts: &vectors.Texts{}, CSR: vectors.CSR{Cols: 16}}
	for i := range 30_000 {
		text := make([]byte, 450)
		random.Read(text)
		codes.IDs = append(codes.IDs, fmt.Sprint(i))
		codes.Texts.Text = append(codes.Texts.Text, base64.StdEncoding.EncodeToString(text))
		codes.AppendRow([]int32{int32(i % 4), int32(4 + i%5), int32(9 + i%7)}, []float32{1, 2, 3})
	}
	before := testonly.BytesInUse()
	var w peak
	testonly.Must(t, WriteParquet(&w, codes))
	if used := w.most - before; used > 30_000*650+reserve {
		t.Errorf("%d bytes", used)
	}
	runtime.KeepAlive(codes)
}

// Little memory isn't damage of the file.
func TestGuardLittleMemory(t *testing.T) {
	if _, ok := memory.Total(); !ok {
		t.Skip("the memory of this machine is unknown")
	}
	err := guard("Parquet", func() error { return memory.Check(1 << 62) })
	if !errors.Is(err, memory.ErrTooLarge) || strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

// A peak stores the most memory in use at one of the first writes, which follow a row group.
type peak struct {
	writes int
	most   uint64
}

func (w *peak) Write(p []byte) (int, error) {
	if w.writes++; w.writes < 100 {
		w.most = max(w.most, testonly.BytesInUse())
	}
	return len(p), nil
}
