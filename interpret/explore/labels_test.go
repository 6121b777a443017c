package explore

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/interpret"
	"overcomplete/testonly"
)

// post sends a label like a browser on this machine. See get for fields.
func post(handler http.Handler, body string, fields ...string) *httptest.ResponseRecorder {
	own := []string{"Method: POST", "Body: " + body, "Content-Type: application/json", "Origin: http://127.0.0.1:8420", "Sec-Fetch-Site: same-origin"}
	return get(handler, labelsPath, append(own, fields...)...)
}

// labelled returns an explorer with a labels file.
func labelled(t *testing.T) (x *Explorer, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "labels.json")
	return newWith(t, testModel(), "test", Options{Labels: file, CheckModel: func() error { return nil }}), file
}

func labelsOf(t *testing.T, w *httptest.ResponseRecorder) labelsAnswer {
	t.Helper()
	var got labelsAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return got
}

func TestServesLabels(t *testing.T) {
	x, file := labelled(t)
	handler := x.Handler("")
	if got := get(handler, "/data/labels").Body.String(); got != `{"writable":true,"labels":[],"stop_words":[]}` {
		t.Errorf("before any: %s", got)
	}
	const nasty = `</script><b>kings</b>`
	w := post(handler, `{"dimension": 3, "name": "</script><b>kings</b> ", "note": "a"}`)
	if strings.ContainsAny(w.Body.String(), "<>") {
		t.Errorf("the answer has < or >: %s", w.Body)
	}
	// Another process sets a label concurrently.
	kept, err := interpret.ChangeLabels(t.Context(), file, testAtoms, []interpret.Label{{ID: 7, Name: "seven"}}, func() error { return nil })
	if err != nil || len(kept) != 2 || kept[0] != (interpret.Label{ID: 3, Name: nasty, Note: "a"}) {
		t.Errorf("kept %v, error %v", kept, err)
	}
	if got := labelsOf(t, post(handler, `{"dimension": 5, "name": "five"}`)); len(got.Labels) != 3 {
		t.Errorf("labels %v", got)
	}
	if got := labelsOf(t, post(handler, `{"dimension": 3, "name": ""}`)); len(got.Labels) != 2 || got.Labels[0].Name != "five" {
		t.Errorf("after one was taken away: %v", got)
	}
	// Queries find labels, and exports contain them.
	if got := get(handler, "/data/query?query=SEVEN").Body.String(); !strings.Contains(got, `"dimension":7`) {
		t.Errorf("asked for a label: %s", got)
	}
	if _, data := exported(t, x, []string{"bank"}, nil); data.Labels.Writable || len(data.Labels.Labels) != 2 || data.Labels.Labels[0].Name != "five" {
		t.Errorf("exported labels %+v", data.Labels)
	}
}

// Stop words leave the labels of dimensions and topics at once, and are kept in a file.
func TestStopWords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "labels.json")
	o := Options{Labels: file, CheckModel: func() error { return nil }}
	m := testTopics()
	handler := newWith(t, m, "test", o).Handler("")
	uses := func(path, word string) bool {
		return strings.Contains(strings.ToLower(get(handler, path).Body.String()), `"`+word+`"`)
	}
	const model, topics = "/data/model", "/data/topics"
	word := func() string {
		return answered[struct{ Dimensions []struct{ Label []string } }](t, handler, model).Dimensions[2].Label[0]
	}
	first := word()
	if got := labelsOf(t, post(handler, `{"stop_words": ["`+strings.ToUpper(first)+`", "common", ""]}`)); strings.Join(got.StopWords, " ") != strings.ToUpper(first)+" common" {
		t.Errorf("stop words %q", got.StopWords)
	}
	if uses(model, first) || strings.Contains(get(handler, topics).Body.String(), `"words":["common"`) || word() == first {
		t.Errorf("%q is still in use", first)
	}
	if kept, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stop_words.txt")); err != nil || string(kept) != strings.ToUpper(first)+"\ncommon\n" {
		t.Errorf("the file is %q, error %v", kept, err)
	}
	if again := newWith(t, m, "test", o); strings.Join(again.summary.Dimensions[2].Label, " ") == first {
		t.Error("stop words are forgotten")
	}
	for body, status := range map[string]int{`{"stop_words": ["a", 3]}`: 400, `{"stop_words": ["` + strings.Repeat("a", 101) + `"]}`: 400, `{"stop_words": ["a"], "topic": 5, "name": "x"}`: 400} {
		if w := post(handler, body); w.Code != status {
			t.Errorf("%.40s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := post(handler, `{"stop_words": ["a"]}`, "From: 192.168.1.2:50000"); w.Code != 403 {
		t.Errorf("from another machine: %d", w.Code)
	}
	if labelsOf(t, post(handler, `{"stop_words": [], "replaces": ["`+strings.ToUpper(first)+`", "common"]}`)); word() != first {
		t.Errorf("the first label is %q after the stop words were removed", word())
	}
	if w := post(newWith(t, testModel(), "words", o).Handler(""), `{"stop_words": ["bank"]}`); w.Code != 400 {
		t.Errorf("of words: %d", w.Code)
	}
}

// The page shows stop words that another process stored, and never overwrites stop words that it hasn't shown.
func TestStopWordsOfOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "labels.json")
	o := Options{Labels: file, CheckModel: func() error { return nil }}
	handler := newWith(t, testTopics(), "test", o).Handler("")
	first := get(handler, "/data/model").Body.String()
	testonly.Must(t, interpret.ChangeStopWords(t.Context(), file, []string{"common", "themea"}, o.CheckModel))
	if w := post(handler, `{"stop_words": ["rain"]}`); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "reload the page") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := get(handler, "/data/model").Body.String(); got == first {
		t.Error("the labels still have the stop words")
	}
	if got := get(handler, "/data/labels").Body.String(); !strings.Contains(got, `"stop_words":["common","themea"]`) {
		t.Error(got)
	}
	if w := post(handler, `{"stop_words": [], "replaces": ["common", "themea"]}`); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The page shows labels that another process stored, changed or deleted.
