package e2e

import (
	"strings"
	"testing"

	"overcomplete/internal/testonly/clitest"
)

// Exports for search engines have the codes, ids, texts and names, as other programs read them, with values divided
// by the norm; codes that engines don't accept are refused.
func TestExportForSearch(t *testing.T) {
	dir := clitest.New(t)
	runPython(t, dir, writeTexts, "pyarrow")
	dir.MustRun(t, "train texts.parquet -o model -k 64 --nonzeros 9 --epochs 1 --id-column doc")
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n7\tseven. of 9\n"))
	dir.MustRun(t, "labels model --import labels.tsv")
	exportAll(t, dir, "arrow", "parquet")
	for _, format := range []string{"jsonl", "opensearch", "svmlight"} {
		dir.MustRun(t, "export model -o out."+format+" -f "+format)
		dir.MustRun(t, "export model -o codes."+format+" --normalize codes -f "+format)
		dir.MustRun(t, "export model -o vectors."+format+" --normalize vectors -f "+format)
	}
	runPython(t, dir, `
import json, numpy as np, scipy.sparse as sp
from pyarrow import feather, parquet
from sklearn.datasets import load_svmlight_file
a = sp.load_npz("model/codes.npz")
a = a.tocsr()
over = lambda norms: sp.csr_array((a.data / np.repeat(norms, np.diff(a.indptr)), a.indices, a.indptr), a.shape)
codes = over(np.sqrt(np.asarray(a.multiply(a).sum(1)).ravel()))
decoded = over(np.linalg.norm(np.load("model/mean.npy") + a @ np.load("model/dictionary.npy"), axis=1))
rows = [json.loads(line) for line in open("model/texts.jsonl", encoding="utf-8", newline="\n")]
for table in [feather.read_table("out.arrow"), parquet.read_table("out.parquet")]:
    assert table.column_names == [*rows[0], "indices", "values"] and list(rows[0])[:2] == ["id", "text"]
    assert table.drop_columns(["indices", "values"]).to_pylist() == rows
    for name, want in [("indices", a.indices), ("values", a.data)]:
        lists = table[name].combine_chunks()
        assert (lists.flatten().to_numpy() == want).all() and (lists.offsets.to_numpy() == a.indptr).all()
for name, want in [("out", a), ("codes", codes), ("vectors", decoded)]:
    lines = open(name + ".jsonl", encoding="utf-8", newline="\n").read().split("\n")
    bulk = open(name + ".opensearch", encoding="utf-8", newline="\n").read().split("\n")
    assert len(lines) == len(rows) + 1 and lines[-1] == "" and len(bulk) == 2 * len(rows) + 1
    called = {}
    for i, r in enumerate(rows):
        got, action, document = json.loads(lines[i]), json.loads(bulk[2 * i]), json.loads(bulk[2 * i + 1])
        index, value = want.indices[want.indptr[i]:want.indptr[i + 1]], want.data[want.indptr[i]:want.indptr[i + 1]]
        assert got["indices"] == index.tolist() and np.allclose(got["values"], value, rtol=1e-6) and len(got["names"]) == len(index)
        assert {k: got[k] for k in r} == r and {k: document[k] for k in r} == r and action == {"index": {"_id": r["id"]}}
        features = document["features"]
        assert [int(k.split(" ")[0]) for k in features] == index.tolist() and np.allclose(list(features.values()), value, rtol=1e-6)
        assert all("." not in k for k in features)
        for k, n in zip(got["indices"], got["names"]):
            assert called.setdefault(k, n) == n
    assert called[7] == "seven. of 9" and "7 seven  of 9" in "".join(bulk)
    x, _ = load_svmlight_file(name + ".svmlight", n_features=64, zero_based=False)
    assert abs(x - want).max() < 1e-6
`, "scipy", "sklearn", "pyarrow")

	dir.MustRun(t, "train texts.parquet -o signed -k 64 --nonzeros 9 --epochs 1 --method A")
	before := dir.Tree(t)
	if code, _, stderr := dir.Run(t, "export signed -o new -f opensearch"); code != 2 || !strings.Contains(stderr, "use a model of method B") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	dir.Unchanged(t, before)
}

