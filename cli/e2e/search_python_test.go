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
