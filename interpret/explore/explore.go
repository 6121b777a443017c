// Package explore shows a model as a web page: the dimensions of a word, the words of a dimension, the
// similarity of words, and maps of dimensions and rows.
//
// This serves the page of a model on this machine:
//
//	m, err := model.Open("godoc.model")
//	x, err := explore.New(m, "godoc", explore.Options{})
//	listener, err := net.Listen("tcp", "localhost:8080")
//	err = x.Serve(ctx, listener, "")
//
// The page is a script that requests JSON. docs/reference/explorer.md lists the paths and fields.
// [Explorer.WritePage] writes one HTML file with the page and the JSON of selected words and dimensions.
// The address of a view is the fragment of the URL (#/word/bank), so that history and bookmarks work in the
// served page and in the file.
package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"slices"
	"sync"

	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
	"overcomplete/internal/text"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
)

// Lengths of lists and texts.
const (
	labelWords   = 8     // words that describe a dimension
	listWords    = 40    // words of a dimension on its own page
	nearestWords = 24    // nearest words on the page of a word
	maxTogether  = 16    // dimensions that co-occur with a dimension
	maxMatching  = 8     // dimensions of the texts that a search found
	suggestions  = 10    // completions
	bins         = 32    // bins of a histogram
	listedText   = 240   // characters of a text in a list
	wholeText    = 20000 // characters of a text on its own page
	examples     = 5     // texts with the middle values of a dimension, and as many with the smallest

	excerptDimensions = 4 // strongest dimensions of a text; excerpts of its neighbours show their words
)

// An Explorer serves the page of one model. Its methods may be called concurrently.
type Explorer struct {
	model        *model.Model
	index        *interpret.Index
	options      Options
	summary      summary
	variances    []float64           // of each dimension
	signs        []signs             // of each dimension
	dimensionMap func() dimensionMap // of the live dimensions
	rowMap       func() rowMap       // of words or texts
	topics       func() *topicTable
	duplicates   func() duplicatesAnswer
	labelsLock   sync.Mutex
	labels       interpret.Labels // replaced as a whole, never changed in place
	labelsFile   fs.FileInfo      // describes the file with the labels; nil without a file
	stopWords    []string
}

// Options are settings of an explorer.
type Options struct {
	// Labels is the path of a labels.json that the page shows and changes, or "". CheckModel is called
	// before a change. It must return an error if the model on disk is no longer the model of the page. The
	// page also shows and changes the stop words beside the file, see [interpret.ReadStopWords].
	Labels     string
	CheckModel func() error

	// Accuracy is the word intrusion accuracy of poles, 0 to 1. Judge is the name of the vectors that
	// found the intruders.
	Accuracy map[interpret.Pole]float64
	Judge    string

	// Embed encodes a text by an embedding model and the dictionary of m. If it is set, a search also
	// finds the texts nearest to the code of the query.
	Embed func(m *model.Model, text string) (interpret.Code, error)

	// Frames allows pages of this machine, such as notebooks, to show the page in a frame.
	Frames bool
}

// A summary is the answer to /data/model, which the page requests first.
type summary struct {
	Name       string       `json:"name"`
	Input      string       `json:"input"`
	Method     model.Method `json:"method"`
	Lambda     float64      `json:"lambda"`
	Words      int          `json:"words"`           // V
	Texts      bool         `json:"texts,omitempty"` // rows are texts; their ids take the place of words
	Dense      int          `json:"dense"`           // L
	Live       int          `json:"live"`            // number of dimensions with nonzeros
	Themes     int          `json:"themes,omitempty"`
	Topics     int          `json:"topics,omitempty"` // number of broad topics
	Epochs     int          `json:"epochs"`
	Error      float64      `json:"error,omitempty"`     // reconstruction error, mean ‖x − μ − aD‖²; 0 if not measured
	Explained  float64      `json:"explained,omitempty"` // explained variance, 0 to 1; 0 if not measured
	Judge      string       `json:"judge,omitempty"`     // vectors of the word intrusion test
	Analogy    string       `json:"analogy,omitempty"`   // an example of a sum of words
	Nonzeros   int          `json:"nonzeros"`            // number of nonzeros of all codes
	PerWord    histogram    `json:"per_word"`            // nonzeros per row
	PerDim     histogram    `json:"per_dimension"`       // nonzeros per live dimension
	Strongest  []int        `json:"strongest"`           // live dimensions, strongest first
	Dimensions []dimension  `json:"dimensions"`          // K
}

