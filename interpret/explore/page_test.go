package explore

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// exported returns the exported page of words and dimensions, and its data.
func exported(t *testing.T, x *Explorer, words []string, dimensions []int) (page string, data pageData) {
	t.Helper()
	var b bytes.Buffer
	testonly.Must(t, x.WritePage(&b, words, dimensions))
	_, rest, _ := strings.Cut(b.String(), `<script type="application/gzip" id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err == nil {
		err = json.NewDecoder(packed).Decode(&data)
	}
	testonly.Must(t, err)
	return b.String(), data
}

func TestWritePage(t *testing.T) {
	page, data := exported(t, newExplorer(t, testModel(), "test"), append([]string{"bank", "River"}, oddWords...), []int{3, 7})
	words := slices.Sorted(slices.Values(append([]string{"bank", "river"}, oddWords...)))
	if got := slices.Sorted(maps.Keys(data.Words)); !slices.Equal(got, words) {
		t.Errorf("words %q, want %q", got, words)
	}
	if got := slices.Sorted(maps.Keys(data.Dimensions)); !slices.Equal(got, []string{"3", "7"}) {
		t.Errorf("dimensions %q", got)
	}
	if len(data.Map.Points) != testAtoms-1 || len(data.Model.Dimensions) != testAtoms {
		t.Errorf("%d points, %d dimensions", len(data.Map.Points), len(data.Model.Dimensions))
	}
	// The page loads nothing, and no word can end its script.
	if found := regexp.MustCompile(`(src|href)="[^#d][^"]*"`).FindString(page); found != "" {
		t.Errorf("refers to %s", found)
	}
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d scripts", n)
	}
}

func TestWritePageChoosesTheRest(t *testing.T) {
	x := newExplorer(t, testModel(), "test")
	_, data := exported(t, x, []string{"bank"}, nil)
	if n := min(len(x.word(0).Active), neighbourhood); len(data.Dimensions) != n {
		t.Errorf("%d dimensions with a word, want %d", len(data.Dimensions), n)
	}
	_, data = exported(t, x, nil, []int{3})
	if len(data.Words) != neighbourhood {
		t.Errorf("%d words with a dimension, want %d", len(data.Words), neighbourhood)
	}
	for _, e := range x.dimension(3).Top[:neighbourhood] {
		if _, ok := data.Words[e.Word]; !ok {
			t.Errorf("without %q", e.Word)
		}
	}
}

func TestWritePageRefuses(t *testing.T) {
	x := newExplorer(t, testModel(), "test")
	for _, tt := range []struct {
		words      []string
		dimensions []int
		want       string
	}{
		{[]string{"bank", "rivre"}, nil, `no word "rivre" in the model; similar words: river`},
		{nil, []int{40}, "no dimension 40 (want 0 to 39)"},
		{nil, nil, "the model has no topics, so the page needs words or dimensions"},
	} {
		var b bytes.Buffer
		err := x.WritePage(&b, tt.words, tt.dimensions)
		if _, ok := errors.AsType[*RequestError](err); !ok || !strings.Contains(err.Error(), tt.want) || b.Len() > 0 {
			t.Errorf("%v, want %s; %d bytes written", err, tt.want, b.Len())
		}
	}
}
