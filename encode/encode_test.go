package encode_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/testonly/encodetest"
	"overcomplete/train"
	"overcomplete/vectors"
)

// With orthonormal atoms the lasso has a closed form: soft-thresholding by λ/2.
func TestReferenceOrthonormal(t *testing.T) {
	d := []float64{0.6, 0.8, -0.8, 0.6}
	y := []float64{3, 1}
	dots := []float64{0.6*3 + 0.8, -0.8*3 + 0.6}
	for _, nonnegative := range []bool{false, true} {
		o := encode.Options{Lambda: 1, Nonnegative: nonnegative, Steps: 300, Nonzeros: 2}
		want := []float64{encodetest.Shrink(dots[0], 0.5, nonnegative), encodetest.Shrink(dots[1], 0.5, nonnegative)}
		// The iterations with λ = 0 approach the least-squares solution on the support:
		// 2s is 1/1.02, so that the first of five leaves 2 % of the distance, 0.5.
		least := []float64{encodetest.Shrink(dots[0], 0, nonnegative), encodetest.Shrink(dots[1], 0, nonnegative)}
		if a := encodetest.Code(y, d, o); math.Abs(a[0]-least[0]) > 0.01 || math.Abs(a[1]-least[1]) > 0.01 {
			t.Errorf("codes %v, want near %v", a, least)
		}
		objective, gap := encodetest.Objective(y, d, want, 1, nonnegative)
		if gap > 1e-12 || objective < 1 {
			t.Errorf("nonnegative %v: the minimum has gap %v", nonnegative, gap)
		}
		if _, gap := encodetest.Objective(y, d, []float64{1, 0}, 1, nonnegative); gap < 0.1 {
			t.Errorf("nonnegative %v: gap %v far from the minimum", nonnegative, gap)
		}
	}
}

// roundingEncoder encodes a row as its rounded numbers, with the row's first number as
// loss and gap.
type roundingEncoder struct {
	dim     int
	options encode.Options
	calls   []int // rows of each call
	closed  int   // number of calls of Close

	started, mostStarted int // calls of Start without a wait
}

func (e *roundingEncoder) Device() string          { return "rounds" }
func (e *roundingEncoder) Options() encode.Options { return e.options }
func (e *roundingEncoder) Close() error            { e.closed++; return nil }

func (e *roundingEncoder) Start(ctx context.Context, x []float32, codes *encode.Codes) func() error {
	e.started++
	e.mostStarted = max(e.mostStarted, e.started)
	return func() error {
		e.started--
		if err := ctx.Err(); err != nil {
			return err
		}
		var c encode.Codes
		c.Rows, c.Cols, c.Ptr = len(x)/e.dim, e.dim, []int64{0}
		e.calls = append(e.calls, c.Rows)
		for i := range c.Rows {
			row := x[i*e.dim:][:e.dim]
			for k, v := range row {
				if v := float32(math.Round(float64(v))); v != 0 {
					c.Index, c.Value = append(c.Index, int32(k)), append(c.Value, v)
				}
			}
			c.Ptr = append(c.Ptr, int64(len(c.Value)))
			c.Loss, c.Gap, c.Squares = append(c.Loss, float64(row[0])), append(c.Gap, float64(row[0])), append(c.Squares, 3*float64(row[0]))
		}
		*codes = c
		return nil
	}
}

// parts yields the rows of d, part rows at a time.
func parts(d *vectors.Dense, part int) iter.Seq2[*vectors.Dense, error] {
	return func(yield func(*vectors.Dense, error) bool) {
		for lo := 0; lo < d.Len(); lo += part {
			hi := min(lo+part, d.Len())
			if !yield(&vectors.Dense{IDs: d.IDs[lo:hi], Dim: d.Dim, Data: d.Data[lo*d.Dim : hi*d.Dim]}, nil) {
				return
			}
		}
	}
}

// stream encodes d, part rows at a time, and returns the rows of its codes.
func stream(t *testing.T, d *vectors.Dense, part int, s *encode.Stream) (ids []string, e model.Encoding) {
	t.Helper()
	for block, err := range s.Codes(t.Context(), parts(d, part)) {
		testonly.Must(t, err)
		ids = append(ids, block.IDs...)
	}
	return ids, s.Encoding()
}