// A dimension is an entry of a list of dimensions.
type dimension struct {
	Words       int      `json:"words"`            // number of nonzeros
	Top         []string `json:"top"`              // words of the positive pole, see [interpret.Index.Words]
	Bottom      []string `json:"bottom,omitempty"` // words of the negative pole
	Label       []string `json:"label"`            // label of the positive pole, see [interpret.Index.Label]
	BottomLabel []string `json:"bottom_label,omitempty"`
	Negative    bool     `json:"negative,omitempty"`  // the negative pole is stronger
	Coherence   *float64 `json:"coherence,omitempty"` // coherence of the stronger pole, see [interpret.Index.Coherence]

	Accuracy       *float64 `json:"accuracy,omitempty"` // see [Options]
	BottomAccuracy *float64 `json:"bottom_accuracy,omitempty"`
}

type wordAnswer struct {
	Word    string             `json:"word"`
	Row     int                `json:"row"`    // from 0
	Active  []interpret.Weight `json:"active"` // nonzeros in decreasing order of absolute value
	Nearest []neighbour        `json:"nearest"`
	Columns [][2]string        `json:"columns,omitempty"` // names and values of the other columns of a text
	Topic   topics.ID          `json:"topic"`             // narrowest topic of the row
	Themes  []interpret.Weight `json:"themes,omitempty"`  // cosines with the nearest themes, largest first
	texts
}

// texts holds the texts of the rows of an answer, by id.
type texts struct {
	Texts map[string]string `json:"texts,omitempty"`
}

// If rows are texts, add adds an excerpt of the text of a row. It prefers sentences with the given words.
func (t *texts) add(x *Explorer, row int, words []string) {
	if x.summary.Texts {
		text, _ := x.index.Excerpt(row, words, listedText)
		t.set(x, row, text)
	}
}

// If rows are texts, addHit adds a snippet of the text of a row, which shows the words of a query.
func (t *texts) addHit(x *Explorer, row int, words []string, length int) {
	if x.summary.Texts {
		t.set(x, row, x.index.Snippet(row, words, length))
	}
}

func (t *texts) set(x *Explorer, row int, text string) {
	if t.Texts == nil {
		t.Texts = map[string]string{}
	}
	t.Texts[x.model.Codes.IDs[row]] = text
}

type neighbour struct {
	Word   string  `json:"word"`
	Cosine float64 `json:"cosine"`
}

type dimensionAnswer struct {
	Dimension int       `json:"dimension"`
	Words     int       `json:"words"` // number of nonzeros
	Variance  float64   `json:"variance"`
	Histogram histogram `json:"histogram"` // histogram of the nonzeros
	Top       []entry   `json:"top"`
	Bottom    []entry   `json:"bottom"`

	// Entries in the order of [interpret.Index.Distinctive].
	Distinctive       []entry `json:"distinctive"`
	DistinctiveBottom []entry `json:"distinctive_bottom"`

	Together []pair  `json:"together"`         // co-occurring dimensions
	Middle   []entry `json:"middle,omitempty"` // texts with middle positive values
	Weak     []entry `json:"weak,omitempty"`   // texts with the smallest positive values
	texts
}

type entry struct {
	Word  string  `json:"word"`
	Value float32 `json:"value"`
}

// A pair counts the rows in which a dimension co-occurs with another dimension, or the rows of a selection that use the
// dimension.
type pair struct {
	Dimension   int     `json:"dimension"`
	Opposite    bool    `json:"opposite,omitempty"` // opposite poles co-occur
	Words       int     `json:"words"`              // number of rows in which the poles co-occur, or of the selection
	Expected    float64 `json:"expected"`           // number of rows by chance
	Correlation float64 `json:"correlation"`        // correlation of the signs (−1, 0, 1), negated if Opposite
}

