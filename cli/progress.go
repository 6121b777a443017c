package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"overcomplete/internal/printing"
	"overcomplete/lab/eval"
	"overcomplete/model"
)

type progressFlags struct {
	lines bool // print lines even if standard error is no terminal
	quiet bool
}

func (f *progressFlags) registerProgress(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.lines, "progress", false, "without a terminal, print one line "+what+"; a terminal shows a bar")
	flags.BoolVar(&f.quiet, "quiet", false, "print no progress")
	excludes(cmd, "progress", "quiet")
}

func (f *progressFlags) log(stderr io.Writer) io.Writer {
	if f.quiet {
		return io.Discard
	}
	return stderr
}

// A bar shows progress. If the total is known, it draws a bar on a terminal, and nothing elsewhere. If the total is
// unknown, it counts: on a terminal all the time, elsewhere with a line every ten seconds.
type bar struct {
	w           io.Writer
	terminal    *os.File                 // nil if w is no terminal
	drawn       *progressbar.ProgressBar // nil without a terminal
	counts      bool
	rows        int          // number of rows counted so far
	percent     atomic.Int32 // percentage of the input that was read; 0 if unknown
	start, last time.Time
}

const unknown = -1 // total of a bar that only counts

func newBar(w io.Writer, total int) *bar {
	b := &bar{w: w, counts: total == unknown, start: time.Now(), last: time.Now()}
	terminal, ok := terminalOf(w)
	if !ok {
		return b
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(terminal), progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(20), progressbar.OptionUseANSICodes(true), progressbar.OptionShowDescriptionAtLineEnd(),
	}
	if b.counts {
		options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"))
	}
	b.terminal, b.drawn = terminal, progressbar.NewOptions(total, options...)
	return b
}

// describe shows a description after the bar. It adds the string more only if the line is wide enough, because a
// wrapped line can't be redrawn.
func (b *bar) describe(description, more string) {
	const rest = len("  99% ||  [9h59m59s:9h59m59s]  ")
	width, _, err := term.GetSize(int(b.terminal.Fd()))
	if err != nil {
		width = 80
	}
	if len(description)+len(more)+rest+20 <= width {
		description += more
	}
	b.drawn.Describe(description + " ") // the space is for terminals that clear the last column of a full line
}

// add adds n steps. Several goroutines may call it at once if the total is known.
func (b *bar) add(n int) {
	if b.drawn != nil {
		b.drawn.Add(n)
	}
	if !b.counts {
		return
	}
	b.rows += n
	share := ""
	if percent := b.percent.Load(); percent > 0 {
		share = fmt.Sprintf(", %d %% of the input", percent)
	}
	if b.drawn != nil {
		b.describe(strings.TrimPrefix(share, ", "), "")
	}
	if b.drawn == nil && time.Since(b.last) > 10*time.Second {
		b.last = time.Now()
		b.say(share)
	}
}

// read records which share of the input was read. Any goroutine may call it.
func (b *bar) read(share float64) { b.percent.Store(int32(100 * share)) }

// say writes a line with the count.
func (b *bar) say(more string) {
	seconds := time.Since(b.start).Seconds()
	say(b.w, "%d rows in %.1f s, %.0f rows/s%s", b.rows, seconds, float64(b.rows)/seconds, more)
}

// clear removes the bar from the terminal. The bar may be nil.
func (b *bar) clear() {
	if b != nil && b.drawn != nil {
		b.drawn.Clear()
	}
}

// done removes the bar, and prints the total if err is nil.
func (b *bar) done(err error) {
	if b.clear(); err == nil {
		b.say("")
	}
}

// A progress shows a training: a bar on a terminal or, if lines is set, a line per epoch elsewhere. It also counts the
// rows of a second reading.
type progress struct {
	stderr, log io.Writer
	lines       bool

	mu                sync.Mutex // for writing lines
	bar               *bar       // bar of the epochs; nil until start is called
	steps             int        // rows of an epoch, over all passes
	epochs, before    int        // before is the number of epochs of a checkpoint
	began             time.Time
	description, more string

	counter *bar         // bar of the second reading; nil before that reading
	percent atomic.Int32 // percentage of the input that was read
}

// start shows a training with the given number of passes over rows per epoch.
func (p *progress) start(rows, passes, epochs int) {
	p.bar, p.steps, p.epochs = newBar(p.log, rows*passes*epochs), rows*passes, epochs
	p.begin(model.Info{})
}

// begin counts the epochs of a checkpoint as done.
func (p *progress) begin(i model.Info) {
	p.before, p.began = len(i.Training.Epochs), time.Now()
	p.describe(p.before, "")
	p.bar.add(p.steps * p.before)
}

// describe sets the description of the epoch that follows the given number of epochs.
func (p *progress) describe(done int, more string) {
	p.description, p.more = fmt.Sprintf("epoch %d/%d", min(done+1, p.epochs), p.epochs), more
}

// rows adds n rows of a pass. Any goroutine may call it.
func (p *progress) rows(n int) {
	if p.bar.add(n); p.bar.drawn != nil {
		p.bar.describe(p.description, p.more) // Add redraws at whole percents only
	}
}

// note writes a line to standard error. Any goroutine may call it.
func (p *progress) note(line string) { p.say(p.stderr, line) }

func (p *progress) say(w io.Writer, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bar.clear()
	say(w, "%s", line)
}

// epoch shows an epoch's metrics. No pass may be under way.
func (p *progress) epoch(e model.Epoch) {
	p.describe(e.Epoch, fmt.Sprintf(", error %#.3g", e.Error))
	if p.bar.drawn != nil || !p.lines {
		return
	}
	left := time.Since(p.began) / time.Duration(e.Epoch-p.before) * time.Duration(p.epochs-e.Epoch)
	p.say(p.log, fmt.Sprintf("epoch %d/%d  error %.4f  %.2f %% zeros  %v left", e.Epoch, p.epochs, e.Error, 100*e.Sparsity, left.Round(time.Second)))
}

// read records which share of the input was read. Any goroutine may call it.
func (p *progress) read(share float64) { p.percent.Store(int32(100 * share)) }

// encoded counts n rows of the second reading.
func (p *progress) encoded(n int) {
	if p.counter == nil {
		p.counter = newBar(p.log, unknown)
	}
	p.counter.percent.Store(p.percent.Load())
	p.counter.add(n)
}

// done removes the bar, and prints the number of encoded rows if err is nil.
func (p *progress) done(err error) {
	p.bar.clear()
	if p.counter != nil {
		p.counter.done(err)
	}
}

// showTasks shows the progress of an evaluation: a bar on a terminal or, if lines is set, a line per task elsewhere.
// The caller calls finished(task) after each task, from any goroutine, and end() after the last task.
func showTasks(w io.Writer, lines bool, name string, tasks []eval.Task) (finished func(task string), end func()) {
	b := newBar(w, len(tasks))
	if b.drawn != nil {
		b.describe("tasks of "+printing.Text(name), "")
		b.drawn.RenderBlank()
	}
	return func(task string) {
		if b.add(1); b.drawn == nil && lines {
			say(w, "  %s by %s after %.0f s", name, task, time.Since(b.start).Seconds())
		}
	}, b.clear
}
