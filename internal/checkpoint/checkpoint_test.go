package checkpoint

import (
	"path/filepath"
	"slices"
	"testing"

	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A checkpoint has codes if and only if its training resumes from them.
func TestOpen(t *testing.T) {
	common := model.Common{Method: model.Signed, Atoms: 3, Epochs: 1, DictionarySteps: 1}
	for name, change := range map[string]func(m *model.Model){
		"none":           func(m *model.Model) { m.Codes, m.Info.Encoding = nil, nil },
		"of other words": func(m *model.Model) { m.Info.Training.Input.Rows++ },
		"of best": func(m *model.Model) {
			m.Info.Training.Recipe = model.Best{Common: common, Lambda: 1}
			m.Dictionary.Mean = make([]float32, m.Dictionary.Dim)
		},
		"": func(*model.Model) {},
	} {
		training := model.Training{Input: model.Input{Rows: 1, Dim: 2}, Recipe: model.Paper{
			Common: common, Loss: model.Squared, Rate: 0.05,
		}}
		m := &model.Model{
			Info:       model.Info{Training: training, Encoding: training.PaperEncoding()},
			Dictionary: model.Dictionary{Dim: 2, Atoms: make([]float32, 6)},
			Codes:      &vectors.Sparse{IDs: []string{"a"}, CSR: vectors.CSR{Rows: 1, Cols: 3, Ptr: []int64{0, 0}}},
		}
		change(m)
		dir := filepath.Join(t.TempDir(), "model")
		to := modeldir.NewTarget(dir, false)
		err := Save(m, to, State{Batch: 1}, func(name Matrix, f func([]float32) error) error {
			all := matrices(&m.Info)
			shape := all[slices.IndexFunc(all, func(x matrix) bool { return x.Matrix == name })].shape
			return f(make([]float32, shape[0]*shape[1]))
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c, err := Open(dir)
		if (err == nil) != (name == "") {
			t.Errorf("codes %s: error %v", name, err)
		}
		if err == nil && c.Hash != to.Checkpoint.Hash {
			t.Errorf("hash %s, want %s", c.Hash, to.Checkpoint.Hash)
		}
	}
}
