package experiment

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg"

	"overcomplete/internal/escape"
	"overcomplete/internal/input"
	"overcomplete/internal/lab/eval"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/internal/npy"
	"overcomplete/internal/table"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// A Frontier is dictionaries of several kinds, each at several numbers of nonzeros and with
// several seeds, all of K atoms. Its points keep no models, which are large: the
// hyperparameters in their records say how to train them. Of seed 1 they keep the learned
// atoms, NAME.npy, which those of other seeds are matched with.
type Frontier struct {
	Atoms    int         // K
	Order    model.Order // of words, as [train.DefaultOrder] has it
	Nonzeros []int       // of a word, but with the recipe "paper"
	Lambdas  []float64   // of that recipe, whose nonzeros come of λ

	// Intrusion is the test of the experiment's words, and Standardised their vectors, which
	// the controls' dictionaries are of.
	Intrusion    *intrusion.Test
	Standardised intrusion.Standardised
}

// A Point is what codes are made with.
type Point struct {
	// Control is what stands in place of the dictionary that Training learns,
	// [intrusion.RandomDictionary] or [intrusion.WordRows], or "". Of Training, K, the sign of codes, their share
	// of zeros and the seed then hold.
	Control  intrusion.Control
	Training model.Recipe // nil of no point, which is X
}

// A kind is a dictionary that frontiers compare: its name, the color of its lines, and what it
// is made with but for what [Frontier.add] sets.
type kind struct {
	name  string
	color color.Color
	Point
}

// kinds are all.
var kinds = func() []kind {
	best, free, paper, words := train.Best(), train.Best(), train.Paper(), train.Paper()
	free.Anchor = 0
	words.Init, words.Center = model.FromWords, true
	return []kind{
		{"best", blue, Point{"", best}},
		{"best, no anchor", skyBlue, Point{"", free}},
		{"paper", vermillion, Point{"", paper}},
		{"paper, words", orange, Point{"", words}},
		{"random dictionary", color.Gray{0x80}, Point{intrusion.RandomDictionary, best}},
		{"word rows", color.Gray{0x00}, Point{intrusion.WordRows, best}},
	}
}()

// kind returns the kind of a point that is one of a frontier's.
func (p Point) kind() kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.unlike() == p.unlike() })]
}

// unlike is what tells a point from those of other kinds.
func (p Point) unlike() Point {
	switch h := p.Training.(type) {
	case model.Best:
		p.Training = model.Best{Anchor: h.Anchor}
	case model.Paper:
		p.Training = model.Paper{Init: h.Init}
	}
	return p
}

// Points returns the points of one seed, by kind. What can be compared at once, method A
// and the controls, comes first.
func (f Frontier) Points(seed uint64) (points []Point) {
	for _, method := range []model.Method{model.Signed, model.Nonnegative} {
		for _, k := range kinds {
			if method == model.Signed || k.Control == "" {
				points = f.add(points, k, method, seed)
			}
		}
	}
	return points
}

// add adds the points of a kind, from few nonzeros to many.
func (f Frontier) add(points []Point, k kind, method model.Method, seed uint64) []Point {
	c := k.Training.Base()
	c.Atoms, c.Method, c.Seed = f.Atoms, method, seed
	h := k.Training.With(c)
	if best, is := h.(model.Best); is {
		best.Order = f.Order
		h = best
	}
	c.Epochs = train.DefaultEpochs(h)
	nonzeros := slices.Sorted(slices.Values(f.Nonzeros))
	lambdas := slices.Sorted(slices.Values(f.Lambdas))
	slices.Reverse(lambdas)
	for _, h := range varied(h.With(c), lambdas, nonzeros) {
		points = append(points, Point{k.Control, h})
	}
	return points
}

// Kind names a point's dictionary, and the method of those that are learned. That of no
// point is X.
func (p Point) Kind() string {
	switch {
	case p.Training == nil:
		return "X"
	case p.Control != "":
		return p.kind().name
	}
	return string(p.Training.Base().Method) + ", " + p.kind().name
}

// lambda returns λ where it decides how many nonzeros there are.
func (p Point) lambda() string {
	if paper, is := p.Training.(model.Paper); is {
		return number(paper.Lambda)
	}
	return ""
}

// name returns the name that the point's record has in its directory.
func (p Point) name() string {
	h := p.Training.Base()
	asked := "lambda" + p.lambda()
	if best, is := p.Training.(model.Best); is {
		asked = fmt.Sprintf("n%d", best.Nonzeros)
	}
	kind := strings.NewReplacer(", ", "-", " ", "-").Replace(p.Kind())
	return fmt.Sprintf("%s-k%d-%s-seed%d", kind, h.Atoms, asked, h.Seed)
}

