package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"overcomplete/internal/backend"
	"overcomplete/model"
)

// scriptedLearner leaves each row the loss that is scripted for its pass, and keeps what it was
// asked for.
type scriptedLearner struct {
	backend.Learner
	loss             float64
	rows             []int   // of each batch
	order            []int32 // of all rows
	remembers, pulls []float64
}

func (l *scriptedLearner) Learn(_ context.Context, rows []int32, remember, pull float64, sums *backend.Sums) error {
	l.rows, l.remembers, l.pulls = append(l.rows, len(rows)), append(l.remembers, remember), append(l.pulls, pull)
	l.order = append(l.order, rows...)
	sums.RunningLoss += l.loss * float64(len(rows))
	return nil
}

// The pull is Anchor times the mean of what rows left when they were met last, as a share of ρ²:
// all of it before any is met, that of the rows before in the first pass, and later also that of
// the others in the pass before.
func TestPull(t *testing.T) {
	const rows, square, anchor = 10, 8, 2
	l := &scriptedLearner{loss: 4}
	training := &model.Training{}
	o := &online{Learner: l, rows: rows, norm2: square, training: training,
		recipe: best{Common: model.Common{Atoms: 3}, Anchor: anchor}}
	for epoch := 1; epoch <= 2; epoch++ {
		sums, err := o.Epoch(t.Context(), epoch, 4)
		if err != nil {
			t.Fatal(err)
		}
		training.Epochs = append(training.Epochs, model.Epoch{RunningLoss: sums.RunningLoss / rows})
		l.loss = 1
	}
	first, second := l.order[:rows], l.order[rows:]
	if slices.Equal(first, second) {
		t.Error("both passes have one order")
	}
	for _, order := range [][]int32{first, second} {
		slices.Sort(order)
		if want := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(order, want) {
			t.Errorf("a pass meets rows %v, want each once", order)
		}
	}
	if want := []int{4, 4, 2, 4, 4, 2}; !slices.Equal(l.rows, want) {
		t.Errorf("%v rows, want %v", l.rows, want)
	}
	if want := []float64{0, 0.6, 0.8, 0.6, 0.6, 0.8}; !slices.Equal(l.remembers, want) {
		t.Errorf("remembered %v, want %v", l.remembers, want)
	}
	want := []float64{anchor, anchor * 4. / square, anchor * 4. / square,
		anchor * 4. / square, anchor * (4*1 + 6*4) / 10. / square, anchor * (8*1 + 2*4) / 10. / square}
	for i, pull := range l.pulls {
		if math.Abs(pull-want[i]) > 1e-15 {
			t.Errorf("pull %d is %v, want %v", i, pull, want[i])
		}
	}
}

// A pass that lowers the error by less than 2 % is the last.
func TestLittleGain(t *testing.T) {
	for _, tt := range []struct {
		losses []float64
		want   bool
	}{
		{[]float64{10}, false}, {[]float64{10, 9.79}, false}, {[]float64{10, 9.81}, true}, {[]float64{10, 5, 4.95}, true}, {[]float64{10, 5, 4.85}, false},
		{[]float64{10, 9, 8, 7}, true}, // all that were asked for
	} {
		f := fit{model: &model.Model{Info: model.Info{Training: model.Training{Recipe: model.Best{Common: model.Common{Epochs: 4}}}}}}
		i := &f.model.Info.Training
		for _, l := range tt.losses {
			i.Epochs = append(i.Epochs, model.Epoch{RunningLoss: l})
		}
		if got := f.finished(); got != tt.want {
			t.Errorf("%v: finished %v", tt.losses, got)
		}
	}
}
