package interpret

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
)

// A Label is what a person, or another program, says that a dimension means.
type Label struct {
	Dimension int    `json:"dimension"`
	Name      string `json:"name"`           // short; "" if there is only a note
	Note      string `json:"note,omitempty"` // anything more
}

// Labels are the labels that people gave to dimensions, by dimension, and the content of
// a model's labels.json. A dimension without one is called by its words: see [Index.Label].
type Labels map[int]Label

// The most bytes of a label's name and note.
const (
	mostName = 100
	mostNote = 2000
)

// Set makes l that of its dimension, of a model with K dimensions, in place of one that
// it has; a label without name and note takes that away. White space around name and note is
// left out. It is an error if the model does not have the dimension, or if name or note are
// not one line of text each, of at most 100 and 2,000 bytes.
func (ls Labels) Set(l Label, dimensions int) error {
	l.Name, l.Note = strings.TrimSpace(l.Name), strings.TrimSpace(l.Note)
	if l.Dimension < 0 || l.Dimension >= dimensions {
		return fmt.Errorf("no dimension %d: they are 0 to %d", l.Dimension, dimensions-1)
	}
	for _, text := range []struct {
		what, text string
		most       int
	}{{"name", l.Name, mostName}, {"note", l.Note, mostNote}} {
		switch {
		case len(text.text) > text.most:
			return fmt.Errorf("the %s of dimension %d has %d bytes, want %d at most", text.what, l.Dimension, len(text.text), text.most)
		case !utf8.ValidString(text.text) || strings.ContainsFunc(text.text, unicode.IsControl):
			return fmt.Errorf("the %s of dimension %d is %.50q, want one line of text", text.what, l.Dimension, text.text)
		}
	}
	if l.Name == "" && l.Note == "" {
		delete(ls, l.Dimension)
	} else {
		ls[l.Dimension] = l
	}
	return nil
}

// Save writes the labels as the file at path, whole or not at all, in place of one that is
// there.
func (ls Labels) Save(ctx context.Context, path string) error {
	return atomicfile.WriteFile(ctx, path, true, ls.Write)
}

// Write writes what [Labels.Save] does.
func (ls Labels) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(ls.List())
}

