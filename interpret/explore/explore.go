// Package explore shows a model as a web page: the dimensions of a word, the words of a dimension,
// the similarity of words, and maps of all dimensions and rows.
//
// The page is a script that requests JSON; docs/reference/explorer.md lists the paths and fields.
// [Explorer.Handler] serves page and JSON. [Explorer.WritePage] writes a file that contains the page
// and the JSON for chosen words and dimensions. The view is in the fragment of the URL (#/word/bank),
// so that the browser's history and bookmarks work for both.
package explore

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"

	"overcomplete/internal/parallel"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
)

// Lengths of lists and texts.
const (
	labelWords   = 8  // words that describe a dimension
	listWords    = 40 // words of a dimension on its own page
	nearestWords = 24
	maxTogether  = 16    // dimensions that fire together with one
	maxMatching  = 8     // dimensions of the texts that a search found
	suggestions  = 10    // completions
	bins         = 32    // of a histogram
	listedText   = 240   // characters of a text in a list
	wholeText    = 20000 // characters of a text on its own page
	examples     = 5     // texts from the middle and from the weak end of a dimension

	excerptDimensions = 4 // of a text whose words the excerpts of its neighbours show
)

// An Explorer serves the page of one model. Its methods may be called concurrently.
type Explorer struct {
	model     *model.Model
	index     *interpret.Index
	options   Options
	about     about
	variances []float64          // of each dimension
	signs     []signs            // of each dimension
	strongest []int              // live dimensions, see [interpret.Index.Strongest]
	mapped    func() chart       // of the live dimensions
	rows      func() rowChart    // of words or texts
	topics    func() *topicTable // of the default number
	cutting   sync.Mutex
	cuts      []topicCut // of other numbers
	labelling sync.Mutex
	labels    interpret.Labels // replaced, never changed
	matches   func() matches   // of the dimensions with those of Options.Other, nil without
}

// Options are settings of an explorer.
type Options struct {
	// Labels is the path of a labels.json that the page shows and changes, "" for none. CheckModel is
	// called before a change, and returns an error if the model on disk isn't the one that is shown.
	Labels     string
	CheckModel func() error

	// Accuracy is the word intrusion accuracy of poles, 0 to 1, and Judge the name of the vectors that
	// found the intruders.
	Accuracy map[interpret.Pole]float64
	Judge    string

	// Other is a second model that the page compares with this one. It has a page of its own.
	// Exported pages show one model only.
	Other *Explorer

	// Embed returns the code of a text by the dictionary of m, if there is a program that computes vectors of texts. A search
	// then also finds the texts nearest to the code of the query.
	Embed func(m *model.Model, text string) (interpret.Code, error)

	// Frames allows pages of this machine, such as notebooks, to show the page in a frame.
	Frames bool
}

// about is the data that the page has from its start.
type about struct {
	Name       string       `json:"name"`
	Input      string       `json:"input"`
	Method     model.Method `json:"method"`
	Lambda     float64      `json:"lambda"`
	Words      int          `json:"words"`           // V
	Texts      bool         `json:"texts,omitempty"` // rows are texts, and their words are ids
	Dense      int          `json:"dense"`           // L
	Live       int          `json:"live"`            // dimensions that some row uses
	Themes     int          `json:"themes,omitempty"`
	Topics     int          `json:"topics,omitempty"` // default number
	Epochs     int          `json:"epochs"`
	Error      float64      `json:"error,omitempty"`     // mean ‖x − μ − aD‖² per row, if measured
	Explained  float64      `json:"explained,omitempty"` // share of the variance, if measured
	Other      *otherModel  `json:"other,omitempty"`     // second model
	Judge      string       `json:"judge,omitempty"`     // vectors that the accuracies come from
	Nonzeros   int          `json:"nonzeros"`            // in all codes
	PerWord    histogram    `json:"per_word"`            // active dimensions
	PerDim     histogram    `json:"per_dimension"`       // words of live dimensions
	Strongest  []int        `json:"strongest"`           // live dimensions
	Dimensions []dimension  `json:"dimensions"`          // K
}

