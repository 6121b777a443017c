"""Times NumPy's product of V×L and L×K float32 matrices, in Go's benchmark format.

usage: sgemm.py V L K REPEATS

The code pass of "bench cpu" computes the same product, RDᵀ, and more.
"""

import sys
import time

import numpy as np

words, dim, atoms, repeats = map(int, sys.argv[1:])
rng = np.random.default_rng(1)
r = rng.standard_normal((words, dim), dtype=np.float32)
d = rng.standard_normal((atoms, dim), dtype=np.float32)
product = np.empty((words, atoms), np.float32)
blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
print(f"numpy: {np.__version__}, {blas['name']} {blas['version']}")
for i in range(1 + repeats):
    start = time.perf_counter()
    np.matmul(r, d.T, out=product)
    seconds = time.perf_counter() - start
    if i > 0:  # the first run warms up
        print(f"BenchmarkNumPyProduct/V={words}/L={dim}/K={atoms} 1 {2e-9 * words * dim * atoms / seconds:.4g} GFLOP/s")
