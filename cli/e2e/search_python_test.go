package e2e

import (
	"testing"

	"overcomplete/testonly/clitest"
)

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
	exportAll(t, dir, "arrow", "parquet")
	for _, format := range []string{"jsonl", "opensearch"} {
		dir.MustRun(t, "export model -o out."+format+" -f "+format)
		dir.MustRun(t, "export model -o normalized."+format+" --normalize -f "+format)
	}
	dir.MustRun(t, "train texts.parquet -o signed --topics 0 -k 64 --nonzeros 9 --epochs 1 --method A --id-column doc")
	dir.MustRun(t, "export signed -o signed.opensearch -f opensearch")
	runPython(t, dir, `
import json, numpy as np, scipy.sparse as sp
from pyarrow import feather, parquet
a = sp.load_npz("model/codes.npz")
a = a.tocsr()
over = lambda norms: sp.csr_array((a.data / np.repeat(norms, np.diff(a.indptr)), a.indices, a.indptr), a.shape)
decoded = over(np.linalg.norm(np.load("model/mean.npy") + a @ np.load("model/dictionary.npy"), axis=1))
rows = [json.loads(line) for line in open("model/texts.jsonl", encoding="utf-8", newline="\n")]
for table in [feather.read_table("out.arrow"), parquet.read_table("out.parquet")]:
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

// In NumPy, exported rows and query weights have the recall that the command reports. A search engine gives the same scores
// for weights of both signs.
func TestRecall(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	runPython(t, dir, writeTexts)
	for method, all := range map[string]string{"A": "--weights 64", "B": "--weights 64 --signed"} {
		dir.MustRun(t, "train texts.parquet -o "+method+" -k 64 --nonzeros 9 --epochs 1 --max-rows 500 --method "+method)
		dir.MustRun(t, "export "+method+" -o rows"+method+".jsonl -f jsonl --normalize")
		for name, flags := range map[string]string{"products": all, "largest": "--weights 12"} {
			queries, _ := dir.MustRun(t, "query "+method+" texts.parquet --max-rows 500 "+flags)
			dir.Write(t, name+method+".jsonl", []byte(queries))
		}
		found, _ := dir.MustRun(t, "recall texts.parquet "+method+" --json --max-rows 500 -k 4 --number 500 --weights 12")
		dir.Write(t, "recall"+method+".json", []byte(found))
	}
	runPython(t, dir, `
import json, numpy as np, pyarrow.parquet as pq
from qdrant_client import QdrantClient, models
x = np.stack(pq.read_table("texts.parquet")["embedding"].to_numpy(zero_copy_only=False))[:500].astype("f8")
def rows(name):
    a = np.zeros((len(x), 64))
    for i, line in enumerate(open(name, encoding="utf8", newline="\n")):
        row = json.loads(line)
        assert row["id"] == str(i) and row["dimensions"] == 64
        a[i, row["indices"]] = row["values"]
    return a
def nearest(scores):
    np.fill_diagonal(scores, -np.inf)
    return np.argsort(-scores, axis=1, kind="stable")[:, :4]
unit = x / np.linalg.norm(x, axis=1, keepdims=True)
want = nearest(unit @ unit.T)
for method in ("A", "B"):
    said = json.load(open(f"recall{method}.json"))
    assert (said["queries"], said["rows"], said["k"], said["bytes"]) == (500, 500, 4, x.size * 4)
    codes = rows(f"rows{method}.jsonl")
    assert said["models"][0]["bytes"] == 8 * np.count_nonzero(codes)
    for name in ("products", "largest"):
        found = nearest(rows(name + method + ".jsonl") @ codes.T)
        recall = np.mean([len(set(f) & set(w)) / 4 for f, w in zip(found, want)])
        assert abs(recall - said["models"][0][name]["recall"]) < 1e-3, (name, recall, said) # some are nearly as near
        assert 0.2 < recall < 0.95
    weights = rows(f"products{method}.jsonl")
    assert np.allclose(weights, unit @ np.load(method + "/dictionary.npy").T, atol=1e-5)
    sparse = lambda v: models.SparseVector(indices=np.flatnonzero(v).tolist(), values=v[v != 0].tolist())
    client = QdrantClient(":memory:")
    client.create_collection("texts", vectors_config={}, sparse_vectors_config={"codes": models.SparseVectorParams()})
    client.upsert("texts", [models.PointStruct(id=i, vector={"codes": sparse(a)}, payload={}) for i, a in enumerate(codes[:300])])
    for i in range(0, 300, 30):
        found = client.query_points("texts", using="codes", limit=10, query=sparse(weights[i])).points
        scores = codes[:300] @ weights[i]
        assert np.allclose([p.score for p in found], np.sort(scores)[::-1][:10], rtol=1e-5), i # rows can be equal
        assert np.allclose([scores[p.id] for p in found], [p.score for p in found], rtol=1e-5), i
`)
}
