//go:build !gpu

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/gonum/stat"

	"overcomplete/cpu"
	"overcomplete/internal/backend"
	"overcomplete/internal/lab/figure"
	"overcomplete/internal/table"
	"overcomplete/train"
	"overcomplete/vectors"
)

func init() {
	commands["growth"] = command{"how the seconds of an epoch grow with words and atoms", benchGrowth}
}

// growth is a series of trainings of increasing size, with a least-squares fit of the seconds of their last epochs:
// seconds ≈ intercept + slope·size.
type growth struct {
	over             string // "words" or "atoms"
	points           []point
	intercept, slope float64
	r2               float64 // coefficient of determination of the fit
}

// point is a training of one size.
type point struct {
	words, atoms int
	size         float64   // words or atoms
	repeats      []float64 // seconds
}

// growthWords is the number of rows of the trainings over atoms, unless all trainings over words have fewer.
const growthWords = 8000

func benchGrowth(flags *flag.FlagSet, args []string, out io.Writer) error {
	var words, atoms []int
	var dim, epochs int
	counts(flags, &words, "words", []int{1000, 2000, 5000, 10000, 20000, 50000, 100000}, "rows of trainings with 10 atoms a dimension")
	counts(flags, &atoms, "atoms", []int{500, 1000, 1500, 2000, 3000, 4000, 5000, 6000}, fmt.Sprintf("atoms of trainings with %d rows", growthWords))
	positive(flags, &dim, "dim", 300, "length of vectors")
	positive(flags, &epochs, "epochs", 5, "epochs of each training; the last is timed")
	plot := flags.String("plot", "", "`name` of a figure to draw, without .svg and .png")
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
	for range 3 { // rounds, because other load of the machine changes from minute to minute
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
	if *plot == "" {
		return nil
	}
	var panels []figure.Panel
	for _, g := range series {
		panels = append(panels, g.panel())
	}
	return figure.Save(*plot, len(panels), panels...)
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
	fmt.Fprintf(out, "\n%s\n\n%s", title, rows.Text("lr"))
}

// panel draws the series and its fit.
func (g *growth) panel() figure.Panel {
	measured := figure.Line{Name: "measured", Color: figure.Colors[0]}
	fitted := figure.Line{Name: "least squares", Color: figure.Colors[5], Dashed: true}
	for _, p := range g.points {
		measured.Points = append(measured.Points, figure.Point{X: p.size, Y: 1e3 * median(p.repeats)})
		fitted.Points = append(fitted.Points, figure.Point{X: p.size, Y: 1e3 * (g.intercept + g.slope*p.size)})
	}
	return figure.Panel{Title: "ms per epoch: " + g.String(), XLabel: g.over, Lines: []figure.Line{measured, fitted}}
}

// seconds returns the seconds of both passes of an epoch.
func seconds(s backend.Sums) float64 { return s.DictionarySeconds + s.CodeSeconds }
