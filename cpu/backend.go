package cpu

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"overcomplete/graph"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Options of a Backend.
type Options struct {
	Workers  int             // goroutines; 0 means one for each processor
	Seed     uint64          // of the initial codes and dictionary
	Authors  bool            // for AuthorsPass, instead of DictionaryPass and CodePass
	Progress func(words int) // told of words done, from any goroutine; may be nil
}

// Backend trains on the CPU. It implements [train.AuthorsBackend].
type Backend struct {
	spec     graph.Spec
	seed     uint64
	progress func(int)

	words      int
	x          []float32 // V×L
	dictionary []float32 // D, K×L
	squares    []float32 // H, K×L
	sumG, sumQ []float32 // S and Q, V×K
	tiles      []*tile   // A
	tileWords  int
	allAtoms   []int32 // 0, 1, …, K−1: the columns of a dense code

	dictionaryStep, codeStep, authorsStep, evaluate *executable

	lanes []*lane // one for each worker
}

const mostBytes = 1e12 // of a training's state

// New prepares training of spec on X, V×L row-major. X is read, never written.
func New(spec graph.Spec, x []float32, o Options) (*Backend, error) {
	if spec.Dim <= 0 || len(x) == 0 || len(x)%spec.Dim != 0 {
		return nil, fmt.Errorf("cpu: %d numbers are no vectors of length %d", len(x), spec.Dim)
	}
	b := &Backend{spec: spec, seed: o.Seed, progress: o.Progress, words: len(x) / spec.Dim, x: x}
	// S, Q, D and H. What is not there can't be asked for: it would end the program.
	if bytes := 8 * float64(spec.Atoms) * float64(b.words+spec.Dim); bytes > mostBytes || spec.Atoms > math.MaxInt32 {
		return nil, fmt.Errorf("cpu: %d words × %d sparse dimensions need %.0f GB of memory; take fewer of either", b.words, spec.Atoms, bytes/1e9)
	}
	if err := b.compile(o.Authors); err != nil {
		return nil, err
	}
	if b.progress == nil {
		b.progress = func(int) {}
	}
	k := spec.Atoms
	b.dictionary = train.InitialDictionary(o.Seed, k, spec.Dim)
	b.squares = make([]float32, k*spec.Dim)
	b.sumG, b.sumQ = make([]float32, b.words*k), make([]float32, b.words*k)
	b.allAtoms = make([]int32, k)
	for i := range b.allAtoms {
		b.allAtoms[i] = int32(i)
	}
	b.tileWords = mostRows
	if o.Authors {
		b.tileWords = 1
	}
	b.tiles = make([]*tile, (b.words+b.tileWords-1)/b.tileWords)
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	// No step has more rows to share out.
	for range min(workers, max(b.words, k)) {
		b.lanes = append(b.lanes, new(lane))
	}
	return b, nil
}

func (b *Backend) compile(authors bool) error {
	programs := map[**executable]graph.Build{&b.dictionaryStep: graph.Dictionary, &b.codeStep: graph.Code}
	if authors {
		programs = map[**executable]graph.Build{&b.authorsStep: graph.Authors, &b.evaluate: graph.Evaluate}
	}
	for x, build := range programs {
		p, err := graph.Compile(build, b.spec)
		if err != nil {
			return err
		}
		if *x, err = compile(p); err != nil {
			return err
		}
	}
	return nil
}

// bind makes f hold the words from lo to hi as x needs them in epoch t.
func (b *Backend) bind(f *frame, x *executable, lo, hi, t int) {
	n, k, l := hi-lo, b.spec.Atoms, b.spec.Dim
	f.words, f.atoms, f.dim = n, k, l
	f.matrices = sized(f.matrices, len(x.matrices))
	for i, place := range x.matrices {
		m := &f.matrices[i]
		switch place.input {
		case "X":
			*m = matrix{b.x[lo*l : hi*l], l}
		case "S":
			*m = matrix{b.sumG[lo*k : hi*k], k}
		case "Q":
			*m = matrix{b.sumQ[lo*k : hi*k], k}
		case "D":
			*m = matrix{b.dictionary, l}
		case "H":
			*m = matrix{b.squares, l}
		default:
			*m = matrix{sized(m.data, f.rows(place.shape[0])*l), l}
		}
	}
	for len(f.codes) < len(x.codes) {
		f.codes = append(f.codes, new(codes))
	}
	for i, input := range x.codes {
		f.codes[i].index, f.codes[i].value = sized(f.codes[i].index, n), sized(f.codes[i].value, n)
		if input == "A" {
			b.view(f.codes[i], lo, hi)
		}
	}
	f.numbers = sized(f.numbers, len(x.numbers))
	for i, input := range x.numbers {
		switch input {
		case "n":
			f.numbers[i] = float64(n)
		case "t":
			f.numbers[i] = float64(t)
		}
	}
	for len(f.rowTotals) < x.totals {
		f.rowTotals = append(f.rowTotals, nil)
	}
	for i := range x.totals {
		f.rowTotals[i] = sized(f.rowTotals[i], max(n, k))
	}
}

