package model

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"overcomplete/internal/modeldir"
	"overcomplete/testonly"
)

// themeModel returns a model of 20 rows with 4 themes.
func themeModel() *Model {
	m := testModel(20, 3, 11, true)
	m.Info.Training.Themes = &Themes{Topics: 2, Splits: []int32{2, 3, 1}}
	m.Dictionary.Themes = []float32{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0.6, 0.8}
	return m
}

// Themes that don't agree with the model are refused by Save and by Open.
func TestBadThemes(t *testing.T) {
	for want, spoil := range map[string]func(m *Model){
		"model.json: wrong number of topics (got 0, want 1 to 4)":     func(m *Model) { m.Info.Training.Themes.Topics = 0 },
		"model.json: wrong number of topics (got 5, want 1 to 4)":     func(m *Model) { m.Info.Training.Themes.Topics = 5 },
		"splits of 4 themes: got 3, want 1 to 3, each once":           func(m *Model) { m.Info.Training.Themes.Splits[0] = 3 },
		"splits of 4 themes: got 4, want":                             func(m *Model) { m.Info.Training.Themes.Splits[0] = 4 },
		"splits of 4 themes: got 0, want":                             func(m *Model) { m.Info.Training.Themes.Splits[0] = 0 },
		"themes.npy: 12 values, model.json says 3 themes of length 3": func(m *Model) { m.Info.Training.Themes.Splits = []int32{2, 1} },
		"themes.npy: 12 values, model.json says 0 themes":             func(m *Model) { m.Info.Training.Themes = nil },
		"themes.npy: row 1 has the norm +Inf":                         func(m *Model) { m.Dictionary.Themes[1] = float32(math.Inf(1)) },
		"themes.npy: row 1 has the norm 0, want 1":                    func(m *Model) { clear(m.Dictionary.Themes[:4]) },
	} {
		m := themeModel()
		spoil(m)
		testonly.ErrorSays(t, "saved", m.Save(filepath.Join(t.TempDir(), "model"), false), want)
	}
	dir := saved(t, themeModel())
	path := filepath.Join(dir, modeldir.Themes)
	good := testonly.ReadFile(t, path)
	other := testonly.ReadFile(t, filepath.Join(dir, modeldir.Dictionary))
	for _, content := range [][]byte{other, good[:len(good)-1], nil} {
		testonly.Must(t, os.WriteFile(path, content, 0o666))
		_, err := Open(dir)
		testonly.ErrorSays(t, fmt.Sprint(len(content), " bytes"), err, modeldir.Themes+": ")
	}
}
