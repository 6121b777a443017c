"""Finds and runs the program `overcomplete`."""

import importlib
import importlib.metadata
import numbers
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

# Exit codes of the program.
USAGE, INTERRUPTED = 2, 130


def program() -> str:
    """Returns the path of the program: the value of OVERCOMPLETE, or the program of this package, or one on PATH.

    Raises FileNotFoundError if there is none, and RuntimeError if its version differs from the package's.
    """
    name = "overcomplete.exe" if os.name == "nt" else "overcomplete"
    folders = [
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))),
        Path(__file__).parents[1] / "bin",  # for pip install --target
    ]
    found = [os.environ.get("OVERCOMPLETE"), *(str(f / name) for f in folders if (f / name).is_file()), shutil.which(name)]
    path = shutil.which(next((path for path in found if path), ""))
    if path is None:
        raise FileNotFoundError("the program overcomplete is missing; reinstall the package overcomplete-vectors")
    path = os.path.abspath(path)
    check_version(path)
    return path


@cache
def check_version(path: str) -> None:
    """Raises RuntimeError unless a program has the version of the installed package."""
    for package in ("overcomplete-vectors", "overcomplete-vectors-gpu"):
        try:
            wanted = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        output = subprocess.run([path, "version"], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8").stdout
        if output.split("\n")[0] != f"overcomplete {wanted}":
            raise RuntimeError(f"{path} has the wrong version (want overcomplete {wanted}); reinstall {package}")
        return


# A helper process starts the program, and interrupts it when the helper's standard input ends. That happens when this
# process ends, even if it is killed. The helper has its own session, so that an interrupt from the keyboard reaches only
# this process. Otherwise the program would get two interrupts, and the second kills it.
_WAITER = """
import os, signal, subprocess, sys, threading
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
os.close(1)
def end():
    sys.stdin.read()
    p.kill() if os.name == "nt" else p.send_signal(signal.SIGINT)
threading.Thread(target=end, daemon=True).start()
code = p.wait()
os._exit(code if code >= 0 else 128 - code)
"""


def start(*args: Any, stdout: Any, stderr: Any, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Starts the program. Closing the standard input of the returned process interrupts it."""
    line = [sys.executable, "-I", "-S", "-c", _WAITER, program(), *(str(a) for a in args)]
    return subprocess.Popen(
        line, cwd=cwd, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, encoding="utf-8", errors="replace", start_new_session=os.name != "nt"
    )


def run(*args: Any, verbose: bool = False, cwd: Path | None = None) -> str:
    """Runs a command, such as run("train", "vectors.txt", "-o", "model"), and returns its standard output.

    Arguments are strings, paths and numbers. A table can replace an input file: a data frame of pandas or Polars, an Arrow
    table, or a data set of Hugging Face. Each table is written to a temporary Parquet file, frame.parquet. The program's
    warnings become Python warnings. With verbose, its progress is shown on standard error. An interrupt ends the program,
    which then leaves no partial output. Paths are relative to cwd.

    Raises ValueError for invalid arguments or files, and RuntimeError for other errors, with the program's message. Raises
    TypeError for arguments of other types.
    """
    for i, arg in enumerate(args):
        if not is_table(arg) and not isinstance(arg, (str, os.PathLike, numbers.Number)):
            accepted = "a string, a path, a number or a table (a data frame of pandas or Polars, an Arrow table, a Dataset of Hugging Face)"
            raise TypeError(f"argument {i + 1} has type {type(arg).__name__}, want {accepted}")
    if any(map(is_table, args)):
        with tempfile.TemporaryDirectory(prefix="overcomplete-") as folder:
            files = [write_table(arg, Path(folder) / str(i)) if is_table(arg) else arg for i, arg in enumerate(args)]
            return run(*files, verbose=verbose, cwd=cwd)
    messages: list[str] = []
    with tempfile.TemporaryFile() as out, start(*args, stdout=out, stderr=subprocess.PIPE, cwd=cwd) as process:
        assert process.stdin and process.stderr
        try:
            for message in process.stderr:
                messages.append(message.rstrip("\n"))
                if verbose and not message.startswith(("warning: ", "overcomplete: ")):
                    _show(messages[-1])
            code = process.wait()
        finally:
            process.stdin.close()
        out.seek(0)
        printed = out.read().decode()
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code != 0:
        raise failure(code, messages)
    for message in messages:
        if message.startswith("warning: "):
            warnings.warn(message.removeprefix("warning: "), stacklevel=2)
    return printed


def is_table(arg: Any) -> bool:
    """Reports whether an argument is a table of pandas, Hugging Face, Polars or Arrow."""
    return hasattr(arg, "to_parquet") or hasattr(arg, "write_parquet") or isinstance(arg, getattr(sys.modules.get("pyarrow"), "Table", ()))


def write_table(table: Any, folder: Path) -> Path:
    """Writes a table as frame.parquet in a new folder, and returns its path."""
    folder.mkdir()
    path = folder / "frame.parquet"
    if hasattr(table, "to_parquet"):
        index = getattr(table, "index", None)  # of pandas; an index without a name numbers the rows
        table.to_parquet(path, **({} if index is None or index.names != [None] else {"index": False}))
    elif hasattr(table, "write_parquet"):
        table.write_parquet(path)
    else:
        importlib.import_module("pyarrow.parquet").write_table(table, path)
    return path


def failure(code: int, messages: list[str]) -> Exception:
    """Returns the exception for an exit code of the program."""
    message = next((m for m in reversed(messages) if m.startswith("overcomplete: ")), "\n".join(messages[-20:]))
    error = ValueError if code == USAGE else RuntimeError
    signal = -code if code < 0 else code - 128  # of a process, or of the program that _WAITER starts
    ended = f"was ended by signal {signal}" if signal > 0 and os.name != "nt" else f"ended with exit code {code}"
    return error(message.removeprefix("overcomplete: ") or f"overcomplete {ended}")


def _show(message: str) -> None:
    """Prints a line of progress. For a line that counts epochs, it updates a bar."""
    counted = message.split(" ")[1].partition("/") if message.startswith("epoch ") else ("", "", "")
    if not counted[0].isdigit() or not counted[2].isdigit():
        print(message, file=sys.stderr, flush=True)
        return
    done, of = int(counted[0]), int(counted[2])
    bar = "█" * (20 * done // of) + "░" * (20 - 20 * done // of)
    print(f"\r{bar} {message}", end="\n" if done == of else "", file=sys.stderr, flush=True)


def matrix(x: Any) -> Any:
    """Returns x. If x is a column of lists, or a data frame with one such column, returns it as a matrix.

    Raises TypeError for masks and dates, and ValueError for the first row without a vector of the same length as the others.
    """
    if sp.issparse(x):
        return x
    a = np.asarray(x)
    if isinstance(x, np.ma.MaskedArray) or a.dtype.kind in "mM":
        raise TypeError("values must be numbers (got masked values, dates or durations)")
    if not is_column(a):
        return x
    rows = [np.asarray(row, np.float32) for row in a.ravel()]
    want = next(len(row) for row in rows if row.ndim == 1)
    for i, row in enumerate(rows):
        if row.shape != (want,):
            got = f"{len(row)} numbers" if row.ndim == 1 else a.ravel()[i]
            raise ValueError(f"row {i + 1}: the vector has the wrong length (got {got}, want {want} numbers)")
    return np.stack(rows)


def is_column(x: Any) -> bool:
    """Reports whether x is a column of lists, or a data frame with one such column."""
    a = np.asarray(x)
    return a.dtype == object and (a.ndim == 1 or a.ndim == 2 and a.shape[1] == 1) and any(np.ndim(row) == 1 for row in a.ravel())


def save(path: Path, x: Any) -> None:
    """Writes an array as a .npy file of float32. Raises TypeError if x is sparse or complex."""
    if sp.issparse(x) or np.iscomplexobj(x):
        raise TypeError("rows must be dense vectors of real numbers (got sparse or complex ones)")
    np.save(path, np.ascontiguousarray(x, np.float32))
