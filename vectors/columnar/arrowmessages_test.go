package columnar

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"overcomplete/internal/memory"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// writeArrow returns a stream of a table of words with vectors of dim numbers.
func writeArrow(t *testing.T, ids []string, dim int, o ...ipc.Option) []byte {
	t.Helper()
	metadata := arrow.NewMetadata([]string{"key"}, []string{"value"})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "word", Type: arrow.BinaryTypes.String},
		{Name: "vector", Type: arrow.FixedSizeListOf(int32(dim), arrow.PrimitiveTypes.Float32)},
	}, &metadata)
	text := array.NewStringBuilder(arrowmemory.DefaultAllocator)
	text.AppendValues(ids, nil)
	lists := fixedLists(len(ids), dim, func(i int) float32 { return float32(math.Sin(float64(i))) })
	var b bytes.Buffer
	w := ipc.NewWriter(&b, append(o, ipc.WithSchema(schema))...)
	testonly.Must(t, w.Write(array.NewRecordBatch(schema, []arrow.Array{text.NewArray(), lists}, int64(len(ids)))))
	testonly.Must(t, w.Close())
	return b.Bytes()
}

// fixedLists returns n lists of dim numbers.
func fixedLists(n, dim int, number func(i int) float32) arrow.Array {
	lists := array.NewFixedSizeListBuilder(arrowmemory.DefaultAllocator, int32(dim), arrow.PrimitiveTypes.Float32)
	for i := range n * dim {
		if i%dim == 0 {
			lists.Append(true)
		}
		lists.ValueBuilder().(*array.Float32Builder).Append(number(i))
	}
	return lists.NewArray()
}

// Compressed buffers have the content of uncompressed ones, even if some are stored uncompressed because they would not
// shrink.
func TestReadCompressedArrow(t *testing.T) {
	ids := strings.Fields(strings.Repeat("enough words to shrink well ", 48))
	for i := range ids {
		ids[i] += strings.Repeat("x", i) // distinct
	}
	want, err := readBytes(t, writeArrow(t, ids, 5), vectors.ReadOptions{})
	if err != nil || want.Len() != len(ids) {
		t.Fatal(err)
	}
	for name, codec := range map[string]ipc.Option{"LZ4": ipc.WithLZ4(), "Zstandard": ipc.WithZstd()} {
		for _, savings := range []float64{0, 0.5} {
			got, err := readBytes(t, writeArrow(t, ids, 5, codec, ipc.WithMinSpaceSavings(savings)), vectors.ReadOptions{})
			if err != nil || !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Data, want.Data) {
				t.Errorf("%s, where it saves %v: other words or numbers, error %v", name, savings, err)
			}
		}
	}
}

// oneBuffer returns a record batch whose body is a buffer of length bytes.
func oneBuffer(length int) flatbuffers.Table {
	b := flatbuffers.NewBuilder(0)
	b.StartVector(16, 1, 8)
	b.PrependInt64(int64(length))
	b.PrependInt64(0)
	buffers := b.EndVector(1)
	b.StartObject(3)
	b.PrependUOffsetTSlot(2, buffers, 0)
	b.Finish(b.EndObject())
	return flatbuffers.Table{Bytes: b.FinishedBytes(), Pos: flatbuffers.GetUOffsetT(b.FinishedBytes())}
}

// The Zstandard decoder uses its output as the window, so that the window size of a frame
// allocates nothing.
func TestArrowWindow(t *testing.T) {
	body := binary.LittleEndian.AppendUint64(nil, 2000)
	body = append(body, 0x28, 0xb5, 0x2f, 0xfd, 0, (29-10)<<3) // a window of 2^29 bytes, the maximum of the library
	for last, letter := range []byte{'a', 'b'} {               // each a thousand times
		const run = 1
		header := 1000<<3 | run<<1 | last
		body = append(body, byte(header), byte(header>>8), byte(header>>16), letter)
	}
	allocated := testonly.CountBytes()
	got, err := decompressBuffers(oneBuffer(len(body)), body, codecZstandard)
	want := strings.Repeat("\xff", 8) + strings.Repeat("a", 1000) + strings.Repeat("b", 1000)
	if err != nil || string(got) != want {
		t.Errorf("%.20q…, error %v", got, err)
	}
	if n := allocated(); n > 16<<20 {
		t.Errorf("%d bytes allocated for %d", n, len(body))
	}
}

// The check of memory includes the copies of blocks that LZ4's library makes.
func TestArrowLZ4Memory(t *testing.T) {
	total, ok := memory.Total()
	if !ok {
		t.Skip("the memory of this machine is unknown")
	}
	size := int(total / 3 * 2)
	body := make([]byte, 8+size/255+1) // never looked at
	binary.LittleEndian.PutUint64(body, uint64(size))
	_, err := decompressBuffers(oneBuffer(len(body)), body, codecLZ4)
	testonly.ErrorSays(t, "LZ4", err, "doesn't fit into memory")
}
