// Package explore shows a model as a web page: the dimensions of a word, the words of
// a dimension, what words have in common, and a map of all dimensions.
//
// The page is a script that asks for eight kinds of JSON: about the model, a word, a
// dimension, the map, a question, words that complete what is typed, labels, and which
// dimensions of another model match. [Explorer.Handler] serves page and JSON.
// [Explorer.WritePage] writes a file that contains the page and the JSON for chosen words
// and dimensions, to send to somebody. What the page shows is in the fragment of its URL
// (#/word/bank), so that the browser's history and bookmarks work in the same way for both.
package explore

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"overcomplete/internal/parallel"
	"overcomplete/interpret"
	"overcomplete/model"
)

// How much of everything is shown.
const (
	labelWords   = 8  // words that stand for a dimension
	listWords    = 40 // words of a dimension on its own page
	nearestWords = 24
	together     = 16    // dimensions that fire with one
	suggestions  = 10    // completions, and closest spellings
	bins         = 32    // of a histogram
	listedText   = 240   // characters of a text in a list
	wholeText    = 20000 // characters of a text on its own page
	examples     = 5     // texts at the middle and at the weak end of a dimension
)

// Explorer serves the page of one model. Its methods may be called at the same time.
type Explorer struct {
	model     *model.Model
	index     *interpret.Index
	about     about
	variances []float64       // of each dimension
	signs     []signs         // of each dimension
	strongest []int           // live dimensions, see interpret.Strongest
	mapped    func() chart    // of the live dimensions
	rows      func() rowChart // of words or texts
	labels    keptLabels
	framed    bool                     // pages of this machine may have it in a frame
	other     *Explorer                // nil without
	matches   func() interpret.Matches // of dimensions with the other's, nil without
}

// about is what the page knows from its start.
type about struct {
	Name       string       `json:"name"`
	Input      string       `json:"input"`
	Method     model.Method `json:"method"`
	Lambda     float64      `json:"lambda"`
	Words      int          `json:"words"`           // V
	Texts      bool         `json:"texts,omitempty"` // rows are texts, and what is called a word of a row is its id
	Dense      int          `json:"dense"`           // L
	Live       int          `json:"live"`            // dimensions that some word uses
	Epochs     int          `json:"epochs"`
	Error      float64      `json:"error,omitempty"`     // mean ‖x − μ − aD‖² of a word, if it was measured
	Explained  float64      `json:"explained,omitempty"` // share of the variance, if it was measured
	Other      *otherModel  `json:"other,omitempty"`     // that is looked at beside it
	Judge      string       `json:"judge,omitempty"`     // name of the vectors that dimensions' scores are by
	Nonzeros   int          `json:"nonzeros"`            // in all codes
	PerWord    histogram    `json:"per_word"`            // of active dimensions
	PerDim     histogram    `json:"per_dimension"`       // of words, live dimensions only
	Strongest  []int        `json:"strongest"`           // dimensions, see interpret.Strongest
	Dimensions []label      `json:"dimensions"`          // K
}

// otherModel is a second model, and where its page is.
type otherModel struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// label is what stands for a dimension where it is mentioned.
type label struct {
	Words  int      `json:"words"`            // that use it
	Top    []string `json:"top"`              // largest positive values first; of texts, keywords: see [interpret.Index.Words]
	Bottom []string `json:"bottom,omitempty"` // most negative values first

	// What it and its negative side are called: see [interpret.Index.Label].
	Label       []string `json:"label"`
	BottomLabel []string `json:"bottom_label,omitempty"`
	Negative    bool     `json:"negative,omitempty"` // the negative side has the larger values
	Likeness    *float64 `json:"likeness,omitempty"` // of the side with the larger values, see [interpret.Index.Likeness], to a thousandth

	// The shares of intruders found in it and in its negative side, as [interpret.Score.Matched].
	Coherence       *float64 `json:"coherence,omitempty"`
	BottomCoherence *float64 `json:"bottom_coherence,omitempty"`
}

type wordAnswer struct {
	Word    string      `json:"word"`
	Row     int         `json:"row"`    // from 0
	Active  []weight    `json:"active"` // by decreasing absolute value
	Nearest []neighbour `json:"nearest"`
	Columns [][2]string `json:"columns,omitempty"` // of a text: names and values of what else is known of it
	said
}