// otherModel is a second model and the path of its page.
type otherModel struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// dimension is a dimension as lists show it, and as the map names it.
type dimension struct {
	Words       int      `json:"words"`            // that use it
	Top         []string `json:"top"`              // words of the positive pole, see [interpret.Index.Words]
	Bottom      []string `json:"bottom,omitempty"` // and of the negative one
	Label       []string `json:"label"`            // of the positive pole, see [interpret.Index.Label]
	BottomLabel []string `json:"bottom_label,omitempty"`
	Negative    bool     `json:"negative,omitempty"`  // the negative pole has the larger values
	Coherence   *float64 `json:"coherence,omitempty"` // of the stronger pole, see [interpret.Index.Coherence]

	Accuracy       *float64 `json:"accuracy,omitempty"` // see [Options]
	BottomAccuracy *float64 `json:"bottom_accuracy,omitempty"`
}

type wordAnswer struct {
	Word    string             `json:"word"`
	Row     int                `json:"row"`    // from 0
	Active  []interpret.Weight `json:"active"` // by decreasing absolute value
	Nearest []neighbour        `json:"nearest"`
	Columns [][2]string        `json:"columns,omitempty"` // names and values of the other columns of a text
	Topic   topics.ID          `json:"topic"`
	Themes  []interpret.Weight `json:"themes,omitempty"` // cosines with the nearest themes, largest first
	texts
}

// texts are the texts of the rows of an answer, by id.
type texts struct {
	Texts map[string]string `json:"texts,omitempty"`
}

// add adds what show returns of the text of a row, if rows are texts.
func (t *texts) add(x *Explorer, row int, show func(text string) string) {
	codes := x.model.Codes
	if codes.Texts == nil {
		return
	}
	if t.Texts == nil {
		t.Texts = map[string]string{}
	}
	t.Texts[codes.Words[row]] = show(codes.Texts.Text[row])
}

// cut returns the first n characters of a text.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

func beginning(text string) string { return cut(text, listedText) }

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
	// The same by relevance, see [interpret.Index.Distinctive].
	Distinctive       []entry `json:"distinctive"`
	DistinctiveBottom []entry `json:"distinctive_bottom"`
	Together          []pair  `json:"together"`
	// Texts from the middle and from the weak end of the positive values.
	Middle []entry `json:"middle,omitempty"`
	Weak   []entry `json:"weak,omitempty"`
	texts
}

type entry struct {
	Word  string  `json:"word"`
	Value float32 `json:"value"`
}

// pair says how often a dimension fires together with another, or in the texts that a search found.
type pair struct {
	Dimension   int     `json:"dimension"`
	Opposite    bool    `json:"opposite,omitempty"` // opposite poles fire together
	Words       int     `json:"words"`              // at these poles of both
	Expected    float64 `json:"expected"`           // number of words by chance
	Correlation float64 `json:"correlation"`        // of the signs (−1, 0, 1), negated if Opposite
}

// New returns an explorer of m, which has codes and must not change afterwards. The page shows the
// model's name. The map is computed in the background. Errors are those of [interpret.ReadLabels].
func New(m *model.Model, name string, o Options) (*Explorer, error) {
	x := &Explorer{model: m, index: interpret.NewIndex(m.Codes), options: o}
	x.index.Known = m.Info.Known()
	x.mapped = sync.OnceValue(x.layout)
	x.rows = sync.OnceValue(x.layoutRows)
	x.topics = sync.OnceValue(func() *topicTable { return x.tabulate(x.about.Topics) })
	x.variances = x.index.Variances()
	x.describe(name)
	if o.Labels != "" {
		labels, err := interpret.ReadLabels(o.Labels, m.Codes.Cols)
		if err != nil {
			return nil, err
		}
		x.labels = labels
	}
	if o.Other != nil {
		x.compareWith(o.Other)
	}
	go x.mapped()
	if x.about.Themes > 0 {
		go x.topics()
	}
	if x.about.Texts {
		go x.index.Search("", 0) // lists the words of the texts for searches to come
	}
	return x, nil
}

