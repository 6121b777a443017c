"""Runs scikit-learn's MiniBatchDictionaryLearning until it reaches the objective of a model.

usage: dictionary_learning.py MODEL VECTORS.npy SECONDS

MODEL is the directory that "overcomplete paper train" wrote for VECTORS. The script
stops when it reaches the model's objective, or after SECONDS. Only learning is timed, and a
started mini-batch is finished. It prints a JSON object.

The objective of both is, per row,

    (Σ‖x − aD‖² + λ Σ|a|)/n + τ‖D‖²/V

over the same n rows: 100 to 199 evenly spaced rows, or all if there are fewer. Encoding all
rows takes scikit-learn minutes.

scikit-learn minimises ½‖x − aD‖² + α|a| with atoms of norm at most 1. Our atoms have any
norm, and long atoms make |a| small, so scikit-learn could not reach our objective. The same
problem for atoms of norm c, the mean norm of our atoms, has α = λ/2c. The script compares
scikit-learn's atoms times c, and its codes divided by c.
"""

import json
import os
import sys
import time
import warnings

import numpy as np
import scipy.sparse
import sklearn
from sklearn.decomposition import MiniBatchDictionaryLearning, sparse_encode

warnings.simplefilter("ignore")  # warnings that coding did not converge
folder, vectors, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
recipe = json.load(open(folder + "/model.json", encoding="utf8"))["training"]["recipe"]
lam, tau = recipe["lambda"], recipe["tau"]
codes = scipy.sparse.load_npz(folder + "/codes.npz").astype(np.float64)
dictionary = np.load(folder + "/dictionary.npy").astype(np.float64)
x = np.load(vectors).astype(np.float64)
if recipe.get("center"):
    x -= np.load(folder + "/mean.npy")

sample = slice(None, None, max(1, len(x) // 100))


def objective(a, d):
    loss = ((x[sample] - a @ d) ** 2).sum()
    return (loss + lam * abs(a).sum()) / a.shape[0] + tau * (d**2).sum() / len(x)


ours = objective(codes[sample], dictionary)
c = np.linalg.norm(dictionary, axis=1).mean()
alpha = lam / (2 * c)
cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


class Stop(Exception):
    pass


def after_batch(state):
    """Measures the objective. fit calls it with its variables after each mini-batch. Its time doesn't count."""
    global start
    result["seconds"] += time.perf_counter() - start
    result["words"] += len(state["X_batch"])
    atoms = state["dictionary"]
    theirs = objective(sparse_encode(x[sample], atoms, algorithm="lasso_lars", alpha=alpha, n_jobs=cores) / c, atoms * c)
    result["objective"], result["reached"] = theirs, bool(theirs <= ours)
    if result["reached"] or result["seconds"] >= limit:
        raise Stop
    start = time.perf_counter()


result = {"program": f"scikit-learn {sklearn.__version__}", "seconds": 0.0, "words": 0, "ours": ours}
learner = MiniBatchDictionaryLearning(
    len(dictionary), alpha=alpha, max_iter=10**6, tol=0, max_no_improvement=None, random_state=1, n_jobs=cores, callback=after_batch
)
start = time.perf_counter()
try:
    learner.fit(x)
except Stop:
    pass
json.dump(result, sys.stdout)