// said are the texts of the rows that an answer mentions, by id.
type said struct {
	Texts map[string]string `json:"texts,omitempty"`
}

// add adds the text of a row, of which all is said, or only as much as a list shows.
func (s *said) add(x *Explorer, row int, all bool) {
	codes := x.model.Codes
	if codes.Texts == nil {
		return
	}
	text, most := codes.Texts.Text[row], listedText
	if all {
		most = wholeText
	}
	text = cut(text, most)
	if s.Texts == nil {
		s.Texts = map[string]string{}
	}
	if old := s.Texts[codes.Words[row]]; len(text) > len(old) {
		s.Texts[codes.Words[row]] = text
	}
}

// cut returns a text of at most so many characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

type weight struct {
	Dimension int     `json:"dimension"`
	Value     float32 `json:"value"`
}

type neighbour struct {
	Word   string  `json:"word"`
	Cosine float64 `json:"cosine"`
}

type dimensionAnswer struct {
	Dimension int       `json:"dimension"`
	Words     int       `json:"words"` // with a nonzero value
	Variance  float64   `json:"variance"`
	Histogram histogram `json:"histogram"` // of the nonzero values
	Top       []entry   `json:"top"`
	Bottom    []entry   `json:"bottom"`
	// The same by relevance: see [interpret.Index.Distinctive].
	Distinctive       []entry `json:"distinctive"`
	DistinctiveBottom []entry `json:"distinctive_bottom"`
	Together          []pair  `json:"together"`
	// Of texts, some at the middle and at the weak end of the positive values.
	Middle []entry `json:"middle,omitempty"`
	Weak   []entry `json:"weak,omitempty"`
	said
}

type entry struct {
	Word  string  `json:"word"`
	Value float32 `json:"value"`
}

// pair is how often another dimension fires with one.
type pair struct {
	Dimension   int     `json:"dimension"`
	Opposite    bool    `json:"opposite,omitempty"` // the sides of the two that fire together have opposite signs
	Words       int     `json:"words"`              // that are on those sides of both
	Expected    float64 `json:"expected"`           // that many would be by chance
	Correlation float64 `json:"correlation"`        // of the two dimensions' signs (−1, 0, 1), or minus that where they are opposite
}

// New returns an explorer of m, which has codes and which the page calls by name. It must not change
// afterwards. New computes what is needed for every page; the map, which takes longer,
// is computed in the background.
func New(m *model.Model, name string) *Explorer {
	x := &Explorer{model: m, index: interpret.NewIndex(m.Codes)}
	x.index.Known = m.Info.Known()
	x.mapped = sync.OnceValue(x.layout)
	x.rows = sync.OnceValue(x.layoutRows)
	x.variances = x.index.Variances()
	x.describe(name)
	go x.mapped()
	return x
}

