package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/csr"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
	"overcomplete/vectors/columnar"
)

// oddWords are legal words that some programs treat specially.
var oddWords = []string{
	"the", "2008", "0.5", "-1e5", "nan", "</s>", "null", ",", "\"", "\"quoted\"", "'", "''", "back\\slash", "\\n", "\\", "100%", "%20", "{}", "a=b:c", "#",
	"New York", " leading", "trailing ", ". . .", "at name@domain.com", "iphone 4",
	"a\u00a0b", "\u00a0", "\u2009", "\u3000x", "c\u0085d", "\u2028", "x\u2029", "\x1cx", "\x1f", "\x7f", "\ufeff", "\u200b", "\ufffd",
	"naïve", "e\u0301", "é", "日本語", "😀", "👩\u200d👩\u200d👧", "\U0010ffff", "שלום", "مرحبا", "\u202eright to left", "ﬁ",
	strings.Repeat("long", 20_000), strings.Repeat("ж", 1000),
}

// oddModel returns a model of the odd words. Some codes have no nonzeros, and no code uses the last dimension.
func oddModel() *model.Model {
	const atoms = 30
	rng := rand.New(rand.NewPCG(7, 9))
	codes := make([][]float32, len(oddWords))
	for i := range codes {
		codes[i] = make([]float32, atoms)
		for k := range atoms - 1 {
			if i%9 > 0 && rng.IntN(5) == 0 {
				codes[i][k] = float32(rng.NormFloat64())
			}
		}
	}
	m := clitest.NewModel(oddWords, codes)
	h := m.Info.Training.Recipe.(model.Paper)
	h.Method, h.Center = model.Signed, true
	m.Info.Training.Recipe = h
	values := clitest.Vectors(atoms+1, m.Dictionary.Dim)
	m.Dictionary.Atoms, m.Dictionary.Mean = values.Slice(0, atoms).Data, values.Row(atoms)
	return m
}

// runPython runs a script in dir.
func runPython(t *testing.T, dir clitest.Dir, script string) {
	t.Helper()
	cmd := exec.Command(testonly.PythonPath(t), "-c", script)
	cmd.Dir = string(dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// exportAll exports the model in dir as out.FORMAT in dir. It escapes the words of text formats.
func exportAll(t *testing.T, dir clitest.Dir, formats ...string) {
	t.Helper()
	for _, format := range formats {
		line := "export model -o out." + format + " -f " + format
		if slices.Contains([]string{"glove", "word2vec", "word2vec-binary"}, format) {
			line += " --escape"
		}
		dir.MustRun(t, line)
	}
}

// readModel is the beginning of the scripts. It reads the files of a model.
const readModel = `
import json
import numpy as np, scipy.sparse

words = open("model/words.txt", encoding="utf8", newline="\n").read().split("\n")[:-1]
A = scipy.sparse.load_npz("model/codes.npz")
D = np.load("model/dictionary.npy")
dense = A.toarray()

def check(name, got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, (name, got.dtype, got.shape, want.dtype, want.shape)
    assert (got == want).all(), name
`

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

func TestGensimReadsWhatWeWrite(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, oddModel())
	exportAll(t, dir, "glove", "word2vec", "word2vec-binary")
	runPython(t, dir, readModel+`
from urllib.parse import unquote
from gensim.models import KeyedVectors

for format, options in ("glove", {"no_header": True}), ("word2vec", {}), ("word2vec-binary", {"binary": True}):
    v = KeyedVectors.load_word2vec_format("out." + format, **options)
    assert [unquote(word) for word in v.index_to_key] == words, format
    check(format, v.vectors, dense)

# Its neighbours are by cosine, without the row of zeros.
unit = dense.astype(float) / np.maximum(np.linalg.norm(dense.astype(float), axis=1, keepdims=True), 1e-9)
for i in 1, 40:
    cosines = unit @ unit[i]
    cosines[i] = -2
    best = np.argsort(-cosines)[:5]
    got = v.most_similar(v.index_to_key[i], topn=5)
    assert [unquote(word) for word, _ in got] == [words[j] for j in best], got
    assert np.allclose([s for _, s in got], cosines[best], atol=1e-6)  # gensim's are float32
`)
}

func TestSafetensorsReadsWhatWeWrite(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, oddModel())
	exportAll(t, dir, "safetensors")
	runPython(t, dir, readModel+`
from safetensors import safe_open
from safetensors.numpy import load_file

t = load_file("out.safetensors")
assert sorted(t) == ["codes.data", "codes.indices", "codes.indptr", "dictionary", "mean", "words"], list(t)
assert t["words"].tobytes().decode().split("\n")[:-1] == words
check("dictionary", t["dictionary"], D)
check("mean", t["mean"], np.load("model/mean.npy"))
got = scipy.sparse.csr_array((t["codes.data"], t["codes.indices"], t["codes.indptr"]), shape=(len(words), len(D)))
check("codes", got.toarray(), dense)
with safe_open("out.safetensors", "np") as f:
    info = json.loads(f.metadata()["model.json"])
    assert info == json.load(open("model/model.json", encoding="utf8"))
    assert list(f.get_slice("dictionary")[3:5].shape) == [2, D.shape[1]]
`)
}

