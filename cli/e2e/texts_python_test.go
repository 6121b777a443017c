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
