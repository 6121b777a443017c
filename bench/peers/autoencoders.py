#!/usr/bin/env python3
"""Compares sparse autoencoders with our codes, on texts with embeddings and classes.

usage: autoencoders.py TEXTS.parquet [MODEL ...] [--nonzeros N] [--atoms K] [--epochs E] [--seed S]

TEXTS is a table with the columns embedding, task, split (train, dev and test) and label. The
autoencoders come from PyPI's "overcomplete" 0.3.0 (Fel et al.), which requires matplotlib before
3.9: TopK, BatchTopK and relaxed archetypal. They are trained in PyTorch by Adam, with a
learning rate that decays to zero, in batches of 512. x is centred and scaled to a mean norm
of 1. MODEL is a directory of our model of the same rows.

NumPy and scikit-learn measure all of them in the same way. The output is a Markdown table:

  nonzeros    of a row, on average
  error       Σ‖x − μ − aD‖² / Σ‖x − μ‖², with the mean μ of x
  codes       recall of the ten nearest rows, by cosines of codes, of 500 rows
  products    the same, by the scores (Dx)·a / ‖μ + aD‖
  a task      accuracy of a logistic regression on codes of norm 1; C is the value of 1, 10, 100 and
              1000 that is best on a tenth of the training rows
  seconds     processor time of learning

If a module is missing, the script names it and exits with 3.
"""

import argparse
import sys
import time

try:
    import numpy as np
    import pyarrow.parquet as pq
    import scipy.sparse as sp
    import torch
    from overcomplete.sae import BatchTopKSAE, RATopKSAE, TopKSAE
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.linear_model import LogisticRegression
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

BATCH, RATE, POINTS = 512, 5e-4, 1500

parser = argparse.ArgumentParser()
parser.add_argument("texts")
parser.add_argument("models", nargs="*")
parser.add_argument("--nonzeros", type=int, default=115)
parser.add_argument("--atoms", type=int, default=3840)
parser.add_argument("--epochs", type=int, default=59)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()

table = pq.read_table(args.texts)
x = np.stack(table["embedding"].to_numpy(zero_copy_only=False)).astype(np.float32)
task, split, label = (np.array(table[name].to_pylist()) for name in ("task", "split", "label"))
mean = x.mean(0)
scale = np.linalg.norm(x - mean, axis=1).mean()
rng = np.random.default_rng(1)
questions = rng.choice(len(x), min(500, len(x)), replace=False)


def unit(a):
    """Returns the rows of a sparse matrix, divided by their norms."""
    norms = np.sqrt(np.asarray(a.multiply(a).sum(1)).ravel())
    return sp.diags_array(1 / np.maximum(norms, 1e-30)) @ a


def nearest(scores):
    scores[np.arange(len(questions)), questions] = -np.inf
    return np.argpartition(-scores, 10, axis=1)[:, :10]


dense = x / np.linalg.norm(x, axis=1, keepdims=True)
truth = nearest(dense[questions] @ dense.T)


def recall(scores):
    return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(nearest(scores), truth)])


def accuracy(a, name):
    a = sp.csr_array(a)
    train = np.flatnonzero((task == name) & (split == "train"))
    test = np.flatnonzero((task == name) & (split == "test"))
    order = np.random.default_rng(2).permutation(train)
    held, rest = order[: len(order) // 10], order[len(order) // 10 :]
    fit = lambda rows, c: LogisticRegression(C=c, max_iter=2000).fit(a[rows], label[rows])
    best = max([1, 10, 100, 1000], key=lambda c: fit(rest, c).score(a[held], label[held]))
    return 100 * fit(train, best).score(a[test], label[test])


names = sorted(set(task))
print("| | nonzeros | error | codes | products | " + " | ".join(names) + " | seconds |")
print("|---|" + "---:|" * (5 + len(names)))


def report(name, a, d, mu, seconds):
    a = sp.csr_array(a).astype(np.float64)
    y = mu + a @ d
    error = ((x - y) ** 2).sum() / ((x - mean) ** 2).sum()
    codes = unit(a)
    by_codes = recall((codes[questions] @ codes.T).toarray())
    products = recall(np.ascontiguousarray((a @ (d @ x[questions].T)).T) / np.linalg.norm(y, axis=1))
    scores = " | ".join(f"{accuracy(codes, n):.1f}" for n in names)
    print(f"| {name} | {a.nnz / len(x):.0f} | {error:.3f} | {by_codes:.3f} | {products:.3f} | {scores} | {seconds} |", flush=True)


print(f"| dense | {x.shape[1]} | 0 | 1 | 1 | " + " | ".join(f"{accuracy(sp.csr_array(dense), n):.1f}" for n in names) + " | |")
for path in args.models:
    d = np.load(path + "/dictionary.npy")
    try:
        mu = np.load(path + "/mean.npy")
    except FileNotFoundError:
        mu = np.zeros(d.shape[1], np.float32)
    report(path.rstrip("/").split("/")[-1], sp.load_npz(path + "/codes.npz"), d, mu, "")

inputs = torch.tensor((x - mean) / scale)
points = MiniBatchKMeans(min(POINTS, len(x)), random_state=args.seed, n_init=1).fit(inputs.numpy()).cluster_centers_
for name, make in {
    "TopK": lambda: TopKSAE(x.shape[1], args.atoms, top_k=args.nonzeros),
    "BatchTopK": lambda: BatchTopKSAE(x.shape[1], args.atoms, top_k=args.nonzeros * BATCH),
    "relaxed archetypal": lambda: RATopKSAE(x.shape[1], args.atoms, torch.tensor(points), top_k=args.nonzeros),
}.items():
    torch.manual_seed(args.seed)
    model = make()
    steps = args.epochs * (len(x) // BATCH)  # whole batches
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    rate = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: min(1, 5 * (1 - step / steps)))
    start = time.process_time()
    model.train()
    for _ in range(args.epochs):
        for rows in torch.randperm(len(x))[: len(x) // BATCH * BATCH].view(-1, BATCH):
            batch = inputs[rows]
            _, _, decoded = model(batch)
            loss = ((decoded - batch) ** 2).sum(1).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            rate.step()
    seconds = time.process_time() - start
    model.eval()
    with torch.no_grad():
        codes = sp.vstack([sp.csr_array(model.encode(b)[1].numpy()) for b in inputs.split(BATCH)])
        d = model.get_dictionary().numpy() * scale
    report(name, codes, d, mean, f"{seconds:.0f}")
