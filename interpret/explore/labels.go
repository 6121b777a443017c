package explore

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"overcomplete/interpret"
)

// currentLabels returns the labels in the file. If the file can't be read or belongs to another model, it returns the
// labels that were read last.
func (x *Explorer) currentLabels() interpret.Labels {
	x.labelsLock.Lock()
	defer x.labelsLock.Unlock()
	if x.options.Labels == "" {
		return nil
	}
	file, _ := os.Stat(x.options.Labels)
	if last := x.labelsFile; file == nil && last == nil || file != nil && last != nil && os.SameFile(file, last) && file.ModTime().Equal(last.ModTime()) && file.Size() == last.Size() {
		return x.labels
	}
	if check := x.options.CheckModel; check != nil && check() != nil {
		return x.labels
	}
	if labels, err := interpret.ReadLabels(x.options.Labels, x.model.Codes.Cols); err == nil {
		x.labels, x.labelsFile = labels, file
	}
	return x.labels
}

// setLabel changes one label in the file. It keeps the changes of other processes.
func (x *Explorer) setLabel(ctx context.Context, label interpret.Label) error {
	if err := label.Check(x.model.Codes.Cols, x.summary.Themes); err != nil {
		return badRequest("%v", err)
	}
	x.labelsLock.Lock()
	defer x.labelsLock.Unlock()
	all, err := interpret.ChangeLabels(ctx, x.options.Labels, x.model.Codes.Cols, []interpret.Label{label}, x.options.CheckModel)
	if err != nil {
		return forbidden("the label was not saved: %v", err)
	}
	x.labels = all
	return nil
}

type labelsAnswer struct {
	Writable  bool             `json:"writable"`
	Labels    interpret.Labels `json:"labels"`
	StopWords []string         `json:"stop_words"`
}

func (x *Explorer) allLabels() labelsAnswer {
	return labelsAnswer{x.options.Labels != "", append(interpret.Labels{}, x.currentLabels()...), append([]string{}, x.stopWords...)}
}

// errStopWordsChanged refuses to overwrite stop words that the page doesn't show.
var errStopWordsChanged = &RequestError{Status: http.StatusConflict, Message: "the stop words were not saved: they have changed since the page was loaded; reload the page"}

// setStopWords replaces the stop words, and returns an explorer with the new labels of dimensions and topics. It returns
// an error unless the file still has the words of the argument old.
func (x *Explorer) setStopWords(ctx context.Context, words, old []string) (*Explorer, error) {
	words, err := interpret.ParseStopWords(strings.Join(words, "\n"))
	if err != nil {
		return nil, badRequest("%v", err)
	}
	check := func() error {
		if err := x.options.CheckModel(); err != nil {
			return err
		}
		now, err := interpret.ReadStopWords(x.options.Labels)
		if err == nil && !slices.Equal(now, old) {
			err = errStopWordsChanged
		}
		return err
	}
	if err := interpret.ChangeStopWords(ctx, x.options.Labels, words, check); err == errStopWordsChanged {
		return nil, err
	} else if err != nil {
		return nil, forbidden("the stop words were not saved: %v", err)
	}
	return x.rebuild()
}

// current returns x or, if another process has changed the stop words, an explorer that shows the new stop words. The
// site then serves that explorer.
func (s *site) current(x *Explorer) *Explorer {
	if x.stopWordsChanged() {
		if y, err := x.rebuild(); err == nil {
			s.show(y)
			return y
		}
	}
	return x
}

// stopWordsChanged reports whether the stop words in the file have changed. It returns false if the file can't be read
// or belongs to another model.
func (x *Explorer) stopWordsChanged() bool {
	if x.options.Labels == "" || x.options.CheckModel != nil && x.options.CheckModel() != nil {
		return false
	}
	words, err := interpret.ReadStopWords(x.options.Labels)
	return err == nil && !slices.Equal(words, x.stopWords)
}

// rebuild returns an explorer of the same model with the labels and stop words in the files.
func (x *Explorer) rebuild() (*Explorer, error) {
	y, err := build(x.model, x.index, x.summary.Name, x.options)
	if err == nil {
		y.duplicates = x.duplicates
	}
	return y, err
}

// serveLabels returns a handler that first saves posted labels and stop words, and then sends all. The site refuses other
// sites' requests. After a change of stop words, it serves a new explorer.
func (x *Explorer) serveLabels(s *site) handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		_, err := parameter(r, "", 0)
		now := x
		if err == nil && r.Method == http.MethodPost {
			now, err = x.postLabel(w, r)
		}
		if err != nil {
			return nil, err
		}
		if now != x {
			s.show(now)
		}
		return now.allLabels(), nil
	}
}

// postLabel saves the label or the stop words in a request, and returns an explorer that shows them. The request must
// contain JSON, because forms on other sites' pages can't send JSON.
func (x *Explorer) postLabel(w http.ResponseWriter, r *http.Request) (*Explorer, error) {
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().Unmap().IsLoopback() {
		return nil, forbidden("change labels: only browsers on the machine of the model can")
	}
	if x.options.Labels == "" {
		return nil, forbidden("change labels: the training of the model isn't finished")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, badRequest("want a label as application/json")
	}
	var label struct {
		Dimension *int     `json:"dimension"`
		Topic     *int     `json:"topic"`
		Name      *string  `json:"name"`
		Note      string   `json:"note"`
		StopWords []string `json:"stop_words"`
		Replaces  []string `json:"replaces"` // the stop words that the page shows
	}
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<19))
	body.DisallowUnknownFields()
	if err := body.Decode(&label); err != nil {
		return nil, badRequest("want a label: %.200v", err)
	}
	if _, err := body.Token(); err != io.EOF {
		return nil, badRequest("want one label")
	}
	if label.StopWords != nil {
		if label.Dimension != nil || label.Topic != nil || label.Name != nil || !x.summary.Texts {
			return nil, badRequest("want stop words of texts alone")
		}
		return x.setStopWords(r.Context(), label.StopWords, label.Replaces)
	}
	id := cmp.Or(label.Dimension, label.Topic)
	if id == nil || label.Dimension != nil && label.Topic != nil || label.Name == nil {
		return nil, badRequest("want a label with dimension or topic, and name")
	}
	return x, x.setLabel(r.Context(), interpret.Label{ID: *id, Name: *label.Name, Note: label.Note, Topic: label.Topic != nil})
}
