"""The program `overcomplete`: where it is, and how it is run."""

import importlib.metadata
import os
import shutil
import signal
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

# What the program exits with.
USAGE, INTERRUPTED = 2, 130


def program() -> str:
    """Returns the path of the program: what OVERCOMPLETE names, that of this package, or one on PATH.

    Raises FileNotFoundError if there is none, and RuntimeError if it is of another version than the package.
    """
    name = "overcomplete.exe" if os.name == "nt" else "overcomplete"
    folders = [
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))),
        Path(__file__).parents[1] / "bin",  # of pip install --target
    ]
    found = [os.environ.get("OVERCOMPLETE"), *(str(f / name) for f in folders if (f / name).is_file()), shutil.which(name)]
    path = next((path for path in found if path), None)
    if path is None:
        raise FileNotFoundError("the program overcomplete is missing: install the package overcomplete-vectors again")
    check_version(path)
    return path


@cache
def check_version(path: str) -> None:
    """Raises RuntimeError if a program is not of the version of the installed package."""
    for package in ("overcomplete-vectors", "overcomplete-vectors-gpu"):
        try:
            wanted = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        said = subprocess.run([path, "version"], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8").stdout
        if said.split("\n")[0] != f"overcomplete {wanted}":
            raise RuntimeError(f"{path} is not overcomplete {wanted}, which {package} needs: install that again")
        return


def run(*args: str | os.PathLike[str] | float, verbose: bool = False, cwd: Path | None = None) -> str:
    """Runs a command, such as run("train", "vectors.txt", "-o", "model"), and returns what it prints.

    Its warnings become Python's. With verbose, its progress is shown on standard error. An interrupt ends the
    program, which leaves nothing. Paths are relative to cwd.

    Raises ValueError if the arguments or the files are at fault, and else RuntimeError, with the program's words.
    """
    line = [program(), *(str(a) for a in args)]
    messages: list[str] = []
    with (
        tempfile.TemporaryFile() as out,
        subprocess.Popen(
            line, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
            # A key that interrupts both would be the program's first signal, and ours its second, which ends it at once.
            start_new_session=os.name != "nt",
        ) as process,
    ):  # fmt: skip
        try:
            assert process.stderr
            for message in process.stderr:
                messages.append(message.rstrip("\n"))
                if verbose:
                    _show(messages[-1])
            code = process.wait()
        except BaseException:
            process.send_signal(signal.SIGINT) if os.name != "nt" else process.kill()
            process.wait()
            raise
        out.seek(0)
        printed = out.read().decode()
    for message in messages:
        if message.startswith("warning: "):
            warnings.warn(message.removeprefix("warning: "), stacklevel=2)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code != 0:
        why = next((m for m in reversed(messages) if m.startswith("overcomplete: ")), "\n".join(messages[-20:]))
        error = ValueError if code == USAGE else RuntimeError
        raise error(why.removeprefix("overcomplete: ") or f"overcomplete ended with {code}")
    return printed


def _show(message: str) -> None:
    """Shows a line of progress; of lines that count epochs, a bar in one line."""
    counted = message.split(" ")[1].partition("/") if message.startswith("epoch ") else ("", "", "")
    if not counted[0].isdigit() or not counted[2].isdigit():
        print(message, file=sys.stderr, flush=True)
        return
    done, of = int(counted[0]), int(counted[2])
    bar = "█" * (20 * done // of) + "░" * (20 - 20 * done // of)
    print(f"\r{bar} {message}", end="\n" if done == of else "", file=sys.stderr, flush=True)


def matrix(x: Any) -> Any:
    """Returns x, or the matrix that it is if it is a column of lists, of a data frame or of Arrow."""
    if sp.issparse(x) or hasattr(x, "columns") or getattr(x, "ndim", 1) != 1:
        return x
    a = np.asarray(x)
    if a.dtype == object and a.ndim == 1 and len(a) and np.ndim(a[0]) == 1:
        return np.stack([np.asarray(row, np.float32) for row in a])
    return x


def save(path: Path, x: Any) -> None:
    """Writes an array as the program reads it."""
    np.save(path, np.ascontiguousarray(x, np.float32))
