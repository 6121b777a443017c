package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"

	"overcomplete/cpu"
	"overcomplete/train"
	"overcomplete/vectors"
)

// GrowthReport is what "bench growth" measures.
type GrowthReport struct {
	Machine Machine `json:"machine"`
	Dim     int     `json:"dim"`
	Epoch   int     `json:"epoch"` // that was timed: the last of the training
	Words   Growth  `json:"words"` // over V, with K = 10·L
	Atoms   Growth  `json:"atoms"` // over K
	Memory  Memory  `json:"memory"`
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

func benchGrowth(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("bench growth", flag.ContinueOnError)
	words := counts(flags, "words", []int{1000, 2000, 5000, 10000, 20000, 50000, 100000}, "of trainings with 10 atoms a dimension")
	atoms := counts(flags, "atoms", []int{500, 1000, 1500, 2000, 3000, 4000, 5000, 6000}, fmt.Sprintf("of trainings with %d words", growthWords))
	dim := positive(flags, "dim", 300, "of vectors")
	epochs := positive(flags, "epochs", 5, "of trainings, of which the last is timed")
	f, err := parseProgramFlags(flags, args)
	if err != nil {
		return err
	}
	for _, sizes := range [][]int{*words, *atoms} {
		if len(slices.Compact(slices.Sorted(slices.Values(sizes)))) < 2 {
			return usageError{fmt.Errorf("%v: a line takes at least two sizes", sizes)}
		}
	}
	r := GrowthReport{Machine: f.machine, Dim: *dim, Epoch: *epochs, Words: Growth{Over: "words"}, Atoms: Growth{Over: "atoms"}}
	most := slices.Max(*words)
	for _, v := range *words {
		r.Words.Points = append(r.Words.Points, Point{Words: v, Atoms: 10 * *dim})
	}
	for _, k := range *atoms {
		r.Atoms.Points = append(r.Atoms.Points, Point{Words: min(growthWords, most), Atoms: k})
	}
	x := generate(seed, most, *dim)
	if r.Memory, err = trainingMemory(f.program, x); err != nil {
		return err
	}
	// One after the other, several times over: what others leave of the machine
	// changes from minute to minute.
	for range growthRepeats {
		for _, g := range []*Growth{&r.Words, &r.Atoms} {
			for i := range g.Points {
				if err := g.Points[i].measure(x, *epochs); err != nil {
					return err
				}
			}
		}
	}
	r.Words.fit()
	r.Atoms.fit()
	return f.finish(&r, stdout)
}

// programFlags are what "bench growth" and "bench memory" share, which run the program itself.
type programFlags struct {
	machine             Machine
	program, json, plot string
}

// parseProgramFlags adds the flags that both have, and parses all.
func parseProgramFlags(flags *flag.FlagSet, args []string) (f programFlags, err error) {
	flags.StringVar(&f.program, "program", "", "the program overcomplete, whose memory is measured (default built with go)")
	flags.StringVar(&f.json, "json", "", "`file` to write all results to")
	flags.StringVar(&f.plot, "plot", "", "`file` to draw, without its endings .svg and .png")
	if err := parse(flags, args, 0); err != nil {
		return f, err
	}
	if f.program != "" {
		if _, err := exec.LookPath(f.program); err != nil {
			return f, usageError{fmt.Errorf("--program: %w", err)}
		}
	}
	if f.machine, err = thisMachine(); err != nil {
		return f, usageError{err}
	}
	return f, nil
}

// finish writes what was measured to where it was asked for.
func (f *programFlags) finish(r interface {
	draw(path string) error
	print(io.Writer) error
}, stdout io.Writer) error {
	if f.json != "" {
		if err := writeJSON(f.json, r); err != nil {
			return err
		}
	}
	if f.plot != "" {
		if err := r.draw(f.plot); err != nil {
			return err
		}
	}
	return r.print(stdout)
}

// measure trains once more.
func (p *Point) measure(x *vectors.Dense, epochs int) error {
	r := &recorder{Device: cpu.Device{}}
	if _, err := train.Fit(context.Background(), firstWords(x, p.Words), hyperparameters(p.Atoms, epochs), r, train.Options{}); err != nil {
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

// built returns the program, which is built in dir unless it is there.
func built(program, dir string) (string, error) {
	if program != "" {
		return program, nil
	}
	program = filepath.Join(dir, "overcomplete")
	if out, err := exec.Command("go", "build", "-o", program, "overcomplete").CombinedOutput(); err != nil {
		return "", fmt.Errorf("not here: %w %s", err, strings.TrimSpace(string(out)))
	}
	return program, nil
}

// trainingMemory runs a whole training of the vectors with the program.
func trainingMemory(program string, x *vectors.Dense) (Memory, error) {
	m := Memory{Words: x.Len(), Atoms: 10 * x.Dim}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	if program, err = built(program, dir); err != nil {
		m.Problem = err.Error()
		return m, nil
	}
	file, list := filepath.Join(dir, "x.npy"), filepath.Join(dir, "words.txt")
	words := []byte(strings.Join(x.Words, "\n") + "\n")
	if err := errors.Join(writeVectors(file, x.Data, x.Dim), os.WriteFile(list, words, 0o666)); err != nil {
		return m, err
	}
	cmd := exec.Command(program, "train", file, "--words", list, "-o", filepath.Join(dir, "model"),
		"-k", strconv.Itoa(m.Atoms), "--device", "cpu", "--quiet")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return m, fmt.Errorf("%s: %w", program, err)
	}
	if m.Bytes = maxResident(cmd.ProcessState); m.Bytes == 0 {
		m.Problem = "this system does not tell"
	}
	return m, nil
}

// print writes the report as tables.
func (r *GrowthReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\nseconds of epoch %d, generated vectors of length %d\n", r.Machine, r.Epoch, r.Dim)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, g := range []Growth{r.Words, r.Atoms} {
		fmt.Fprint(w, "\nwords\tatoms\tseconds\tns/word/atom\tof the line\t\n")
		for _, p := range g.Points {
			fmt.Fprintf(w, "%d\t%d\t%.4g\t%.4g\t%.3f\t\n", p.Words, p.Atoms, p.Seconds, 1e9*p.Seconds/float64(p.Words)/float64(p.Atoms),
				p.Seconds/(g.Intercept+g.Slope*g.size(p)))
		}
		w.Flush()
		fmt.Fprintln(out, g.line())
	}
	m := r.Memory
	fmt.Fprintf(out, "\n%d × %d → %d with the program itself: %s resident at most\n", m.Words, r.Dim, m.Atoms,
		cmp.Or(m.Problem, fmt.Sprintf("%.2f GB", float64(m.Bytes)/1e9)))
	return nil
}
