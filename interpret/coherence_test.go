package interpret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestCoherenceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "coherence.json")
	if _, err := ReadCoherence(path, 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	want := &Coherence{
		Reference: "glove <6B>.txt", Words: 20, Seed: 1<<64 - 1, Dimensions: 2,
		Any: Estimate{.95, .9, 1}, Matched: Estimate{.5, .25, .75}, Quarters: []Estimate{{1, 1, 1}, {.8, .8, .8}, {}, {.2, .2, .2}}, Quartered: 1,
		Scores:   []Score{{Dimension: 0, Any: 1, Matched: .7}, {Dimension: 2, Any: .9, Matched: .3, Quarters: []float64{1, .8, 0, .2}}},
		Negative: &Coherence{Words: 20, Dimensions: 1, Any: Estimate{.5, .5, .5}, Matched: Estimate{.4, .4, .4}, Scores: []Score{{Dimension: 1, Any: .5, Matched: .4}}},
	}
	for range 2 { // the second replaces the first
		if err := want.Save(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ReadCoherence(path, 3); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestReadCoherenceRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "coherence.json")
	for _, tt := range []struct{ text, want string }{
		{"", "unexpected end"},
		{"{}", "0 words"},
		{"null", "0 words"},
		{`[1]`, "cannot unmarshal array"},
		{`{"words":` + strings.Repeat("9", 1000) + `}`, "cannot unmarshal number"},
		{`{"words":9,"dimensions":1}`, "1 dimensions with 0 scores"},
		{`{"words":9,"dimensions":0,"any":{"mean":2}}`, "the mean 2, between 0 and 0"},
		{`{"words":9,"dimensions":0,"quarters":[{},{},{},{"low":-1}]}`, "between -1 and 0"},
		{`{"words":9,"dimensions":0,"quarters":[{}]}`, "1 quarters"},
		{`{"words":9,"dimensions":1,"scores":[{"dimension":3}]}`, "dimension 3 after that of -1"},
		{`{"words":9,"dimensions":1,"scores":[{"dimension":-1}]}`, "dimension -1"},
		{`{"words":9,"dimensions":2,"scores":[{"dimension":1},{"dimension":1}]}`, "dimension 1 after that of 1"},
		{`{"words":9,"dimensions":0,"quartered":1}`, "0 quarters of 1 dimensions, and 0 scores with quarters"},
		{`{"words":9,"dimensions":1,"quartered":1,"scores":[{"dimension":1,"quarters":[1,1,1,1]}]}`, "0 quarters of 1 dimensions, and 1 scores"},
		{`{"words":9,"dimensions":1,"scores":[{"dimension":1,"any":1.1}]}`, "dimension 1: the scores 1.1"},
		{`{"words":9,"dimensions":1,"scores":[{"dimension":1,"quarters":[1,1,1]}]}`, "four or none"},
		{`{"words":9,"dimensions":1,"scores":[{"dimension":1,"quarters":[1,1,1,-0.2]}]}`, "-0.2"},
		{`{"words":9,"dimensions":0,"negative":{"words":9,"dimensions":1,"scores":[{"dimension":3}]}}`, "negative sides: the score of dimension 3"},
		{`{"words":9,"dimensions":0,"negative":{"words":9,"dimensions":0,"negative":{"words":9}}}`, "no negative sides"},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := ReadCoherence(path, 3)
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > len(path)+202 {
			t.Errorf("%.80s: error %v, want %q", tt.text, err, tt.want)
		}
	}
	if _, err := ReadCoherence(dir, 3); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
}
