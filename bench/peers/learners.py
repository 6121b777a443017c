"""Compares other dictionary learners with ours, at equal sparsity.

usage: learners.py OVERCOMPLETE VECTORS ATOMS SPARSITY SECONDS [FOLDER]

OVERCOMPLETE is the program, VECTORS a text file of vectors (.gz or plain). Each learner is
initialised from rows, learns from the centred rows in two epochs of mini-batches of 256, and
encodes all rows with at most the nonzeros that SPARSITY allows. The output is a table:
reconstruction error Σ‖y − aD‖² / Σ‖y‖², sparsity, processor and wall-clock seconds of learning
and of encoding, and peak resident memory. FOLDER receives our model and the codes of each
peer as text, for "overcomplete eval" and "overcomplete intrusion auto".

  overcomplete    train; "learn" is its wall-clock time including I/O
  SPAMS, L0       trainDL with OMP (mode 3) while it learns, then OMP
  SPAMS, lasso    trainDL with LARS (mode 2), λ of our recipe, then LARS with that λ and
                  the cap on nonzeros
  scikit-learn    MiniBatchDictionaryLearning, coordinate descent, λ of our recipe, then OMP

A peer that exceeds SECONDS of processor time is ended, and the table states this. SPAMS is
the wheel spams-bin. Our program is measured by /usr/bin/time.
"""

import gzip
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

program, path = sys.argv[1:3]
atoms, sparsity = int(sys.argv[3]), float(sys.argv[4])
limit = int(sys.argv[5])
folder = sys.argv[6] if len(sys.argv) > 6 else None
most = round((1 - sparsity) * atoms)  # nonzeros of a row
passes, batch = 2, 256
lam = 0.04  # relative to the mean squared norm, as in our recipe
cores = len(os.sched_getaffinity(0))


def read():
    """Returns the words, their centred rows, scaled to a mean squared norm of 1, and the mean
    squared norm before the scaling."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        lines = [line.rstrip("\n").split(" ") for line in f]
    if len(lines[0]) == 2:  # word2vec's header
        lines = lines[1:]
    y = np.array([line[1:] for line in lines], dtype=np.float64)
    y -= y.mean(axis=0)
    square = (y**2).sum(axis=1).mean()
    return [line[0] for line in lines], y / np.sqrt(square), square


class Clock:
    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def lap(self):
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        self.__init__()
        return cpu, wall


def start(y):
    rows = np.random.default_rng(1).choice(len(y), atoms, replace=atoms > len(y))
    d = y[rows]
    return d / np.linalg.norm(d, axis=1, keepdims=True)


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(name, words, y, codes, dictionary, learn, code, most_memory):
    if folder:
        with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8") as f:
            for word, row in zip(words, codes):
                f.write(word + " " + " ".join("%.6g" % v for v in row) + "\n")
    residuals = y - codes @ dictionary
    return {
        "error": float((residuals**2).sum() / len(y)),
        "zeros": float(1 - np.count_nonzero(codes) / codes.size),
        "learn": learn,
        "code": code,
        "memory": most_memory,
    }


def spams_learner(mode):
    import spams

    words, y, _ = read()
    x = np.asfortranarray(y.T)
    spams_lambda = lam / 2  # SPAMS minimises ½‖x − Da‖² + λ|a|
    clock = Clock()
    d = spams.trainDL(
        x, D=np.asfortranarray(start(y).T), batchsize=batch, iter=passes * len(y) // batch, mode=mode,
        lambda1=most if mode == 3 else spams_lambda, numThreads=cores, verbose=False,
    )
    learn = clock.lap()
    if mode == 3:
        codes = spams.omp(x, d, L=most, numThreads=cores)
    else:
        codes = spams.lasso(x, d, L=most, lambda1=spams_lambda, mode=2, numThreads=cores)
    code, most_memory = clock.lap(), memory()
    return measured("spams-%d" % mode, words, y, codes.T.toarray(), d.T, learn, code, most_memory)


def scikit_learner():
    import joblib
    from sklearn.decomposition import MiniBatchDictionaryLearning, sparse_encode

    warnings.simplefilter("ignore")  # warnings that coding did not converge
    words, y, _ = read()
    clock = Clock()
    with joblib.parallel_config(backend="threading"):  # so that its time and memory count for this process
        learner = MiniBatchDictionaryLearning(
            atoms, alpha=lam / 2, batch_size=batch, max_iter=passes, tol=0, max_no_improvement=None, dict_init=start(y),
            fit_algorithm="cd", random_state=1, n_jobs=cores,
        ).fit(y)
        learn = clock.lap()
        codes = sparse_encode(y, learner.components_, algorithm="omp", n_nonzero_coefs=most, n_jobs=cores)
    code, most_memory = clock.lap(), memory()
    return measured("scikit-learn", words, y, codes, learner.components_, learn, code, most_memory)


def ours():
    _, _, square = read()
    with tempfile.TemporaryDirectory() as elsewhere:
        model = os.path.join(folder or elsewhere, "ours.model")
        done = subprocess.run(
            ["/usr/bin/time", "-f", "%U %S %e %M", program, "train", path, "-o", model, "--force", "-k", str(atoms),
             "--sparsity", str(sparsity), "--quiet"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        with open(os.path.join(model, "model.json"), encoding="utf-8") as f:
            e = json.load(f)["encoding"]
    user, system, wall, kilobytes = map(float, done.stderr.splitlines()[-1].split())
    return {"error": e["error"] / square, "zeros": e["sparsity"], "learn": (user + system, wall), "code": None, "memory": kilobytes * 1024}


def run(result, learner, *args):
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    try:
        result.send(learner(*args))
    except ImportError as error:
        result.send({"note": f"not here: {error}"})


def main():
    if folder:
        os.makedirs(folder, exist_ok=True)
    print("learner          error  zeros %  learn: processor s   wall s  code: processor s   wall s  memory, MB")
    for name, learner, *args in [
        ("overcomplete", ours),
        ("SPAMS, L0", spams_learner, 3),
        ("SPAMS, lasso", spams_learner, 2),
        ("scikit-learn", scikit_learner),
    ]:
        receive, send = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=run, args=(send, learner, *args))
        process.start()
        send.close()
        try:
            r = receive.recv()
        except EOFError:
            r = {}
        process.join()
        if not r:
            ended = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
            r = {"note": f"not through after {limit} s of processor time" if ended else "failed"}
        if "note" in r:
            print(f"{name:<14} {r['note']}", flush=True)
            continue
        code = "%18.1f %8.1f" % r["code"] if r["code"] else " " * 27
        print(f"{name:<14} {r['error']:>7.4f} {100 * r['zeros']:>8.2f} {r['learn'][0]:>19.1f} {r['learn'][1]:>8.1f} {code} {r['memory'] / 1e6:>11.0f}", flush=True)


if __name__ == "__main__":
    main()