func (r *Record) point() Point { return Point{r.Control, r.Training.Recipe} }

// Frontier measures the points of seeds from 1 by tasks and by word intrusion, as far as it is
// not done yet. After each seed, and if ctx is cancelled, it writes what there is; see
// [Measured.Write].
func (e *Experiment) Frontier(ctx context.Context, f Frontier, seeds int, tasks []eval.Task) (m *Measured, err error) {
	all := []model.Recipe{nil}
	for _, p := range f.Points(1) {
		all = append(all, slices.Repeat([]model.Recipe{p.Training}, seeds)...)
	}
	e.expect(all...)
	x, err := e.point(ctx, "X", Point{}, tasks, func(r *Record, whole bool) (*eval.Representation, error) {
		if whole && r.Intrusion != nil {
			return nil, nil
		}
		return eval.NewDense("X", e.X), f.judge(ctx, r, interpret.FromDense(e.X))
	})
	if err != nil {
		return nil, err
	}
	mean := model.Dictionary{Dim: e.X.Dim, Mean: e.X.Mean()}
	variance := mean.Squares(e.X.Data) / float64(e.X.Len())
	var points []*Record
	for seed := range seeds {
		for _, p := range f.Points(uint64(seed + 1)) {
			switch r, err := e.frontierPoint(ctx, f, p, tasks); {
			case err == nil:
				points = append(points, r)
			case ctx.Err() == nil: // else go on: other points may be there
				return nil, err
			}
		}
		m = newMeasured(x, variance, points, eval.Names(tasks), e.Setting.Protocol)
		if ctx.Err() == nil || seed+1 == seeds {
			if err := m.Write(e.Dir, e.Setting); err != nil {
				return nil, err
			}
		}
	}
	return m, ctx.Err()
}

