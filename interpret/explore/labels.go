package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"sync"

	"overcomplete/interpret"
)

// UseCoherence makes the page show the scores of dimensions. Call it before
// [Explorer.Handler] or [Explorer.WritePage].
func (x *Explorer) UseCoherence(c *interpret.Coherence) {
	x.about.Judge = c.Reference
	for _, s := range c.Scores {
		x.about.Dimensions[s.Dimension].Coherence = &s.Matched
	}
	if c.Negative != nil {
		for _, s := range c.Negative.Scores {
			x.about.Dimensions[s.Dimension].BottomCoherence = &s.Matched
		}
	}
}

// UseLabels makes the page show what people called dimensions in the file, if it is there,
// and lets them change that, as long as same returns nil: the model there is the one that is
// shown. The error is that of [interpret.ReadLabels].
func (x *Explorer) UseLabels(file string, same func() error) error {
	ls, err := interpret.ReadLabels(file, x.model.Codes.Cols)
	x.labels.file, x.labels.same, x.labels.all = file, same, ls
	return err
}

// keptLabels are labels, and the file that they are kept in, "" if they can't be changed.
type keptLabels struct {
	file string
	same func() error
	mu   sync.Mutex
	all  interpret.Labels // is replaced, never changed
}

func (l *keptLabels) current() interpret.Labels {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// set changes one label in the file, which somebody else may have changed meanwhile.
func (l *keptLabels) set(ctx context.Context, label interpret.Label, dimensions int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := interpret.ChangeLabels(ctx, l.file, dimensions, func(all interpret.Labels) error {
		if err := l.same(); err != nil {
			return err
		}
		if err := all.Set(label, dimensions); err != nil {
			return badRequest("%v", err)
		}
		return nil
	})
	if err == nil {
		l.all = all
	}
	return err
}

type labelsAnswer struct {
	Writable bool              `json:"writable"`
	Labels   []interpret.Label `json:"labels"`
}

func (x *Explorer) allLabels() labelsAnswer {
	return labelsAnswer{x.labels.file != "", x.labels.current().List()}
}

// serveLabels answers with all labels, after it has changed one if a browser on this
// machine posts it. What [guard] refuses does not come here. JSON is asked for so that no
// form of another site's page can send it.
func (x *Explorer) serveLabels(w http.ResponseWriter, r *http.Request) {
	if _, err := parameter(r, "", 0); err != nil {
		fail(w, err)
		return
	}
	if r.Method == http.MethodPost {
		if err := x.postLabel(w, r); err != nil {
			if _, ok := errors.AsType[*requestError](err); !ok {
				err = &requestError{Status: http.StatusForbidden, Message: fmt.Sprintf("the label was not saved: %v", err)}
			}
			fail(w, err)
			return
		}
	}
	send(w, http.StatusOK, x.allLabels())
}

func (x *Explorer) postLabel(w http.ResponseWriter, r *http.Request) error {
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().Unmap().IsLoopback() {
		return &requestError{Status: http.StatusForbidden, Message: "labels can be changed on the machine of the model only"}
	}
	if x.labels.file == "" {
		return &requestError{Status: http.StatusForbidden, Message: "labels of this model can't be changed: it is no directory, or a training that goes on"}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return badRequest("want a label as application/json")
	}
	var label interpret.Label
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10))
	body.DisallowUnknownFields()
	err := body.Decode(&label)
	if err == nil {
		if _, err = body.Token(); err == io.EOF {
			return x.labels.set(r.Context(), label, x.model.Codes.Cols)
		}
		err = errors.New("there is more than one")
	}
	return badRequest("want a label: %.200v", err)
}
