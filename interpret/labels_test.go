package interpret

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"overcomplete/testonly"
)

func allow() error { return nil }

// A change replaces labels. A proposal replaces a proposal, but no label of a person, who may have saved it meanwhile.
func TestChangeLabels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "labels.json")
	if ls, err := ReadLabels(path, 30); err != nil || len(ls) != 0 {
		t.Fatalf("without a file: %v, %v", ls, err)
	}
	for _, changes := range [][]Label{
		{{10, " <b>kings</b> & queens ", "", false, false}, {2, "", "not clear", false, false}, {3, "gone", "soon", false, false}, {29, "replaced", "", false, true}},
		{{29, "日本", "where\u00a0it is", false, true}, {3, "", " ", false, false}},
		{{2, "topic 2", "", true, false}, {400, "", "a note", true, false}, {29, "gone", "", true, false}},
		{{29, "", "", true, false}, {2, "a proposal replaces no label of a person", "", true, true}},
	} {
		_, err := ChangeLabels(t.Context(), path, 30, changes, allow)
		testonly.Must(t, err)
	}
	want := Labels{{2, "", "not clear", false, false}, {10, "<b>kings</b> & queens", "", false, false}, {29, "日本", "where\u00a0it is", false, true}, {2, "topic 2", "", true, false}, {400, "", "a note", true, false}}
	if got, err := ReadLabels(path, 30); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, error %v, want %v", got, err, want)
	}
	refusal := errors.New("another model")
	if _, err := ChangeLabels(t.Context(), path, 30, []Label{{1, "a", "", false, false}}, func() error { return refusal }); err != refusal {
		t.Errorf("error %v", err)
	}
	if got, _ := ReadLabels(path, 30); !slices.Equal(got, want) {
		t.Errorf("after a refusal: %v", got)
	}
}

func TestLabelsRefuse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "labels.json")
	for _, tt := range []struct {
		l    Label
		want string
	}{
		{Label{30, "a", "", false, false}, "no dimension 30 (want 0 to 29)"},
		{Label{-1, "a", "", false, false}, "no dimension -1"},
		{Label{1, "a\nb", "", false, false}, `dimension 1: the name isn't one line of UTF-8 text (got "a\nb")`},
		{Label{1, "", "\x1b[2J", false, false}, `dimension 1: the note isn't one line of UTF-8 text (got "\x1b[2J")`},
		{Label{1, "\xff", "", false, false}, `dimension 1: the name isn't one line of UTF-8 text (got "\xff")`},
		{Label{1, strings.Repeat("a", 101), "", false, false}, "the name is too long (got 101 bytes, want at most 100)"},
		{Label{1, "", strings.Repeat("a", 2001), false, false}, "the note is too long (got 2001 bytes, want at most 2000)"},
	} {
		_, err := ChangeLabels(t.Context(), path, 30, []Label{tt.l}, allow)
		testonly.ErrorSays(t, fmt.Sprint(tt.l), err, tt.want)
		if _, err := os.Stat(path); err == nil {
			t.Fatalf("%v was written", tt.l)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{"", "unexpected end"},
		{`[{"name": "a"}]`, `label "a": want either a dimension or a topic`},
		{`[{"dimension": 1, "topic": 1, "name": "a"}]`, "want either a dimension or a topic"},
		{`[{"topic": -1, "name": "a"}]`, "no topic -1"},
		{`[{"topic": 1, "name": "a"}, {"topic": 1, "name": "b"}]`, "topic 1 has two labels"},
		{"{}", "cannot unmarshal"},
		{`[{"dimension": 30, "name": "a"}]`, "no dimension 30"},
		{`[{"dimension": 1, "name": "a"}, {"dimension": 1, "name": "b"}]`, "dimension 1 has two labels"},
	} {
		testonly.Must(t, os.WriteFile(path, []byte(tt.text), 0o666))
		if _, err := ReadLabels(path, 30); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %s: …%s", tt.text, err, path, tt.want)
		}
	}
}

// No concurrent change is lost.
func TestChangeLabelsAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no locks on directories")
	}
	path := filepath.Join(t.TempDir(), "labels.json")
	const n = 40
	var wait sync.WaitGroup
	for k := range n {
		wait.Go(func() {
			_, err := ChangeLabels(t.Context(), path, n, []Label{{ID: k, Name: fmt.Sprint(k)}}, allow)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if ls, err := ReadLabels(path, n); err != nil || len(ls) != n {
		t.Errorf("%d labels, error %v", len(ls), err)
	}
}