// New returns an explorer of m, which must have codes and must not change afterwards. The page shows the argument name.
// New computes the topics and maps in the background. It returns an error if [interpret.ReadLabels] or
// [interpret.ReadStopWords] does, or if the memory for all answers isn't available.
func New(m *model.Model, name string, o Options) (*Explorer, error) {
	index, search := interpret.Memory(m.Codes)
	if err := memory.Check(index + search + topics.Memory(m.Codes.Rows)); err != nil {
		return nil, fmt.Errorf("the answers about %d rows: %w", m.Codes.Rows, err)
	}
	x := interpret.NewIndex(m.Codes)
	x.Known = m.Info.Known()
	return build(m, x, name, o)
}

// build returns an explorer of m, given an index of its codes.
func build(m *model.Model, index *interpret.Index, name string, o Options) (*Explorer, error) {
	x := &Explorer{model: m, index: index, options: o}
	if o.Labels != "" {
		var err error
		x.labelsFile, _ = os.Stat(o.Labels)
		if x.labels, err = interpret.ReadLabels(o.Labels, m.Codes.Cols); err != nil {
			return nil, err
		}
		if x.stopWords, err = interpret.ReadStopWords(o.Labels); err != nil {
			return nil, err
		}
		x.index = index.WithStopWords(x.stopWords)
	}
	x.dimensionMap = sync.OnceValue(x.layoutDimensions)
	x.rowMap = sync.OnceValue(x.layoutRows)
	x.topics = sync.OnceValue(x.tabulate)
	x.duplicates = sync.OnceValue(x.nearDuplicates)
	x.variances = x.index.Variances()
	x.describe(name)
	return x, nil
}

// prepare computes the slow answers in the order in which users need them, so that no request waits for long.
func (x *Explorer) prepare() {
	if x.summary.Themes > 0 {
		x.topics()
	}
	go x.rowMap() // also computes dimensionMap
	if x.summary.Texts {
		x.index.Search("", 0) // indexes the words of the texts
	}
	if x.summary.Themes > 0 {
		x.duplicates()
	}
}

