"""A model on disk."""

import importlib
import json
import os
import re
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._program import failure, matrix, run, save, start


class Model:
    """A model of `overcomplete train` or `encode`: V rows, which are words or texts, K sparse and L dense dimensions.

    Attributes are read on first use. Tables are data frames if pandas is installed, otherwise dictionaries of lists.

        model = Model.load("model")
        model.explain("mutex")
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        try:
            self._text = (self.path / "model.json").read_text("utf-8")
            self.info: dict[str, Any] = json.loads(self._text)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.path}: can't read the model: {error}") from error
        self._named: tuple[list[int], list[dict[bool, str]]] | None = None
        self._explorer: tuple[str, subprocess.Popen[str]] | None = None
        if self.info.get("format") != 2:
            raise ValueError(f"{self.path}: unknown format version (got {self.info.get('format')}, want 2)")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Model":
        """Opens the model in a directory. Raises ValueError if there is no valid model."""
        return cls(path)

    def __repr__(self) -> str:
        k, dense = self.dictionary.shape
        rows = f"{len(self.words):,} {'texts' if self._texts else 'words'} × " if (self.path / "codes.npz").exists() else ""
        return f"<{self.path.name}: {rows}{k:,} sparse dimensions from {dense:,}>"

    @property
    def _unchanged_path(self) -> Path:
        """The directory of the model. Raises RuntimeError if the model has changed since it was loaded."""
        try:
            same = (self.path / "model.json").read_text("utf-8") == self._text
        except OSError:
            same = False
        if not same:
            raise RuntimeError(f"{self.path} has changed since it was loaded: load it again")
        return self.path

    @cached_property
    def _texts(self) -> list[dict[str, str]] | None:
        """Parsed lines of texts.jsonl, or None if rows are words."""
        path = self._unchanged_path / "texts.jsonl"
        if not path.exists():
            return None
        with open(path, encoding="utf-8", newline="\n") as lines:
            return [json.loads(line) for line in lines]

    @cached_property
    def words(self) -> list[str]:
        """The V words, or ids of texts."""
        if self._texts is not None:
            return [row["id"] for row in self._texts]
        return (self._unchanged_path / "words.txt").read_bytes().decode("utf-8").split("\n")[:-1]

    @cached_property
    def texts(self) -> Any:
        """A table of V texts with id, text and the other columns of the input, or None if rows are words."""
        if self._texts is None:
            return None
        return _table({name: [row[name] for row in self._texts] for name in self._texts[0]}) if self._texts else _table({})

    @cached_property
    def codes(self) -> sp.csr_array:
        """The codes, V×K float32, mapped from disk."""
        path = self._unchanged_path / "codes.npz"
        try:
            parts = _mapped(path)
            codes = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
            codes.check_format(full_check=True)  # SciPy doesn't check indices before it uses them
        except (OSError, KeyError, ValueError, struct.error, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: can't read the codes: {error}") from error
        return codes

    @cached_property
    def dictionary(self) -> np.ndarray:
        """The atoms, K×L float32, mapped from disk."""
        return np.asarray(np.load(self._unchanged_path / "dictionary.npy", mmap_mode="r"))

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean μ, L numbers, that was subtracted from each row. It is zero if none was subtracted."""
        path = self._unchanged_path / "mean.npy"
        return np.load(path) if path.exists() else np.zeros(self.dictionary.shape[1], np.float32)

    @property
    def labels(self) -> list[str]:
        """The names of the K dimensions. The name of a dimension that no row uses is "".

        A name belongs to the stronger pole of the dimension: its positive or its negative values. It is the pole's label or,
        without a label, its keywords.
        """
        return [next(iter(poles.values()), "") for poles in self._poles]

    def label(self, dimension: int, value: float) -> str:
        """Returns the name of the pole of a dimension that a value belongs to: its positive or its negative values."""
        return self._poles[dimension].get(value < 0, "")

    def set_stop_words(self, words: Sequence[str]) -> None:
        """Stores stop words in the model, which labels of texts leave out. They replace earlier ones; [] removes them.

        A string is one word. Raises ValueError if the rows are words.
        """
        with tempfile.TemporaryDirectory(prefix="overcomplete-") as folder:
            path = Path(folder) / "stop_words.txt"
            path.write_text("".join(word + "\n" for word in ([words] if isinstance(words, str) else words)), "utf-8")
            run("labels", self._unchanged_path, "--stop-words", path)

    @property
    def _poles(self) -> list[dict[bool, str]]:
        """The names of each dimension's poles, the stronger pole first. The key of a negative pole is True."""
        given = [self._unchanged_path / name for name in ("labels.json", "stop_words.txt")]
        modified = [path.stat().st_mtime_ns if path.exists() else 0 for path in given]  # users may edit these files
        if self._named and self._named[0] == modified:
            return self._named[1]
        poles: list[dict[bool, str]] = [{} for _ in range(len(self.dictionary))]
        for d in json.loads(run("top", self.path, "--dimensions", len(poles), "-n", 1, "--json")):
            poles[d["dimension"]] = {p.get("negative", False): p["label"] for p in d["poles"]}
        self._named = modified, poles
        return poles

    def row(self, x: str | int) -> int:
        """Returns the row number of a word or id; a row number returns itself. Raises KeyError if there is no such row."""
        if isinstance(x, str):
            if x not in self._rows:
                raise KeyError(f"no word or id {x!r} in {self.path}")
            return self._rows[x]
        if not 0 <= x < len(self.words):
            raise KeyError(f"no row {x} in {self.path} (want 0 to {len(self.words) - 1})")
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
            raise IndexError(f"no dimension {dimension} (want 0 to {len(self.dictionary) - 1})")
        low, high = self._columns.indptr[dimension : dimension + 2]
        rows, values = self._columns.indices[low:high], self._columns.data[low:high]
        values, rows = values[(values < 0) == negative], rows[(values < 0) == negative]
        best = np.argsort(-np.abs(values), kind="stable")[:n]
        return self._rows_table(rows[best], value=values[best])

    def nearest(self, x: Any, n: int = 10, *, more: Mapping[int, float] = {}, less: Mapping[int, float] = {}) -> Any:
        """Returns a table of the n nearest neighbours of x: rows whose codes have the largest positive cosine with its code.

        x is a word, an id, a row number, or a dense vector of L numbers. more and less map dimensions to positive numbers.
        Rows are then sorted by a score. For each dimension in more it adds to the cosine the number times the row's value in
        the dimension, with the row's code scaled to norm 1. For each dimension in less it subtracts this product. Raises
        ValueError and IndexError as query does.
        """
        row, code = self._code(x)
        norm = np.sqrt((code.data**2).sum()) or 1
        cosines = np.asarray((self.codes @ code.T).todense()).ravel() / (self._norms * norm)
        scores = cosines + self._steer(more, less)
        if row is not None:
            scores[row] = 0
        best = np.argsort(-scores, kind="stable")[:n]
        best = best[scores[best] > 0]
        return self._rows_table(best, cosine=cosines[best], **({"score": scores[best]} if more or less else {}))

    def search(self, query: str, n: int = 10) -> Any:
        """Returns a table of the n texts that match the words of a query best (BM25). Texts with all words come first.

        Raises ValueError if no text contains one of the words, or if the rows are words.
        """
        if self._texts is None:
            raise ValueError(f"{self.path}: the rows are words, not texts to search: see nearest")
        words = re.sub('["“”„«»]', " ", query)
        found = json.loads(run("nearest", self._unchanged_path, *option("-n", n), "--json", "--", f'"{words}"'))
        return self._rows_table(np.array([self.row(text["word"]) for text in found["texts"]]))

    def _steer(self, more: Mapping[int, float], less: Mapping[int, float]) -> np.ndarray:
        """Returns for each row the sum of weight times value over the steered dimensions, with its code scaled to norm 1."""
        scores = np.zeros(len(self.words))
        for dimension, weight in _steering(more, less, len(self.dictionary)).items():
            scores += weight * self._columns[:, [dimension]].toarray().ravel() / self._norms
        return scores

    def explain(self, x: Any, n: int = 10) -> Any:
        """Returns a table of the n largest dimensions in the code of x, with their labels. x is as in nearest."""
        _, code = self._code(x)
        best = np.argsort(-np.abs(code.data), kind="stable")[:n]
        dimensions, values = code.indices[best].tolist(), code.data[best].tolist()
        labels = [self.label(k, value) for k, value in zip(dimensions, values)]
        return _table({"dimension": dimensions, "value": values, "label": labels})

    def _code(self, x: Any) -> tuple[int | None, sp.csr_array]:
        if isinstance(x, (str, int, np.integer)):
            row = self.row(x if isinstance(x, str) else int(x))
            return row, self.codes[[row]]
        vector, dense = np.ravel(matrix(x)), self.dictionary.shape[1]
        if len(vector) != dense:
            raise ValueError(f"x is neither a word, an id, a row number nor a dense vector (got {len(vector)} numbers, want {dense})")
        return None, self.encode(vector.reshape(1, -1))

    def query(
        self, x: Any, weights: int = 128, *, signed: bool = False, more: Mapping[int, float] = {}, less: Mapping[int, float] = {}
    ) -> tuple[list[int], list[float]]:
        """Returns the dimensions and weights of a query by the dense vector x, for an index of rows().

        The weights are the largest positive entries of Dx/‖x‖. If signed, or with method A, they are the entries with the
        largest absolute values. The score of a row, the sum of weight times value, is close to its cosine with x. more and
        less map dimensions to positive numbers up to 1,000,000. more adds them to the weights, and less subtracts them.

        Raises ValueError if x doesn't have L finite numbers or is zero, or if a number is out of range. Raises IndexError if
        there is no such dimension.
        """
        if isinstance(x, str):
            raise ValueError("x is a string, want a dense vector by the embedding model of the rows")
        vector, (k, dense) = np.ravel(matrix(x)).astype(np.float32), self.dictionary.shape
        if isinstance(weights, bool) or not isinstance(weights, (int, np.integer)) or weights < 1:
            raise ValueError(f"weights is {weights!r}, want a positive whole number")
        if len(vector) != dense or not np.isfinite(vector).all():
            raise ValueError(f"x is not a dense vector of {dense} finite numbers (got {len(vector)} numbers)")
        if not vector.any():
            raise ValueError("x is zero, which is near no row")
        products = self.dictionary @ (vector / np.linalg.norm(vector.astype(float))).astype(np.float32)
        for dimension, weight in _steering(more, less, k).items():
            products[dimension] += weight
        keys = np.abs(products) if signed or self.info["training"]["recipe"]["method"] == "A" else products
        best = np.sort(np.argsort(-keys, kind="stable")[:weights])
        best = best[keys[best] > 0]
        return best.tolist(), products[best].tolist()

    def rows(self, encoded: str | os.PathLike[str] | None = None, *, normalize: bool = True) -> Iterator[dict[str, Any]]:
        """Yields the V rows as dictionaries with id, dimensions (K), indices and values. Texts also have text and columns.

        encoded is a directory of codes with the dictionary of this model. rows then yields the rows of encoded, to add to an
        index. If normalize, each code a is divided by ‖μ + aD‖, for queries by query(). The values of numeric columns are
        numbers. Raises ValueError if encoded has another dictionary.
        """
        with tempfile.TemporaryDirectory(prefix="overcomplete-") as name:
            path = Path(name) / "rows.jsonl"
            source, options = self.path if encoded is None else encoded, ["--normalize"] if normalize else []
            run("export", source, "--vocabulary", self._unchanged_path, "--format", "jsonl", "-o", path, *options)
            with open(path, encoding="utf-8", newline="\n") as lines:
                yield from map(json.loads, lines)

    def topics(
        self, number: int | None = None, column: str | None = None, by: str | None = None, within: int | None = None, encoded: str | os.PathLike[str] | None = None
    ) -> Any:
        """Returns a table of the broad topics of the texts, the largest first: id, label, share and count of rows, examples.

        number is the number of broad topics; the default was chosen by the training. within is the id of a topic, whose
        subtopics the table lists instead. Subtopics have subtopics, too. If column names a column of the texts, the
        table also has a column "values": the shares of the column's most frequent values in the topic. If the values are
        dates, such as 2024-03-05, it holds the shares of all periods in order of time. by is the length of a period: "day",
        "week", "month", "quarter", "year", "decade" or "century". The default depends on the span of the dates. encoded is as
        in rows: the table then has the topics of its texts, with the labels of this model. Raises ValueError if the model has
        no topics, if by is given and a value is no date, or if encoded has another dictionary. Raises KeyError if there is no
        topic within.
        """
        tree = self._topics(number, encoded, *option("--column", column), *option("--by", by))
        topics = tree["topics"] + tree["subtopics"]
        if within is not None and within not in (topic["id"] for topic in topics):
            raise KeyError(within)
        topics = [topic for topic in topics if topic["parent"] == within]
        columns: dict[str, Any] = {name: [topic[name] for topic in topics] for name in ("id", "label", "share", "count")}
        columns["examples"] = [[example["text"] for example in topic["examples"]] for topic in topics]
        if column is not None:
            columns["values"] = [{value["value"]: value["share"] for value in topic.get("values", [])} for topic in topics]
        return _table(columns)

    def row_topics(self, number: int | None = None, encoded: str | os.PathLike[str] | None = None) -> list[int | None]:
        """Returns the id of each row's broad topic, or None for a row without a topic. The arguments are as in topics."""
        rows: list[int | None] = self._topics(number, encoded)["rows"]
        return rows

    def _topics(self, number: int | None, encoded: str | os.PathLike[str] | None, *options: Any) -> Any:
        source = [self._unchanged_path] if encoded is None else [encoded, "--vocabulary", self._unchanged_path]
        return json.loads(run("topics", *source, *option("--topics", number), *options, "--json"))

    def _rows_table(self, rows: np.ndarray, **numbers: np.ndarray) -> Any:
        columns: dict[str, Sequence[Any]] = {"row": rows.tolist(), "word" if self._texts is None else "id": [self.words[i] for i in rows]}
        columns |= {name: values.tolist() for name, values in numbers.items()}
        if self._texts is not None:
            columns["text"] = [self._texts[i]["text"] for i in rows]
        return _table(columns)

    def encode(self, X: Any, *, nonzeros: int | None = None, n_jobs: int | None = None, device: str = "auto", verbose: bool = False) -> sp.csr_array:
        """Returns the codes of n dense vectors, n×K.

        X is n×L: an array, a data frame, or a column of lists. nonzeros is the maximum per row; the default is the
        model's. n_jobs is the number of processors; the default is all. Raises ValueError if a row doesn't
        have L finite numbers.
        """
        return encode(self._unchanged_path, matrix(X), nonzeros, n_jobs, device, verbose)

    def explore(self, height: int = 800) -> None:
        """Starts the explorer, prints its address and, in a notebook, shows it in the cell. It ends with this process.

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


_servers: list[subprocess.Popen[str]] = []  # keeps their standard input open until this process ends


def encode(model: Path, x: Any, nonzeros: int | None, n_jobs: int | None, device: str, verbose: bool) -> sp.csr_array:
    """Returns the codes of the rows x with the dictionary of a model on disk."""
    with tempfile.TemporaryDirectory(prefix="overcomplete-") as name:
        folder = Path(name)
        save(folder / "X.npy", x)
        options = [*option("--nonzeros", nonzeros), *workers(n_jobs), "--device", str(device), "--rows", "texts", *([] if verbose else ["--quiet"])]
        try:
            run("encode", model, "X.npy", "-o", "codes", *options, verbose=verbose, cwd=folder)
        except ValueError as error:  # without the advice to drop rows
            raise ValueError(str(error).removesuffix("; --skip-bad drops such rows")) from None
        return sp.csr_array(sp.load_npz(folder / "codes" / "codes.npz"))


def _steering(more: Mapping[int, float], less: Mapping[int, float], k: int) -> dict[int, float]:
    """Returns the signed weight of each steered dimension. There are k dimensions."""
    weights: dict[int, float] = {}
    for sign, steered in ((1, more), (-1, less)):
        for dimension, weight in steered.items():
            if isinstance(dimension, bool) or not isinstance(dimension, (int, np.integer)) or not 0 <= dimension < k:
                raise IndexError(f"no dimension {dimension} (want 0 to {k - 1})")
            if not 0 < weight <= 1_000_000:
                raise ValueError(f"the number of dimension {dimension} is {weight}, want a positive number up to 1000000")
            if dimension in weights:
                raise ValueError(f"dimension {dimension} is in both more and less")
            weights[dimension] = sign * weight
    return weights


def option(flag: str, value: Any) -> list[Any]:
    """Returns a flag with its value, or no arguments if the value is None."""
    return [] if value is None else [flag, str(value)]


def workers(n_jobs: int | None) -> list[Any]:
    """Returns the flag for n_jobs processors. None and −1 mean all, −2 all except one, and so on."""
    if n_jobs is not None and n_jobs < 0:
        n_jobs = None if n_jobs == -1 else max((os.cpu_count() or 1) + 1 + n_jobs, 1)
    return option("--workers", n_jobs)


def _table(columns: dict[str, Any]) -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        return columns
    return pd.DataFrame(columns)


def _mapped(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of an uncompressed .npz file. Large arrays are mapped, not read."""
    arrays = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if member.compress_type != zipfile.ZIP_STORED or member.file_size < 1 << 12:
                with archive.open(member) as part:
                    arrays[name] = np.lib.format.read_array(part)
                continue
            file.seek(member.header_offset + 26)  # the lengths of the name and of the extra field
            file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
            major, _ = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
            arrays[name] = np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C")
    return arrays
