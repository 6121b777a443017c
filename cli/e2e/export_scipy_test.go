package e2e

import (
	"encoding/json"
	"reflect"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// SciPy reads the numbers of a model and of its export, each as the test knows it. SciPy's own matrices are read.
func TestSciPyReadsWhatWeWrite(t *testing.T) {
	t.Parallel()
	m := oddModel()
	dir := clitest.Save(t, m)
	exportAll(t, dir, "csr")
	rows := make([][2]any, m.Codes.Rows)
	for i := range rows {
		rows[i][0], rows[i][1] = m.Codes.Row(i)
	}
	want, err := json.Marshal(map[string]any{"words": m.Codes.IDs, "codes": rows, "dictionary": m.Dictionary.Atoms, "mean": m.Dictionary.Mean})
	testonly.Must(t, err)
	dir.Write(t, "want.json", want)
	runPython(t, dir, readModel+`
want = json.load(open("want.json"))
codes = np.zeros(A.shape, np.float32)
for row, (columns, values) in enumerate(want["codes"]):
    codes[row, columns or []] = np.array(values or [], np.float32)
assert words == want["words"]
assert A.format == "csr" and A.has_canonical_format and A.indices.dtype == A.indptr.dtype == np.int32
check("codes.npz", dense, codes)
check("dictionary.npy", D, np.array(want["dictionary"], np.float32).reshape(A.shape[1], -1))
check("mean.npy", np.load("model/mean.npy"), np.array(want["mean"], np.float32))
check("csr", scipy.sparse.load_npz("out.csr").toarray(), codes)

scipy.sparse.save_npz("compressed.npz", A)
scipy.sparse.save_npz("array.npz", scipy.sparse.csr_array(A), compressed=False)
A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
scipy.sparse.save_npz("int64.npz", A.astype(np.float64))
`)
	for _, name := range []string{"compressed.npz", "array.npz", "int64.npz"} {
		codes, err := readCSR(dir.Read(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(codes, &m.Codes.CSR) {
			t.Errorf("%s: codes differ", name)
		}
	}
}
