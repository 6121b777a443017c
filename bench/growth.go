package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"overcomplete/cpu"
	"overcomplete/train"
	"overcomplete/vectors"
)

// GrowthReport is what "bench growth" measures.
type GrowthReport struct {
	common
	Dim    int    `json:"dim"`
	Epoch  int    `json:"epoch"` // that was timed: the last of the training
	Words  Growth `json:"words"` // over V, with K = 10·L
	Atoms  Growth `json:"atoms"` // over K
	Memory Memory `json:"memory"`

	words, atoms []int
}

// Growth is how the seconds of an epoch depend on a size, and the line through
// them: seconds ≈ Intercept + Slope·size, by least squares.
type Growth struct {
	Over      string  `json:"over"` // "words" or "atoms"
	Points    []Point `json:"points"`
	Intercept float64 `json:"intercept"`
	Slope     float64 `json:"slope"`
	R2        float64 `json:"r2"` // the share of the seconds' variance that the line explains
}

// Point is a training.
type Point struct {
	Words   int       `json:"words"`
	Atoms   int       `json:"atoms"`
	Seconds float64   `json:"seconds"` // the median of Repeats
	Repeats []float64 `json:"repeats"`
}

// Memory is how much a training with the program itself has resident at most.
type Memory struct {
	Words   int    `json:"words"`
	Atoms   int    `json:"atoms"`
	Bytes   int64  `json:"bytes,omitempty"`
	Problem string `json:"problem,omitempty"` // why it is not known
}

// growthWords are those of the trainings that show how time grows with atoms,
// unless all others have fewer.
const growthWords = 8000

const growthRepeats = 3

func (r *GrowthReport) declare(flags *flag.FlagSet) {
	counts(flags, &r.words, "words", []int{1000, 2000, 5000, 10000, 20000, 50000, 100000}, "of trainings with 10 atoms a dimension")
	counts(flags, &r.atoms, "atoms", []int{500, 1000, 1500, 2000, 3000, 4000, 5000, 6000}, fmt.Sprintf("of trainings with %d words", growthWords))
	positive(flags, &r.Dim, "dim", 300, "of vectors")
	positive(flags, &r.Epoch, "epochs", 5, "of trainings, of which the last is timed")
	r.declareProgram(flags)
}

func (r *GrowthReport) run() error {
	for _, sizes := range [][]int{r.words, r.atoms} {
		if len(slices.Compact(slices.Sorted(slices.Values(sizes)))) < 2 {
			return usageError{fmt.Errorf("%v: a line takes at least two sizes", sizes)}
		}
	}
	r.Words.Over, r.Atoms.Over = "words", "atoms"
	most := slices.Max(r.words)
	for _, v := range r.words {
		r.Words.Points = append(r.Words.Points, Point{Words: v, Atoms: 10 * r.Dim})
	}
	for _, k := range r.atoms {
		r.Atoms.Points = append(r.Atoms.Points, Point{Words: min(growthWords, most), Atoms: k})
	}
	x := generate(seed, most, r.Dim)
	if err := r.trainingMemory(x); err != nil {
		return err
	}
	// One after the other, several times over: what others leave of the machine
	// changes from minute to minute.
	for range growthRepeats {
		for _, g := range []*Growth{&r.Words, &r.Atoms} {
			for i := range g.Points {
				if err := g.Points[i].measure(x, r.Epoch); err != nil {
					return err
				}
			}
		}
	}
	r.Words.fit()
	r.Atoms.fit()
	return nil
}

// measure trains once more.
func (p *Point) measure(x *vectors.Dense, epochs int) error {
	r := &recorder{Device: cpu.Device{}}
	if _, err := train.Fit(context.Background(), x.Slice(0, p.Words), hyperparameters(p.Atoms, epochs), r, train.Options{}); err != nil {
		return err
	}
	p.Repeats = append(p.Repeats, seconds(r.epochs[epochs-1]))
	p.Seconds = median(p.Repeats)
	return nil
}

func (g *Growth) fit() {
	var x, y []float64
	for _, p := range g.Points {
		x, y = append(x, g.size(p)), append(y, p.Seconds)
	}
	g.Intercept, g.Slope = stat.LinearRegression(x, y, nil, false)
	g.R2 = stat.RSquared(x, y, nil, g.Intercept, g.Slope)
}

func (g *Growth) size(p Point) float64 {
	if g.Over == "words" {
		return float64(p.Words)
	}
	return float64(p.Atoms)
}

// line says what the line is.
func (g *Growth) line() string {
	return fmt.Sprintf("%.1f ms + %.2f µs · %s, R² = %.5f", 1e3*g.Intercept, 1e6*g.Slope, g.Over, g.R2)
}

// trainingMemory runs a whole training of the vectors with the program.
func (r *GrowthReport) trainingMemory(x *vectors.Dense) error {
	r.Memory = Memory{Words: x.Len(), Atoms: 10 * x.Dim}
	if err := r.build(); err != nil {
		r.Memory.Problem = err.Error()
		return nil
	}
	file, list := r.file("x.npy"), r.file("words.txt")
	words := []byte(strings.Join(x.Words, "\n") + "\n")
	if err := errors.Join(writeVectors(file, x.Data, x.Dim), os.WriteFile(list, words, 0o666)); err != nil {
		return err
	}
	_, resident, err := r.overcomplete(nil, "train", file, "--words", list, "-o", r.file("model"), "-k", strconv.Itoa(r.Memory.Atoms), "--device", "cpu")
	if r.Memory.Bytes = resident; resident == 0 {
		r.Memory.Problem = "this system does not tell"
	}
	return err
}

// print writes the report as tables.
func (r *GrowthReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\nseconds of epoch %d, generated vectors of length %d\n", r.Machine, r.Epoch, r.Dim)
	for _, g := range []Growth{r.Words, r.Atoms} {
		section(out, g.Points, g.line(), "words,atoms,seconds,ns/word/atom,of the line", func(p Point) []any {
			return []any{p.Words, p.Atoms, p.Seconds, 1e9 * p.Seconds / float64(p.Words) / float64(p.Atoms),
				fmt.Sprintf("%.3f", p.Seconds/(g.Intercept+g.Slope*g.size(p)))}
		})
	}
	m := r.Memory
	_, err := fmt.Fprintf(out, "\n%d × %d → %d with the program itself: %s resident at most\n", m.Words, r.Dim, m.Atoms,
		cmp.Or(m.Problem, fmt.Sprintf("%.2f GB", float64(m.Bytes)/1e9)))
	return err
}