// ChangeLabels changes the labels that are kept at path, of a model with K dimensions, and
// returns what they are then. Other processes that change them wait meanwhile. An error of
// change is returned, and nothing is written then. Errors are also those of [ReadLabels] and
// [Labels.Save].
func ChangeLabels(ctx context.Context, path string, dimensions int, change func(Labels) error) (Labels, error) {
	unlock, err := atomicfile.Lock(ctx, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	ls, err := ReadLabels(path, dimensions)
	if err != nil {
		return nil, err
	}
	before := maps.Clone(ls)
	if err := change(ls); err != nil || maps.Equal(before, ls) {
		return ls, err
	}
	return ls, ls.Save(ctx, path)
}

// List returns the labels in the order of dimensions.
func (ls Labels) List() []Label {
	list := make([]Label, 0, len(ls))
	for _, k := range slices.Sorted(maps.Keys(ls)) {
		list = append(list, ls[k])
	}
	return list
}

// mostLabels is more bytes than people write.
const mostLabels = 1 << 26

// ReadLabels reads what [Labels.Save] wrote of a model with K dimensions. There are no
// labels if there is no such file. It is an error, which names the file, if that holds
// anything else, such as a dimension twice.
func ReadLabels(path string, dimensions int) (Labels, error) {
	ls := Labels{}
	data, err := input.ReadRegular(path, mostLabels)
	if errors.Is(err, fs.ErrNotExist) {
		return ls, nil
	} else if err != nil {
		return nil, err
	}
	var list []Label
	err = json.Unmarshal(data, &list)
	for _, l := range list {
		if _, ok := ls[l.Dimension]; ok && err == nil {
			err = fmt.Errorf("dimension %d is there twice", l.Dimension)
		}
		if err == nil {
			err = ls.Set(l, dimensions)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %.200v", path, err) // a number in it can be of any length
	}
	return ls, nil
}

// Of returns what a side of a dimension is called: the name that a person gave, or else its
// [Index.Label], with a minus for the negative side.
func (ls Labels) Of(x *Index, dimension int, negative bool) string {
	name := ls[dimension].Name
	if name == "" {
		name = strings.Join(x.Label(dimension, negative), ", ")
	}
	if negative && name != "" {
		return "−" + name
	}
	return name
}

// Stronger reports whether the negative values of a dimension are larger than the positive ones,
// so that its negative side says what it means.
func (x *Index) Stronger(dimension int) (negative bool) {
	top, bottom := x.Top(dimension, 1), x.Bottom(dimension, 1)
	return len(bottom) > 0 && (len(top) == 0 || -bottom[0].Value > top[0].Value)
}

// valueWeight is λ of the relevance of words to a topic in LDAvis (Sievert and Shirley 2014,
// §3.1). 1 would be the order of the values alone, 0 that of the words' shares. With counts
// its readers did best at 0.6; of codes that prefers words with little of anything, such as
// hz, usually and addi for a dimension of rate, hz and mutex.
const valueWeight = 0.8

// relevanceScale returns what turns a value of a word into its relevance to the value's
// dimension, given Σ|a| over the word's code a.
func relevanceScale(sum float64) float64 {
	if sum == 0 {
		return 0
	}
	return math.Pow(sum, valueWeight-1)
}

// Distinctive returns up to n words with the largest relevance to the positive side of a
// dimension or, with negative, to its negative side. The relevance of word i to dimension k
// is that of LDAvis, with nonzeros for counts:
//
//	λ log|a_ik| + (1−λ) log(|a_ik| / Σ_j|a_ij|),  λ = 0.8
//
// A word that is in few other dimensions comes before one with the same value that is in
// many. The entries have values, not relevances. Equally relevant words are in row order.
func (x *Index) Distinctive(dimension, n int, negative bool) []Entry {
	type relevant struct {
		Entry
		relevance float64
	}
	compare := func(a, b relevant) int {
		return cmp.Or(cmp.Compare(b.relevance, a.relevance), cmp.Compare(a.Row, b.Row))
	}
	found, known := best[relevant]{n: n, compare: compare}, best[relevant]{n: n, compare: compare}
	for i, v := range x.nonzeros(dimension) {
		if v < 0 == negative {
			r := relevant{Entry{i, v}, math.Abs(float64(v)) * x.scale[i]}
			found.add(r)
			if i < x.Known {
				known.add(r)
			}
		}
	}
	entries := []Entry{}
	for _, r := range knownFirst(x, found.sorted(), known.sorted(), func(r relevant) (int, float64) { return r.Row, r.relevance }) {
		entries = append(entries, r.Entry)
	}
	return entries
}

// Label returns up to three words that stand for a side of a dimension: the most
// distinctive ones, of which only one begins alike, since two forms of a word say no more
// than one. Where rows are texts these are [Index.Words].
func (x *Index) Label(dimension int, negative bool) []string {
	const wanted, looked = 3, 12
	if x.Codes.Texts != nil {
		return x.Words(dimension, wanted, negative)
	}
	words := []string{}
	for _, e := range x.Distinctive(dimension, looked, negative) {
		word := x.Codes.Words[e.Row]
		alike := slices.ContainsFunc(words, func(other string) bool { return beginAlike(word, other) })
		if !alike && len(words) < wanted {
			words = append(words, word)
		}
	}
	return words
}

// beginAlike reports whether the first five letters of two words are the same but for
// case, or all of one that has only three or four.
func beginAlike(a, b string) bool {
	x, y := appendLower(nil, a), appendLower(nil, b)
	n := min(len(x), len(y), 5)
	return slices.Equal(x, y) || n >= 3 && slices.Equal(x[:n], y[:n])
}
