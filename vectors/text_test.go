package vectors

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"overcomplete/internal/input"
)

// The result and the error don't depend on the number of workers, on the boundaries of
// chunks, or on the sizes of reads.
func TestReadTextIsDeterministic(t *testing.T) {
	var good, bad strings.Builder
	rng := rand.New(rand.NewPCG(3, 4))
	want := &Dense{Dim: 3}
	for i := range 300 {
		id := fmt.Sprintf("w%d", i)
		want.IDs = append(want.IDs, id)
		good.WriteString(id)
		for range want.Dim {
			x := float32(rng.NormFloat64())
			want.Data = append(want.Data, x)
			good.WriteString(" " + strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
		good.WriteString("\nw0 0 0 0\n\n") // a duplicate and a blank line
		if i == 100 || i == 101 || i == 250 {
			bad.WriteString(id + " 1 2 x\n")
		} else {
			bad.WriteString(id + " 1 2 3\n")
		}
	}
	const message = `file:101: word "w100": value 3 is not a finite number (got "x")`
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, workers := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(workers)
		for _, size := range []int{1, 16, 100, 1000, textChunk} {
			r := &reader{options: ReadOptions{Distinct: true}, dim: 3, file: file{declared: -1}}
			got, err := r.collect(r.readText(t.Context(), iotest.HalfReader(strings.NewReader(good.String())), size, false))
			if err != nil {
				t.Fatal(err)
			}
			checkDense(t, got, want)
			if r.duplicate.count != 300 {
				t.Errorf("%d duplicates, want 300", r.duplicate.count)
			}

			r = &reader{dim: 3, file: file{Member: input.Member{Path: "file"}, lines: true, declared: -1}}
			_, err = r.collect(r.readText(t.Context(), strings.NewReader(bad.String()), size, false))
			if err == nil || err.Error() != message {
				t.Errorf("error with %d workers and chunks of %d bytes is %v, want %s", workers, size, err, message)
			}
		}
	}
}

// collect returns the rows of chunks.
func (r *reader) collect(chunks iter.Seq2[chunk, error]) (*Dense, error) {
	var c collector
	err := r.filterAll(chunks, func(block *Dense, _ error) bool { return c.add(block, 0) == nil })
	if err == nil {
		err = c.join()
	}
	return &c.rows, err
}

// A malformed row is reported before an error of the reader behind it.
func TestReadTextErrorOrder(t *testing.T) {
	broken := errors.New("broken")
	for text, message := range map[string]string{
		"a 1\nb x\nc":  `: word "b": value 1 is not a finite number (got "x")`,
		"a 1\nb 2\ncx": "broken",
	} {
		r := &reader{dim: 1, file: file{declared: -1}}
		_, err := r.collect(r.readText(t.Context(), io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), textChunk, false))
		if err == nil || !strings.HasSuffix(err.Error(), message) {
			t.Errorf("error is %v, want %s", err, message)
		}
	}
}

func TestReadTextLineTooLong(t *testing.T) {
	r := &reader{dim: 1, file: file{declared: -1}}
	if _, err := r.collect(r.readText(t.Context(), io.LimitReader(endless{}, 1<<40), textChunk, false)); err == nil || err.Error() != "a line is too long (want at most 33554432 bytes)" {
		t.Errorf("error is %v", err)
	}
}

// endless is a reader of text without line breaks.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '1'
	}
	return len(p), nil
}
