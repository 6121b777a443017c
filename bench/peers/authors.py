"""Times epochs of the program of the paper's authors (mfaruqui/sparse-coding), on one core.

usage: authors.py SPARSE VECTORS.npy FACTOR LAMBDA TAU

SPARSE is their program, FACTOR the number of atoms per dimension. It runs on the first 1,000
rows and is ended after three epochs, because it has no option for their number. All of its
epochs take the same time, and the time of a row does not depend on the number of rows.
"""

import subprocess
import sys
import tempfile
import time

import numpy as np

program, vectors, factor, lam, tau = sys.argv[1:]
x = np.load(vectors, mmap_mode="r")[:1000]
with tempfile.TemporaryDirectory() as folder:
    with open(folder + "/vectors.txt", "w") as f:
        for i, row in enumerate(x):
            print(f"word{i}", *(f"{v:.6f}" for v in row), file=f)
    command = [program, folder + "/vectors.txt", factor, lam, tau, "1", folder + "/out"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    last, epochs = None, 0
    for line in process.stderr:
        if line.startswith("Iteration: "):
            now = time.perf_counter()
            if last:
                print(f"BenchmarkAuthors/L={x.shape[1]}/K={int(factor) * x.shape[1]} 1 {1e9 * (now - last) / len(x):.0f} ns/row/epoch")
                epochs += 1
            if epochs == 3:
                break
            last = now
    process.kill()