func TestPyArrowReadsWhatWeWrite(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, oddModel())
	exportAll(t, dir, "parquet")

	// One table has more rows than a row group, and another has none.
	large := clitest.RandomCodes(11, 1000, 20_000, 0.4)
	large.IDs[500] = ""
	none := &vectors.Sparse{CSR: vectors.CSR{Cols: 7, Ptr: []int64{0}}}
	for name, codes := range map[string]*vectors.Sparse{"large": large, "none": none} {
		for ending, write := range map[string]func(io.Writer) error{
			"npz":     func(w io.Writer) error { return csr.Write(w, &codes.CSR) },
			"parquet": func(w io.Writer) error { return columnar.WriteParquet(w, codes) },
		} {
			var b bytes.Buffer
			testonly.Must(t, write(&b))
			dir.Write(t, name+"."+ending, b.Bytes())
		}
	}
	runPython(t, dir, readModel+`
import pyarrow as pa, pyarrow.parquet

def compare(table, words, want):
    table.validate(full=True)
    assert table.column_names == ["word", "indices", "values"]
    word, indices, values = (f.type for f in table.schema)
    assert [word, indices.value_type, values.value_type] == [pa.string(), pa.int32(), pa.float32()]
    assert table.schema.metadata[b"dimensions"] == b"%d" % want.shape[1]
    assert table["word"].to_pylist() == words
    indices, values = table["indices"].combine_chunks(), table["values"].combine_chunks()
    assert indices.offsets == values.offsets
    got = [a.to_numpy() for a in (values.flatten(), indices.flatten())]
    check("values", got[0], want.data)
    check("indices", got[1], want.indices)
    if len(words):
        check("offsets", indices.offsets.to_numpy(), want.indptr)

compare(pa.parquet.read_table("out.parquet"), words, A)

large, words = scipy.sparse.load_npz("large.npz"), [f"word{i}" for i in range(1000)]
words[500] = ""
f = pa.parquet.ParquetFile("large.parquet")
assert f.num_row_groups > 1 and f.metadata.num_rows == 1000
assert sum(f.metadata.row_group(i).num_rows for i in range(f.num_row_groups)) == 1000
compare(pa.parquet.read_table("large.parquet"), words, large)
# A column, and a row group, can be read without the others.
assert pa.parquet.read_table("large.parquet", columns=["values"])["values"].combine_chunks().flatten().to_numpy().sum() == large.data.sum()
assert f.read_row_group(1)["word"].to_pylist() == words[f.metadata.row_group(0).num_rows:][:f.metadata.row_group(1).num_rows]

none = scipy.sparse.load_npz("none.npz")
compare(pa.parquet.read_table("none.parquet"), [], none)
`)
}
