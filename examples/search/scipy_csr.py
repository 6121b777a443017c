"""Search the texts of a model with SciPy. Install pyarrow, too."""

from itertools import islice
import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp
from overcomplete_vectors import Model

model, rows, dense = Model.load("model"), {}, {}

def add(encoded, file):  # rows of the model, or of a directory that was encoded with it
    global row_ids, index, columns
    for row, x in list(zip(model.rows(encoded), pq.read_table(file)["embedding"].to_numpy(), strict=True)):  # a list: lengths are checked before anything changes
        rows[row["id"]], dense[row["id"]] = row, x / (np.linalg.norm(x) or 1)
    row_ids, starts = list(rows), np.cumsum([0] + [len(row["indices"]) for row in rows.values()])
    values, indices = (np.concatenate([row[name] for row in rows.values()]) for name in ("values", "indices"))
    index = sp.csr_array((values, indices, starts), shape=(len(rows), len(model.dictionary)))
    columns = index.tocsc()

def search(x, n=10, rerank="dense", where=lambda row: True, **steering):
    dimensions, weights = model.query(x, **steering)
    scores = columns[:, dimensions] @ weights
    best = list(islice((i for i in np.argsort(-scores) if row_ids[i] in rows and where(rows[row_ids[i]])), 100))
    if rerank == "products":  # by all weights
        dimensions, weights = model.query(x, index.shape[1], signed=True, **steering)
        scores[best] = index[best][:, dimensions] @ weights
    elif rerank == "dense":
        scores[best] = [dense[row_ids[i]] @ x for i in best]
    return [row_ids[i] for i in sorted(best, key=lambda i: -scores[i])[:n]]

def explain(x, id, n=3):
    row, weights = rows[id], dict(zip(*model.query(x)))
    parts = [(model.label(k, v), v * weights.get(k, 0)) for k, v in zip(row["indices"], row["values"])]
    return sorted(parts, key=lambda part: -part[1])[:n]

def delete(id):
    del rows[id]

add("model", "sentences.parquet")
