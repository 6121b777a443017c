package e2e

import (
	"strings"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly/clitest"
)

// writeTexts writes texts.parquet, which has more rows than a block. Some texts are repeated, empty, null or long. Others
// contain line breaks, control characters and various scripts.
const writeTexts = `
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
rng = np.random.default_rng(1)
n = 5000
odd = ["", None, "two\nlines\r\n\tand a tab", "<script>alert(1)</script>", "\x1b[31mred\x00", "שלום עולם", "e\u0301 ก็ 日本語", "m" * 300000, "same", "same"]
texts = [odd[i % len(odd)] if i % 500 < len(odd) else f"text number {i % 700}" for i in range(n)]
x = rng.standard_normal((n, 8)).astype("f4") @ rng.standard_normal((8, 16)).astype("f4")
x[7::1000] = x[6::1000]
pq.write_table(pa.table({
    "doc": [f"doc-{i}" for i in range(n)], "text": texts, "label": pa.array([None if i % 9 == 0 else i % 4 for i in range(n)], pa.int64()),
    "wide": [f"value {i}" for i in range(n)], "embedding": pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 16)}), "texts.parquet")
`

// checkTexts checks that the rows of models equal the rows of texts.parquet, in order, as another program reads them.
// MODELS maps a model to its column of ids, or to "" if row numbers are the ids.
const checkTexts = `
import json, numpy as np, pyarrow.json, pyarrow.parquet as pq, scipy.sparse as sp
t = pq.read_table("texts.parquet")
x = np.stack(t["embedding"].to_numpy(zero_copy_only=False))
labels = ["" if v is None else str(v) for v in t["label"].to_pylist()]
def check(model, ids):
    info = json.load(open(model + "/model.json"))
    assert info["encoding"]["input"]["texts"] and info["encoding"]["input"]["rows"] == len(x)
    rows = [json.loads(line) for line in open(model + "/texts.jsonl", encoding="utf-8", newline="\n")]
    same = pyarrow.json.read_json(model + "/texts.jsonl", read_options=pyarrow.json.ReadOptions(block_size=1 << 24))
    assert same["text"].to_pylist() == [r["text"] for r in rows]
    for i, (r, doc, text, l, w) in enumerate(zip(rows, t["doc"].to_pylist(), t["text"].to_pylist(), labels, t["wide"].to_pylist(), strict=True)):
        want = {"id": doc if ids else str(i), "text": text or "", "label": l, "wide": w}
        if want["id"] != doc:
            want["doc"] = doc
        assert r == want, (i, r["id"], want["id"])
    a = sp.load_npz(model + "/codes.npz").toarray()
    d, mean = np.load(model + "/dictionary.npy"), np.load(model + "/mean.npy")
    errors = ((x - mean - a @ d) ** 2).sum(1)
    assert abs(errors.mean() / info["encoding"]["error"] - 1) < 1e-3, (errors.mean(), info["encoding"]["error"])
    variance = ((x - mean) ** 2).sum(1).mean()
    assert abs(variance / info["encoding"]["variance"] - 1) < 1e-5, (variance, info["encoding"]["variance"])
    if "steps" in info["encoding"]: # the paper's codes begin at random
        assert (a[7::1000] == a[6::1000]).all()
for model, ids in MODELS.items():
    check(model, ids)
`

// Every row of a table of texts has its code at the same place after train and encode, whole or in shards, and with
// checkpoints.
func TestTextsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	runPython(t, dir, writeTexts)
	_, stderr := dir.MustRun(t, "train texts.parquet -o best --topics 0 -k 64 --sparsity 0.8 --epochs 2 --progress")
	if want := `5000 texts × 16 dimensions, Parquet, texts of column "text", with ["doc" "label" "wide"]`; !strings.Contains(stderr, want) {
		t.Errorf("%s\nwithout %s", stderr, want)
	}
	dir.MustRun(t, "train texts.parquet -o ids --topics 0 -k 64 --sparsity 0.8 --epochs 2 --id-column doc --train-rows random:1000 --method A")
	for name, want := range map[string]model.Method{"best": model.Nonnegative, "ids": model.Signed} {
		if got := dir.Model(t, name).Info.Training.Recipe.Base().Method; got != want {
			t.Errorf("%s is of method %s, want %s", name, got, want)
		}
	}
	dir.MustRun(t, "encode best texts.parquet -o encoded")
	dir.MustRun(t, "encode best texts.parquet -o s1 --shard 1/2")
	dir.MustRun(t, "encode best texts.parquet -o s2 --shard 2/2")
	dir.MustRun(t, "merge s1 s2 -o merged")
	dir.MustRun(t, "paper train texts.parquet -o paper -k 64 --center --lambda 0.2 --epochs 3 --checkpoint 1ns --id-column doc")
	runPython(t, dir, "MODELS = {'best': '', 'ids': 'doc', 'encoded': '', 'merged': '', 'paper': 'doc'}\n"+checkTexts)
}

