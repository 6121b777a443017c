#!/usr/bin/env python3
"""Implements the encoding of package encode in PyTorch, for comparison, compiled and in a CUDA graph.

usage: torch_fista.py VECTORS.npy [flags]

It encodes blocks of rows with a dictionary of random unit rows. It runs FISTA with the falling
λ, in floats instead of 8-bit integers, keeps the largest values, polishes them on their support,
and computes the losses. It measures the kernels alone, and with copies from and to page-locked
memory of the host, which overlap the kernels of another block. On a GPU it measures TF32 and
float16, each after a warm-up, which includes compilation.

A mode is graph, eager, or the name of a mode of torch.compile. The products are cuBLAS's.
Results are lines of Go's benchmark format, like the output of "bench gpu encode". An operation
is a row. error is the mean loss of all rows with copies, and of one block without copies.
Without PyTorch or a GPU, the script prints the reason and exits with 3.
"""

import argparse
import math
import platform
import sys
import time

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"torch_fista.py: skipped: {error}", file=sys.stderr)
    sys.exit(3)


def fista(Y, B, BD, thresholds, decode, correlate):
    """Iterates from the codes B, whose product with D is BD.

    A is the previous B. The product of Z = B + m(B − A) with D is the same combination of products,
    so that Z needs no matrix in memory.
    """
    A, AD, q, m = B, BD, 1.0, 0.0
    for threshold in thresholds:
        U = B + m * (B - A) + correlate(Y - (BD + m * (BD - AD)))
        A, AD = B, BD
        B = U - U.clamp(-threshold, threshold)
        BD = decode(B)
        q, before = (1 + math.sqrt(1 + 4 * q * q)) / 2, q
        m = (before - 1) / q
    return B, BD


def encoder(D, mean, lam, o):
    """Returns a function from rows to the indices and values of their codes, and their losses."""
    step = 1 / (2.04 * torch.linalg.matrix_norm(D.cpu(), 2).item() ** 2)
    aligned = torch.nn.ZeroPad2d((0, -D.shape[1] % 8, 0, 0))  # cuBLAS is slower with float16 rows of other lengths
    D = aligned(D.half() if o.precision == "fp16" else D)
    W = 2 * step * D.T
    thresholds = [step * lam * (1 if t == o.steps - 1 else max(1, 10 ** (1 - t / (0.8 * o.steps)))) for t in range(o.steps)]

    def encode(X):
        Y = aligned((X - mean).to(D.dtype))
        B, _ = fista(Y, 0.0, 0.0, thresholds, lambda B: B @ D, lambda R: R @ W)
        index = B.abs().topk(o.nonzeros, sorted=False).indices
        dense = torch.zeros_like(B)

        def decode(values):
            return dense.scatter(1, index, values) @ D

        B = B.gather(1, index)
        B, BD = fista(Y, B, decode(B), [0.0] * 5, decode, lambda R: (R @ W).gather(1, index))
        return index.int(), B, (Y - BD).float().square().sum(1)

    return encode


class Slot:
    """A block of rows on the device, with its stream and its results."""

    def __init__(self, encode, rows, mode):
        self.encode, self.rows, self.graph = encode, rows.clone(), None
        self.stream = torch.cuda.Stream() if rows.is_cuda else None
        synchronize(rows)
        for _ in range(2):  # the first run compiles
            self.run()
        synchronize(rows)
        if mode == "graph":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                self.results = encode(self.rows)
            self.graph = graph

    def run(self, source=None, targets=()):
        """Queues the encoding of a block, and the copies of its rows and results."""
        with torch.cuda.stream(self.stream):
            if source is not None:
                self.rows.copy_(source, non_blocking=True)
            if self.graph is None:
                self.results = self.encode(self.rows)
            else:
                self.graph.replay()
            for target, result in zip(targets, self.results):
                target.copy_(result, non_blocking=True)


def synchronize(X):
    if X.is_cuda:
        torch.cuda.synchronize()


def measure(X, D, mean, lam, o, mode):
    """Yields whether copies are included, the seconds and the mean loss. X is on the host."""
    encode = encoder(D, mean, lam, o)
    if mode != "eager":
        encode = torch.compile(encode, fullgraph=True, dynamic=False, **({} if mode in ("default", "graph") else {"mode": mode}))
    slots = [Slot(encode, X[: o.block].to(D.device), mode) for _ in range(2)]
    results = [torch.empty(len(X), *r.shape[1:], dtype=r.dtype, pin_memory=D.is_cuda) for r in slots[0].results]
    for copies in (False, True):
        for repeat in range(1 + o.repeats):  # the first repeat warms up
            synchronize(D)
            start = time.perf_counter()
            for i in range(0, len(X), o.block):
                b = slice(i, i + o.block)
                slot = slots[i // o.block % 2 if copies else 0]
                slot.run(*((X[b], [r[b] for r in results]) if copies else ()))
            synchronize(D)
            seconds = time.perf_counter() - start
            if repeat > 0:
                losses = results[2] if copies else slots[0].results[2]
                yield copies, seconds, losses.double().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors")
    parser.add_argument("--atoms", type=int, default=3000)
    parser.add_argument("--nonzeros", type=int, help="of a code; by default 3 %% of the atoms")
    parser.add_argument("--lambda", type=float, default=0.04, dest="lam", help="relative to the root mean square norm of rows minus their mean")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--block", type=int, default=8192, help="rows of a block; rows of a smaller last block are left out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--modes", default="graph", help="such as graph,max-autotune, which takes minutes to compile")
    o = parser.parse_args()
    if o.device.startswith("cuda") and not torch.cuda.is_available():
        print(f"torch_fista.py: skipped: PyTorch {torch.__version__} finds no GPU", file=sys.stderr)
        sys.exit(3)
    torch.set_float32_matmul_precision("high")  # TF32
    X = torch.from_numpy(np.load(o.vectors))
    o.nonzeros = o.nonzeros or max(1, round(0.03 * o.atoms))
    o.block = min(o.block, len(X))
    X = X[: len(X) // o.block * o.block]
    mean = X.mean(0)
    lam = o.lam * (X - mean).square().sum(1).mean().sqrt().item()
    D = torch.randn(o.atoms, X.shape[1], generator=torch.Generator().manual_seed(o.seed))
    D = (D / D.norm(dim=1, keepdim=True)).to(o.device)
    mean, on_gpu = mean.to(o.device), D.is_cuda
    if on_gpu:
        X = X.pin_memory()
    print("gpu:", torch.cuda.get_device_name(D.device) if on_gpu else platform.processor() or "CPU")
    print(f"torch: {torch.__version__}", flush=True)
    failed = False
    for mode in o.modes.split(","):
        for o.precision in ("tf32", "fp16") if on_gpu else ("fp32",):
            name = f"TorchEncoding/mode={mode}/precision={o.precision}/block={o.block}"
            try:
                for copies, seconds, error in measure(X, D, mean, lam, o, mode):
                    print(f"Benchmark{name}/copies={str(copies).lower()}/V={len(X)}/L={X.shape[1]}/K={o.atoms} {len(X)} {1e9 * seconds / len(X):.1f} ns/op "
                          f"{len(X) / seconds:.0f} rows/s {error:.6g} error", flush=True)
            except Exception as error:  # one mode's failure must not lose the others
                failed = True
                print(f"torch_fista.py: {name}: {type(error).__name__}: {error}".splitlines()[0], file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    with torch.no_grad():
        main()
