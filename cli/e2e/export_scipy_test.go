package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/train"
	"overcomplete/vectors"
)

// checkWithSciPy reads a model and its exports as users do, and compares each number with the test's. It writes files
// that readCSR reads.
const checkWithSciPy = `
import json
import numpy as np
import scipy.sparse as sp

want = json.load(open("want.json"))
codes = np.zeros((want["rows"], want["cols"]), np.float32)
for row, (columns, values) in enumerate(want["codes"]):
    codes[row, columns] = np.array(values, np.float32)
dictionary = np.array(want["dictionary"], np.float32).reshape(want["cols"], -1)

def check(name, got, expected):
    assert got.dtype == expected.dtype, (name, got.dtype)
    assert got.shape == expected.shape, (name, got.shape)
    assert (got == expected).all(), name

matrix = sp.load_npz("model/codes.npz")
assert matrix.format == "csr" and matrix.has_canonical_format
assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
check("codes.npz", matrix.toarray(), codes)
check("dictionary.npy", np.load("model/dictionary.npy"), dictionary)
check("mean.npy", np.load("model/mean.npy"), np.array(want["mean"], np.float32))

check("csr", sp.load_npz("out.csr").toarray(), codes)
check("binary", sp.load_npz("out.binary").toarray(), (codes != 0).astype(np.float32))

def text(name):
    return open(name, encoding="utf8", newline="\n").read()

words = want["words"]
assert text("model/words.txt").split("\n")[:-1] == words, "words.txt"

rows = [line.split(" ") for line in text("out.glove").split("\n")[:-1]]
assert [row[0] for row in rows] == words, "glove"
check("glove", np.array([row[1:] for row in rows], np.float32), codes)

sp.save_npz("compressed.npz", matrix)
sp.save_npz("array.npz", sp.csr_array(matrix), compressed=False)
matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
sp.save_npz("int64.npz", matrix.astype(np.float64))
`

func TestSciPyReadsWhatWeWrite(t *testing.T) {
	t.Parallel()
	const words, dim, atoms = 60, 7, 43
	rng := rand.New(rand.NewPCG(5, 6))
	value := func() float32 { return float32(rng.ExpFloat64()) * []float32{1e-6, 1e-3, 1, 100, 1e5}[rng.IntN(5)] }
	h := train.Paper()
	h.Method, h.Atoms, h.Center = model.Nonnegative, atoms, true
	training := model.Training{Input: model.Input{Rows: words, Dim: dim}, Recipe: h}
	m := &model.Model{
		Info:       model.Info{Format: model.FormatVersion, Training: training, Encoding: training.PaperEncoding()},
		Codes:      &vectors.Sparse{CSR: vectors.CSR{Rows: words, Cols: atoms, Ptr: []int64{0}}},
		Dictionary: model.Dictionary{Dim: dim, Atoms: make([]float32, dim*atoms), Mean: make([]float32, dim)},
	}
	for i := range m.Dictionary.Atoms {
		m.Dictionary.Atoms[i] = value() * float32(1-2*rng.IntN(2))
	}
	for i := range m.Dictionary.Mean {
		m.Dictionary.Mean[i] = value()
	}
	rows := make([][2]any, words)
	for i := range words {
		// These words are legal, but Python's splitlines and split cut them.
		m.Codes.IDs = append(m.Codes.IDs, fmt.Sprintf("w%d%s", i, []string{"", "\u0085", "\u2028x", "\x1cx", "\u00a0", "é"}[i%6]))
		for k := range atoms {
			if rng.IntN(10) == 0 {
				m.Codes.Index, m.Codes.Value = append(m.Codes.Index, int32(k)), append(m.Codes.Value, value())
			}
		}
		m.Codes.Ptr = append(m.Codes.Ptr, int64(len(m.Codes.Index)))
		rows[i][0], rows[i][1] = m.Codes.Row(i)
	}
	dir := clitest.Save(t, m)
	for _, format := range []string{"glove", "csr", "binary"} {
		dir.MustRun(t, "export model -o out."+format+" -f "+format)
	}
	want, err := json.Marshal(map[string]any{"rows": words, "cols": atoms, "words": m.Codes.IDs, "codes": rows, "dictionary": m.Dictionary.Atoms, "mean": m.Dictionary.Mean})
	testonly.Must(t, err)
	dir.Write(t, "want.json", want)
	runPython(t, dir, checkWithSciPy)

	for _, name := range []string{"compressed.npz", "array.npz", "int64.npz"} {
		data := dir.Read(t, name)
		codes, err := readCSR(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(codes, &m.Codes.CSR) {
			t.Errorf("%s: codes differ", name)
		}
	}
}