// describe sets about, signs and strongest.
func (x *Explorer) describe(name string) {
	m := x.model
	a := about{
		Name:       name,
		Input:      m.Info.Encoding.Input.Name,
		Method:     m.Info.Training.Recipe.Base().Method,
		Lambda:     m.Info.Encoding.Lambda,
		Error:      m.Info.Encoding.Error,
		Words:      m.Codes.Rows,
		Texts:      m.Codes.Texts != nil,
		Dense:      m.Dictionary.Dim,
		Epochs:     len(m.Info.Training.Epochs),
		Nonzeros:   m.Codes.Nonzeros(),
		Dimensions: make([]label, m.Codes.Cols),
	}
	if share, known := m.Info.Encoding.Explained(); known {
		a.Explained = share
	}
	x.signs = make([]signs, m.Codes.Cols)
	top := make([][]interpret.Entry, m.Codes.Cols)
	parallel.Ranges(m.Codes.Cols, func(lo, hi int) {
		for k := lo; k < hi; k++ {
			values := x.index.Values(k)
			for _, v := range values {
				if v > 0 {
					x.signs[k].positive++
				} else {
					x.signs[k].negative++
				}
			}
			top[k] = x.index.Top(k, labelWords)
			a.Dimensions[k] = label{
				Words: len(values), Top: x.index.Words(k, labelWords, false), Bottom: x.index.Words(k, labelWords, true),
				Label: x.index.Label(k, false), BottomLabel: x.index.Label(k, true), Negative: x.index.Stronger(k),
			}
			if likeness := x.index.Likeness(k, a.Dimensions[k].Negative); !math.IsNaN(likeness) {
				likeness = math.Round(1000*likeness) / 1000
				a.Dimensions[k].Likeness = &likeness
			}
		}
	})
	perDimension := make([]float32, 0, m.Codes.Cols)
	for _, d := range a.Dimensions {
		if d.Words > 0 {
			perDimension = append(perDimension, float32(d.Words))
		}
	}
	perWord := make([]float32, m.Codes.Rows)
	for i := range perWord {
		perWord[i] = float32(m.Codes.Ptr[i+1] - m.Codes.Ptr[i])
	}
	a.Live = len(perDimension)
	a.PerDim = newHistogram(perDimension, true)
	a.PerWord = newHistogram(perWord, true)
	x.strongest = slices.DeleteFunc(interpret.Strongest(top), func(k int) bool { return a.Dimensions[k].Words == 0 })
	a.Strongest = x.strongest
	x.about = a
}

// entries returns entries of an answer, and adds what they say to it.
func (x *Explorer) entries(from []interpret.Entry, s *said) []entry {
	to := make([]entry, len(from))
	for i, e := range from {
		to[i] = entry{x.model.Codes.Words[e.Row], e.Value}
		s.add(x, e.Row, false)
	}
	return to
}

// A NotFoundError reports a word or dimension that the model does not have.
type NotFoundError struct {
	Message string
	Word    string   // if it is a word
	Closest []string // words of the model with a similar spelling
}

func (e *NotFoundError) Error() string {
	if len(e.Closest) == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s; the closest are %s", e.Message, strings.Join(e.Closest, ", "))
}

func (x *Explorer) findWord(word string) (row int, err error) {
	row, ok := x.index.Row(word)
	if !ok && x.about.Texts { // or what is in one text only
		if rows, total := x.index.Search(word, 1); total == 1 {
			return rows[0], nil
		}
	}
	if !ok {
		return 0, x.unknown(&interpret.UnknownWordError{Word: word})
	}
	return row, nil
}

func (x *Explorer) unknown(err *interpret.UnknownWordError) error {
	message := err.Error()
	if x.about.Texts {
		message = fmt.Sprintf("%.100q is no id, and in no text", err.Word)
	}
	return &NotFoundError{message, err.Word, x.index.Closest(err.Word, suggestions)}
}

func (x *Explorer) checkDimension(k int) error {
	if k < 0 || k >= x.model.Codes.Cols {
		return &NotFoundError{Message: fmt.Sprintf("no dimension %d: they are 0 to %d", k, x.model.Codes.Cols-1)}
	}
	return nil
}

// word answers what is asked about the word of a row.
func (x *Explorer) word(row int) wordAnswer {
	active := x.index.Active(row)
	a := wordAnswer{Word: x.model.Codes.Words[row], Row: row, Active: make([]weight, len(active)), Nearest: []neighbour{}}
	for i, w := range active {
		a.Active[i] = weight(w)
	}
	for _, n := range x.index.Nearest(row, nearestWords) {
		a.Nearest = append(a.Nearest, neighbour{x.model.Codes.Words[n.Row], n.Cosine})
		a.add(x, n.Row, false)
	}
	a.add(x, row, true)
	if texts := x.model.Codes.Texts; texts != nil {
		for _, c := range texts.Columns {
			a.Columns = append(a.Columns, [2]string{c.Name, c.Values[row]})
		}
	}
	return a
}

