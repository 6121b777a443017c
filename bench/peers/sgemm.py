"""NumPy's product of V×L and L×K float32 matrices, timed.

usage: sgemm.py V L K REPEATS

Prints a JSON object with the program and the seconds of each time. Without NumPy the
script says so and exits with 3.
"""

import json
import sys
import time

try:
    import numpy as np
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

words, dim, atoms, repeats = map(int, sys.argv[1:])
rng = np.random.default_rng(1)
r = rng.standard_normal((words, dim), dtype=np.float32)
d = rng.standard_normal((atoms, dim), dtype=np.float32)
product = np.empty((words, atoms), np.float32)
seconds = []
for i in range(1 + repeats):  # the first is to warm up
    start = time.perf_counter()
    np.matmul(r, d.T, out=product)
    seconds.append(time.perf_counter() - start)
blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
json.dump({"program": f"NumPy {np.__version__}, {blas['name']} {blas['version']}", "seconds": seconds[1:]}, sys.stdout)