func (e *Experiment) frontierPoint(ctx context.Context, f Frontier, p Point, tasks []eval.Task) (*Record, error) {
	name := p.name()
	return e.point(ctx, name, p, tasks, func(r *Record, whole bool) (*eval.Representation, error) {
		if whole && r.Intrusion != nil && e.matched(p, r) {
			return nil, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fmt.Fprintf(e.Log, "making %s%s\n", name, e.plan.left())
		var m *model.Model
		var err error
		if p.Control != "" {
			h := p.Training.(model.Best) // as all controls have
			m, err = f.Standardised.Encode(ctx, p.Control, h.Atoms, h.Nonzeros, h.Method, h.Seed, e.Device)
		} else {
			m, err = e.fit(ctx, p.Training)
		}
		if err == nil {
			err = f.judge(ctx, r, m.Codes)
		}
		if err == nil {
			err = e.match(ctx, p, r, m.Dictionary.Atoms)
		}
		if err != nil {
			return nil, err
		}
		return r.made(name, m), nil
	})
}

func withSeed(r model.Recipe, seed uint64) model.Recipe {
	c := r.Base()
	c.Seed = seed
	return r.With(c)
}

// atomsPath is where the atoms of a point are kept, if it had seed 1.
func (e *Experiment) atomsPath(p Point) string {
	p.Training = withSeed(p.Training, 1)
	return e.path(p.name() + ".npy")
}

// matched reports whether a point's atoms were matched with those of seed 1 or, if they are
// these, kept.
func (e *Experiment) matched(p Point, r *Record) bool {
	if p.Control != "" || p.Training.Base().Seed != 1 {
		return p.Control != "" || r.Stability != nil
	}
	_, err := os.Lstat(e.atomsPath(p))
	return err == nil
}

// match keeps the atoms of seed 1, and matches those of other seeds with them.
func (e *Experiment) match(ctx context.Context, p Point, r *Record, atoms []float32) error {
	if p.Control != "" {
		return nil
	}
	path, shape := e.atomsPath(p), npy.Shape{p.Training.Base().Atoms, e.X.Dim}
	if p.Training.Base().Seed == 1 {
		return WriteFile(path, func(w io.Writer) error { return npy.Write(w, shape, atoms) })
	}
	first, err := readAtoms(path, shape)
	if err != nil {
		return refuse(path, "%w; remove it to have it made again", err)
	}
	matches, err := interpret.MatchAtoms(ctx, first, atoms, e.X.Dim)
	if err != nil {
		return err
	}
	var cosines []float64
	for _, m := range matches {
		cosines = append(cosines, m.Cosine)
	}
	mean := stat.Mean(cosines, nil)
	r.Stability = &mean
	return nil
}

func readAtoms(path string, shape npy.Shape) ([]float32, error) {
	const mostHeader = 1 << 10
	file, err := input.ReadRegular(path, 4*shape[0]*shape[1]+mostHeader)
	if err != nil {
		return nil, err
	}
	a, err := npy.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	return a.Float32(shape...)
}

// metrics are those of the last epoch, and of the codes that were made after it.
func metrics(i model.Info) (m model.Epoch) {
	if n := len(i.Training.Epochs); n > 0 {
		m = i.Training.Epochs[n-1]
	}
	if c := i.Encoding; c != nil {
		m.Error, m.Objective, m.Sparsity, m.L1, m.UnusedAtoms = c.Error, c.Objective, c.Sparsity, c.L1, c.UnusedAtoms
	}
	return m
}

// judge adds word intrusion to a record.
func (f Frontier) judge(ctx context.Context, r *Record, codes *vectors.Sparse) error {
	c, err := f.Intrusion.Play(ctx, f.Intrusion.Codes(0, codes))
	if err != nil {
		return err
	}
	c.Scores = nil
	r.Intrusion = &c
	return nil
}

// checkIntrusion returns an error unless c can be what a frontier has kept.
func checkIntrusion(c *interpret.Coherence) error {
	if n := len(c.Quarters); n != 4 && (n != 0 || c.Quartered != 0) {
		return fmt.Errorf("%d quarters of %d dimensions, want four, or none", n, c.Quartered)
	}
	if c.Quartered < 0 || c.Quartered > c.Dimensions {
		return fmt.Errorf("quarters of %d of %d dimensions", c.Quartered, c.Dimensions)
	}
	for _, e := range append([]interpret.Estimate{c.Any, c.Matched}, c.Quarters...) {
		if !(e.Mean >= 0 && e.Mean <= 1) {
			return fmt.Errorf("the share %v of intruders, want 0 to 1", e.Mean)
		}
	}
	return nil
}

// Measured is what is known of a frontier, for people.
type Measured struct {
	dense  *Record
	points []*Record
	scores eval.Table // of X and then of points

	variance float64 // mean ‖x − x̄‖² of X
}

// newMeasured puts records together: of X and of points. Points whose codes are all zero
// are no vectors to speak of, and left out.
func newMeasured(dense *Record, variance float64, points []*Record, tasks []string, o eval.Options) *Measured {
	m := &Measured{dense: dense, variance: variance, scores: eval.Table{Tasks: tasks, Options: o}}
	m.scores.Rows = append(m.scores.Rows, dense.Row("X", tasks))
	for _, r := range points {
		if r.Metrics.Sparsity < 1 {
			m.points = append(m.points, r)
			m.scores.Rows = append(m.scores.Rows, r.Row("", tasks))
		}
	}
	return m
}

// A measure is a number of a record, NaN if it has none, by the name of a column.
type measure struct {
	name   string
	digits int // after the point, for people
	of     func(r *Record) float64
}

var (
	nonzeros = measure{"nonzeros", 1, func(r *Record) float64 {
		if r.Training.Recipe == nil {
			return math.NaN() // X's
		}
		return (1 - r.Metrics.Sparsity) * float64(r.Training.Base().Atoms)
	}}
	residual = measure{"error", 3, func(r *Record) float64 {
		if r.Training.Recipe == nil {
			return math.NaN()
		}
		return r.Metrics.Error
	}}
	unused = measure{"unused", 0, func(r *Record) float64 { return float64(r.Metrics.UnusedAtoms) }}

	similarity = score(eval.TuningTask)

	// meaning is the intruders found among a dimension's top words, in percent, and in quarters
	// of its values, and how like those of seed 1 atoms are.
	meaning   = []measure{intruders, quarter(0), quarter(1), quarter(2), quarter(3), stability}
	intruders = measure{"top", 1, func(r *Record) float64 {
		if r.Intrusion.Dimensions == 0 {
			return math.NaN()
		}
		return 100 * r.Intrusion.Any.Mean
	}}
	// stability is the mean cosine of atoms matched with those of seed 1, in percent.
	stability = measure{"stability", 1, func(r *Record) float64 {
		if r.Stability == nil {
			return math.NaN()
		}
		return 100 * *r.Stability
	}}
)

// explained is how much of the variance of X, whatever was subtracted from it, is not error, in
// percent: so recipes can be compared.
func (m *Measured) explained() measure {
	return measure{"explained", 1, func(r *Record) float64 {
		return 100 * (1 - residual.of(r)/m.variance)
	}}
}

func (m *Measured) average() measure {
	return measure{"average", 1, func(r *Record) float64 { return m.scores.Average(r.Row("", m.scores.Tasks)).Score }}
}

func score(task string) measure {
	return measure{task, 1, func(r *Record) float64 { return r.Result(task).Score }}
}

// quarter is the intruders found in a quarter of a dimension's values, from 0 for the
// strongest, in percent. Where few dimensions have words enough for quarters there is no
// such number: those are not like the others.
func quarter(q int) measure {
	return measure{fmt.Sprintf("q%d", q+1), 1, func(r *Record) float64 {
		if c := r.Intrusion; c.Quartered > 0 && 2*c.Quartered >= c.Dimensions {
			return 100 * c.Quarters[q].Mean
		}
		return math.NaN()
	}}
}

// estimate returns the mean of a measure over records and its standard deviation, NaN for
// one. Records that have no such number do not count.
func (v measure) estimate(records []*Record) (mean, deviation float64) {
	var values []float64
	for _, r := range records {
		if x := v.of(r); !math.IsNaN(x) {
			values = append(values, x)
		}
	}
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	return stat.MeanStdDev(values, nil)
}

// cell is what a table for people has of a measure.
func (v measure) cell(records []*Record) string {
	switch mean, deviation := v.estimate(records); {
	case math.IsNaN(mean):
		return "–"
	case math.IsNaN(deviation):
		return fmt.Sprintf("%.*f", v.digits, mean)
	default:
		return fmt.Sprintf("%.*f ±%.*f", v.digits, mean, v.digits, deviation)
	}
}

// overSeeds returns the records of points that differ by the seed alone, by kind.
func (m *Measured) overSeeds() (groups [][]*Record) {
	at := map[Point]int{}
	for _, r := range m.points {
		p := r.point()
		p.Training = withSeed(p.Training, 0)
		i, known := at[p]
		if !known {
			i, at[p] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// Table has a row for X and for each kind and number of nonzeros: means and standard
// deviations over seeds.
func (m *Measured) Table() table.Table {
	columns := append([]measure{nonzeros, residual, m.explained(), similarity, m.average()}, meaning...)
	return m.table("vectors λ seeds", columns, m.overSeeds(), measure.cell, func(records []*Record) string {
		if records[0] == m.dense {
			return ""
		}
		return strconv.Itoa(len(records))
	})
}

// TSV has a row for X and for each point, for programs, with nothing where there is no
// number.
func (m *Measured) TSV() string {
	columns := []measure{nonzeros, residual, m.explained(), unused}
	for _, task := range m.scores.Tasks {
		columns = append(columns, score(task))
	}
	number := func(v measure, records []*Record) string {
		if x := v.of(records[0]); !math.IsNaN(x) {
			return strconv.FormatFloat(x, 'g', 10, 64)
		}
		return ""
	}
	seed := func(records []*Record) string {
		if records[0] == m.dense {
			return "0"
		}
		return fmt.Sprint(records[0].Training.Base().Seed)
	}
	columns, each := append(append(columns, m.average()), meaning...), slices.Collect(slices.Chunk(m.points, 1))
	text := ""
	for _, row := range m.table("vectors lambda seed", columns, each, number, seed) {
		text += strings.Join(row, "\t") + "\n"
	}
	return text
}

// table has a row for X and for each group of records of one kind and λ. The first three names
// are those of kind, λ and what seeds says.
func (m *Measured) table(first string, columns []measure, groups [][]*Record, cell func(measure, []*Record) string, seeds func([]*Record) string) table.Table {
	rows := table.Table{strings.Fields(first)}
	for _, c := range columns {
		rows[0] = append(rows[0], c.name)
	}
	for _, records := range append([][]*Record{{m.dense}}, groups...) {
		p := records[0].point()
		row := []string{p.Kind(), p.lambda(), seeds(records)}
		for _, c := range columns {
			row = append(row, cell(c, records))
		}
		rows = append(rows, row)
	}
	return rows
}

// Notes says what the numbers of the table are.
func (m *Measured) Notes() string {
	notes := []string{"Means ± standard deviations over seeds. Error is the mean ‖x − aD‖², of x less the mean where that is subtracted, and explained is 1 − error / mean ‖x − x̄‖², in %. " +
		"Scores of method B are those of its binary vectors, all else that of its codes."}
	if averaged := m.scores.Averaged(); len(averaged) > 0 {
		notes = append(notes, "The average is that of "+strings.Join(averaged, ", ")+
			fmt.Sprintf("; other test items would move it by ±%.1f, much of it for all rows alike", m.scores.Average(m.scores.Rows[0]).Stderr))
		if r := m.dense.Result(eval.TuningTask); !math.IsNaN(r.Stderr) {
			notes[1] += fmt.Sprintf(", and %s by ±%.1f", eval.TuningTask, r.Stderr)
		}
		notes[1] += "."
	}
	return strings.Join(append(notes, "Top is the intruders found among the top words of dimensions, q1 to q4 in quarters of their values, "+
		"the largest first, in %; 20 is guessing, and – stands where fewer than half of the dimensions have words enough. "+
		"Stability is the mean cosine of atoms with those of seed 1, matched one to one, × 100."), " ")
}

// JSON returns what there is to know, to be written as JSON.
func (m *Measured) JSON() any {
	return struct {
		AverageOver []string  `json:"average_over"`
		Protocol    string    `json:"protocol"`
		Dense       *Record   `json:"dense"`
		Points      []*Record `json:"points"`
	}{append([]string{}, m.scores.Averaged()...), m.scores.Options.Describe(), m.dense, append([]*Record{}, m.points...)}
}

// look is how points of a kind are drawn: a colour for the dictionary, and a dash for method B.
func (p Point) look() Look {
	k := p.kind()
	if p.Control != "" {
		k.name += " (control)"
	}
	return Look{k.name, k.color, p.Training.Base().Method == model.Nonnegative}
}

// Figure shows measures over the number of nonzeros, with standard deviations over seeds.
func (m *Measured) Figure() Figure {
	averaged := "1 task"
	if n := len(m.scores.Averaged()); n != 1 {
		averaged = strconv.Itoa(n) + " tasks"
	}
	x := func(v measure) Mark { return Mark{"dense X", v.of(m.dense)} }
	f := Figure{Panels: [][]Panel{{
		m.panel("reconstruction error, mean ‖x − aD‖²", residual, Mark{}),
		m.panel("average score in "+averaged+", %", m.average(), x(m.average())),
		m.panel("word similarity, "+eval.TuningTask+", ρ × 100", similarity, x(similarity)),
	}, {
		m.panel("intruders found among top words, %", intruders, x(intruders)),
		m.panel("… in the strongest quarter of values, %", quarter(0), Mark{"guessing", 20}),
		m.panel("cosine of atoms with those of seed 1, × 100", stability, Mark{}),
	}}, Note: "means over seeds, bars of a standard deviation", Width: 9.2 * vg.Inch, Height: 5.9 * vg.Inch}
	f.Panels[0][0].LogY = true
	for i := range f.Panels[1] {
		f.Panels[1][i].XLabel = "nonzeros a word"
	}
	for _, k := range kinds {
		f.Legend = append(f.Legend, k.look())
	}
	f.Legend = append(f.Legend, Look{Name: "A", Color: color.Black}, Look{Name: "B (binary in tasks)", Color: color.Black, Dashed: true})
	return f
}

// panel shows a measure, with a line for each kind.
func (m *Measured) panel(title string, of measure, mark Mark) Panel {
	p := Panel{Title: title, LogX: true, YMark: mark}
	for _, records := range m.overSeeds() {
		x, _ := nonzeros.estimate(records)
		y, deviation := of.estimate(records)
		p.add(records[0].point().look(), FigurePoint{X: x, Y: y, Deviation: deviation})
	}
	return p
}

// Write writes the table and the figure, as frontier.md, .png and .svg, and all points, as
// frontier.tsv, into dir.
func (m *Measured) Write(dir string, s Setting) error {
	name := filepath.Join(dir, "frontier")
	if err := m.Figure().Save(name); err != nil {
		return err
	}
	write := func(ending, text string) error {
		return WriteFile(name+ending, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	if err := write(".tsv", m.TSV()); err != nil {
		return err
	}
	return write(".md", fmt.Sprintf("# The frontier of %s\n\nWritten by `overcomplete frontier`: %d words of %d dimensions, word intrusion judged by %s.\n\n"+
		"![Error, scores and intruders found over nonzeros](frontier.svg)\n\n%s\n%s\n",
		escape.Markdown(s.Input.Name), s.Input.Words, s.Input.Dim, escape.Markdown(s.Reference.Name), m.Table().Markdown(nil), escape.Markdown(m.Notes())))
}
