//go:build !gpu

package main

import (
	"context"
	"flag"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"overcomplete/cpu"
	"overcomplete/interpret"
	"overcomplete/lab/eval"
	"overcomplete/lab/figure"
	"overcomplete/lab/intrusion"
	"overcomplete/lab/paper"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

func init() {
	commands["frontier"] = command{"error, scores, word intrusion and stability of recipes over nonzeros", benchFrontier}
}

// series is a method of encoding, at several sparsities.
type series struct {
	name     string
	control  intrusion.Control // replacement of the learned dictionary, [dense], or ""
	recipe   model.Recipe      // without seed and sparsity
	settings []float64         // nonzeros, or λ of the recipe "paper"
	color    color.Color
}

// dense is the control that uses the dense vectors instead of codes.
const dense intrusion.Control = "dense"

// result holds the measurements of a series at one setting with one seed.
type result struct {
	*series
	setting float64
	seed    uint64
	values  map[string]float64 // by column; undefined ones are missing
}

// frontierColumns are the measurements of a result, and frontierPanels those in the figure.
var (
	frontierColumns = []string{"nonzeros", "error", "WS-353", "average", "top", "stability"}
	frontierPanels  = [][2]string{
		{"error", "reconstruction error ↓"}, {"average", "average score, % ↑"}, {"WS-353", "WS-353, ρ × 100 ↑"},
		{"top", "word intrusion accuracy, % ↑"}, {"stability", "cosine with atoms of seed 1, × 100 ↑"},
	}
)

// frontier measures several series with the same vectors, tasks and intrusion test.
type frontier struct {
	dir     string // for models, figure and table
	x       *vectors.Dense
	source  *vectors.Source
	tasks   []eval.Task
	test    *intrusion.Test
	results []result
}

func benchFrontier(flags *flag.FlagSet, args []string, out io.Writer) error {
	data := flags.String("data", "", "`directory` of the tasks' data")
	reference := flags.String("reference", "", "`file` of other vectors of the same words, to judge word intrusion by")
	var seeds int
	positive(flags, &seeds, "seeds", 3, "number of seeds")
	if err := parse(flags, args, 2); err != nil {
		return err
	}
	ctx, f := context.Background(), frontier{dir: flags.Arg(1)}
	if err := f.read(ctx, flags.Arg(0), *reference, *data); err != nil {
		return usageError{err}
	}
	all := f.series()
	for seed := range uint64(seeds) {
		for i := range all {
			for _, setting := range all[i].settings {
				r := result{&all[i], setting, seed + 1, nil}
				if err := f.measure(ctx, &r); err != nil {
					return err
				}
				f.results = append(f.results, r)
				fmt.Fprintf(out, "%s, %v, seed %d: error %.4g, average %.1f\n", r.name, r.setting, r.seed, r.values["error"], r.values["average"])
			}
		}
		if err := f.write(all); err != nil {
			return err
		}
	}
	return nil
}

// read reads the vectors, their reference and the tasks.
func (f *frontier) read(ctx context.Context, input, reference, data string) (err error) {
	if f.x, f.source, err = vectors.Read(ctx, []string{input}, vectors.ReadOptions{}); err != nil {
		return err
	}
	judge, _, err := vectors.Read(ctx, []string{reference}, vectors.ReadOptions{})
	if err != nil {
		return err
	}
	if f.test, err = intrusion.NewTest(f.x, judge, f.x.IDs); err != nil {
		return err
	}
	f.test.Seed = 1
	if f.tasks, _, err = paper.ReadTasks(data); err != nil {
		return err
	}
	return os.MkdirAll(f.dir, 0o777)
}

// series returns both recipes, their variants, and controls without learning.
func (f *frontier) series() (all []series) {
	best, free, random, words := train.Best(), train.Best(), train.Paper(), train.Paper()
	free.Anchor = 0
	words.FromRows, words.Center = true, true
	atoms := train.WithDefaults(best, f.x).Base().Atoms
	lambdas, nonzeros := []float64{2, 1, 0.5, 0.2}, []float64{}
	for _, n := range []int{5, 10, 30, 90, 150, 300} {
		if n <= atoms/2 {
			nonzeros = append(nonzeros, float64(n))
		}
	}
	for _, method := range []model.Method{model.Signed, model.Nonnegative} {
		for _, s := range []series{
			{"best", "", best, nonzeros, figure.Colors[0]},
			{"best, no anchor", "", free, nonzeros, figure.Colors[2]},
			{"paper", "", random, lambdas, figure.Colors[1]},
			{"paper, words", "", words, lambdas, figure.Colors[3]},
			{"random dictionary", intrusion.RandomDictionary, best, nonzeros, figure.Colors[5]},
			{"word rows", intrusion.WordRows, best, nonzeros, color.Black},
			{"dense vectors", dense, best, []float64{0}, figure.Colors[4]},
		} {
			c := s.recipe.Base()
			c.Method, c.Atoms = method, atoms
			s.recipe = s.recipe.With(c)
			if method == model.Signed || s.control == "" {
				s.name = fmt.Sprintf("%s, %s", method, s.name)
				all = append(all, s)
			}
		}
	}
	return all
}

// model returns the model of a series, with its codes.
func (f *frontier) model(ctx context.Context, s *series, setting float64, seed uint64) (*model.Model, error) {
	c := s.recipe.Base()
	c.Seed = seed
	if s.control == dense {
		return &model.Model{Info: model.Info{Encoding: new(model.Encoding)}, Codes: interpret.FromDense(f.x)}, nil
	}
	if s.control != "" {
		return intrusion.Encode(ctx, f.x, s.control, c.Atoms, int(setting), c.Method, seed, cpu.Device{})
	}
	r := s.recipe.With(c)
	switch h := r.(type) {
	case model.Paper:
		h.Lambda = setting
		r = h
	case model.Best:
		h.Nonzeros = int(setting)
		r = h
	}
	dir := filepath.Join(f.dir, fmt.Sprintf("%s, %v, seed %d", s.name, setting, seed))
	return paper.Model(ctx, dir, f.x, r, cpu.Device{}, train.Options{Source: f.source})
}

// measure sets the values of r.
func (f *frontier) measure(ctx context.Context, r *result) error {
	m, err := f.model(ctx, r.series, r.setting, r.seed)
	if err != nil {
		return err
	}
	scored := eval.Table{Tasks: eval.Names(f.tasks)}
	codes := m.Codes
	if r.recipe.Base().Method == model.Nonnegative {
		codes = codes.Binary()
	}
	results, err := eval.Run(ctx, eval.NewSparse(r.name, codes), f.tasks, paper.Seed, nil)
	if err != nil {
		return err
	}
	scored.Rows = []eval.Row{{Results: results}}
	c, err := f.test.Measure(ctx, f.test.Codes(0, m.Codes))
	if err != nil {
		return err
	}
	r.values = map[string]float64{
		"nonzeros": float64(m.Codes.Nonzeros()) / float64(m.Codes.Rows), "error": m.Info.Encoding.Error,
		"WS-353": float64(results[0].Score), "average": float64(scored.Average(scored.Rows[0]).Score), "top": 100 * c.Any.Mean,
	}
	if r.seed == 1 || r.control != "" {
		return nil
	}
	first, err := f.model(ctx, r.series, r.setting, 1)
	if err != nil {
		return err
	}
	matches, err := interpret.MatchAtoms(ctx, first.Dictionary.Atoms, m.Dictionary.Atoms, f.x.Dim)
	for _, match := range matches {
		r.values["stability"] += 100 * match.Cosine / float64(len(matches))
	}
	return err
}

// write writes frontier.tsv, with a row for each result, and a figure of means over seeds.
func (f *frontier) write(all []series) error {
	rows := [][]string{append([]string{"vectors", "setting", "seed"}, frontierColumns...)}
	for _, r := range f.results {
		row := []string{r.name, fmt.Sprint(r.setting), fmt.Sprint(r.seed)}
		for _, column := range frontierColumns {
			text := ""
			if v, ok := r.values[column]; ok && !math.IsNaN(v) {
				text = strconv.FormatFloat(v, 'g', 6, 64)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	if err := paper.WriteTSV(filepath.Join(f.dir, "frontier.tsv"), rows); err != nil {
		return err
	}
	var panels []figure.Panel
	for _, p := range frontierPanels {
		column, title := p[0], p[1]
		panel := figure.Panel{Title: title, XLabel: "nonzeros per row", LogX: true, LogY: column == "error"}
		for i, s := range all {
			line := figure.Line{Name: s.name, Color: s.color, Dashed: s.recipe.Base().Method == model.Nonnegative}
			for _, setting := range s.settings {
				x, _ := f.mean(&all[i], setting, "nonzeros")
				y, deviation := f.mean(&all[i], setting, column)
				line.Points = append(line.Points, figure.Point{X: x, Y: y, Deviation: deviation})
			}
			panel.Lines = append(panel.Lines, line)
		}
		panels = append(panels, panel)
	}
	return figure.Save(filepath.Join(f.dir, "frontier"), 3, panels...)
}

// mean returns the mean and the standard deviation of a measurement over seeds.
func (f *frontier) mean(s *series, setting float64, column string) (mean, deviation float64) {
	var values []float64
	for _, r := range f.results {
		if v, ok := r.values[column]; ok && r.series == s && r.setting == setting {
			values = append(values, v)
		}
	}
	if values == nil {
		return math.NaN(), math.NaN()
	}
	return stat.MeanStdDev(values, nil)
}
