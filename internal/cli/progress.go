package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"overcomplete/internal/escape"
	"overcomplete/internal/lab/eval"
	"overcomplete/model"
)

// progressFlags choose how much a command prints of work under way.
type progressFlags struct {
	lines bool // also where standard error is no terminal
	quiet bool
}

func (f *progressFlags) registerProgress(flags *pflag.FlagSet, what string) {
	flags.BoolVar(&f.lines, "progress", false, "print a line "+what+" where standard error is no terminal, which shows a bar")
	flags.BoolVar(&f.quiet, "quiet", false, "print no progress")
}

// log returns the writer for progress.
func (f *progressFlags) log(stderr io.Writer) io.Writer {
	if f.quiet {
		return io.Discard
	}
	return stderr
}

// bar is a progress bar on a terminal. A nil bar shows nothing.
type bar struct {
	terminal *os.File
	*progressbar.ProgressBar
}

// newBar returns a bar, or nil if w is no terminal.
func newBar(w io.Writer, steps int) *bar {
	terminal, ok := terminalOf(w)
	if !ok {
		return nil
	}
	return &bar{terminal, progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(terminal), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(20), progressbar.OptionUseANSICodes(true),
		progressbar.OptionShowDescriptionAtLineEnd())}
}

// describe shows a description after the bar, and more of it if the line is wide enough: a line that
// wraps can't be redrawn.
func (b *bar) describe(description, more string) {
	const rest = len("  99% ||  [9h59m59s:9h59m59s]  ")
	width, _, err := term.GetSize(int(b.terminal.Fd()))
	if err != nil {
		width = 80
	}
	if len(description)+len(more)+rest+20 <= width {
		description += more
	}
	b.Describe(description + " ") // terminals lose the last column when the rest of a full line is cleared
}

func (b *bar) clear() {
	if b != nil {
		b.Clear()
	}
}

// progress shows a training under way: a bar on a terminal or, if lines are wanted, a line per
// epoch elsewhere.
type progress struct {
	mu          sync.Mutex // for writing lines
	w           io.Writer
	lines       bool
	bar         *bar
	steps       int // of an epoch
	epochs      int
	before      int // epochs of a checkpoint
	start       time.Time
	description string
	more        string
}

// newProgress shows epochs, each of a number of passes over rows.
func newProgress(w io.Writer, lines bool, rows, passes, epochs int) *progress {
	p := &progress{w: w, lines: lines, bar: newBar(w, rows*passes*epochs), steps: rows * passes, epochs: epochs}
	p.begin(nil)
	return p
}

// begin continues after the epochs of a checkpoint.
func (p *progress) begin(done []model.Epoch) {
	p.before, p.start = len(done), time.Now()
	p.describe(p.before, "")
	if p.bar != nil {
		p.bar.Add(p.steps * p.before)
	}
}

// describe describes the epoch after a number of epochs.
func (p *progress) describe(done int, more string) {
	p.description, p.more = fmt.Sprintf("epoch %d/%d", min(done+1, p.epochs), p.epochs), more
}

// words adds n words of a pass. It may be called from any goroutine.
func (p *progress) words(n int) {
	if p.bar != nil {
		p.bar.Add(n)
		p.bar.describe(p.description, p.more) // Add redraws at whole percents only
	}
}

// say writes a line to w, the log or another writer, from any goroutine.
func (p *progress) say(w io.Writer, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bar.clear()
	say(w, "%s", line)
}

// epoch shows an epoch's metrics. No pass may be under way.
func (p *progress) epoch(e model.Epoch) {
	p.describe(e.Epoch, fmt.Sprintf(", error %#.3g", e.Error))
	if p.bar != nil || !p.lines {
		return
	}
	left := time.Since(p.start) / time.Duration(e.Epoch-p.before) * time.Duration(p.epochs-e.Epoch)
	p.say(p.w, fmt.Sprintf("epoch %d/%d  error %.4f  %.2f %% zeros  %v left", e.Epoch, p.epochs, e.Error, 100*e.Sparsity, left.Round(time.Second)))
}

// showTasks shows how many of the tasks of an evaluation are done: a bar on a terminal or, if lines
// are wanted, a line per task elsewhere. It returns functions to call after each task, from any
// goroutine, and at the end.
func showTasks(w io.Writer, lines bool, name string, tasks []eval.Task) (finished func(task string), end func()) {
	b := newBar(w, len(tasks))
	if b == nil && !lines {
		return nil, func() {}
	}
	if b != nil {
		b.describe("tasks of "+escape.Text(name), "")
		b.RenderBlank()
	}
	var mu sync.Mutex
	left, start := len(tasks), time.Now()
	finished = func(task string) {
		mu.Lock()
		defer mu.Unlock()
		left--
		if b != nil {
			b.Add(1)
			return
		}
		say(w, "  %s by %s: %d of %d tasks left after %.0f s", name, task, left, len(tasks), time.Since(start).Seconds())
	}
	return finished, b.clear
}

// remaining returns how long the rest of some work takes if it goes on as before, or "" if nothing
// is left.
func remaining(start time.Time, done, all int) string {
	if done == 0 || done >= all {
		return ""
	}
	left := time.Since(start) / time.Duration(done) * time.Duration(all-done)
	return fmt.Sprintf(", %d of %d left, about %v", all-done, all, left.Round(time.Second))
}
