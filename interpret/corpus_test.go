package interpret

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"overcomplete/vectors"
)

func corpusIndex() *Index {
	return NewIndex(&vectors.Sparse{Words: []string{"rain", "Snow", "bank", "loan", "hot"}, CSR: vectors.CSR{Rows: 5, Cols: 1, Ptr: []int64{0, 1, 2, 3, 4, 5},
		Index: []int32{0, 0, 0, 0, 0}, Value: []float32{4, 3, -2, -1, 1}}})
}

// Sentences with most of a dimension come first, each once, and not all for the same word.
func TestExamples(t *testing.T) {
	x := corpusIndex()
	corpus := "the Rain fell on rain\nSnow, and rain!\nrain again\n\nno word of it\nthe bank's loan of 2008; a bank, a loan\r\nrain again\nhot Snow\nloan\nHOT"
	c, err := x.ReadCorpus(t.Context(), strings.NewReader(corpus))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		n        int
		negative bool
		want     []string
	}{
		// 4 + 3; then 1 + 3/2 of snow, which is taken, before the 4/2 of rain; and so on.
		{9, false, []string{"Snow, and rain!", "hot Snow", "the Rain fell on rain", "rain again", "HOT"}},
		{2, false, []string{"Snow, and rain!", "hot Snow"}},
		// "bank's" is no word of the index, and "a bank" is.
		{9, true, []string{"the bank's loan of 2008; a bank, a loan", "loan"}},
		{0, true, nil},
	} {
		if got := x.Examples(c, 0, tt.n, tt.negative); !slices.Equal(got, tt.want) {
			t.Errorf("%d, negative %v: %q, want %q", tt.n, tt.negative, got, tt.want)
		}
	}
}

// Words stand between quotation marks, dashes and hyphens, too, and after what marks a file as UTF-8.
func TestReadCorpusFindsWords(t *testing.T) {
	x := corpusIndex()
	for _, line := range []string{"an 'rain' here", "rain--palette", "RAIN-soaked", "\ufeffrain", "-rain", "(rain)"} {
		c, err := x.ReadCorpus(t.Context(), strings.NewReader(line))
		if err != nil || len(c.Lines) != 1 || c.Lines[0] != strings.TrimPrefix(line, "\ufeff") || c.LeftOut != 0 {
			t.Errorf("%q: %+v, %v", line, c, err)
		}
	}
	if c, err := x.ReadCorpus(t.Context(), strings.NewReader("rainy bank's")); err != nil || len(c.Lines) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Memory is bounded by the vocabulary, and nothing is kept of lines that nobody reads.
func TestReadCorpusKeepsFew(t *testing.T) {
	x := corpusIndex()
	var b strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&b, "%d rain\n", i)
	}
	b.WriteString("snow " + strings.Repeat("x", 1<<17) + "\n" + "Snow " + strings.Repeat("x", longestLine) + "\nbank")
	c, err := x.ReadCorpus(t.Context(), strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Lines) != eachWord+1 || c.Lines[eachWord] != "bank" || c.LeftOut != 2 {
		t.Errorf("%d lines, %d left out: %.100q", len(c.Lines), c.LeftOut, c.Lines)
	}
	if _, err := x.ReadCorpus(t.Context(), strings.NewReader("rain\n\x1f\x8b\xff\n")); err == nil || !strings.Contains(err.Error(), "line 2 is not UTF-8") {
		t.Errorf("error %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.ReadCorpus(done, strings.NewReader(b.String())); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of what was cancelled", err)
	}
}
