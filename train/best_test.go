package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// recordingLearner returns the same loss for each row of an epoch, one more than before, and records its arguments.
type recordingLearner struct {
	backend.Learner
	loss                 float64
	rows                 []int   // number of rows of each batch
	order                []int32 // rows of all batches
	forgettings, weights []float64
}

func (l *recordingLearner) Learn(_ context.Context, batches []backend.Minibatch, anchor, noise float64, _ func(int)) (sums backend.Sums, err error) {
	for _, b := range batches {
		l.rows, l.forgettings, l.order = append(l.rows, len(b.Rows)), append(l.forgettings, b.Forgetting), append(l.order, b.Rows...)
		sums.RunningLoss += l.loss * float64(len(b.Rows))
	}
	l.weights = append(l.weights, anchor*noise)
	l.loss++
	return sums, nil
}

// The first anchor weight of an epoch is Anchor times the mean loss of the epoch before, as a share of ρ². The first
// epoch has the share 1.
func TestAnchorWeight(t *testing.T) {
	const rows, square, anchor = 10, 8, 2
	l := &recordingLearner{loss: 4}
	training := &model.Training{}
	o := &onlineLearner{learner: l, rows: rows, norm2: square, training: training,
		recipe: bestTraining{Common: model.Common{Atoms: 1}, Anchor: anchor}}
	for epoch := 1; epoch <= 2; epoch++ {
		sums, err := o.epoch(t.Context(), epoch, 4)
		testonly.Must(t, err)
		training.Epochs = append(training.Epochs, model.Epoch{RunningLoss: sums.RunningLoss / rows})
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
	testonly.Near(t, "anchor weights", l.weights, []float64{anchor, anchor * 4. / square}, 1e-15)
}

// An epoch has one update per 8,192 training rows, from 16 to 64, words and texts alike. A mini-batch has at least 256
// rows. The sums remember the visited rows, at least two per atom and at most 20, two mini-batches if that is more, and
// all rows. Each mini-batch multiplies older sums by 1 − its rows / the remembered rows.
func TestUpdateRule(t *testing.T) {
	for _, c := range []struct {
		rows, atoms    int
		updates, batch int // number of updates, and rows of each except the last
		memory         int // remembered rows in the second epoch
	}{
		{200, 60, 1, 200, 200},
		{3_000, 60, 12, 256, 1_200},
		{8_000, 3_000, 16, 500, 8_000},
		{20_000, 1_000, 16, 1_250, 20_000},
		{20_000, 20, 16, 1_250, 2_500}, // two mini-batches
		{100_000, 1_000, 16, 6_250, 20_000},
		{100_000, 5_001, 16, 6_250, 100_000},
		{135_167, 1_000, 16, 8_448, 20_000}, // 16.4999 updates
		{135_168, 1_000, 17, 7_952, 20_000}, // 16.5
		{400_000, 2_000, 49, 8_164, 40_000},
		{1_000_000, 2_000, 64, 15_625, 40_000},
	} {
		for _, texts := range []*vectors.Texts{nil, {Text: []string{"a"}}} {
			x := &vectors.Dense{IDs: []string{"a"}, Texts: texts, Dim: 50, Data: make([]float32, 50)}
			h := bestTraining{Common: model.Common{Atoms: c.atoms}, TrainRows: c.rows}.fillDefaults(x, c.rows)
			l := &recordingLearner{loss: 1}
			o := &onlineLearner{learner: l, rows: c.rows, norm2: 1, training: &model.Training{Epochs: []model.Epoch{{RunningLoss: 1}}}, recipe: h}
			for epoch := 1; epoch <= 2; epoch++ {
				_, err := o.epoch(t.Context(), epoch, h.batch(c.rows))
				testonly.Must(t, err)
			}
			if len(l.rows) != 2*c.updates || l.rows[0] != c.batch {
				t.Errorf("%+v: %d updates of %d rows", c, len(l.rows), l.rows[0])
			}
			visited := 0
			for i, f := range l.forgettings {
				visited += l.rows[i]
				if want := 1 - float64(l.rows[i])/float64(min(c.memory, max(2*c.atoms, visited))); math.Abs(f-want) > 1e-12 {
					t.Fatalf("%+v: mini-batch %d has a forgetting factor of %v, want %v", c, i+1, f, want)
				}
			}
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