func TestStream(t *testing.T) {
	const rows, dim = 2*encode.Block + 10, 3
	d := &vectors.Dense{Dim: dim}
	rng := rand.New(rand.NewPCG(1, 2))
	var loss, l1, nonzeros float64
	for i := range rows {
		d.IDs = append(d.IDs, fmt.Sprint(i))
		row := []float32{rng.Float32(), float32(rng.NormFloat64()), 0.1}
		d.Data = append(d.Data, row...)
		loss += float64(row[0])
		for _, v := range row {
			if a := math.Abs(math.Round(float64(v))); a > 0 {
				l1, nonzeros = l1+a, nonzeros+1
			}
		}
	}
	want := model.Encoding{
		Lambda: 2, Error: loss / rows, L1: l1 / rows, Objective: loss/rows + 2*l1/rows,
		Sparsity: 1 - nonzeros/rows/dim, UnusedAtoms: 1,
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
	for _, part := range []int{1000, encode.Block, rows} {
		e := &roundingEncoder{dim: dim, options: encode.Options{Lambda: 2}}
		ids, got := stream(t, d, part, &encode.Stream{Encoder: e})
		if !slices.Equal(ids, d.IDs) || !slices.Equal(e.calls, []int{encode.Block, encode.Block, 10}) {
			t.Errorf("parts of %d: blocks %v", part, e.calls)
		}
		if !near(got.Error, want.Error) || !near(got.L1, want.L1) || !near(got.Objective, want.Objective) || !near(got.Sparsity, want.Sparsity) || !near(got.Variance, 3*loss/rows) || got.UnusedAtoms != 1 || got.Search != encode.SearchVersion {
			t.Errorf("parts of %d: measured %+v, want %+v", part, got, want)
		}
	}

	shard := &model.Shard{Index: 2, Of: 2}
	ids, _ := stream(t, d, 1000, &encode.Stream{Encoder: &roundingEncoder{dim: dim}, Shard: shard})
	if !slices.Equal(ids, d.IDs[encode.Block:2*encode.Block]) || shard.Rows != rows || len(shard.Losses) != 1 {
		t.Errorf("the second shard of two has %d words and %+v", len(ids), shard)
	}
	shard = &model.Shard{Index: 4, Of: 4}
	if ids, e := stream(t, d, 1000, &encode.Stream{Encoder: &roundingEncoder{dim: dim}, Shard: shard}); len(ids) > 0 || shard.Rows != rows || e.Error != 0 {
		t.Errorf("the fourth shard of three blocks has %d words, %+v and %+v", len(ids), shard, e)
	}

	s := &encode.Stream{Encoder: &roundingEncoder{dim: dim, options: encode.Options{Gap: 0.999}}}
	_, e := stream(t, d, 1000, s)
	var unreached []string
	var worst float32
	for i, w := range d.IDs {
		if worst = max(worst, d.Row(i)[0]); float64(d.Row(i)[0]) > 0.999 {
			unreached = append(unreached, w)
		}
	}
	if len(unreached) <= 5 || !slices.Equal(e.UnreachedIDs, unreached[:5]) || e.Unreached != len(unreached) || e.WorstGap != float64(worst) {
		t.Errorf("named %v and counted %d up to %v, want the first of %v up to %v", e.UnreachedIDs, e.Unreached, e.WorstGap, unreached, worst)
	}
}

// Many blocks are encoded, and their sums are correct, although they share memory.
func TestStreamOfManyBlocks(t *testing.T) {
	d := &vectors.Dense{IDs: make([]string, 9*encode.Block), Dim: 1, Data: slices.Repeat([]float32{1}, 9*encode.Block)}
	_, got := stream(t, d, 1000, &encode.Stream{Encoder: &roundingEncoder{dim: 1}})
	if got.Error != 1 || got.L1 != 1 || got.Sparsity != 0 {
		t.Errorf("%+v, want error and L1 of 1", got)
	}
}

// A Stream starts a block before it waits for the previous one, for any number of rows per part. The codes are the
// encoder's, in the same order.
func TestStreamStartsAhead(t *testing.T) {
	const rows, dim = 4*encode.Block + 10, 2
	d := clitest.Vectors(rows, dim)
	want, err := encode.Rows(t.Context(), &roundingEncoder{dim: dim}, d.Data)
	testonly.Must(t, err)
	for _, part := range []int{rows, encode.Block, 1000} {
		e := &roundingEncoder{dim: dim}
		var ids []string
		got := vectors.CSR{Cols: dim, Ptr: []int64{0}}
		for block, err := range (&encode.Stream{Encoder: e}).Codes(t.Context(), parts(d, part)) {
			testonly.Must(t, err)
			ids = append(ids, block.IDs...)
			got.Append(&block.CSR)
		}
		if !slices.Equal(ids, d.IDs) || !reflect.DeepEqual(got, want.CSR) {
			t.Errorf("%d rows at a time: words or codes differ from the encoder's", part)
		}
		if e.mostStarted != 2 || e.started != 0 {
			t.Errorf("%d rows at a time: %d blocks started at a time, want 2; %d at the end", part, e.mostStarted, e.started)
		}
	}
}

// A Stream that ends early cancels the started blocks and waits for them.
func TestStreamEndsEarly(t *testing.T) {
	e := &roundingEncoder{dim: 1}
	d := &vectors.Dense{IDs: make([]string, 40*encode.Block), Dim: 1, Data: make([]float32, 40*encode.Block)}
	for range (&encode.Stream{Encoder: e}).Codes(t.Context(), parts(d, d.Len())) {
		break
	}
	if e.mostStarted != 2 || e.started != 0 || len(e.calls) > 10 {
		t.Errorf("%d blocks started, %d not waited for, and %d encoded, want 2, 0 and few", e.mostStarted, e.started, len(e.calls))
	}
}

// cancellingEncoder cancels a context in Start or in the wait for its codes.
type cancellingEncoder struct {
	roundingEncoder
	start, wait func()
}

func (e *cancellingEncoder) Start(ctx context.Context, x []float32, codes *encode.Codes) func() error {
	e.start()
	wait := e.roundingEncoder.Start(ctx, x, codes)
	return func() error {
		e.wait()
		return wait()
	}
}

// A Stream that is cancelled in any stage ends with the context's error, and its goroutines end.
func TestStreamCancelled(t *testing.T) {
	d := &vectors.Dense{IDs: make([]string, 20*encode.Block), Dim: 1, Data: make([]float32, 20*encode.Block)}
	for stage := range 4 {
		synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancelIn := func(n int) func() {
				return func() {
					if n == stage {
						cancel()
					}
				}
			}
			read, use := cancelIn(0), cancelIn(3)
			e := &cancellingEncoder{roundingEncoder{dim: 1}, cancelIn(1), cancelIn(2)}
			var last error
			for _, err := range (&encode.Stream{Encoder: e}).Codes(ctx, func(yield func(*vectors.Dense, error) bool) {
				for part := range parts(d, encode.Block) {
					if read(); !yield(part, nil) {
						return
					}
				}
			}) {
				if last = err; err == nil {
					use()
				}
			}
			if last != context.Canceled || len(e.calls) > 10 {
				t.Errorf("stage %d: error %v after %d blocks", stage, last, len(e.calls))
			}
		})
	}
}