// Searching the exported codes has the recall of the command: by dot products of the query with the atoms and codes
// divided by the norms of their vectors, and by codes.
func TestRecall(t *testing.T) {
	dir := clitest.New(t)
	runPython(t, dir, writeTexts, "pyarrow")
	dir.MustRun(t, "train texts.parquet -o model -k 64 --nonzeros 9 --epochs 1 --max-words 1500")
	for _, normalize := range []string{"codes", "vectors"} {
		dir.MustRun(t, "export model -o "+normalize+".jsonl -f jsonl --normalize "+normalize)
	}
	found, _ := dir.MustRun(t, "recall texts.parquet model --json --max-words 1500 -k 4 --queries 1500")
	dir.Write(t, "recall.json", []byte(found))
	runPython(t, dir, `
import json, numpy as np, pyarrow.parquet as pq
x = np.stack(pq.read_table("texts.parquet")["embedding"].to_numpy(zero_copy_only=False))[:1500].astype("f8")
d = np.load("model/dictionary.npy").astype("f8")
def rows(name):
    a = np.zeros((len(x), len(d)))
    for i, line in enumerate(open(name, encoding="utf-8", newline="\n")):
        row = json.loads(line)
        a[i, row["indices"]] = row["values"]
    return a
def nearest(scores):
    np.fill_diagonal(scores, -np.inf)
    return np.argsort(-scores, axis=1, kind="stable")[:, :4]
unit = x / np.linalg.norm(x, axis=1, keepdims=True)
want = nearest(unit @ unit.T)
said = json.load(open("recall.json"))
assert (said["queries"], said["rows"], said["k"], said["dense"]["bytes"]) == (1500, 1500, 4, x.size * 4)
codes = rows("codes.jsonl")
assert said["models"][0]["bytes"] == 8 * np.count_nonzero(codes)
for name, scores in [("codes", codes @ codes.T), ("products", (x @ d.T) @ rows("vectors.jsonl").T)]:
    found = nearest(scores)
    recall = np.mean([len(set(f) & set(w)) / 4 for f, w in zip(found, want)])
    assert abs(recall - said["models"][0][name]["recall"]) < 1e-3, (name, recall, said) # some are nearly as near
    assert 0.2 < recall < 0.95
`)
}

// A search engine finds what the products of codes and questions say, with the rows as docs/guides/search.md
// gives them to it, and with weights of both signs.
func TestQdrant(t *testing.T) {
	dir := clitest.New(t)
	runPython(t, dir, writeTexts, "pyarrow")
	dir.MustRun(t, "train texts.parquet -o model -k 64 --nonzeros 9 --epochs 1 --max-words 600 --method A")
	dir.MustRun(t, "export model -o rows.jsonl -f jsonl --normalize vectors")
	runPython(t, dir, `
import json, numpy as np, pyarrow.parquet as pq
from qdrant_client import QdrantClient, models
x = np.stack(pq.read_table("texts.parquet")["embedding"].to_numpy(zero_copy_only=False))[:600]
d = np.load("model/dictionary.npy")
client = QdrantClient(":memory:")
client.create_collection("texts", vectors_config={}, sparse_vectors_config={"codes": models.SparseVectorParams()})
a, points = np.zeros((len(x), len(d))), []
for i, line in enumerate(open("rows.jsonl", encoding="utf8", newline="\n")):
    row = json.loads(line)
    a[i, row["indices"]] = row["values"]
    points.append(models.PointStruct(id=i, vector={"codes": models.SparseVector(indices=row["indices"], values=row["values"])}, payload={"id": row["id"]}))
client.upsert("texts", points)
for i in range(0, 600, 30):
    weights = d @ x[i]
    found = client.query_points("texts", using="codes", limit=10, with_payload=True,
        query=models.SparseVector(indices=list(range(len(weights))), values=weights.tolist())).points
    scores = a @ weights
    assert np.allclose([p.score for p in found], np.sort(scores)[::-1][:10], rtol=1e-5), i # rows can be equal
    assert np.allclose([scores[p.id] for p in found], [p.score for p in found], rtol=1e-5), i
    assert [p.payload["id"] for p in found] == [str(p.id) for p in found], i
`, "pyarrow", "qdrant_client")
}
