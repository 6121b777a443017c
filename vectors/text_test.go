package vectors

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// The result, and the error, doesn't depend on the number of workers, on where
// the text is cut into chunks and on what the reader returns at a time.
func TestReadTextIsDeterministic(t *testing.T) {
	var good, bad strings.Builder
	rng := rand.New(rand.NewPCG(3, 4))
	want := &Dense{Dim: 3}
	for i := range 300 {
		word := fmt.Sprintf("w%d", i)
		want.Words = append(want.Words, word)
		good.WriteString(word)
		for range want.Dim {
			x := float32(rng.NormFloat64())
			want.Data = append(want.Data, x)
			good.WriteString(" " + strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
		good.WriteString("\nw0 0 0 0\n\n") // a duplicate and a blank line
		if i == 100 || i == 101 || i == 250 {
			bad.WriteString(word + " 1 2 x\n")
		} else {
			bad.WriteString(word + " 1 2 3\n")
		}
	}
	const message = `file:101: word "w100": value 3 is "x", not a finite number; --skip-bad drops such rows`
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, workers := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(workers)
		for _, size := range []int{1, 16, 100, 1000, textChunk} {
			b := &builder{dim: 3, want: -1}
			if err := readText(t.Context(), iotest.HalfReader(strings.NewReader(good.String())), b, size); err != nil {
				t.Fatal(err)
			}
			got, err := b.finish()
			if err != nil {
				t.Fatal(err)
			}
			checkDense(t, got, want)
			if b.duplicate.count != 300 {
				t.Errorf("%d duplicates, want 300", b.duplicate.count)
			}

			b = &builder{file: "file", text: true, dim: 3, want: -1}
			err = readText(t.Context(), strings.NewReader(bad.String()), b, size)
			if err == nil || err.Error() != message {
				t.Errorf("error with %d workers and chunks of %d bytes is %v, want %s", workers, size, err, message)
			}
		}
	}
}

// A malformed row before the place where reading fails is reported first.
func TestReadTextErrorOrder(t *testing.T) {
	broken := errors.New("broken")
	for text, message := range map[string]string{
		"a 1\nb x\nc":  `: word "b": value 1 is "x", not a finite number; --skip-bad drops such rows`,
		"a 1\nb 2\ncx": "broken",
	} {
		b := &builder{dim: 1, want: -1}
		r := io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
		err := readText(t.Context(), r, b, textChunk)
		if err == nil || !strings.HasSuffix(err.Error(), message) {
			t.Errorf("error is %v, want %s", err, message)
		}
	}
}

func TestReadTextLineTooLong(t *testing.T) {
	b := &builder{dim: 1, want: -1}
	r := io.LimitReader(endless{}, 1<<40)
	if err := readText(t.Context(), r, b, textChunk); err == nil || err.Error() != "a line of over 33554432 bytes" {
		t.Errorf("error is %v", err)
	}
}

// endless is text without an end of a line.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '1'
	}
	return len(p), nil
}

func BenchmarkReadText(b *testing.B) {
	var text strings.Builder
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 10000 {
		fmt.Fprintf(&text, "word%d", i)
		for range 300 {
			fmt.Fprintf(&text, " %.6f", rng.NormFloat64()/10)
		}
		text.WriteByte('\n')
	}
	path := filepath.Join(b.TempDir(), "vectors.txt")
	if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, _, err := Read(b.Context(), path, ReadOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseRows is what one core does.
func BenchmarkParseRows(b *testing.B) {
	var text strings.Builder
	rng := rand.New(rand.NewPCG(5, 6))
	for text.Len() < textChunk {
		text.WriteString("word")
		for range 300 {
			fmt.Fprintf(&text, " %.6f", rng.NormFloat64()/10)
		}
		text.WriteByte('\n')
	}
	lines := []byte(text.String())
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		parseRows(lines, 300, false)
	}
}
