package cpu

import (
	"context"
	"fmt"
	"runtime"

	"overcomplete/cpu/simd"
	"overcomplete/graph"
	"overcomplete/internal/memory"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Options of a training. For a model, Seed is that of its hyperparameters, and
// Float16 is whether their State is "float16".
type Options struct {
	Workers    int             // goroutines; 0 means one for each processor
	Seed       uint64          // of the initial codes and dictionary
	Float16    bool            // keep S and √Q as float16, not S and Q as float32: half of their memory
	Overcommit bool            // train even if the machine seems to have too little memory
	Progress   func(words int) // told of words that a pass is done with, from any goroutine; may be nil
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// state is what a training moves, and what moves it.
type state struct {
	spec     graph.Spec
	seed     uint64
	progress func(int)

	words      int
	x          []float32   // V×L
	dictionary simd.Matrix // D, K×L
	squares    simd.Matrix // H, K×L
	sums       simd.State  // S and Q, V×K
	tiles      []*tile     // A
	tileWords  int
	allAtoms   []int32     // 0, 1, …, K−1: the columns of a dense code
	packed     simd.Panels // D, of a code pass

	kernels *simd.Kernels
	lanes   []*lane // one for each worker
}

// Backend trains on the CPU. It implements [train.Backend].
type Backend struct {
	state
	dictionaryStep, codeStep *executable
	batches                  [2]frame // that the dictionary moves by, and the next
}

// AuthorsBackend trains on the CPU in the authors' order, word by word. It
// implements [train.AuthorsBackend].
type AuthorsBackend struct {
	state
	step, evaluate *executable
}

// New prepares training of spec on X, V×L row-major. X is read, never written.
func New(spec graph.Spec, x []float32, o Options) (*Backend, error) {
	k, _, err := simd.Choose()
	if err != nil {
		return nil, err
	}
	dictionaryStep, err := compileStep(graph.Dictionary, spec, k)
	if err != nil {
		return nil, err
	}
	codeStep, err := compileStep(graph.Code, spec, k)
	if err != nil {
		return nil, err
	}
	s, err := newState(spec, x, k, mostWords, o)
	if err != nil {
		return nil, err
	}
	return &Backend{state: s, dictionaryStep: dictionaryStep, codeStep: codeStep}, nil
}

// NewAuthors is New for the authors' algorithm.
func NewAuthors(spec graph.Spec, x []float32, o Options) (*AuthorsBackend, error) {
	k, _, err := simd.Choose()
	if err != nil {
		return nil, err
	}
	step, err := compileStep(graph.Authors, spec, k)
	if err != nil {
		return nil, err
	}
	evaluate, err := compileStep(graph.Evaluate, spec, k)
	if err != nil {
		return nil, err
	}
	s, err := newState(spec, x, k, 1, o)
	if err != nil {
		return nil, err
	}
	return &AuthorsBackend{s, step, evaluate}, nil
}

func compileStep(build graph.Build, spec graph.Spec, k *simd.Kernels) (*executable, error) {
	p, err := graph.Compile(build, spec)
	if err != nil {
		return nil, err
	}
	return compile(p, k)
}

func newState(spec graph.Spec, x []float32, kernels *simd.Kernels, mostTileWords int, o Options) (state, error) {
	if len(x) == 0 || len(x)%spec.Dim != 0 {
		return state{}, fmt.Errorf("cpu: %d numbers are no vectors of length %d", len(x), spec.Dim)
	}
	words, k := len(x)/spec.Dim, spec.Atoms
	if err := checkMemory(spec, words, o); err != nil {
		return state{}, err
	}
	initial := train.InitialDictionary(o.Seed, k, spec.Dim)
	s := state{
		spec: spec, seed: o.Seed, progress: o.Progress,
		words: words, x: x, kernels: kernels,
		dictionary: simd.NewMatrix(k, spec.Dim),
		squares:    simd.NewMatrix(k, spec.Dim),
		sums:       simd.State{Columns: k},
		allAtoms:   make([]int32, k),
	}
	if o.Float16 {
		s.sums.HalfS, s.sums.RootQ = memory.Zeros[uint16](words*k), memory.Zeros[uint16](words*k)
	} else {
		s.sums.S, s.sums.Q = memory.Zeros[float32](words*k), memory.Zeros[float32](words*k)
	}
	for i := range k {
		copy(s.dictionary.Row(i), initial[i*spec.Dim:])
	}
	if s.progress == nil {
		s.progress = func(int) {}
	}
	for i := range s.allAtoms {
		s.allAtoms[i] = int32(i)
	}
	for range min(o.workers(), max(words, k)) { // no step has more rows to share out
		s.lanes = append(s.lanes, new(lane))
	}
	// Tiles enough for many lanes. Losses are added up tile by tile, so that
	// where tiles are cut must not depend on how many lanes there are.
	share := (words/32 + simd.TileRows) / simd.TileRows * simd.TileRows
	s.tileWords = min(share, mostTileWords)
	s.tiles = make([]*tile, (words+s.tileWords-1)/s.tileWords)
	return s, nil
}

// bind makes f hold the words from lo to hi as x needs them in epoch t.
func (s *state) bind(f *frame, x *executable, lo, hi, t int, lanes []*lane) {
	n, k, l := hi-lo, s.spec.Atoms, s.spec.Dim
	f.words, f.atoms, f.dim, f.epoch = n, k, l, t
	f.sums = s.sums.Rows(lo, hi)
	f.matrices = simd.Sized(f.matrices, len(x.matrices))
	for i, place := range x.matrices {
		m := &f.matrices[i]
		switch place.input {
		case "X":
			*m = simd.Matrix{Data: s.x[lo*l : hi*l], Width: l, Pitch: l}
		case "D":
			*m = s.dictionary
		case "H":
			*m = s.squares
		default:
			m.Resize(f.rows(place.shape[0]), l)
		}
	}
	for len(f.codes) < len(x.codes) {
		f.codes = append(f.codes, new(codes))
	}
	for i, input := range x.codes {
		f.codes[i].index, f.codes[i].value = simd.Sized(f.codes[i].index, n), simd.Sized(f.codes[i].value, n)
		if input == "A" {
			s.view(f, f.codes[i], lo, lanes)
		}
	}
	f.numbers = simd.Sized(f.numbers, len(x.numbers))
	for i, input := range x.numbers {
		if input == "n" {
			f.numbers[i] = float64(n)
		}
	}
	for len(f.rowTotals) < x.totals {
		f.rowTotals = append(f.rowTotals, nil)
	}
	for i := range x.totals {
		f.rowTotals[i] = simd.Sized(f.rowTotals[i], max(n, k))
	}
}

// number reads one of the program's scalar results.
func (x *executable) number(f *frame, output string) float64 {
	return f.numbers[x.numberOf[x.outputs[output]]]
}

// DictionaryPass implements [train.Backend].
func (b *Backend) DictionaryPass(ctx context.Context, batch int) (train.DictionaryPass, error) {
	var pass train.DictionaryPass
	x, f, next := b.dictionaryStep, &b.batches[0], &b.batches[1]
	b.bind(f, x, 0, min(batch, b.words), 0, b.lanes)
	for lo := 0; lo < b.words; lo += batch {
		if err := ctx.Err(); err != nil {
			return pass, err
		}
		hi := min(lo+batch, b.words)
		f.next = nil
		if hi < b.words {
			b.bind(next, x, hi, min(hi+batch, b.words), 0, b.lanes)
			f.next = next
		}
		x.run(f, b.lanes)
		pass.Loss += x.number(f, "loss")
		pass.Steps++
		if x.number(f, "alpha") < 1 {
			pass.Shortened++
		}
		b.progress(hi - lo)
		f, next = next, f
	}
	if b.tiles[0] == nil { // only now were codes drawn, which take the most room
		b.batches = [2]frame{}
	}
	return pass, nil
}

// CodePass implements [train.Backend].
func (b *Backend) CodePass(ctx context.Context, epoch int) (train.CodePass, error) {
	x := b.codeStep
	pack(&b.packed, b.kernels, b.dictionary, b.spec.Atoms, b.lanes)
	losses := make([]float64, len(b.tiles))
	b.eachTile(ctx, x, epoch, func(f *frame, i int) {
		losses[i] = x.number(f, "loss")
		b.store(i, f, x)
	})
	return b.summary(losses), ctx.Err()
}

// AuthorsPass implements [train.AuthorsBackend].
func (b *AuthorsBackend) AuthorsPass(ctx context.Context, epoch int) (float64, train.CodePass, error) {
	var running float64
	x, f := b.step, new(frame)
	for i := range b.words {
		if err := ctx.Err(); err != nil {
			return running, train.CodePass{}, err
		}
		b.bind(f, x, i, i+1, epoch, b.lanes)
		x.run(f, b.lanes)
		running += x.number(f, "loss")
		b.store(i, f, x)
		b.progress(1)
	}
	losses := make([]float64, b.words)
	b.eachTile(ctx, b.evaluate, epoch, func(f *frame, i int) { losses[i] = b.evaluate.number(f, "loss") })
	return running, b.summary(losses), ctx.Err()
}

// eachTile runs x on all tiles, each by one worker, until ctx is done.
func (s *state) eachTile(ctx context.Context, x *executable, epoch int, done func(f *frame, i int)) {
	parallel(s.lanes, len(s.tiles), func(l *lane, i int) {
		if ctx.Err() != nil {
			return
		}
		f, lo := &l.tile, i*s.tileWords
		hi := min(lo+s.tileWords, s.words)
		alone := []*lane{l}
		s.bind(f, x, lo, hi, epoch, alone)
		f.packed, f.lent = s.packed, true
		x.run(f, alone)
		done(f, i)
		s.progress(hi - lo)
	})
}

// store makes a program's codes those of tile i.
func (s *state) store(i int, f *frame, x *executable) {
	if s.tiles[i] == nil {
		s.tiles[i] = new(tile)
	}
	s.tiles[i].pack(f.codes[x.codesOf[x.outputs["A"]]], f.words)
}

// summary adds up what the tiles hold, in their order.
func (s *state) summary(losses []float64) train.CodePass {
	var pass train.CodePass
	used := make([]bool, s.spec.Atoms)
	for i, t := range s.tiles {
		if t == nil {
			continue // cancelled before its first pass
		}
		pass.Loss += losses[i]
		pass.Nonzeros += int64(len(t.value))
		for j, k := range t.index {
			used[k] = true
			pass.L1 += max(float64(t.value[j]), -float64(t.value[j]))
		}
	}
	for _, u := range used {
		if u {
			pass.UsedAtoms++
		}
	}
	return pass
}

// Dictionary implements [train.Learned].
func (s *state) Dictionary() ([]float32, error) {
	d := make([]float32, 0, s.spec.Atoms*s.spec.Dim)
	for k := range s.spec.Atoms {
		d = append(d, s.dictionary.Row(k)...)
	}
	return d, nil
}

// Codes implements [train.Learned]. Before the first code pass, the codes are
// the random ones, dense.
func (s *state) Codes() (*vectors.CSR, error) {
	nonzeros := 0
	for i, t := range s.tiles {
		if t != nil {
			nonzeros += len(t.value)
		} else {
			nonzeros += (min((i+1)*s.tileWords, s.words) - i*s.tileWords) * s.spec.Atoms
		}
	}
	all := &vectors.CSR{
		Rows: s.words, Cols: s.spec.Atoms,
		Ptr:   make([]int64, 1, s.words+1),
		Index: make([]int32, 0, nonzeros),
		Value: make([]float32, 0, nonzeros),
	}
	f := frame{words: 1}
	c := &codes{index: make([][]int32, 1), value: make([][]float32, 1)}
	for i := range s.words {
		s.view(&f, c, i, s.lanes)
		all.Index = append(all.Index, c.index[0]...)
		all.Value = append(all.Value, c.value[0]...)
		all.Ptr = append(all.Ptr, int64(len(all.Value)))
	}
	return all, nil
}
