"""A model on disk."""

import importlib
import json
import os
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._program import failure, matrix, run, save, start


class Model:
    """A model that `overcomplete train` or `encode` wrote: V rows, words or texts, in K sparse dimensions from L dense ones.

    What a model has is read when it is asked for. Tables are data frames where pandas is installed, and else
    dictionaries of lists.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        try:
            self._text = (self.path / "model.json").read_text("utf-8")
            self.info: dict[str, Any] = json.loads(self._text)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.path}: no model that can be read: {error}") from error
        self._named: tuple[int, list[dict[bool, str]]] | None = None
        self._explorer: tuple[str, subprocess.Popen[str]] | None = None
        if self.info.get("format") != 1:
            raise ValueError(f"{self.path}: format version is {self.info.get('format')}, want 1")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Model":
        """Opens the directory of a model. Raises ValueError if it is none."""
        return cls(path)

    def __repr__(self) -> str:
        k, dense = self.dictionary.shape
        rows = f"{len(self.words):,} {'texts' if self._texts else 'words'} × " if (self.path / "codes.npz").exists() else ""
        return f"<{self.path.name}: {rows}{k:,} sparse dimensions from {dense:,}>"

    @property
    def _here(self) -> Path:
        """The directory. Raises RuntimeError if the model there is another one than was loaded."""
        try:
            same = (self.path / "model.json").read_text("utf-8") == self._text
        except OSError:
            same = False
        if not same:
            raise RuntimeError(f"{self.path} has changed since it was loaded: load it again")
        return self.path

    @cached_property
    def _texts(self) -> list[dict[str, str]] | None:
        """The lines of texts.jsonl; None if rows are words."""
        path = self._here / "texts.jsonl"
        if not path.exists():
            return None
        with open(path, encoding="utf-8", newline="\n") as lines:
            return [json.loads(line) for line in lines]

    @cached_property
    def words(self) -> list[str]:
        """What each row is called: V words, or ids of texts."""
        if self._texts is not None:
            return [row["id"] for row in self._texts]
        return (self._here / "words.txt").read_bytes().decode("utf-8").split("\n")[:-1]

    @cached_property
    def texts(self) -> Any:
        """A table of V texts: id, text and the other columns of the input; None if rows are words."""
        if self._texts is None:
            return None
        return _table({name: [row[name] for row in self._texts] for name in self._texts[0]}) if self._texts else _table({})

    @cached_property
    def codes(self) -> sp.csr_array:
        """The sparse vectors, V×K float32. They stay on disk until they are used."""
        path = self._here / "codes.npz"
        try:
            parts = _mapped(path)
            codes = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
            codes.check_format(full_check=True)  # SciPy believes indices, whatever they are
        except (OSError, KeyError, ValueError, struct.error, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: no codes that can be read: {error}") from error
        return codes

    @cached_property
    def dictionary(self) -> np.ndarray:
        """The atoms, K×L float32. They stay on disk until they are used."""
        return np.asarray(np.load(self._here / "dictionary.npy", mmap_mode="r"))

    @cached_property
    def mean(self) -> np.ndarray:
        """μ, L numbers, which were taken from each row before; zeros if none were."""
        path = self._here / "mean.npy"
        return np.load(path) if path.exists() else np.zeros(self.dictionary.shape[1], np.float32)

    @property
    def labels(self) -> list[str]:
        """The names of the K dimensions, by their stronger poles: labels, or else words. "" if no row has the dimension."""
        return [next(iter(poles.values()), "") for poles in self._poles]

    @property
    def _poles(self) -> list[dict[bool, str]]:
        """The names of each dimension's poles, the stronger first, by whether it is the negative one."""
        given = self._here / "labels.json"
        when = given.stat().st_mtime_ns if given.exists() else 0  # people change them
        if self._named and self._named[0] == when:
            return self._named[1]
        poles: list[dict[bool, str]] = [{} for _ in range(len(self.dictionary))]
        for d in json.loads(run("top", self.path, "--dimensions", len(poles), "-n", 1, "--json")):
            poles[d["dimension"]] = {p.get("negative", False): p["label"] for p in d["poles"]}
        self._named = when, poles
        return poles

    def row(self, x: str | int) -> int:
        """Returns the number of the row of a word, an id, or that number itself. Raises KeyError if there is none."""
        if isinstance(x, str):
            if x not in self._rows:
                raise KeyError(f"no word or id {x!r} in {self.path}")
            return self._rows[x]
        if not 0 <= x < len(self.words):
            raise KeyError(f"no row {x} in {self.path}: they are 0 to {len(self.words) - 1}")
        return int(x)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: i for i, word in reversed(list(enumerate(self.words)))}

    @cached_property
    def _columns(self) -> sp.csc_array:
        return self.codes.tocsc()

    @cached_property
    def _norms(self) -> np.ndarray:
        squares = np.asarray(self.codes.multiply(self.codes).sum(1))
        return np.asarray(np.maximum(np.sqrt(squares), np.finfo(np.float32).tiny))

    def top(self, dimension: int, n: int = 10, negative: bool = False) -> Any:
        """Returns a table of the n rows with the largest positive (or most negative) values in a dimension."""
        if not 0 <= dimension < len(self.dictionary):
            raise IndexError(f"no dimension {dimension}: they are 0 to {len(self.dictionary) - 1}")
        low, high = self._columns.indptr[dimension : dimension + 2]
        rows, values = self._columns.indices[low:high], self._columns.data[low:high]
        values, rows = values[(values < 0) == negative], rows[(values < 0) == negative]
        best = np.argsort(-np.abs(values), kind="stable")[:n]
        return self._rows_table(rows[best], value=values[best])

    def nearest(self, x: Any, n: int = 10) -> Any:
        """Returns a table of the n rows whose codes have the largest positive cosines with that of x.

        x is a word or id, a row's number, or a dense vector of L numbers.
        """
        row, code = self._code(x)
        norm = np.sqrt((code.data**2).sum()) or 1
        cosines = np.asarray((self.codes @ code.T).todense()).ravel() / (self._norms * norm)
        if row is not None:
            cosines[row] = 0
        best = np.argsort(-cosines, kind="stable")[:n]
        best = best[cosines[best] > 0]
        return self._rows_table(best, cosine=cosines[best])

    def explain(self, x: Any, n: int = 10) -> Any:
        """Returns a table of the n dimensions that are largest in the code of x, as in nearest, with their labels."""
        _, code = self._code(x)
        best = np.argsort(-np.abs(code.data), kind="stable")[:n]
        dimensions, values = code.indices[best].tolist(), code.data[best].tolist()
        poles = self._poles
        labels = [poles[k].get(value < 0, "") for k, value in zip(dimensions, values)]
        return _table({"dimension": dimensions, "value": values, "label": labels})

    def _code(self, x: Any) -> tuple[int | None, sp.csr_array]:
        if isinstance(x, (str, int, np.integer)):
            row = self.row(x if isinstance(x, str) else int(x))
            return row, self.codes[[row]]
        vector, dense = np.ravel(matrix(x)), self.dictionary.shape[1]
        if len(vector) != dense:
            raise ValueError(f"x is no word, id or number of a row, and no vector of {dense} numbers, but of {len(vector)}")
        return None, self.encode(vector.reshape(1, -1))

    def topics(self, number: int | None = None, column: str | None = None) -> Any:
        """Returns a table of the topics of the texts, the largest first: id, label, share and count of the rows, examples.

        number is how many, as in the training unless given. With column, the name of one of the texts, values has the
        share of each of its most frequent values within the topic. Raises ValueError if the model has no topics.
        """
        topics = self._topics(number, *option("--column", column))["topics"]
        columns: dict[str, Any] = {name: [topic[name] for topic in topics] for name in ("id", "label", "share", "count")}
        columns["examples"] = [[example["text"] for example in topic["examples"]] for topic in topics]
        if column is not None:
            columns["values"] = [{value["value"]: value["share"] for value in topic.get("values", [])} for topic in topics]
        return _table(columns)

    def row_topics(self, number: int | None = None) -> list[int | None]:
        """Returns the id of each row's topic, as in topics; None of a row without one."""
        rows: list[int | None] = self._topics(number)["rows"]
        return rows

    def _topics(self, number: int | None, *options: Any) -> Any:
        return json.loads(run("topics", self._here, *option("--topics", number), *options, "--json"))

    def _rows_table(self, rows: np.ndarray, **numbers: np.ndarray) -> Any:
        columns: dict[str, Sequence[Any]] = {"row": rows.tolist(), "word" if self._texts is None else "id": [self.words[i] for i in rows]}
        columns |= {name: values.tolist() for name, values in numbers.items()}
        if self._texts is not None:
            columns["text"] = [self._texts[i]["text"] for i in rows]
        return _table(columns)

    def encode(self, X: Any, *, nonzeros: int | None = None, n_jobs: int | None = None, device: str = "auto", verbose: bool = False) -> sp.csr_array:
        """Returns the codes of n dense vectors, n×K, with at most nonzeros values each (as many as the model's own unless given).

        X is n×L: an array, a data frame, or a column of lists. n_jobs is how many processors work, all unless given.
        Raises ValueError if a row has other than L numbers, or one that is not finite.
        """
        return encode(self._here, matrix(X), nonzeros, n_jobs, device, verbose)

    def explore(self, height: int = 800) -> None:
        """Prints the address of the explorer and, in a notebook, shows it in the cell. It ends with this process.

        Raises ValueError, or RuntimeError, if it can't start.
        """
        if self._explorer is None or self._explorer[1].poll() is not None:
            with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
                server = start("explore", self.path, "--port", "0", "--frame", stdout=subprocess.PIPE, stderr=errors)
                assert server.stdout
                address = server.stdout.readline().strip()
                if not address:
                    code = server.wait()
                    errors.seek(0)
                    raise failure(code, errors.read().splitlines())
            _servers.append(server)
            self._explorer = address, server
        address = self._explorer[0]
        print(address)
        try:
            ipython: Any = importlib.import_module("IPython")
            shell = ipython.get_ipython()
        except ModuleNotFoundError:
            return
        if shell is not None and "IPKernelApp" in shell.config:
            ipython.display.display(ipython.display.IFrame(address, width="100%", height=height))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_explorer": None}


