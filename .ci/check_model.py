"""Reads a model with NumPy and SciPy alone, and recomputes its metrics.

usage: check_model.py VECTORS.txt.gz MODEL
"""

import gzip
import json
import sys

import numpy as np
import scipy.sparse

vectors, model = sys.argv[1:]
with gzip.open(vectors, "rt", encoding="utf8", newline="\n") as f:
    rows = [line.split(" ") for line in f]
# Not splitlines: words may contain Unicode's line breaks.
words = open(model + "/words.txt", encoding="utf8", newline="\n").read().split("\n")[:-1]
assert words == [row[0] for row in rows], "words.txt"

x = np.array([row[1:] for row in rows], dtype=np.float64)
a = scipy.sparse.load_npz(model + "/codes.npz").astype(np.float64)
d = np.load(model + "/dictionary.npy").astype(np.float64)
info = json.load(open(model + "/model.json", encoding="utf8"))
training, last = info["training"]["recipe"], dict(info["training"]["epochs"][-1], **info["encoding"])
if training.get("center", True):
    x = x - np.load(model + "/mean.npy")
if training["method"] == "B":
    assert (a.data > 0).all(), "negative codes"

error = ((x - a @ d) ** 2).sum(axis=1).mean()
l1 = abs(a).sum() / len(words)
metrics = {
    "error": error,
    "l1": l1,
    "objective": error + last.get("lambda", training["lambda"]) * l1 + training.get("tau", 0) * (d**2).sum() / len(words),
    "sparsity": 1 - a.nnz / (a.shape[0] * a.shape[1]),
    "atom_norm": np.linalg.norm(d, axis=1).mean(),
    "unused_atoms": (a.getnnz(axis=0) == 0).sum(),
}
for name, want in metrics.items():
    # Training rounds residuals to float32 before it sums them.
    assert np.isclose(last[name], want, rtol=1e-5), f"{name} in model.json differs from the files (got {last[name]}, want {want})"
print("the metrics of model.json agree with the files:", {k: round(float(v), 4) for k, v in metrics.items()})