// dimension answers what is asked about dimension k.
func (x *Explorer) dimension(k int) dimensionAnswer {
	rows, values := x.index.Dimension(k)
	a := dimensionAnswer{
		Dimension: k,
		Words:     len(rows),
		Variance:  x.variances[k],
		Histogram: newHistogram(values, false),
		Together:  x.together(k),
	}
	a.Top, a.Bottom = x.entries(x.index.Top(k, listWords), &a.said), x.entries(x.index.Bottom(k, listWords), &a.said)
	a.Distinctive = x.entries(x.index.Distinctive(k, listWords, false), &a.said)
	a.DistinctiveBottom = x.entries(x.index.Distinctive(k, listWords, true), &a.said)
	if x.about.Texts {
		a.Middle, a.Weak = x.examples(rows, values, &a.said)
	}
	return a
}

// examples returns texts at the middle and at the weak end of the positive values of a dimension,
// if there are more than the list of the strongest has.
func (x *Explorer) examples(rows []int32, values []float32, s *said) (middle, weak []entry) {
	var positive []interpret.Entry
	for i, v := range values {
		if v > 0 {
			positive = append(positive, interpret.Entry{Row: int(rows[i]), Value: v})
		}
	}
	n := len(positive)
	if n < listWords+2*examples {
		return nil, nil
	}
	slices.SortStableFunc(positive, func(a, b interpret.Entry) int { return cmp.Compare(b.Value, a.Value) })
	first := max(n/2-examples/2, listWords)
	return x.entries(positive[first:first+examples], s), x.entries(positive[n-examples:], s)
}

// together returns the dimensions that fire with k more often than by chance, by
// the correlation of their signs, which for nonnegative codes is φ.
func (x *Explorer) together(k int) []pair {
	rows, values := x.index.Dimension(k)
	codes := x.model.Codes
	counts := make([]int32, 2*codes.Cols) // of each other, words with the same sign and with opposite ones
	var adding sync.Mutex
	parallel.Ranges(len(rows), func(lo, hi int) {
		part := make([]int32, len(counts))
		for j, i := range rows[lo:hi] {
			sign := math.Float32bits(values[lo+j]) >> 31
			index, value := codes.Row(int(i))
			for l, other := range index {
				// No branch: nobody can predict it.
				part[2*uint32(other)+(math.Float32bits(value[l])>>31^sign)]++
			}
		}
		adding.Lock()
		defer adding.Unlock()
		for i, n := range part {
			counts[i] += n
		}
	})
	n := float64(codes.Rows)
	a := x.signs[k]
	pairs := []pair{}
	for other, b := range x.signs {
		same, opposite := counts[2*other], counts[2*other+1]
		p := pair{Dimension: other, Words: int(same), Expected: (a.positive*b.positive + a.negative*b.negative) / n}
		p.Correlation = (n*float64(same-opposite) - a.sum()*b.sum()) / math.Sqrt((n*a.words()-a.sum()*a.sum())*(n*b.words()-b.sum()*b.sum()))
		if opposite > same {
			p.Opposite, p.Words, p.Correlation = true, int(opposite), -p.Correlation
			p.Expected = (a.positive*b.negative + a.negative*b.positive) / n
		}
		if other != k && p.Correlation > 0 { // neither negative nor 0/0, of a dimension that all words use
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(q.Correlation, p.Correlation) })
	return pairs[:min(together, len(pairs))]
}

// signs counts a dimension's words of each sign.
type signs struct{ positive, negative float64 }

func (s signs) words() float64 { return s.positive + s.negative }
func (s signs) sum() float64   { return s.positive - s.negative }

// histogram counts values in bins of equal width from From to To.
type histogram struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Counts []int   `json:"counts"`
}

// newHistogram counts values from zero on, to both sides or, if they are whole
// numbers, the bins of which are whole too, from the least.
func newHistogram(values []float32, whole bool) histogram {
	if len(values) == 0 {
		return histogram{Counts: []int{}}
	}
	from, to := float64(slices.Min(values)), float64(slices.Max(values))
	n := bins
	if whole {
		width := math.Ceil((to - from + 1) / bins)
		n = int(math.Ceil((to - from + 1) / width))
		to = from + width*float64(n)
	} else {
		from, to = min(from, 0), max(to, 0)
	}
	h := histogram{from, to, make([]int, n)}
	for _, v := range values {
		i := 0
		if from < to {
			i = min(int((float64(v)-from)/(to-from)*float64(n)), n-1)
		}
		h.Counts[i]++
	}
	return h
}