// describe computes about, signs and strongest.
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
		Themes:     m.Info.Training.Themes.Len(),
		Dense:      m.Dictionary.Dim,
		Epochs:     len(m.Info.Training.Epochs),
		Judge:      x.options.Judge,
		Nonzeros:   m.Codes.Nonzeros(),
		Dimensions: make([]dimension, m.Codes.Cols),
	}
	if share, known := m.Info.Encoding.Explained(); known {
		a.Explained = share
	}
	if a.Themes > 0 {
		a.Topics = m.Info.Training.Themes.Topics
	}
	x.signs = make([]signs, m.Codes.Cols)
	parallel.Ranges(m.Codes.Cols, func(lo, hi int) {
		for k := lo; k < hi; k++ {
			a.Dimensions[k], x.signs[k] = x.describeDimension(k)
		}
	})
	var perDimension []float32
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
	x.strongest = slices.DeleteFunc(x.index.Strongest(labelWords), func(k int) bool { return a.Dimensions[k].Words == 0 })
	a.Strongest = x.strongest
	x.about = a
}

func (x *Explorer) describeDimension(k int) (dimension, signs) {
	positive, negative := interpret.Pole{Dimension: k}, interpret.Pole{Dimension: k, Negative: true}
	d := dimension{
		Top:         x.index.Words(positive, labelWords),
		Bottom:      x.index.Words(negative, labelWords),
		Label:       x.index.Label(positive),
		BottomLabel: x.index.Label(negative),
	}
	values := x.index.Values(k)
	d.Words = len(values)
	if poles := x.index.Poles(k); len(poles) > 0 {
		d.Negative = poles[0].Negative
		if coherence := x.index.Coherence(poles[0]); !math.IsNaN(coherence) {
			coherence = math.Round(1000*coherence) / 1000
			d.Coherence = &coherence
		}
	}
	if accuracy, ok := x.options.Accuracy[positive]; ok {
		d.Accuracy = &accuracy
	}
	if accuracy, ok := x.options.Accuracy[negative]; ok {
		d.BottomAccuracy = &accuracy
	}
	var s signs
	for _, v := range values {
		if v > 0 {
			s.positive++
		} else {
			s.negative++
		}
	}
	return d, s
}

// entries converts the entries of an answer and adds excerpts of their texts to it.
func (x *Explorer) entries(from []interpret.Entry, t *texts, excerpt excerpter) []entry {
	to := make([]entry, len(from))
	for i, e := range from {
		to[i] = entry{x.model.Codes.Words[e.Row], e.Value}
		t.add(x, e.Row, excerpt.of)
	}
	return to
}

func (x *Explorer) findWord(word string) (row int, err error) {
	row, err = x.index.Find(word)
	if unknown, ok := errors.AsType[*interpret.UnknownWordError](err); ok {
		return 0, x.notFound(unknown)
	}
	return row, err
}

func (x *Explorer) notFound(err *interpret.UnknownWordError) error {
	e := &RequestError{Status: http.StatusNotFound, Message: fmt.Sprintf("no word %.100q in the model", err.Word), Word: err.Word, Closest: err.Closest}
	switch {
	case err.Texts > 0:
		e.Message = fmt.Sprintf("%d texts match %.100q", err.Texts, err.Word)
	case x.about.Texts:
		e.Message = fmt.Sprintf("no ID or text matches %.100q", err.Word)
	}
	return e
}

func (x *Explorer) checkDimension(k int) error {
	if k < 0 || k >= x.model.Codes.Cols {
		return &RequestError{Status: http.StatusNotFound, Message: fmt.Sprintf("no dimension %d (want 0 to %d)", k, x.model.Codes.Cols-1)}
	}
	return nil
}

// word returns the data of a word's page, with the topic of the default number of topics.
func (x *Explorer) word(row int) wordAnswer { return x.wordIn(row, 0) }

// wordIn is word with the topic among a number of topics.
func (x *Explorer) wordIn(row, number int) wordAnswer {
	code := x.index.Code(row)
	a := wordAnswer{Word: x.model.Codes.Words[row], Row: row, Active: code.Weights(), Nearest: []neighbour{}}
	var words []string // of the dimensions that neighbours may share
	for _, w := range a.Active[:min(excerptDimensions, len(a.Active))] {
		words = append(words, x.poleWords(w.Pole())...)
	}
	excerpt := newExcerpter(words, listedText)
	for _, n := range x.index.Nearest(code, nearestWords, row) {
		a.Nearest = append(a.Nearest, neighbour{x.model.Codes.Words[n.Row], n.Cosine})
		a.add(x, n.Row, excerpt.of)
	}
	a.add(x, row, func(text string) string { return cut(text, wholeText) })
	if x.about.Texts {
		for _, c := range x.model.Codes.Texts.Columns {
			a.Columns = append(a.Columns, [2]string{c.Name, c.Values[row]})
		}
	}
	a.Topic = topics.None
	if x.about.Themes > 0 {
		table := x.cutTopics(number).table
		a.Topic = table.Rows[row]
		themes, cosines := table.Codes.Row(row)
		a.Themes = interpret.Code{Index: themes, Value: cosines}.Weights()
	}
	return a
}

