#!/usr/bin/env python3
"""Times scikit-learn's exact lasso on the problem that "overcomplete encode --exact" solves.

usage: sklearn_lasso.py MODEL VECTORS.txt WORDS

It encodes the first WORDS rows of GloVe text with MODEL's dictionary, mean and λ on one
core. It prints the mean objective and the processor time per word, which other work on
the machine affects less than wall-clock time. Compare with:

    time overcomplete encode MODEL VECTORS.txt -o OUT --exact --workers 1
"""

import json
import os
import sys
import time

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[library + "_NUM_THREADS"] = "1"

import numpy as np
from sklearn.decomposition import sparse_encode

model, vectors, words = sys.argv[1], sys.argv[2], int(sys.argv[3])
training = json.load(open(model + "/model.json", encoding="utf8"))["training"]["recipe"]
d = np.load(model + "/dictionary.npy").astype(np.float64)
with open(vectors, encoding="utf8", newline="\n") as f:
    x = np.array([line.split(" ")[-d.shape[1] :] for line, _ in zip(f, range(words))], dtype=np.float64)
if training["center"]:
    x -= np.load(model + "/mean.npy")
start = time.process_time()
# scikit-learn's objective is ½‖x − aD‖² + α‖a‖₁.
a = sparse_encode(
    x, d, algorithm="lasso_cd", alpha=training["lambda"] / 2, max_iter=1_000_000, positive=training["method"] == "B"
)
seconds = time.process_time() - start
objective = ((x - a @ d) ** 2).sum(axis=1) + training["lambda"] * abs(a).sum(axis=1)
print(f"{1000 * seconds / len(x):.2f} ms a word, mean objective {objective.mean():.6f}")