// number reads one of the program's scalar results.
func (x *executable) number(f *frame, output string) float64 {
	return f.numbers[x.numberOf[x.outputs[output]]]
}

// DictionaryPass implements [train.Backend].
func (b *Backend) DictionaryPass(ctx context.Context, batch int) (train.DictionaryPass, error) {
	var pass train.DictionaryPass
	x, f := b.dictionaryStep, new(frame)
	for lo := 0; lo < b.words; lo += batch {
		if err := ctx.Err(); err != nil {
			return pass, err
		}
		hi := min(lo+batch, b.words)
		b.bind(f, x, lo, hi, 0)
		x.run(f, b.lanes)
		pass.Loss += x.number(f, "loss")
		pass.Steps++
		if x.number(f, "alpha") < 1 {
			pass.Shortened++
		}
		b.progress(hi - lo)
	}
	return pass, nil
}

// CodePass implements [train.Backend].
func (b *Backend) CodePass(ctx context.Context, epoch int) (train.CodePass, error) {
	x := b.codeStep
	losses := make([]float64, len(b.tiles))
	b.eachTile(ctx, x, epoch, func(f *frame, i int) {
		losses[i] = x.number(f, "loss")
		b.store(i, f, x)
	})
	return b.summary(losses), ctx.Err()
}

// AuthorsPass implements [train.AuthorsBackend].
func (b *Backend) AuthorsPass(ctx context.Context, epoch int) (float64, train.CodePass, error) {
	var running float64
	x, f := b.authorsStep, new(frame)
	for i := range b.words {
		if err := ctx.Err(); err != nil {
			return running, train.CodePass{}, err
		}
		b.bind(f, x, i, i+1, epoch)
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
func (b *Backend) eachTile(ctx context.Context, x *executable, epoch int, done func(f *frame, i int)) {
	parallel(b.lanes, len(b.tiles), func(l *lane, i int) {
		if ctx.Err() != nil {
			return
		}
		f, lo := &l.tile, i*b.tileWords
		hi := min(lo+b.tileWords, b.words)
		b.bind(f, x, lo, hi, epoch)
		x.run(f, []*lane{l})
		done(f, i)
		b.progress(hi - lo)
	})
}

// store makes a program's codes those of tile i.
func (b *Backend) store(i int, f *frame, x *executable) {
	if b.tiles[i] == nil {
		b.tiles[i] = new(tile)
	}
	b.tiles[i].pack(f.codes[x.codesOf[x.outputs["A"]]], f.words)
}

// summary adds up what the tiles hold, in their order.
func (b *Backend) summary(losses []float64) train.CodePass {
	var pass train.CodePass
	used := make([]bool, b.spec.Atoms)
	for i, t := range b.tiles {
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

// Dictionary implements [train.Backend].
func (b *Backend) Dictionary() []float32 { return append([]float32(nil), b.dictionary...) }

// Codes implements [train.Backend]. Before the first code pass, the codes are
// the random ones, dense.
func (b *Backend) Codes() *vectors.Sparse {
	s := &vectors.Sparse{Rows: b.words, Cols: b.spec.Atoms, Ptr: make([]int64, 1, b.words+1)}
	c := codes{make([][]int32, 1), make([][]float32, 1)}
	for i := range b.words {
		b.view(&c, i, i+1)
		s.Index = append(s.Index, c.index[0]...)
		s.Value = append(s.Value, c.value[0]...)
		s.Ptr = append(s.Ptr, int64(len(s.Value)))
	}
	return s
}