// poleWords returns the words that describe a pole.
func (x *Explorer) poleWords(p interpret.Pole) []string {
	if p.Negative {
		return x.about.Dimensions[p.Dimension].Bottom
	}
	return x.about.Dimensions[p.Dimension].Top
}

// dimension returns the data of a dimension's page.
func (x *Explorer) dimension(k int) dimensionAnswer {
	positive, negative := interpret.Pole{Dimension: k}, interpret.Pole{Dimension: k, Negative: true}
	rows, values := x.index.Dimension(k)
	a := dimensionAnswer{
		Dimension: k,
		Words:     len(rows),
		Variance:  x.variances[k],
		Histogram: newHistogram(values, false),
		Together:  x.together(k),
	}
	excerpts, bottom := newExcerpter(x.poleWords(positive), listedText), newExcerpter(x.poleWords(negative), listedText)
	a.Top = x.entries(x.index.Top(positive, listWords), &a.texts, excerpts)
	a.Bottom = x.entries(x.index.Top(negative, listWords), &a.texts, bottom)
	a.Distinctive = x.entries(x.index.Distinctive(positive, listWords), &a.texts, excerpts)
	a.DistinctiveBottom = x.entries(x.index.Distinctive(negative, listWords), &a.texts, bottom)
	if x.about.Texts {
		all := x.index.Top(positive, len(rows))
		if n := len(all); n >= listWords+2*examples {
			middle := max(n/2-examples/2, listWords)
			a.Middle = x.entries(all[middle:middle+examples], &a.texts, excerpts)
			a.Weak = x.entries(all[n-examples:], &a.texts, excerpts)
		}
	}
	return a
}

// together returns the dimensions that fire together with k more often than by chance, by the
// correlation of their signs, which is φ for nonnegative codes.
func (x *Explorer) together(k int) []pair {
	rows, values := x.index.Dimension(k)
	codes := x.model.Codes
	counts := make([]int32, 2*codes.Cols) // rows with the same and with opposite signs, by dimension
	var adding sync.Mutex
	parallel.Ranges(len(rows), func(lo, hi int) {
		part := make([]int32, len(counts))
		for j, i := range rows[lo:hi] {
			sign := math.Float32bits(values[lo+j]) >> 31
			index, value := codes.Row(int(i))
			for l, other := range index {
				// No branch on the sign: it is unpredictable.
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
		if other != k && p.Correlation > 0 { // NaN if all words use a dimension
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(q.Correlation, p.Correlation) })
	return pairs[:min(maxTogether, len(pairs))]
}

// matching returns the dimensions that some rows have more often than chance, by how surprising that is:
// (n − e)/√e with n rows and e expected.
func (x *Explorer) matching(rows []int) []pair {
	counts := make([]int, x.model.Codes.Cols)
	for _, row := range rows {
		for _, k := range x.index.Code(row).Index {
			counts[k]++
		}
	}
	pairs := []pair{}
	for k, n := range counts {
		expected := float64(len(rows)) * x.signs[k].words() / float64(x.model.Codes.Rows)
		if n > 1 && float64(n) > expected {
			pairs = append(pairs, pair{Dimension: k, Words: n, Expected: expected})
		}
	}
	surprise := func(p pair) float64 { return (float64(p.Words) - p.Expected) / math.Sqrt(p.Expected) }
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(surprise(q), surprise(p)) })
	return pairs[:min(maxMatching, len(pairs))]
}

// signs are the numbers of positive and negative values of a dimension.
type signs struct{ positive, negative float64 }

func (s signs) words() float64 { return s.positive + s.negative }
func (s signs) sum() float64   { return s.positive - s.negative }

// histogram counts values in bins of equal width from From to To.
type histogram struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Counts []int   `json:"counts"`
}

// newHistogram counts values in bins that begin at zero, in both directions. Whole numbers have whole
// bins, which begin at the smallest.
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
