package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/tensor"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/model"
	"overcomplete/train"
)

// NewLearner makes the learner under test, with so many workers.
type NewLearner func(d *model.Dictionary, norm float64, o encode.Options, workers int) (train.Learner, error)

// RunLearner tests that a learner moves atoms, one after the other, to where the tape
// machine has them, given the codes that it returns; and that it gives the same bits for
// any number of workers. An atom may be off by tolerance times its norm.
func RunLearner(t *testing.T, tolerance float64, newLearner NewLearner) {
	const norm, batches, remember = 2.5, 3, 0.8
	for _, o := range []encode.Options{{Lambda: 0.2, Steps: 10, Most: 6}, {Lambda: 0.2, Steps: 10, Most: 6, Nonnegative: true}} {
		t.Run(fmt.Sprintf("nonnegative %t", o.Nonnegative), func(t *testing.T) {
			x, d := learnerProblem(norm)
			l, err := newLearner(d, norm, o, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			more, err := newLearner(d, norm, o, 3)
			if err != nil {
				t.Fatal(err)
			}
			defer more.Close()
			sums := newSums(d)
			before := d.Atoms
			rows := len(x) / d.Dim / batches
			for batch := range batches {
				x := x[batch*rows*d.Dim:][:rows*d.Dim]
				codes, err := l.Learn(t.Context(), x, remember)
				if err != nil {
					t.Fatal(err)
				}
				atoms, err := l.Atoms()
				if err != nil {
					t.Fatal(err)
				}
				sums.add(codes, x, remember)
				want := sums.move(t, widen(before), o.Spec(d), norm)
				for i, w := range want {
					if !(math.Abs(float64(atoms[i])-w) <= tolerance*norm) {
						t.Fatalf("batch %d: element %d of atom %d is %v, want %v", batch+1, i%d.Dim, i/d.Dim, atoms[i], w)
					}
				}
				before = atoms

				if _, err := more.Learn(t.Context(), x, remember); err != nil {
					t.Fatal(err)
				}
				if others, err := more.Atoms(); err != nil || !slices.Equal(others, atoms) {
					t.Fatalf("batch %d: three workers give other atoms than one, error %v", batch+1, err)
				}
			}
			if kept := d.Atom(unusedAtom); !slices.Equal(kept, before[unusedAtom*d.Dim:][:d.Dim]) {
				t.Error("an atom that no code uses has moved")
			}
		})
	}
}

// unusedAtom is one that no word has anything of.
const unusedAtom = 1

// learnerProblem returns words, their mean, and atoms of the given norm: too many for one
// block of any device, and not a multiple of anything.
func learnerProblem(norm float64) (x []float32, d *model.Dictionary) {
	const rows, dim, atoms = 600, 7, 131
	rng := rand.New(rand.NewPCG(8, 8))
	d = &model.Dictionary{Dim: dim, Atoms: make([]float32, atoms*dim), Mean: make([]float32, dim)}
	for i := range d.Mean {
		d.Mean[i] = float32(rng.NormFloat64())
	}
	x = make([]float32, rows*dim)
	for i := range x {
		if x[i] = d.Mean[i%dim]; i%dim < dim-1 { // nothing has the last one
			x[i] += float32(rng.NormFloat64())
		}
	}
	for k := range atoms {
		atom := d.Atom(k)
		var square float64
		for j := range dim - 1 {
			atom[j] = float32(rng.NormFloat64())
			square += float64(atom[j]) * float64(atom[j])
		}
		for j := range atom {
			atom[j] *= float32(norm / math.Sqrt(square))
		}
	}
	clear(d.Atom(unusedAtom))
	d.Atom(unusedAtom)[dim-1] = float32(norm)
	return x, d
}

// codeSums are a learner's sums, in float64.
type codeSums struct {
	*model.Dictionary
	codes, rows []float64 // G, K×K, and B, K×L
}

func newSums(d *model.Dictionary) *codeSums {
	return &codeSums{d, make([]float64, d.Len()*d.Len()), make([]float64, d.Len()*d.Dim)}
}

func (s *codeSums) add(a *encode.Codes, x []float32, remember float64) {
	for i := range s.codes {
		s.codes[i] *= remember
	}
	for i := range s.rows {
		s.rows[i] *= remember
	}
	y := make([]float32, s.Dim)
	for i := range a.Rows {
		s.Center(y, x[i*s.Dim:][:s.Dim])
		index, value := a.Row(i)
		for n, k := range index {
			v := float64(value[n])
			for m, other := range index {
				s.codes[int(k)*s.Len()+int(other)] += v * float64(value[m])
			}
			for j, y := range y {
				s.rows[int(k)*s.Dim+j] += v * float64(y)
			}
		}
	}
}

// move returns the atoms after each has taken its turn on the tape.
func (s *codeSums) move(t *testing.T, atoms []float64, spec graph.Spec, norm float64) []float64 {
	t.Helper()
	spec.Norm = norm
	expression, err := graph.Learn(spec, 1, tensor.Float64)
	if err != nil {
		t.Fatal(err)
	}
	tape := graph.NewTape(expression)
	defer tape.Close()
	for first := 0; first < len(atoms); first += s.Dim {
		out, err := tape.Run(map[string][]float64{"D": atoms, "G": s.codes, "B": s.rows})
		if err != nil {
			t.Fatal(err)
		}
		copy(atoms[first:first+s.Dim], out["D"][first:])
	}
	return atoms
}
