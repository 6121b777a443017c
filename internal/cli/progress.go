package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"overcomplete/model"
)

// progress shows a training under way: a bar on a terminal, a line an epoch
// elsewhere.
type progress struct {
	w      io.Writer
	bar    *progressbar.ProgressBar // nil without a terminal
	vocab  int
	epochs int
	start  time.Time
}

func (f *trainFlags) newProgress(w io.Writer, vocab int) *progress {
	p := &progress{w: w, vocab: vocab, epochs: f.Epochs, start: time.Now()}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		// Every epoch has two passes over the words.
		p.bar = progressbar.NewOptions64(2*int64(vocab)*int64(p.epochs),
			progressbar.OptionSetWriter(w), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetDescription(fmt.Sprintf("epoch 1/%d", p.epochs)),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(20), progressbar.OptionUseANSICodes(true))
	}
	return p
}

// words adds words that a pass has done with. It may be called from any
// goroutine.
func (p *progress) words(n int) {
	if p.bar != nil {
		p.bar.Add(n)
	}
}

// epoch shows an epoch's metrics.
func (p *progress) epoch(e model.Epoch) {
	metrics := fmt.Sprintf("epoch %d/%d  error %.4f  sparsity %.2f %%  %.0f words/s",
		e.Epoch, p.epochs, e.Error, 100*e.Sparsity, float64(p.vocab)/e.Seconds)
	if p.bar != nil {
		p.bar.Describe(metrics)
		return
	}
	left := time.Since(p.start) / time.Duration(e.Epoch) * time.Duration(p.epochs-e.Epoch)
	fmt.Fprintf(p.w, "%s  objective %.4f  %v left\n", metrics, e.Objective, left.Round(time.Second))
}

// done ends the display.
func (p *progress) done() {
	if p.bar != nil {
		p.bar.Clear()
	}
}