func TestLabelsOfOthers(t *testing.T) {
	x, file := labelled(t)
	for _, name := range []string{"first", "second", ""} {
		change := []interpret.Label{{ID: 0, Name: name}}
		_, err := interpret.ChangeLabels(t.Context(), file, testAtoms, change, func() error { return nil })
		testonly.Must(t, err)
		if labels := x.allLabels().Labels; name == "" && len(labels) > 0 || name != "" && (len(labels) != 1 || labels[0].Name != name) {
			t.Errorf("%q: labels %+v", name, labels)
		}
	}
	testonly.Must(t, os.Remove(file))
	if labels := x.allLabels().Labels; len(labels) > 0 {
		t.Errorf("labels %+v without a file", labels)
	}
}

// A label of a replaced model isn't saved in the new model.
func TestLabelsOfAReplacedModel(t *testing.T) {
	x, file := labelled(t)
	x.options.CheckModel = func() error { return errors.New("another model is there") }
	w := post(x.Handler(""), `{"dimension": 3, "name": "kings"}`)
	if _, err := os.Stat(file); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "another model is there") || err == nil {
		t.Errorf("%d %s, and the file: %v", w.Code, w.Body, err)
	}
}

func TestLabelsCanNotBeChangedFromElsewhere(t *testing.T) {
	x, file := labelled(t)
	handler := x.Handler("explorer.example")
	const label = `{"dimension": 3, "name": "kings"}`
	for _, tt := range []struct {
		body   string
		status int
		field  string
	}{
		{label, 403, "Origin: http://other.example"},
		{label, 403, "Sec-Fetch-Site: cross-site"},
		{label, 403, "Host: other.example"},
		{label, 403, "From: 192.168.1.2:50000"},
		{label, 403, "From: "},
		{`{"dimension": 40, "name": "kings"}`, 400, ""},
		{`{"topic": 3, "name": "of a model without topics"}`, 400, ""},
	} {
		w := post(handler, tt.body, tt.field)
		if checkAnswer(t, tt.field, w); w.Code != tt.status {
			t.Errorf("%.60s %s: %d %s, want %d", tt.body, tt.field, w.Code, w.Body, tt.status)
		}
		if _, err := os.Stat(file); err == nil {
			t.Fatalf("%.60s %s: was saved", tt.body, tt.field)
		}
	}
	if w := get(handler, "/data/labels", "Method: PUT"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("PUT: %d, %s", w.Code, w.Header())
	}
	if w := post(handler, label, "From: [::ffff:127.0.0.1]:50000"); w.Code != 200 {
		t.Errorf("from this machine: %d %s", w.Code, w.Body)
	}
	if w := post(newExplorer(t, testModel(), "test").Handler(""), label); w.Code != 403 {
		t.Errorf("of a model without a place for labels: %d %s", w.Code, w.Body)
	}
}