// Exports for search engines hold the codes, ids, texts and labels, as other programs read them. With --normalize, values
// are divided by the norm of the reconstruction. Negative values become positive values of features of their own.
func TestExportForSearch(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	runPython(t, dir, writeTexts)
	dir.MustRun(t, "train texts.parquet -o model --topics 0 -k 64 --nonzeros 9 --epochs 1 --id-column doc")
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n7\tseven. of 9\n"))
	dir.MustRun(t, "labels model --import labels.tsv")
	dir.MustRun(t, "export model -o labels.json -f labels")
	exportAll(t, dir, "parquet")
	for _, format := range []string{"jsonl", "opensearch"} {
		dir.MustRun(t, "export model -o out."+format+" -f "+format)
		dir.MustRun(t, "export model -o normalized."+format+" --normalize -f "+format)
	}
	dir.MustRun(t, "train texts.parquet -o signed --topics 0 -k 64 --nonzeros 9 --epochs 1 --method A --id-column doc")
	dir.MustRun(t, "export signed -o signed.opensearch -f opensearch")
	runPython(t, dir, `
import json, numpy as np, scipy.sparse as sp
from pyarrow import parquet
a = sp.load_npz("model/codes.npz")
a = a.tocsr()
over = lambda norms: sp.csr_array((a.data / np.repeat(norms, np.diff(a.indptr)), a.indices, a.indptr), a.shape)
decoded = over(np.linalg.norm(np.load("model/mean.npy") + a @ np.load("model/dictionary.npy"), axis=1))
rows = [json.loads(line) for line in open("model/texts.jsonl", encoding="utf-8", newline="\n")]
table = parquet.read_table("out.parquet")
assert table.column_names == [*rows[0], "indices", "values"] and list(rows[0])[:2] == ["id", "text"]
typed = [r | {"label": int(r["label"]) if r["label"] else None} for r in rows]
assert table.drop_columns(["indices", "values"]).to_pylist() == typed
for name, want in [("indices", a.indices), ("values", a.data)]:
    lists = table[name].combine_chunks()
    assert (lists.flatten().to_numpy() == want).all() and (lists.offsets.to_numpy() == a.indptr).all()
labels = json.load(open("labels.json", encoding="utf-8"))
assert labels["7"] == "seven. of 9" and {int(k) for k in labels} >= set(a.indices.tolist()) and all(labels.values())
for name, want in [("out", a), ("normalized", decoded)]:
    lines = open(name + ".jsonl", encoding="utf-8", newline="\n").read().split("\n")
    bulk = open(name + ".opensearch", encoding="utf-8", newline="\n").read().split("\n")
    assert len(lines) == len(rows) + 1 and lines[-1] == "" and len(bulk) == 2 * len(rows) + 1
    for i, r in enumerate(rows):
        got, action, document = json.loads(lines[i]), json.loads(bulk[2 * i]), json.loads(bulk[2 * i + 1])
        index, value = want.indices[want.indptr[i]:want.indptr[i + 1]], want.data[want.indptr[i]:want.indptr[i + 1]]
        assert got["indices"] == index.tolist() and np.allclose(got["values"], value, rtol=1e-6) and got["dimensions"] == a.shape[1]
        assert action == {"index": {"_id": r["id"]}}
        for k in r:
            assert got[k] == document[k] == ((int(r[k]) if r[k] else None) if k == "label" else r[k]), (k, got[k], document[k], r[k])
        features = document["features"]
        assert list(features) == [str(k) for k in index] and np.allclose(list(features.values()), value, rtol=1e-6)
signed = sp.load_npz("signed/codes.npz").tocsr()
assert (signed.data < 0).any()
for i, line in enumerate(open("signed.opensearch", encoding="utf-8", newline="\n").read().split("\n")[1::2]):
    row = signed[[i]]
    assert json.loads(line)["features"] == {f"{k}-" if v < 0 else f"{k}": abs(float(str(v))) for k, v in zip(row.indices, row.data)}
`)
}
