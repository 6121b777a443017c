package columnar

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// A page that says how much it decompresses to takes no more memory than that, whatever comes.
func TestReadAll(t *testing.T) {
	const size = 300_000
	content := bytes.Repeat([]byte("abc"), size/3)
	for _, r := range []io.Reader{bytes.NewReader(content), iotest.OneByteReader(bytes.NewReader(content)), iotest.DataErrReader(bytes.NewReader(content))} {
		var c chunk[float32]
		b, err := c.readAll(r, size)
		if err != nil || !bytes.Equal(b, content) || cap(c.content) > size*5/4 { // sizes that the allocator has
			t.Errorf("%d bytes in memory for %d, error %v", len(b), cap(c.content), err)
		}
		if b, err := c.readAll(bytes.NewReader(content[:7]), size); err != nil || string(b) != "abcabca" {
			t.Errorf("fewer: %q, error %v", b, err)
		}
		if _, err := c.readAll(bytes.NewReader(content), size-1); err != errHeader {
			t.Errorf("more: error %v", err)
		}
		if _, err := c.readAll(iotest.TimeoutReader(bytes.NewReader(content)), size); err != iotest.ErrTimeout {
			t.Errorf("error %v, want the reader's", err)
		}
	}
}