// describe computes the fields summary and signs.
func (x *Explorer) describe(name string) {
	m := x.model
	a := summary{
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
	for _, words := range [][3]string{{"king", "man", "woman"}, {"writer", "write", "read"}} {
		known := func(word string) bool { _, ok := x.index.Row(word); return ok }
		if a.Analogy == "" && !slices.ContainsFunc(words[:], func(word string) bool { return !known(word) }) {
			a.Analogy = fmt.Sprintf("%s − %s + %s", words[0], words[1], words[2])
		}
	}
	if a.Themes > 0 {
		a.Topics = m.Info.Training.Themes.Topics
	}
	x.signs = make([]signs, m.Codes.Cols)
	parallel.Each(context.Background(), m.Codes.Cols, func(k int) { a.Dimensions[k], x.signs[k] = x.describeDimension(k) })
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
	a.Strongest = slices.DeleteFunc(x.index.Strongest(labelWords), func(k int) bool { return a.Dimensions[k].Words == 0 })
	x.summary = a
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

// entries converts a list of [interpret.Entry], and adds excerpts of the rows' texts to t.
func (x *Explorer) entries(from []interpret.Entry, t *texts, words []string) []entry {
	to := make([]entry, len(from))
	for i, e := range from {
		to[i] = entry{x.model.Codes.IDs[e.Row], e.Value}
		t.add(x, e.Row, words)
	}
	return to
}

func (x *Explorer) findWord(word string) (row int, err error) {
	if row, err = x.index.Find(word); err != nil {
		return 0, x.requestError(err)
	}
	return row, nil
}

// requestError converts an error about a query to a [*RequestError].
func (x *Explorer) requestError(err error) error {
	unknown, ok := errors.AsType[*interpret.UnknownIDError](err)
	if !ok {
		return badRequest("%v", err)
	}
	e := &RequestError{Status: http.StatusNotFound, Message: fmt.Sprintf("no word %.100q in the model", unknown.ID), Word: unknown.ID, Closest: unknown.Closest}
	switch {
	case unknown.Texts > 0:
		e.Message = fmt.Sprintf("%d texts match %.100q", unknown.Texts, unknown.ID)
	case x.summary.Texts:
		e.Message = fmt.Sprintf("no ID or text matches %.100q", unknown.ID)
	}
	return e
}

func (x *Explorer) checkDimension(k int) error {
	if k < 0 || k >= x.model.Codes.Cols {
		return notFound("no dimension %d (want 0 to %d)", k, x.model.Codes.Cols-1)
	}
	return nil
}

// word returns the data of the page of a row.
func (x *Explorer) word(row int) wordAnswer {
	code := x.index.Code(row)
	a := wordAnswer{Word: x.model.Codes.IDs[row], Row: row, Active: code.Weights(), Nearest: []neighbour{}}
	var words []string // words of the strongest dimensions
	for _, w := range a.Active[:min(excerptDimensions, len(a.Active))] {
		words = append(words, x.index.Words(w.Pole(), labelWords)...)
	}
	for _, n := range x.index.Nearest(code, nearestWords, row) {
		a.Nearest = append(a.Nearest, neighbour{x.model.Codes.IDs[n.Row], n.Cosine})
		a.add(x, n.Row, words)
	}
	if x.summary.Texts {
		a.set(x, row, text.Truncate(x.model.Codes.Texts.Text[row], wholeText))
		for _, c := range x.model.Codes.Texts.Columns {
			a.Columns = append(a.Columns, [2]string{c.Name, c.Values[row]})
		}
	}
	a.Topic = topics.None
	if x.summary.Themes > 0 {
		table := x.topics().table
		a.Topic = narrowest(table, row)
		themes, cosines := table.Codes.Row(row)
		a.Themes = interpret.Code{Index: themes, Value: cosines}.Weights()
	}
	return a
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
	excerpts, bottom := x.summary.Dimensions[k].Top, x.summary.Dimensions[k].Bottom
	a.Top = x.entries(x.index.Top(positive, listWords), &a.texts, excerpts)
	a.Bottom = x.entries(x.index.Top(negative, listWords), &a.texts, bottom)
	a.Distinctive = x.entries(x.index.Distinctive(positive, listWords), &a.texts, excerpts)
	a.DistinctiveBottom = x.entries(x.index.Distinctive(negative, listWords), &a.texts, bottom)
	if x.summary.Texts {
		all := x.index.Top(positive, len(rows))
		if n := len(all); n >= listWords+2*examples {
			middle := max(n/2-examples/2, listWords)
			a.Middle = x.entries(all[middle:middle+examples], &a.texts, excerpts)
			a.Weak = x.entries(all[n-examples:], &a.texts, excerpts)
		}
	}
	return a
}

// together returns the dimensions that co-occur with k more often than by chance, in decreasing order of the
// correlation of signs. For nonnegative codes the correlation is the φ coefficient.
func (x *Explorer) together(k int) []pair {
	rows, values := x.index.Dimension(k)
	codes := x.model.Codes
	counts := make([]int32, 2*codes.Cols) // counts[2d:2d+2]: rows with the same and with opposite signs
	var adding sync.Mutex
	parallel.Ranges(len(rows), func(lo, hi int) {
		part := make([]int32, len(counts))
		for j, i := range rows[lo:hi] {
			sign := math.Float32bits(values[lo+j]) >> 31
			index, value := codes.Row(int(i))
			for l, other := range index {
				// A branch on the sign would be unpredictable.
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
		if other != k && p.Correlation > 0 { // the correlation is NaN if a dimension has the same sign in all rows
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(q.Correlation, p.Correlation) })
	return pairs[:min(maxTogether, len(pairs))]
}

// matching returns the dimensions that more of the given rows use than expected by chance: n > 1 rows, although e are
// expected. The dimensions are in decreasing order of (n − e)/√e.
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
	score := func(p pair) float64 { return (float64(p.Words) - p.Expected) / math.Sqrt(p.Expected) }
	slices.SortStableFunc(pairs, func(p, q pair) int { return cmp.Compare(score(q), score(p)) })
	return pairs[:min(maxMatching, len(pairs))]
}

// signs counts the positive and negative values of a dimension.
type signs struct{ positive, negative float64 }

func (s signs) words() float64 { return s.positive + s.negative }
func (s signs) sum() float64   { return s.positive - s.negative }

// A histogram counts values in bins of equal width between From and To.
type histogram struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Counts []int   `json:"counts"`
}

// newHistogram counts values in bins over the smallest range that contains the values and zero. If integers is true,
// bins instead have integer widths and begin at the smallest value.
func newHistogram(values []float32, integers bool) histogram {
	if len(values) == 0 {
		return histogram{Counts: []int{}}
	}
	from, to := float64(slices.Min(values)), float64(slices.Max(values))
	n := bins
	if integers {
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
