package intrusion

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"overcomplete/interpret"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

func mustMeasure(t *testing.T, codes *vectors.Sparse, reference *vectors.Dense) *Accuracy {
	t.Helper()
	a, err := (&Test{Reference: reference, Seed: 1}).Measure(t.Context(), codes)
	testonly.Must(t, err)
	return a
}

func TestMeasure(t *testing.T) {
	// The words k, k+200, … have dimension k. Their reference vectors are the sum of a vector that all words share and of
	// the direction of dimension k with a random length. Words without a dimension have the opposite directions, so that
	// the mean is the shared vector.
	const words, dimensions, shared = 4000, 200, 1000
	s := newCodes(2*words, dimensions)
	same := &vectors.Dense{IDs: s.IDs, Dim: dimensions, Data: slices.Repeat([]float32{shared}, 2*words*dimensions)}
	other := &vectors.Dense{IDs: s.IDs, Dim: 10}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range words {
		s.Index, s.Value = append(s.Index, int32(i%dimensions)), append(s.Value, 1+rng.Float32())
		s.Ptr = append(s.Ptr, int64(i+1))
		length := float32(math.Pow(100, rng.Float64()))
		same.Row(i)[i%dimensions] += length
		same.Row(i + words)[i%dimensions] -= length
	}
	for range words {
		s.Ptr = append(s.Ptr, int64(words))
	}
	for range 2 * words * other.Dim {
		other.Data = append(other.Data, float32(rng.NormFloat64()))
	}
	one := Estimate{1, 1, 1}
	if got := mustMeasure(t, s, same); got.Dimensions != dimensions || got.Any != one || got.Matched != one {
		t.Errorf("where dimensions are directions of the reference: %v", got)
	}
	// There are 2000 guesses, ten per set of four words: the standard deviation is at most
	// √(.16/200) = .028. The bound is four standard deviations, so that an accuracy of 0 fails.
	got := mustMeasure(t, s, other)
	if got.Words != s.Rows || got.Seed != 1 || len(got.Scores) != dimensions {
		t.Errorf("%d words, seed %d, %d scores", got.Words, got.Seed, len(got.Scores))
	}
	any, matched := 0.0, 0.0 // means over dimensions
	for k, score := range got.Scores {
		if score.Dimension != k {
			t.Errorf("score %d is of dimension %d", k, score.Dimension)
		}
		any, matched = any+score.Any/dimensions, matched+score.Matched/dimensions
	}
	if math.Abs(got.Any.Mean-any) > 1e-9 || math.Abs(got.Matched.Mean-matched) > 1e-9 {
		t.Errorf("means %v and %v, of the dimensions %v and %v", got.Any.Mean, got.Matched.Mean, any, matched)
	}
	for _, e := range []Estimate{got.Any, got.Matched} {
		if math.Abs(e.Mean-.2) > .113 || e.Low > e.Mean || e.High < e.Mean || e.Low == e.High {
			t.Errorf("by guessing: %v", e)
		}
	}
	if again := mustMeasure(t, s, other); !reflect.DeepEqual(again, got) {
		t.Errorf("again: %v, not %v", again, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Test{Reference: other}).Measure(ctx, s); err != context.Canceled {
		t.Errorf("interrupted: %v", err)
	}
}

// There are ten bands of frequency, and the reference vector of a word is its band's direction. The top words of a
// dimension are in the middle of a band. Half of a direction of its own is added to the vector of each. An intruder of the
// same band is closer to them than they are to each other, and is never found. An intruder of another band is always found.
func TestMeasureMatched(t *testing.T) {
	const bands, each = 10, 40
	s := newCodes(bands*each, bands+bands*each/3)
	reference := &vectors.Dense{IDs: s.IDs, Dim: bands + 4, Data: make([]float32, s.Rows*(bands+4))}
	others := 0
	for i := range s.Rows {
		band, place := i/each, i%each-18
		k := int32(band)
		reference.Row(i)[band] = 1
		if 0 <= place && place < 4 {
			reference.Row(i)[bands+place] = .5
		} else { // three words share a dimension, which makes them intruders but has no questions
			k = int32(bands + others/3)
			others++
		}
		s.Index, s.Value, s.Ptr = append(s.Index, k), append(s.Value, 1), append(s.Ptr, int64(i+1))
	}
	got := mustMeasure(t, s, reference)
	// A dimension has 396 intruders, 360 of them from another band. The mean of 100 draws has a standard deviation of
	// √(.09·.91/100) = .03.
	if got.Dimensions != bands || math.Abs(got.Any.Mean-360./396) > .12 || got.Matched != (Estimate{}) {
		t.Errorf("%+v", got)
	}
}

// A bootstrap's interval for a mean approximates the interval of a normal distribution.
func TestBootstrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	sample := make([]float64, 900)
	for i := range sample {
		sample[i] = float64(rng.IntN(11)) / 10
	}
	mean, deviation := stat.PopMeanStdDev(sample, nil)
	half := 1.96 * deviation / math.Sqrt(900)
	got := bootstrap(sample, 1)
	// The percentiles of 2,000 resamples have a standard error of 0.06 of the half width.
	if math.Abs(got.Mean-mean) > 1e-12 || math.Abs(got.Low-(mean-half)) > .25*half || math.Abs(got.High-(mean+half)) > .25*half {
		t.Errorf("%v, want %v ± %v", got, mean, half)
	}
	if got := bootstrap(nil, 1); got != (Estimate{}) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestMatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "intrusion.json")
	if _, _, err := Matched(path, 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	a := &Accuracy{
		Reference: "r.txt", Scores: []*PoleAccuracy{{Dimension: 0, Any: .1, Matched: .5}, {Dimension: 2, Matched: 1}},
		Negative: &Accuracy{Scores: []*PoleAccuracy{{Dimension: 2, Matched: .25}}},
	}
	testonly.Must(t, a.Save(t.Context(), path))
	want := map[interpret.Pole]float64{{Dimension: 0}: .5, {Dimension: 2}: 1, {Dimension: 2, Negative: true}: .25}
	if reference, got, err := Matched(path, 3); reference != "r.txt" || !maps.Equal(got, want) || err != nil {
		t.Errorf("%s: %v, %v", reference, got, err)
	}
	for _, bad := range []string{`[]`, `{"words": 1e999999}`, `{"scores": [null]}`, `{"scores": [{"dimension": 3}]}`, `{"scores": [{"dimension": -1}]}`, `{"negative": {"scores": [{"matched": 1.1}]}}`} {
		path := write(t, bad)
		if _, _, err := Matched(path, 3); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}
