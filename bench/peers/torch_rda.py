#!/usr/bin/env python3
"""Implements the training of package train in PyTorch, for comparison: eager, compiled, and
compiled with a whole epoch in one CUDA graph. It also measures the three products alone.

usage: torch_rda.py VECTORS.npy [flags]

It computes the same passes as "bench gpu", on the same vectors: the dictionary pass in
micro-batches with per-word squared gradients and the line search, and the code pass
with dual averaging and damping. On a GPU products are TF32. It measures the seconds of the
passes until the device is done, after two warm-up epochs, which include compilation. Unlike
"bench gpu", it doesn't compute the metrics.

A mode is eager, the name of a mode of torch.compile, or graph. The products are cuBLAS's.
Results are lines of Go's benchmark format, like the output of "bench gpu". Without PyTorch or
a GPU, the script prints the reason and exits with 3.
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
    print(f"torch_rda.py: skipped: {error}", file=sys.stderr)
    sys.exit(3)

EPSILON = 1e-30


def dictionary_step(X, A, D, H, sums, tau, rate):
    """Runs a step on a batch. D, H and sums change in place. sums holds the loss and the number of shortened steps."""
    words = X.shape[0]
    R = X - A @ D
    M = A.T @ R
    N = (A * A).T @ (R * R)
    H += torch.clamp(4 * N - 8 * tau * D * M + 4 * tau * tau * words * D * D, min=0)
    P = rate * (2 * tau * words * D - 2 * M) * torch.rsqrt(H + EPSILON)
    W = A @ P
    WW = (W * W).sum()
    alpha = torch.where(WW > 0, torch.clamp(-(W * R).sum() / WW, 0, 1), torch.ones_like(WW))
    D -= alpha * P
    sums += torch.stack([(R * R).sum(), (alpha < 1).to(sums.dtype)])


def code_step(X, A, S, Q, D, threshold, rate, nonnegative: bool):
    """Computes new codes of some words. A, S and Q change in place. threshold is tλ, a tensor."""
    G = -2 * (X - A @ D) @ D.T
    S += G
    Q += G * G
    U = S.abs() - threshold
    codes = torch.where(U > 0, -torch.sign(S) * rate * U * torch.rsqrt(Q + EPSILON), torch.zeros_like(S))
    if nonnegative:
        codes = torch.clamp(codes, min=0)
    P = codes @ D
    PP = (P * P).sum(1)
    beta = torch.where(PP > 0, (X * P).sum(1) / PP, torch.ones_like(PP))
    A.copy_(codes * torch.clamp(beta, 0, 1)[:, None])


def batches(words, o):
    """Returns the number of words in a dictionary step and in a code step."""
    # Code steps have equal sizes, because another size would be compiled anew.
    return max(1, math.ceil(words / o.dictionary_steps)), math.ceil(words / math.ceil(words / o.code_batch))


def steps(mode):
    """Returns the two steps, compiled if the mode requires it."""
    if mode == "eager":
        return dictionary_step, code_step
    options = {} if mode in ("default", "graph") else {"mode": mode}
    return [torch.compile(step, dynamic=False, **options) for step in (dictionary_step, code_step)]


class Training:
    def __init__(self, X, o, steps, compiled=None):
        """compiled is None, or the set of batch sizes whose steps are compiled. An epoch of such a size runs as a graph."""
        self.X, self.o = X, o
        self.dictionary_step, self.code_step = steps
        self.compiled, self.graph = compiled, None
        words, dim = X.shape
        generator = torch.Generator(X.device).manual_seed(o.seed)

        def uniform(rows, columns, scale):
            return torch.empty(rows, columns, device=X.device).uniform_(-scale, scale, generator=generator)

        self.D = uniform(o.atoms, dim, 0.6 / math.sqrt(dim + o.atoms))
        self.A = uniform(words, o.atoms, 0.6 / math.sqrt(o.atoms + 1))
        self.S, self.Q, self.H = torch.zeros_like(self.A), torch.zeros_like(self.A), torch.zeros_like(self.D)
        self.sums, self.threshold = torch.zeros(2, device=X.device), torch.zeros((), device=X.device)
        self.batch, self.code_batch = batches(words, o)

    def passes(self):
        """Queues an epoch's work."""
        o, words = self.o, len(self.X)
        self.sums.zero_()
        for i in range(0, words, self.batch):
            b = slice(i, i + self.batch)
            self.dictionary_step(self.X[b], self.A[b], self.D, self.H, self.sums, o.tau, o.rate)
        for i in range(0, words, self.code_batch):
            b = slice(i, i + self.code_batch)
            self.code_step(self.X[b], self.A[b], self.S[b], self.Q[b], self.D, self.threshold, o.rate, o.method == "B")

    def epoch(self, t):
        """Trains one epoch and returns its seconds, except for the capture of a graph."""
        if self.compiled and self.batch in self.compiled and self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):  # records, but computes nothing yet
                self.passes()
        self.threshold.fill_(t * self.o.lam)
        synchronize(self.X)
        start = time.perf_counter()
        if self.graph is None:
            self.passes()
            if self.compiled is not None:
                self.compiled.add(self.batch)
        else:
            self.graph.replay()
        shortened = self.sums[1].item()  # waits for the device
        synchronize(self.X)
        seconds = time.perf_counter() - start
        if 10 * shortened > math.ceil(len(self.X) / self.batch):
            self.batch = max(1, self.batch // 2)
            self.graph = None  # it has the old batch size
        return seconds

    def metrics(self):
        """Returns error, objective and sparsity, computed with products in full precision."""
        o, words = self.o, len(self.X)
        precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        error = l1 = zeros = 0
        for i in range(0, words, self.code_batch):
            b = slice(i, i + self.code_batch)
            R = self.X[b] - self.A[b] @ self.D
            error += (R * R).sum(dtype=torch.float64).item()
            l1 += self.A[b].abs().sum(dtype=torch.float64).item()
            zeros += (self.A[b] == 0).sum().item()
        torch.set_float32_matmul_precision(precision)
        norm = (self.D * self.D).sum(dtype=torch.float64).item()
        return {"error": error / words, "objective": (error + o.lam * l1 + o.tau * norm) / words,
                "sparsity": zeros / self.A.numel()}


def synchronize(X):
    if X.is_cuda:
        torch.cuda.synchronize()


def measure(X, o, mode):
    how = steps(mode), set() if mode == "graph" else None
    warm = Training(X, o, *how)
    for t in (1, 2):
        warm.epoch(t)
    del warm
    for _ in range(o.repeats):
        training = Training(X, o, *how)
        seconds = sum(training.epoch(t) for t in range(1, o.epochs + 1))
        metrics = training.metrics()
        del training
        yield seconds, metrics


def products(X, o):
    """Times the products of a step of each pass: 20 repetitions, five times."""
    words, dim = X.shape
    batch, code_batch = batches(words, o)
    for precision, dtype in (("tf32", torch.float32), ("fp16", torch.float16)) if X.is_cuda else (("fp32", torch.float32),):

        def factor(rows, columns):
            return torch.randn(rows, columns, device=X.device).to(dtype)

        A, R, D, C = factor(batch, o.atoms), factor(batch, dim), factor(o.atoms, dim), factor(code_batch, dim)
        for name, left, right in (("decode", A, D), ("accumulate", A.T, R), ("correlate", C, D.T)):
            for i in range(6):
                synchronize(X)
                start = time.perf_counter()
                for _ in range(20):
                    left @ right
                synchronize(X)
                seconds = time.perf_counter() - start
                if i > 0:  # the first run warms up
                    print(f"BenchmarkTorchProduct/{name}/precision={precision}/{left.shape[0]}x{left.shape[1]}x{right.shape[1]} 20 {5e7 * seconds:.0f} ns/op")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors")
    parser.add_argument("--atoms", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--method", choices=["A", "B"], default="A")
    parser.add_argument("--lambda", type=float, default=0.5, dest="lam")
    parser.add_argument("--tau", type=float, default=1e-5)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--dictionary-steps", type=int, default=128)
    parser.add_argument("--code-batch", type=int, default=16384, help="most words of a step of the code pass")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--modes", default="eager,default,graph", help="such as max-autotune-no-cudagraphs, which takes minutes to compile")
    o = parser.parse_args()
    if o.device.startswith("cuda") and not torch.cuda.is_available():
        print(f"torch_rda.py: skipped: PyTorch {torch.__version__} finds no GPU", file=sys.stderr)
        sys.exit(3)
    torch.set_float32_matmul_precision("high")  # TF32
    X = torch.from_numpy(np.load(o.vectors)).to(o.device)
    on_gpu = X.is_cuda
    print("gpu:", torch.cuda.get_device_name(X.device) if on_gpu else platform.processor() or "CPU")
    print(f"torch: {torch.__version__}", flush=True)
    products(X, o)
    failed = False
    for mode in o.modes.split(","):
        name = f"TorchTraining/mode={mode}/recipe=paper/method={o.method}/precision={'tf32' if on_gpu else 'fp32'}/V={X.shape[0]}/L={X.shape[1]}/K={o.atoms}"
        try:
            for seconds, metrics in measure(X, o, mode):
                print(f"Benchmark{name} {o.epochs} {1e9 * seconds / o.epochs:.0f} ns/op {1e9 * seconds / o.epochs / X.shape[0]:.4g} ns/row/epoch "
                      f"{metrics['error']:.6g} error {metrics['objective']:.6g} objective {100 * metrics['sparsity']:.4f} sparsity-%", flush=True)
        except Exception as error:  # one mode's failure must not lose the others
            failed = True
            print(f"torch_rda.py: {name}: {type(error).__name__}: {error}".splitlines()[0], file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    with torch.no_grad():
        main()
