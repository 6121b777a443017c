package encode_test

import (
	"cmp"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Codes by themes are the largest positive cosines, of rows whose text isn't blank and which are nearer to a
// theme than by chance. They don't depend on the number of processors, nor on the block of a row.
func TestThemes(t *testing.T) {
	m, err := model.Open("godoc.model")
	if err != nil {
		t.Fatal(err)
	}
	x, _, err := vectors.Read(t.Context(), []string{"testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const themes = 40
	d := &m.Dictionary
	d.Themes = nil
	for i := range themes {
		d.Themes = append(d.Themes, x.Row(7*i)...)
		theme := d.Themes[i*x.Dim:]
		norm := 0.0
		for _, v := range theme {
			norm += float64(v) * float64(v)
		}
		for l := range theme {
			theme[l] /= float32(math.Sqrt(norm))
		}
	}
	m.Info.Training.Themes = &model.Themes{Topics: 3}
	for i := range themes - 1 {
		m.Info.Training.Themes.Splits = append(m.Info.Training.Themes.Splits, int32(i+1))
	}
	x.Texts = &vectors.Texts{Text: slices.Clone(x.Words)}
	x.Texts.Text[11] = "\t"
	copy(x.Row(12), d.Mean)
	o := encode.Defaults(m.Info)
	got, err := encode.Model(t.Context(), m, x, cpu.Device{}, o)
	if err != nil {
		t.Fatal(err)
	}
	without := 0
	for i := range x.Len() {
		var want []float64
		y := make([]float64, x.Dim)
		for l, v := range x.Row(i) {
			y[l] = float64(v) - float64(d.Mean[l])
		}
		for k := range themes {
			dot, norm := 0.0, 0.0
			for l, v := range y {
				dot += v * float64(d.Themes[k*x.Dim+l])
				norm += v * v
			}
			want = append(want, dot/max(math.Sqrt(norm), 1e-30))
		}
		index, value := got.Codes.Themes.Row(i)
		largest := slices.SortedFunc(slices.Values(want), func(a, b float64) int { return cmp.Compare(b, a) })
		if chance := math.Sqrt(2 * math.Log(themes) / float64(x.Dim)); largest[0] < chance || i == 11 || i == 12 {
			without++
			if len(index) != 0 && largest[0] < chance-1e-6 {
				t.Errorf("row %d has themes", i)
			}
			continue
		}
		positive := 0
		for positive < 8 && largest[positive] > 0 {
			positive++
		}
		if len(index) != positive {
			t.Fatalf("row %d has %d themes, want %d", i, len(index), positive)
		}
		for j, k := range index {
			if math.Abs(float64(value[j])-want[k]) > 1e-5 || want[k] < largest[positive-1]-1e-5 {
				t.Errorf("row %d, theme %d: %v, want %v of %v", i, k, value[j], want[k], largest)
			}
		}
	}
	if without < 10 || without > x.Len()*9/10 {
		t.Errorf("%d of %d rows have no theme", without, x.Len())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	part, err := encode.Model(t.Context(), m, x.Slice(5, 105), cpu.Device{}, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		index, value := part.Codes.Themes.Row(i)
		wantIndex, wantValue := got.Codes.Themes.Row(5 + i)
		if !reflect.DeepEqual(index, wantIndex) || !reflect.DeepEqual(value, wantValue) {
			t.Errorf("row %d has other themes in another block", 5+i)
		}
	}
}
