package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"overcomplete/internal/backend"
	"overcomplete/model"
)

// recordingLearner returns a fixed loss per row, and records its arguments.
type recordingLearner struct {
	backend.Learner
	loss                       float64
	rows                       []int   // number of rows of each batch
	order                      []int32 // of all rows
	forgettings, anchorWeights []float64
}

func (l *recordingLearner) Learn(_ context.Context, rows []int32, forgetting, anchorWeight float64, sums *backend.Sums) error {
	l.rows, l.forgettings, l.anchorWeights = append(l.rows, len(rows)), append(l.forgettings, forgetting), append(l.anchorWeights, anchorWeight)
	l.order = append(l.order, rows...)
	sums.RunningLoss += l.loss * float64(len(rows))
	return nil
}

// The anchor weight is Anchor times the mean loss of the rows at their latest visit, as a share of ρ².
// Before the first visit the share is 1. In the first epoch the mean is over the rows visited so far;
// later it includes the other rows' losses of the previous epoch.
func TestAnchorWeight(t *testing.T) {
	const rows, square, anchor = 10, 8, 2
	l := &recordingLearner{loss: 4}
	training := &model.Training{}
	o := &onlineTrainer{Learner: l, rows: rows, norm2: square, training: training,
		recipe: bestTraining{Common: model.Common{Atoms: 3}, Anchor: anchor}}
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
		t.Error("both epochs visit rows in the same order")
	}
	for _, order := range [][]int32{first, second} {
		slices.Sort(order)
		if want := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(order, want) {
			t.Errorf("an epoch visits rows %v, want each once", order)
		}
	}
	if want := []int{4, 4, 2, 4, 4, 2}; !slices.Equal(l.rows, want) {
		t.Errorf("%v rows, want %v", l.rows, want)
	}
	if want := []float64{0, 0.6, 0.8, 0.6, 0.6, 0.8}; !slices.Equal(l.forgettings, want) {
		t.Errorf("forgetting factors %v, want %v", l.forgettings, want)
	}
	want := []float64{anchor, anchor * 4. / square, anchor * 4. / square,
		anchor * 4. / square, anchor * (4*1 + 6*4) / 10. / square, anchor * (8*1 + 2*4) / 10. / square}
	for i, weight := range l.anchorWeights {
		if math.Abs(weight-want[i]) > 1e-15 {
			t.Errorf("anchor weight %d is %v, want %v", i, weight, want[i])
		}
	}
}

// Training stops after an epoch that lowers the error by less than 2 %.
func TestConverged(t *testing.T) {
	for _, tt := range []struct {
		losses []float64
		want   bool
	}{
		{[]float64{10}, false}, {[]float64{10, 9.79}, false}, {[]float64{10, 9.81}, true}, {[]float64{10, 5, 4.95}, true}, {[]float64{10, 5, 4.85}, false},
		{[]float64{10, 9, 8, 7}, true}, // the recipe's last epoch
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
