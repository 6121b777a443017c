package train_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/simd"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
	"overcomplete/train"
	"overcomplete/vectors"
)

// plantedTexts returns 605 texts in 4 topics with 3 themes each: row i belongs to theme i%12 and to topic
// i%4. The last 5 texts are blank.
func plantedTexts() *vectors.Dense {
	const dim = 24
	rng := rand.New(rand.NewPCG(5, 6))
	direction := func(norm float64) []float64 {
		v := make([]float64, dim)
		for j := range v {
			v[j] = norm * rng.NormFloat64() / 4.9
		}
		return v
	}
	var topics, themes [][]float64
	for range 4 {
		topics = append(topics, direction(1))
	}
	for range 12 {
		themes = append(themes, direction(0.6))
	}
	x := &vectors.Dense{Dim: dim, Texts: new(vectors.Texts)}
	for i := range 605 {
		x.IDs = append(x.IDs, fmt.Sprint(i))
		text := fmt.Sprintf("text %d", i)
		if i >= 600 {
			text = " \n"
		}
		x.Texts.Add(text, nil)
		noise := direction(0.15)
		for j := range dim {
			x.Data = append(x.Data, float32(topics[i%4][j]+themes[i%12][j]+noise[j]))
		}
	}
	return x
}

// agreement returns the share of the 600 texts whose group is the most frequent one of their planted group.
func agreement(groupOf func(i int) int32, planted int) float64 {
	same := 0
	for p := range planted {
		counts := map[int32]int{}
		most := 0
		for i := p; i < 600; i += planted {
			counts[groupOf(i)]++
			most = max(most, counts[groupOf(i)])
		}
		same += most
	}
	return float64(same) / 600
}

func TestTopics(t *testing.T) {
	x := plantedTexts()
	h := train.Best()
	h.Topics, h.Atoms = 4, 36
	m, err := train.Fit(t.Context(), x, h, cpu.Device{}, train.Options{})
	testonly.Must(t, err)
	themes := m.Info.Training.Themes
	themeOf := make([]int32, x.Len())
	d := &m.Dictionary
	for i := range themeOf {
		y := make([]float32, d.Dim)
		d.Center(y, x.Row(i))
		dots := make([]float64, themes.Len())
		for theme := range dots {
			dots[theme] = floats.Dot(encodetest.Widen(d.Themes[theme*d.Dim:][:d.Dim]), encodetest.Widen(y))
		}
		themeOf[i] = int32(floats.MaxIdx(dots))
	}
	for topics, least := range map[int]float64{4: 0.95, 12: 0.9} {
		starts := slices.Sorted(slices.Values(themes.Splits[:topics-1])) // first themes of the topics, except the first topic
		topicOf := func(i int) int32 { at, _ := slices.BinarySearch(starts, themeOf[i]+1); return int32(at) }
		if share := agreement(topicOf, topics); share < least {
			t.Errorf("%d topics agree with the planted ones for %.0f %% of the rows", topics, 100*share)
		}
	}
	// Topics don't change the dictionary or the codes, for any number of workers.
	h.Topics = model.NoTopics
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	without, err := train.Fit(t.Context(), x, h, cpu.Device{Workers: 3}, train.Options{})
	if err != nil || without.Dictionary.Themes != nil || !reflect.DeepEqual(without.Codes, m.Codes) {
		t.Errorf("other codes without topics, error %v", err)
	}
}

// waitingDevice is a device whose learner waits for the cancellation of its context.
type waitingDevice struct{ train.Device }

type waitingLearner struct{ backend.Learner }

func (waitingDevice) Learner([]float32, *model.Dictionary, float64, encode.Options) (backend.Learner, error) {
	return waitingLearner{}, nil
}
func (waitingLearner) Device() string { return "none" }
func (waitingLearner) Close() error   { return nil }
func (waitingLearner) Learn(ctx context.Context, _ []backend.Minibatch, _, _ float64, _ func(int)) (backend.Sums, error) {
	<-ctx.Done()
	return backend.Sums{}, ctx.Err()
}

// If topics fail, learning is cancelled, and the error is theirs. If the caller cancels, the error is the context's.
func TestTopicsFail(t *testing.T) {
	h := train.Best()
	h.Atoms = 36
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := train.Fit(cancelled, plantedTexts(), h, waitingDevice{}, train.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	t.Setenv(simd.Variable, "mmx")
	_, err := train.Fit(t.Context(), plantedTexts(), h, waitingDevice{}, train.Options{})
	testonly.ErrorSays(t, "topics that fail", err, "mmx")
}

// stubbornDevice is a device that cancels the training with a cause, as a signal does, and learns nevertheless.
type stubbornDevice struct {
	cpu.Device
	cancel context.CancelCauseFunc
}

type stubbornLearner struct{ backend.Learner }

func (d stubbornDevice) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	d.cancel(errors.New("a signal"))
	l, err := d.Device.Learner(x, dictionary, norm, o)
	return stubbornLearner{l}, err
}

func (l stubbornLearner) Learn(ctx context.Context, batches []backend.Minibatch, anchor, noise float64, learned func(n int)) (backend.Sums, error) {
	return l.Learner.Learn(context.WithoutCancel(ctx), batches, anchor, noise, learned)
}

// If topics are cancelled after the dictionary is learned, there is no model without topics.
func TestTopicsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	h := train.Best()
	h.Atoms = 36
	if _, err := train.Fit(ctx, plantedTexts(), h, stubbornDevice{cancel: cancel}, train.Options{NoCodes: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// Empty texts have no topics, and a model of words has none by default.
func TestNoTopics(t *testing.T) {
	x := plantedTexts()
	for i := range x.Texts.Text {
		x.Texts.Text[i] = ""
	}
	noted := ""
	m, err := train.Fit(t.Context(), x, train.Best(), cpu.Device{}, train.Options{Note: func(line string) { noted += line }})
	if err != nil || m.Info.Training.Themes != nil || noted == "" {
		t.Errorf("error %v, note %q", err, noted)
	}
	x.Texts.Text[600] = "one text"
	m, err = train.Fit(t.Context(), x, train.Best(), cpu.Device{}, train.Options{})
	if err != nil || m.Info.Training.Themes.Len() != 1 {
		t.Errorf("error %v", err)
	}
	x.Texts = nil
	m, err = train.Fit(t.Context(), x, train.Best(), cpu.Device{}, train.Options{})
	if err != nil || m.Info.Training.Themes != nil {
		t.Errorf("themes of words, error %v", err)
	}
}