func TestStreamFails(t *testing.T) {
	mine := errors.New("input failed")
	d := &vectors.Dense{IDs: []string{"a"}, Dim: 1, Data: []float32{1}}
	run := func(s *encode.Stream, rows ...*vectors.Dense) error {
		input := func(yield func(*vectors.Dense, error) bool) {
			for _, d := range rows {
				if !yield(d, nil) {
					return
				}
			}
			yield(nil, mine)
		}
		for _, err := range s.Codes(t.Context(), input) {
			if err == nil {
				t.Error("the stream yielded codes")
			}
			return err
		}
		return nil
	}
	if err := run(&encode.Stream{Encoder: &roundingEncoder{dim: 1}}, d); err != mine {
		t.Errorf("error %v, want %v", err, mine)
	}
	for name, rows := range map[string][]*vectors.Dense{
		"fewer numbers":      {{IDs: []string{"a", "b"}, Dim: 1, Data: []float32{1}}},
		"fewer words":        {{Dim: 1, Data: []float32{1}}},
		"vectors of 1 and 2": {d, {IDs: []string{"b"}, Dim: 2, Data: []float32{1, 2}}},
	} {
		if err := run(&encode.Stream{Encoder: &roundingEncoder{dim: 1}}, rows...); err == nil || err == mine {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, shard := range []model.Shard{{}, {Index: 1}, {Index: 0, Of: 2}, {Index: 3, Of: 2}, {Index: -1, Of: -2}} {
		testonly.ErrorSays(t, fmt.Sprintf("shard %d of %d", shard.Index, shard.Of), run(&encode.Stream{Encoder: &roundingEncoder{dim: 1}, Shard: &shard}, d), "there is no shard")
	}
}

// saveStream encodes d with a roundingEncoder and saves the model, or a shard of it, in dir.
func saveStream(t *testing.T, dir string, d *vectors.Dense, shard *model.Shard) model.Info {
	t.Helper()
	m := untrained(3, 1, 0, 0, 0, 1, 0, 0, 0, 1)
	s := &encode.Stream{Encoder: &roundingEncoder{dim: d.Dim, options: encode.Options{Lambda: 1, Gap: 0.99}}, Shard: shard}
	w, err := m.NewWriter(dir, true)
	testonly.Must(t, err)
	for block, err := range s.Codes(t.Context(), parts(d, d.Len())) {
		if err == nil {
			err = w.Add(block)
		}
		testonly.Must(t, err)
	}
	e := s.Encoding()
	e.Input = model.Input{Name: "in.npy", SHA256: "1", WordsSHA256: "2"}
	info, err := w.Commit(t.Context(), e)
	testonly.Must(t, err)
	return info
}

// Merged shards equal the output of a single run. Merge counts all rows that miss their gap, and names the first ones
// in the input's order.
func TestMergeUnreached(t *testing.T) {
	t.Chdir(t.TempDir())
	const rows = 3*encode.Block + 10
	d := &vectors.Dense{Dim: 3}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		// The first number is the gap. It is too large for many rows of the second block
		// and for a few rows of the first and third.
		d.IDs, d.Data = append(d.IDs, fmt.Sprint(i)), append(d.Data, rng.Float32()*0.98, float32(rng.NormFloat64()), 0.1)
		if block := i / encode.Block; i == 7 || i == encode.Block-1 || block == 1 && i%5 == 0 || i == 2*encode.Block {
			d.Data[i*d.Dim] = 0.995
		}
	}
	want := saveStream(t, "whole", d, nil)
	if e := want.Encoding; e.Unreached < 6 || !slices.Equal(e.UnreachedIDs, []string{"7", "8191", "8195", "8200", "8205"}) {
		t.Fatalf("%d unreached, %q", e.Unreached, e.UnreachedIDs)
	}
	for _, of := range []int{1, 2, 3} {
		var dirs []string
		for i := range of {
			dirs = append(dirs, fmt.Sprintf("%dof%d", i+1, of))
			saveStream(t, dirs[i], d, &model.Shard{Index: i + 1, Of: of})
		}
		got, err := encode.Merge(t.Context(), "merged", true, dirs...)
		testonly.Must(t, err)
		for _, name := range []string{"model.json", "words.txt", "codes.npz", "dictionary.npy"} {
			if !bytes.Equal(testonly.ReadFile(t, "whole/"+name), testonly.ReadFile(t, "merged/"+name)) {
				t.Errorf("%d shards: %s differs from a single run's", of, name)
			}
		}
		if !reflect.DeepEqual(*got.Encoding, *want.Encoding) {
			t.Errorf("%d shards: merged %+v, want %+v", of, got.Encoding, want.Encoding)
		}
	}
}

// Merge refuses damaged shards, and shards of different models, inputs or options.
func TestMergeRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	d := &vectors.Dense{IDs: []string{"a", "b"}, Dim: 3, Data: []float32{1, 2, 3, 4, 5, 6}}
	for i := range 2 {
		saveStream(t, fmt.Sprint(i+1), d, &model.Shard{Index: i + 1, Of: 2})
	}
	if _, err := encode.Merge(t.Context(), "merged", false, "1", "2"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file, old, new string
		want           string
	}{
		{"../1/codes.npz", "\x00\x00\xa0\x40", "\x00\x00\xa1\x40", "1: codes.npz: array \"data\": zip: checksum error"},
		{"dictionary.npy", "\x00\x00\x80\x3f", "\x00\x00\x80\x40", "2: differs from 1 in its model"},
		{"model.json", `"words_sha256": "2"`, `"words_sha256": "3"`, "2: differs from 1 in its word list"},
		{"model.json", `"sha256": "1"`, `"sha256": "3"`, "2: differs from 1 in its input"},
		{"model.json", `"gap": 0.99`, `"gap": 0.9`, "2: differs from 1 in its encoding options"},
		{"model.json", `"gap": 0.99`, `"gap": 0.99, "search": 3`, "2: differs from 1 in its version of the search (got 3, want 0)"},
		{"model.json", `"losses": null`, `"losses": null, "unreached_rows": [0]`, "2: model.json: inconsistent shard 2 of 2"},
	} {
		path := "2/" + tt.file
		whole := testonly.ReadFile(t, path)
		changed := bytes.Replace(whole, []byte(tt.old), []byte(tt.new), 1)
		if bytes.Equal(changed, whole) {
			t.Fatalf("no %q in %s", tt.old, path)
		}
		testonly.Must(t, os.WriteFile(path, changed, 0o666))
		_, err := encode.Merge(t.Context(), "new", false, "1", "2")
		if _, ok := errors.AsType[*vectors.InputError](err); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.new, err, tt.want)
		}
		if _, err := os.Lstat("new"); err == nil {
			t.Errorf("%s: something was written", tt.new)
		}
		testonly.Must(t, os.WriteFile(path, whole, 0o666))
	}
	if _, err := encode.Merge(t.Context(), "new", false); err == nil {
		t.Error("no error for no shards")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := encode.Merge(ctx, "new", false, "1", "2"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// roundingDevice is a device of roundingEncoders. It holds the latest one.
type roundingDevice struct{ *roundingEncoder }

func (d *roundingDevice) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	if o.Steps == 0 {
		return nil, errors.New("no steps")
	}
	d.roundingEncoder = &roundingEncoder{dim: dictionary.Dim, options: o}
	return d.roundingEncoder, nil
}

// Model doesn't change its argument, refuses vectors that it can't encode, and closes its encoder.
func TestModel(t *testing.T) {
	m := untrained(3, make([]float32, 9)...)
	m.Codes = &vectors.Sparse{IDs: []string{"old"}}
	d := &vectors.Dense{IDs: []string{"a", "b"}, Dim: 3, Data: []float32{1.4, 2, 3, 4, 5, 0}}
	o := encode.Options{Lambda: 1, Steps: 7, Nonzeros: 2}
	var device roundingDevice
	got, err := encode.Model(t.Context(), m, d, &device, o)
	testonly.Must(t, err)
	e := got.Info.Encoding
	if !slices.Equal(got.Codes.Value, []float32{1, 2, 3, 4, 5}) || !slices.Equal(got.Codes.IDs, d.IDs) || !reflect.DeepEqual(got.Info.Encoding.Input, model.Input{Rows: 2, Dim: 3}) ||
		e.Device != "rounds" || e.Steps != 7 || e.Nonzeros != 2 || got.Info.Training.Input.Name != "learned.txt" || e.L1 != 7.5 {
		t.Errorf("encoded to %+v, %+v", got, e)
	}
	if m.Codes.Rows != 0 || m.Info.Encoding != nil || m.Codes.IDs[0] != "old" {
		t.Errorf("Model changed its argument to %+v", m)
	}
	if device.closed != 1 {
		t.Errorf("its encoder was closed %d times", device.closed)
	}
	if _, err := encode.Model(t.Context(), m, &vectors.Dense{IDs: []string{"a"}, Dim: 2, Data: []float32{1, 2}}, &device, o); err == nil {
		t.Error("no error for vectors of another length")
	}
	if _, err := encode.Model(t.Context(), m, d, &device, encode.Options{}); err == nil || err.Error() != "no steps" {
		t.Errorf("error %v for a device without an encoder", err)
	}
	d.Data[3] = float32(math.NaN())
	if _, err := encode.Model(t.Context(), m, d, &device, o); !errors.Is(err, encode.ErrOverflow) || !strings.Contains(err.Error(), `"b"`) || device.closed != 1 {
		t.Errorf("error %v for NaN, of an encoder closed %d times", err, device.closed)
	}
}

// Model joins blocks whose rows have more or fewer nonzeros than the first block's.
func TestModelBlocks(t *testing.T) {
	const rows, dim = 3*encode.Block + 7, 4
	for _, dense := range []int{0, 1, 2, 3} { // the block that has nonzeros in all columns
		d := &vectors.Dense{IDs: make([]string, rows), Dim: dim, Data: make([]float32, rows*dim)}
		for i := range d.Data {
			if i%dim == 0 || i/dim/encode.Block == dense {
				d.Data[i] = float32(1 + i%7)
			}
		}
		got, err := encode.Model(t.Context(), untrained(dim, make([]float32, dim*dim)...), d, new(roundingDevice), encode.Options{Lambda: 1, Steps: 7, Nonzeros: 2})
		testonly.Must(t, err)
		if want, _ := encode.Rows(t.Context(), &roundingEncoder{dim: dim}, d.Data); !reflect.DeepEqual(got.Codes.CSR, want.CSR) {
			t.Errorf("block %d is dense: the codes differ from one call's", dense)
		}
	}
}

func TestDefaults(t *testing.T) {
	h := train.Paper()
	h.Atoms, h.Method = 200, model.Nonnegative
	learned := model.Training{Recipe: h, Lambda: 0.7, Epochs: []model.Epoch{{Sparsity: 0.1}, {Sparsity: 0.902}}}
	i := model.Info{Training: learned, Encoding: learned.PaperEncoding()}
	want := encode.Options{Lambda: 0.7, Nonnegative: true, Steps: 16, Nonzeros: 20}
	if got := encode.Defaults(i); got != want {
		t.Errorf("after training %+v, want %+v", got, want)
	}
	i.Encoding = &model.Encoding{Nonzeros: 33, Steps: 40, Sparsity: 0.9}
	if got := encode.Defaults(i); got.Nonzeros != 33 || got.Steps != 40 {
		t.Errorf("after encoding %d of 33, %d of 40 steps", got.Nonzeros, got.Steps)
	}
	i.Encoding.Nonzeros, i.Encoding.Steps = 0, 0 // exact
	if got := encode.Defaults(i); got.Nonzeros != 20 || got.Steps != 16 {
		t.Errorf("after exact encoding %d of 20, %d of 16 steps", got.Nonzeros, got.Steps)
	}
	if err := encode.Defaults(model.Info{}).Validate(); err == nil {
		t.Error("no error for the options of no model")
	}
	if got := model.Nonzeros(1-1e-9, 200); got != 1 {
		t.Errorf("%d nonzeros at a sparsity of 1", got)
	}
}

// Shrinkage agrees with values that were computed by hand.
func TestShrinkage(t *testing.T) {
	for steps, want := range map[int][]float64{
		1: {1},
		2: {10, 1},
		4: {10, 4.869675, 2.371374, 1},
		5: {10, 5.623413, 3.162278, 1.778279, 1},
		8: {10, 6.978306, 4.869675, 3.398208, 2.371374, 1.654817, 1.154782, 1},
	} {
		for n, w := range want {
			if got := encode.Shrinkage(0.5, n, steps); math.Abs(got-w/2) > 1e-6 {
				t.Errorf("step %d of %d: %v, want %v", n, steps, got, w/2)
			}
		}
	}
	if got := encode.Shrinkage(0.5, 13, 16); got != 0.5 {
		t.Errorf("in the last fifth: %v", got)
	}
}
