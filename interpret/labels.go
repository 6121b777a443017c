package interpret

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
)

// A Label is a name that a person or a program gave to a dimension or a topic.
type Label struct {
	ID    int    // number of the dimension, or of the topic
	Name  string // short; "" if there is only a note
	Note  string // one line
	Topic bool   // ID is the number of a topic

	Proposed bool // the name is from a program, and no person has edited it
}

type labelFields struct {
	Dimension *int   `json:"dimension,omitempty"`
	Topic     *int   `json:"topic,omitempty"`
	Name      string `json:"name"`
	Note      string `json:"note,omitempty"`
	Proposed  bool   `json:"proposed,omitempty"`
}

// MarshalJSON returns an object with the fields dimension or topic, name, and (unless empty) note and proposed.
func (l Label) MarshalJSON() ([]byte, error) {
	f := labelFields{&l.ID, nil, l.Name, l.Note, l.Proposed}
	if l.Topic {
		f.Dimension, f.Topic = nil, &l.ID
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the caller's encoder decides
	err := e.Encode(f)
	return b.Bytes(), err
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Label) UnmarshalJSON(data []byte) error {
	var f labelFields
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	id := cmp.Or(f.Dimension, f.Topic)
	if id == nil || f.Dimension != nil && f.Topic != nil {
		return fmt.Errorf("label %.50q: want either a dimension or a topic", f.Name)
	}
	*l = Label{*id, f.Name, f.Note, f.Topic != nil, f.Proposed}
	return nil
}

func (l Label) kind() string {
	if l.Topic {
		return "topic"
	}
	return "dimension"
}

// Labels is the content of a model's labels.json: labels of dimensions, then of topics, each in increasing
// order of numbers. [Index.Label] names dimensions without a label.
type Labels []Label

// Limits of a label, in bytes.
const (
	maxName = 100
	maxNote = 2000
)

// maxThemes replaces the number of themes when labels are read, because a file may label topics that the model lacks.
const maxThemes = 1 << 30

// Check returns an error if a model with K dimensions and M themes lacks the label's dimension or topic. The name must
// be one line of at most 100 bytes, and the note one line of at most 2,000 bytes.
func (l Label) Check(dimensions, themes int) error {
	end := dimensions
	if l.Topic {
		end = max(2*themes-1, 0)
	}
	if l.ID < 0 || l.ID >= end {
		if end == 0 {
			return fmt.Errorf("no %s %d: the model has no %[1]ss", l.kind(), l.ID)
		}
		return fmt.Errorf("no %s %d (want 0 to %d)", l.kind(), l.ID, end-1)
	}
	if err := cmp.Or(checkLine("name", l.Name, maxName), checkLine("note", l.Note, maxNote)); err != nil {
		return fmt.Errorf("%s %d: %w", l.kind(), l.ID, err)
	}
	return nil
}

// set replaces the label of a topic, or of a dimension of a model with K dimensions. If name and note are
// empty, it deletes the label.
func (ls *Labels) set(l Label, dimensions int) error {
	l.Name, l.Note = strings.TrimSpace(l.Name), strings.TrimSpace(l.Note)
	if err := l.Check(dimensions, maxThemes); err != nil {
		return err
	}
	i, found := ls.find(l)
	if found {
		*ls = slices.Delete(*ls, i, i+1)
	}
	if l.Name != "" || l.Note != "" {
		*ls = slices.Insert(*ls, i, l)
	}
	return nil
}

// find returns the index of the label of l's dimension or topic. If there is no such label, it returns the index at
// which l must be inserted.
func (ls Labels) find(l Label) (i int, found bool) {
	return slices.BinarySearchFunc(ls, l, func(a, b Label) int {
		return cmp.Or(cmp.Compare(a.kind(), b.kind()), cmp.Compare(a.ID, b.ID))
	})
}

// checkLine returns an error unless text is one line of at most max bytes.
func checkLine(what, text string, max int) error {
	text = strings.TrimSpace(text)
	switch {
	case len(text) > max:
		return fmt.Errorf("the %s is too long (got %d bytes, want at most %d)", what, len(text), max)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("the %s isn't one line of UTF-8 text (got %.50q)", what, text)
	}
	return nil
}

// Name returns the label of a pole's dimension or, without a label, the words of [Index.Label]. The name
// of a negative pole begins with a minus.
func (ls Labels) Name(x *Index, p Pole) string {
	name := ""
	if i, found := ls.find(Label{ID: p.Dimension}); found {
		name = ls[i].Name
	}
	if name == "" {
		name = strings.Join(x.Label(p), ", ")
	}
	if p.Negative && name != "" {
		return "−" + name
	}
	return name
}

// Topic returns the name of a topic's label, or "".
func (ls Labels) Topic(id int) string {
	if i, found := ls.find(Label{ID: id, Topic: true}); found {
		return ls[i].Name
	}
	return ""
}

// maxLabelsFile is the largest size of a labels.json in bytes.
const maxLabelsFile = 1 << 26

// ReadLabels reads the labels.json of a model with K dimensions. It returns no labels if the file doesn't
// exist. Errors name the file.
func ReadLabels(path string, dimensions int) (Labels, error) {
	data, err := input.ReadRegular(path, maxLabelsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Labels{}, nil
	} else if err != nil {
		return nil, err
	}
	var list []Label
	labels := Labels{}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %.200v", path, err) // the error can quote a number of any length
	}
	for _, l := range list {
		if _, repeated := labels.find(l); repeated {
			return nil, fmt.Errorf("%s: %s %d has two labels", path, l.kind(), l.ID)
		}
		if err := labels.set(l, dimensions); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return labels, nil
}

// stopWordsPath returns the path of the stop words beside a labels.json.
func stopWordsPath(labels string) string {
	return filepath.Join(filepath.Dir(labels), modeldir.StopWords)
}

// ReadStopWords reads the stop words of a model, for [Index.WithStopWords], from stop_words.txt in the directory of its
// labels.json. The file has one word on each line. It returns no words if the file doesn't exist. Errors name the file.
func ReadStopWords(labels string) ([]string, error) {
	path := stopWordsPath(labels)
	data, err := input.ReadRegular(path, maxLabelsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{}, nil
	} else if err != nil {
		return nil, err
	}
	words, err := ParseStopWords(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return words, nil
}

// ParseStopWords returns the words of a text that has one word on each line. It skips empty lines. The error names the
// first line that isn't UTF-8 or is longer than 100 bytes.
func ParseStopWords(text string) ([]string, error) {
	words := []string{}
	line := 0
	for word := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line++
		word = strings.TrimSpace(word)
		if err := checkLine("stop word", word, maxName); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if word != "" {
			words = append(words, word)
		}
	}
	return words, nil
}

// ChangeStopWords replaces the file of a model's stop words (see [ReadStopWords]), or removes it if there are no words.
// The words must not contain line breaks. ChangeStopWords uses a lock and the function check as [ChangeLabels] does.
func ChangeStopWords(ctx context.Context, labels string, words []string, check func() error) error {
	unlock, err := atomicfile.Lock(ctx, filepath.Dir(labels))
	if err != nil {
		return err
	}
	defer unlock()
	if err := check(); err != nil {
		return err
	}
	if len(words) == 0 {
		if err := os.Remove(stopWordsPath(labels)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return atomicfile.WriteFile(ctx, stopWordsPath(labels), true, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(words, "\n")+"\n")
		return err
	})
}

// ChangeLabels sets labels in the labels.json at path, of a model with K dimensions, and returns all labels. It trims
// spaces around names and notes, and deletes labels that have neither. A proposal doesn't replace the label of a
// person. A lock makes other processes that change labels wait. ChangeLabels calls check before it writes the file. If
// check returns an error, it writes nothing. It also fails if [Label.Check] or [ReadLabels] does.
func ChangeLabels(ctx context.Context, path string, dimensions int, changes []Label, check func() error) (Labels, error) {
	unlock, err := atomicfile.Lock(ctx, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	old, err := ReadLabels(path, dimensions)
	if err != nil {
		return nil, err
	}
	labels := slices.Clone(old)
	for _, l := range changes {
		if i, found := old.find(l); l.Proposed && found && old[i].Name != "" && !old[i].Proposed {
			continue
		}
		if err := labels.set(l, dimensions); err != nil {
			return nil, err
		}
	}
	if err := check(); err != nil || slices.Equal(labels, old) {
		return labels, err
	}
	return labels, atomicfile.WriteFile(ctx, path, true, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(labels)
	})
}
