package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"overcomplete/model"
)

// progress shows a training under way: a bar on a terminal, a line an epoch
// elsewhere.
type progress struct {
	mu       sync.Mutex // of w, but for the bar
	w        io.Writer
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

func newProgress(w io.Writer, vocab, passes, epochs int) *progress {
	p := &progress{w: w, vocab: vocab, passes: passes, current: 1, epochs: epochs, start: time.Now()}
	if file, ok := terminalOf(w); ok {
		p.terminal = file
		p.bar = progressbar.NewOptions64(int64(passes)*int64(vocab)*int64(p.epochs),
			progressbar.OptionSetWriter(file), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(20), progressbar.OptionUseANSICodes(true),
			progressbar.OptionShowDescriptionAtLineEnd())
	}
	return p
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
	p.mu.Lock()
	defer p.mu.Unlock()
	left := time.Since(p.start) / time.Duration(e.Epoch-p.before) * time.Duration(p.epochs-e.Epoch)
	fmt.Fprintf(p.w, "epoch %d/%d  error %.4f  sparsity %.2f %%  %.0f words/s  objective %.4f  %v left\n",
		e.Epoch, p.epochs, e.Error, 100*e.Sparsity, rate, e.Objective, left.Round(time.Second))
}

// description is what stands behind the bar: as much as fits, for a line that
// wraps can't be redrawn. It ends in a space because terminals lose the last
// column when the rest of a full line is cleared.
func (p *progress) description() string {
	const rest = len("  99% ||  [9h59m59s:9h59m59s]  ")
	width, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil {
		width = 80
	}
	d := fmt.Sprintf("epoch %d/%d", p.current, p.epochs)
	for _, m := range p.metrics {
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
