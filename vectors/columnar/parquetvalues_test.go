package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// A few bytes that declare many differences of zero take no memory.
func TestDeltasOfZeros(t *testing.T) {
	const size, numbers = 1 << 16, 1 << 25
	var b []byte
	for _, x := range []uint64{size, 1, numbers, 0} { // the size of a block, its parts, the numbers, and the first of them
		b = binary.AppendUvarint(b, x)
	}
	b = append(b, bytes.Repeat([]byte{0, 0}, numbers/size)...) // a block's minimum, and the width of its part
	if got, _, err := deltas(b, numbers); !errors.Is(err, errShort) {
		t.Errorf("%d numbers, %v", len(got), err)
	}
}
