#!/usr/bin/env python3
"""Writes many vectors of texts, mixed from a few, to measure scale.

usage: mixtures.py ROWS FOLDER TABLE.parquet... [--shards 20] [--format parquet|npy|text] [--seed 1]

The tables have columns text, label and embedding. Row i is w·x + (1 − w)·y + noise at norm 1, where x and
y are random rows of one table, w is uniform from 0.6 to 1, and the noise is Gaussian with an expected norm
of 0.25. Its text takes a share w of x's words and 1 − w of y's. It alternates three words of each, so that few
passages recur. It has the label of x, and the letter r with the row number as its id. Only Parquet has texts
and labels.
"""

import argparse
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TURN = 3  # words of a text before the other continues
NOISE = 0.25


def mix_texts(x, y, w):
    x, y = x[: round(w * len(x))], y[: round((1 - w) * len(y))]
    words = []
    for at in range(0, max(len(x), len(y)), TURN):
        words += x[at : at + TURN] + y[at : at + TURN]
    return " ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int)
    parser.add_argument("folder")
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--shards", type=int, default=20)
    parser.add_argument("--format", choices=["parquet", "npy", "text"], default="parquet")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    tables = [pq.read_table(t, columns=["text", "label", "embedding"]) for t in args.tables]
    sizes = [t.num_rows for t in tables]
    starts = np.cumsum([0] + sizes[:-1])
    parts = pa.concat_tables(tables)
    words = [text.split() for text in parts["text"].to_pylist()]
    labels = parts["label"].to_pylist()
    vectors = parts["embedding"].combine_chunks().values.to_numpy().reshape(len(words), -1)
    dim = vectors.shape[1]
    table_of = np.repeat(np.arange(len(sizes)), sizes)

    os.makedirs(args.folder)
    bounds = [args.rows * s // args.shards for s in range(args.shards + 1)]
    for shard, (lo, hi) in enumerate(zip(bounds, bounds[1:])):
        rng = np.random.default_rng([args.seed, shard])
        n = hi - lo
        x = rng.integers(len(words), size=n)
        y = starts[table_of[x]] + rng.integers(np.array(sizes)[table_of[x]])
        w = rng.uniform(0.6, 1, size=(n, 1)).astype(np.float32)
        rows = w * vectors[x] + (1 - w) * vectors[y]
        rows += NOISE / np.sqrt(dim) * rng.standard_normal(rows.shape, dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        path = os.path.join(args.folder, f"part-{shard:05d}.")
        if args.format == "npy":
            np.save(path + "npy", rows)
        elif args.format == "text":
            with open(path + "txt", "w") as file:
                for i, row in enumerate(rows, lo):
                    file.write(f"r{i} " + " ".join(map("%.6f".__mod__, row.tolist())) + "\n")
        else:
            pq.write_table(pa.table({
                "id": [f"r{i}" for i in range(lo, hi)],
                "text": [mix_texts(words[a], words[b], share) for a, b, share in zip(x, y, w[:, 0])],
                "label": [labels[a] for a in x],
                "embedding": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), dim),
            }), path + "parquet")


if __name__ == "__main__":
    main()
