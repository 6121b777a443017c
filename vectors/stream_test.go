package vectors

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// streamed joins the blocks of Stream.
func streamed(t *testing.T, path string, o ReadOptions) (*Dense, *Source, error) {
	t.Helper()
	all := new(Dense)
	var s Source
	for d, err := range Stream(t.Context(), []string{path}, o, &s) {
		if err != nil {
			return nil, nil, err
		}
		all.Append(d)
		if d.Len() == 0 || len(d.Data) != d.Len()*d.Dim {
			t.Errorf("%d words with %d numbers", d.Len(), len(d.Data))
		}
	}
	return all, &s, nil
}

// Without Distinct, Stream keeps repeated words and refuses rows of zeros.
func TestStreamDiffers(t *testing.T) {
	content := "a 1 2\nb 0 0\na 3 4\n"
	got, source, err := streamed(t, tempFile(t, content), ReadOptions{SkipBad: true})
	if err != nil || !slices.Equal(got.IDs, []string{"a", "a"}) || !slices.Equal(got.Data, []float32{1, 2, 3, 4}) {
		t.Errorf("read %+v, error %v", got, err)
	}
	if len(source.Warnings) != 1 || !strings.Contains(source.Warnings[0], "malformed rows dropped: 1") {
		t.Errorf("warnings %q", source.Warnings)
	}
	for i, content := range []string{"b 0 0\na 1 2\n", content} { // the first row, and another
		path := tempFile(t, content)
		_, _, err = streamed(t, path, ReadOptions{})
		if want := fmt.Sprintf(`%s:%d: word "b": all numbers are zero`, path, i+1); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// The format of a pipe that stays open is detected from its first bytes or lines.
func TestDetectOpenPipe(t *testing.T) {
	for beginning, want := range map[string]string{
		"\x93NUMPY\x01\x00v":                    formatNpy,
		strings.Repeat("word 1 2\n", 100):       formatGloVe,
		"9 2\n" + strings.Repeat("w 1 2\n", 99): formatText,
	} {
		r, w := io.Pipe()
		go w.Write([]byte(beginning))
		detected := make(chan string, 1)
		go func() {
			h, err := detect(bufio.NewReaderSize(r, window), false, true)
			detected <- fmt.Sprint(h.format, err)
		}()
		select {
		case got := <-detected:
			if got != want+"<nil>" {
				t.Errorf("%.10q: %s, want %s", beginning, got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%.10q: waits for more", beginning)
		}
		r.Close()
	}
}

// The first mebibyte of a file determines its format. A pipe's format is determined by the bytes that have arrived.
func TestDetectManyLines(t *testing.T) {
	lines := func(format string, from, n int, scale float64) string {
		var b strings.Builder
		for i := from; i < from+n; i++ {
			fmt.Fprintf(&b, format+" 1 2 3 4 5 6 7 8\n", scale*float64(i))
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		content string
		words   int
		err     error
	}{
		"fractions after whole numbers": {lines("%v", 0, 100, 1) + lines("%.2f", 100, 300, 0.37), 0, errNoIDs},
		"repeated numbers":              {lines("%v", 0, 100, 1) + strings.Repeat(lines("%v", 0, 50, 1), 6), 0, errNoIDs},
		"numbered words first":          {lines("iphone %v", 0, 100, 1) + lines("w%v", 100, 1000, 1), 1100, nil},
		"numbers as first words":        {lines("%.1f", 0, 120, 0.1) + lines("w%v", 120, 300, 1), 420, nil},
	} {
		rows, _, err := Read(t.Context(), []string{tempFile(t, c.content)}, ReadOptions{})
		if !errors.Is(err, c.err) || c.err == nil && (rows.Len() != c.words || rows.Dim != 8) {
			t.Errorf("%s: %+v, error %v, want %d rows, error %v", name, rows, err, c.words, c.err)
		}
		h, err := detect(bufio.NewReaderSize(strings.NewReader(c.content), window), false, true)
		if !errors.Is(err, c.err) || c.err == nil && h.dim != 8 {
			t.Errorf("%s, pipe: %+v, error %v, want %v", name, h, err, c.err)
		}
	}
}
