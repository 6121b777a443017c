package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"overcomplete/internal/escape"
	"overcomplete/internal/lab/eval"
	"overcomplete/model"
)

// progressFlags are how much a command says of work under way. On a terminal it shows a
// bar.
type progressFlags struct {
	lines bool // also where standard error is no terminal
	quiet bool
}

func (f *progressFlags) registerProgress(flags *pflag.FlagSet, what string) {
	flags.BoolVar(&f.lines, "progress", false, "print a line "+what+" where standard error is no terminal, which shows a bar")
	flags.BoolVar(&f.quiet, "quiet", false, "print no progress")
}

// log returns where progress is printed.
func (f *progressFlags) log(stderr io.Writer) io.Writer {
	if f.quiet {
		return io.Discard
	}
	return stderr
}

// progress shows a training under way: a bar on a terminal or, if lines are wanted, a
// line an epoch elsewhere.
type progress struct {
	mu       sync.Mutex // of w, but for the bar
	w        io.Writer
	lines    bool
	terminal *os.File                 // w, if that is one
	bar      *progressbar.ProgressBar // nil without a terminal
	metrics  []string                 // of the last epoch
	vocab    int
	passes   int // over the words, an epoch
	current  int // epoch
	epochs   int
	before   int // epochs that were done before the start
	start    time.Time
}

func newProgress(w io.Writer, lines bool, vocab, passes, epochs int) *progress {
	p := &progress{w: w, lines: lines, vocab: vocab, passes: passes, current: 1, epochs: epochs, start: time.Now()}
	if file, ok := terminalOf(w); ok {
		p.terminal = file
		p.bar = newBar(file, int64(passes)*int64(vocab)*int64(p.epochs))
	}
	return p
}

func newBar(terminal *os.File, steps int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(steps,
		progressbar.OptionSetWriter(terminal), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(20), progressbar.OptionUseANSICodes(true),
		progressbar.OptionShowDescriptionAtLineEnd())
}

// words adds words that a pass has done with. It may be called from any
// goroutine.
func (p *progress) words(n int) {
	if p.bar != nil {
		p.bar.Add(n)
		p.bar.Describe(p.description()) // Add redraws at whole percents only
	}
}

// begin begins after the epochs that were done before.
func (p *progress) begin(done []model.Epoch) {
	p.before, p.current = len(done), min(len(done)+1, p.epochs)
	p.start = time.Now()
	if p.bar != nil {
		p.bar.Add64(int64(p.passes) * int64(p.vocab) * int64(p.before))
	}
}

// say writes a line to w, the display's or another, from any goroutine.
func (p *progress) say(w io.Writer, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Clear()
	}
	say(w, "%s", line)
}

// epoch shows an epoch's metrics. No pass may be under way.
func (p *progress) epoch(e model.Epoch) {
	rate := float64(p.vocab) / e.Seconds
	if p.bar != nil {
		p.current = min(e.Epoch+1, p.epochs)
		p.metrics = []string{fmt.Sprintf("error %#.3g", e.Error), fmt.Sprintf("%.0f%% zeros", 100*e.Sparsity), shortRate(rate)}
		return
	}
	if !p.lines {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left := time.Since(p.start) / time.Duration(e.Epoch-p.before) * time.Duration(p.epochs-e.Epoch)
	fmt.Fprintf(p.w, "epoch %d/%d  error %.4f  %.2f %% zeros  %v left\n", e.Epoch, p.epochs, e.Error, 100*e.Sparsity, left.Round(time.Second))
}

// description is what stands behind the bar.
func (p *progress) description() string {
	return describe(p.terminal, fmt.Sprintf("epoch %d/%d", p.current, p.epochs), p.metrics)
}

// describe returns what stands behind a bar, and as much more as fits, for a line that
// wraps can't be redrawn. It ends in a space because terminals lose the last column when
// the rest of a full line is cleared.
func describe(terminal *os.File, d string, more []string) string {
	const rest = len("  99% ||  [9h59m59s:9h59m59s]  ")
	width, _, err := term.GetSize(int(terminal.Fd()))
	if err != nil {
		width = 80
	}
	for _, m := range more {
		if len(d)+len(", ")+len(m)+rest > width {
			break
		}
		d += ", " + m
	}
	return d + " "
}

func shortRate(r float64) string {
	if r < 10_000 {
		return fmt.Sprintf("%.0f words/s", r)
	}
	return fmt.Sprintf("%.0fk words/s", r/1000)
}

// done ends the display.
func (p *progress) done() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// showTasks shows which of the tasks that vectors are measured by are left: a bar on a
// terminal or, if lines are wanted, a line for each that is finished elsewhere. It returns
// what to call with these, from any goroutine, and what ends it.
func showTasks(w io.Writer, lines bool, name string, tasks []eval.Task) (finished func(task string), end func()) {
	left := eval.Names(tasks)
	start := time.Now()
	terminal, ok := terminalOf(w)
	if !ok && !lines {
		return nil, func() {}
	}
	var bar *progressbar.ProgressBar
	redraw := func() {
		bar.Describe(describe(terminal, fmt.Sprintf("%d of %d tasks of %s left", len(left), len(tasks), escape.Text(name)), left))
	}
	if ok {
		bar = newBar(terminal, int64(len(tasks)))
		redraw()
		bar.RenderBlank()
	}
	var mu sync.Mutex
	finished = func(task string) {
		mu.Lock()
		defer mu.Unlock()
		left = slices.DeleteFunc(left, func(t string) bool { return t == task })
		if bar != nil {
			redraw()
			bar.Add(1)
			return
		}
		say(w, "  %s by %s: %d of %d tasks left after %.0f s", name, task, len(left), len(tasks), time.Since(start).Seconds())
	}
	return finished, func() {
		if bar != nil {
			bar.Clear()
		}
	}
}

// remaining says how long the rest of some work takes if it goes on as it did, or
// nothing if there is none.
func remaining(start time.Time, done, all int) string {
	if done == 0 || done >= all {
		return ""
	}
	left := time.Since(start) / time.Duration(done) * time.Duration(all-done)
	return fmt.Sprintf(", %d of %d left, about %v", all-done, all, left.Round(time.Second))
}