_servers: list[subprocess.Popen[str]] = []  # whose standard input stays open as long as this process lives


def encode(model: Path, x: Any, nonzeros: int | None, n_jobs: int | None, device: str, verbose: bool) -> sp.csr_array:
    """Returns the codes of rows with the dictionary of a model on disk."""
    with tempfile.TemporaryDirectory(prefix="overcomplete-") as name:
        folder = Path(name)
        save(folder / "X.npy", x)
        options = [*option("--nonzeros", nonzeros), *workers(n_jobs), "--device", device, "--rows", "texts", *([] if verbose else ["--quiet"])]
        run("encode", model, "X.npy", "-o", "codes", *options, verbose=verbose, cwd=folder)
        return sp.csr_array(sp.load_npz(folder / "codes" / "codes.npz"))


def option(flag: str, value: Any) -> list[Any]:
    """Returns a flag with its value, or nothing if that is None."""
    return [] if value is None else [flag, value]


def workers(n_jobs: int | None) -> list[Any]:
    """Returns the flag for that many processors; None and −1 are all."""
    return option("--workers", None if n_jobs == -1 else n_jobs)


def _table(columns: dict[str, Any]) -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        return columns
    return pd.DataFrame(columns)


def _mapped(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of an .npz, which is not compressed, without reading those of some size."""
    arrays = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if member.compress_type != zipfile.ZIP_STORED or member.file_size < 1 << 12:
                with archive.open(member) as part:
                    arrays[name] = np.lib.format.read_array(part)
                continue
            file.seek(member.header_offset + 26)  # the lengths of its name and of what is after that
            file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
            major, _ = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
            arrays[name] = np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C")
    return arrays
