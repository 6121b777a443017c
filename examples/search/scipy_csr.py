"""Search the texts of a model with SciPy. Install pyarrow, too."""

from itertools import islice

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp
from overcomplete_vectors import Model

model = Model.load("model")
dense = np.stack(pq.read_table("sentences.parquet")["embedding"].to_numpy(zero_copy_only=False))
dense /= np.linalg.norm(dense, axis=1, keepdims=True)
rows = list(model.rows())
starts = np.cumsum([0] + [len(row["indices"]) for row in rows])
values, indices = (np.concatenate([row[name] for row in rows]) for name in ("values", "indices"))
index = sp.csr_array((values, indices, starts), shape=(len(rows), rows[0]["dimensions"]))
columns = index.tocsc()
live = np.ones(len(rows), bool)


def search(x, n=10, rerank="dense", where=lambda row: True, **steering):
    dimensions, weights = model.query(x, **steering)
    scores = columns[:, dimensions] @ weights
    best = list(islice((i for i in np.argsort(-scores) if live[i] and where(rows[i])), 100))
    if rerank == "products":  # by all weights
        dimensions, weights = model.query(x, index.shape[1], signed=True, **steering)
        scores[best] = index[best][:, dimensions] @ weights
    elif rerank == "dense":
        scores[best] = dense[best] @ x
    return [rows[i]["id"] for i in sorted(best, key=lambda i: -scores[i])[:n]]


def explain(x, id, n=3):
    row, weights = rows[model.row(id)], dict(zip(*model.query(x)))
    parts = [(model.label(k, v), v * weights.get(k, 0)) for k, v in zip(row["indices"], row["values"])]
    return sorted(parts, key=lambda part: -part[1])[:n]


def delete(id):
    live[model.row(id)] = False
