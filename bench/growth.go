//go:build !gpu

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"overcomplete/cpu"
	"overcomplete/internal/table"
	"overcomplete/train"
	"overcomplete/vectors"
)

func init() {
	commands["growth"] = command{"how the seconds of an epoch grow with words and atoms", benchGrowth}
}

// growth is a series of trainings of growing size, and the line through the seconds of their last
// epochs: seconds ≈ intercept + slope·size, by least squares.
type growth struct {
	over             string // "words" or "atoms"
	points           []point
	intercept, slope float64
	r2               float64 // the share of the seconds' variance that the line explains
}

// point is a training.
type point struct {
	words, atoms int
	size         float64   // words or atoms
	repeats      []float64 // seconds
}

// growthWords is the number of rows where atoms grow, unless all other trainings have fewer.
const growthWords = 8000

func benchGrowth(flags *flag.FlagSet, args []string, out io.Writer) error {
	var words, atoms []int
	var dim, epochs int
	counts(flags, &words, "words", []int{1000, 2000, 5000, 10000, 20000, 50000, 100000}, "rows of trainings with 10 atoms a dimension")
	counts(flags, &atoms, "atoms", []int{500, 1000, 1500, 2000, 3000, 4000, 5000, 6000}, fmt.Sprintf("atoms of trainings with %d rows", growthWords))
	positive(flags, &dim, "dim", 300, "length of vectors")
	positive(flags, &epochs, "epochs", 5, "epochs of each training; the last is timed")
	figure := flags.String("plot", "", "`file` to draw, .svg or .png")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	for _, sizes := range [][]int{words, atoms} {
		if len(slices.Compact(slices.Sorted(slices.Values(sizes)))) < 2 {
			return usageError{fmt.Errorf("%v: a line requires at least two sizes", sizes)}
		}
	}
	if err := printMachine(out); err != nil {
		return err
	}
	most := slices.Max(words)
	series := []growth{{over: "words"}, {over: "atoms"}}
	for _, v := range words {
		series[0].points = append(series[0].points, point{words: v, atoms: 10 * dim, size: float64(v)})
	}
	for _, k := range atoms {
		series[1].points = append(series[1].points, point{words: min(growthWords, most), atoms: k, size: float64(k)})
	}
	x := generate(seed, most, dim)
	for range 3 { // rounds, because other work on the machine changes from minute to minute
		for _, g := range series {
			for i := range g.points {
				if err := g.points[i].measure(x, epochs); err != nil {
					return err
				}
			}
		}
	}
	for i := range series {
		series[i].fit()
		series[i].print(out, dim, epochs)
	}
	if *figure == "" {
		return nil
	}
	return drawGrowth(*figure, series)
}

// measure trains once more.
func (p *point) measure(x *vectors.Dense, epochs int) error {
	r := &recorder{Device: cpu.Device{}}
	if _, err := train.Fit(context.Background(), x.Slice(0, p.words), hyperparameters(p.atoms, epochs), r, train.Options{}); err != nil {
		return err
	}
	p.repeats = append(p.repeats, seconds(r.epochs[epochs-1]))
	return nil
}

func (g *growth) fit() {
	var x, y []float64
	for _, p := range g.points {
		x, y = append(x, p.size), append(y, median(p.repeats))
	}
	g.intercept, g.slope = stat.LinearRegression(x, y, nil, false)
	g.r2 = stat.RSquared(x, y, nil, g.intercept, g.slope)
}

func (g *growth) String() string {
	return fmt.Sprintf("%.1f ms + %.2f µs · %s, R² = %.5f", 1e3*g.intercept, 1e6*g.slope, g.over, g.r2)
}

func (g *growth) print(out io.Writer, dim, epochs int) {
	title := fmt.Sprintf("Seconds of epoch %d, generated vectors of length %d: %v", epochs, dim, g)
	rows := table.Table{{"words", "atoms", "seconds", "ns/word/atom", "of the line"}}
	for _, p := range g.points {
		s := median(p.repeats)
		rows = append(rows, []string{fmt.Sprint(p.words), fmt.Sprint(p.atoms), fmt.Sprintf("%.4g", s),
			fmt.Sprintf("%.4g", 1e9*s/float64(p.words)/float64(p.atoms)), fmt.Sprintf("%.3f", s/(g.intercept+g.slope*p.size))})
	}
	fmt.Fprintf(out, "\n%s\n\n%s", title, rows.Text("lr", nil))
}

// drawGrowth draws one panel per series.
func drawGrowth(path string, series []growth) error {
	canvas, err := draw.NewFormattedCanvas(vg.Length(len(series))*11*vg.Centimeter, 8*vg.Centimeter, strings.TrimPrefix(filepath.Ext(path), "."))
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", path, err)}
	}
	panels := make([]*plot.Plot, len(series))
	for i, g := range series {
		var xys plotter.XYs
		for _, p := range g.points {
			xys = append(xys, plotter.XY{X: p.size, Y: 1e3 * median(p.repeats)})
		}
		measured, err := plotter.NewScatter(xys)
		if err != nil {
			return err
		}
		line := plotter.NewFunction(func(size float64) float64 { return 1e3 * (g.intercept + g.slope*size) })
		panels[i] = plot.New()
		panels[i].Title.Text, panels[i].X.Label.Text = "ms per epoch: "+g.String(), g.over
		panels[i].Add(measured, line)
	}
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: vg.Centimeter, PadRight: vg.Centimeter / 2}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, draw.New(canvas))[0] {
		panels[i].Draw(c)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := canvas.WriteTo(f); err != nil {
		return err
	}
	return f.Close()
}
