"""Encoding of Arrow batches, for distributed engines."""

import os
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._model import Model, option, workers
from ._program import failure, program


class BatchEncoder:
    """Encodes Arrow batches with the dictionary of a model, in the processes of a distributed engine.

        encoder = BatchEncoder("model")
        frame.mapInArrow(encoder.batches, "id string, indices array<int>, values array<float>")  # PySpark
        dataset.map_batches(encoder, batch_format="pyarrow")                                     # Ray Data

    An output batch has the columns named in keep and two columns of lists: indices, which are the dimensions of a row's
    nonzeros, and their values. They are bit-identical to the codes of `overcomplete encode`. Pickling stores the path of
    the model, which must exist on every machine. Each Python process starts the program at its first batch. The program
    ends with that process.

    Parameters
    ----------
    model : path
        The directory of a model.
    vectors : str
        Name of the column of vectors: lists of L numbers.
    keep : list of str
        Names of columns to keep, such as ids.
    nonzeros : int, optional
        Maximum number of nonzeros per row. The default is the model's.
    n_jobs : int
        Number of processors per Python process. Engines start a process per processor.
    """

    def __init__(self, model: str | os.PathLike[str], vectors: str = "embedding", keep: Sequence[str] = ("id",), *, nonzeros: int | None = None, n_jobs: int = 1) -> None:
        self.model = Model(model)
        self.vectors = vectors
        self.keep = [keep] if isinstance(keep, str) else list(keep)
        if {"indices", "values"} & set(self.keep):
            raise ValueError("keep: indices and values are reserved for the codes")
        self.options = (*option("--nonzeros", nonzeros), *workers(n_jobs), "--device", "cpu")

    def __call__(self, batch: Any) -> Any:
        """Returns the codes of a batch, which is an Arrow table or record batch.

        Raises ValueError if the batch lacks a column, or if a row can't be encoded.
        """
        import pyarrow as pa

        for name in (self.vectors, *self.keep):
            if name not in batch.schema.names:
                raise ValueError(f"no column {name!r} in the batch (columns: {', '.join(batch.schema.names)})")
        pointers, indices, values = _worker(self.model._unchanged_path, self.options).encode(batch.column(self.vectors))
        lists = [pa.ListArray.from_arrays(pa.array(pointers, pa.int32()), pa.array(part)) for part in (indices, values)]
        return type(batch).from_arrays([*(batch.column(name) for name in self.keep), *lists], [*self.keep, "indices", "values"])

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yields the codes of batches."""
        return map(self, batches)


class _Worker:
    """A process of the program that encodes batches with a model."""

    def __init__(self, model: Path, options: Sequence[Any]) -> None:
        self.dense = np.load(model / "dictionary.npy", mmap_mode="r").shape[1]
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        line = [program(), "pipe", str(model), *map(str, options)]
        # The program has its own session, so that an interrupt of Python doesn't reach it. It ends when its input ends.
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True)
        self.lock = threading.Lock()

    def encode(self, column: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the row pointers, dimensions and values of a column of lists."""
        x = self._matrix(column)
        with self.lock:
            try:
                assert self.process.stdin and self.process.stdout
                self.process.stdin.write(struct.pack("<q", len(x)))
                self.process.stdin.write(x.tobytes())
                self.process.stdin.flush()
                pointers = self._read("<i8", len(x) + 1)
                return pointers, self._read("<i4", pointers[-1]), self._read("<f4", pointers[-1])
            except BaseException as error:  # the output is out of step: end the program
                if not isinstance(error, (BrokenPipeError, EOFError)):
                    self.process.kill()
                    raise
                code = self.process.wait()
                self.errors.seek(0)
                raise failure(code, self.errors.read().splitlines()) from None

    def _read(self, kind: str, n: int) -> np.ndarray:
        assert self.process.stdout
        size = n * np.dtype(kind).itemsize
        data = self.process.stdout.read(size)
        if len(data) < size:
            raise EOFError
        return np.frombuffer(data, kind)

    def _matrix(self, column: Any) -> np.ndarray:
        """Returns a column of lists as an n×L array of float32."""
        import pyarrow as pa
        import pyarrow.compute as pc

        t = pa.types
        lists = t.is_list(column.type) or t.is_large_list(column.type) or t.is_fixed_size_list(column.type)
        if not lists or not any(is_type(column.type.value_type) for is_type in (t.is_floating, t.is_integer, t.is_decimal, t.is_null)):
            raise ValueError(f"the column of vectors has the wrong type (got {column.type}, want lists of {self.dense} numbers)")
        lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy()
        if (lengths != self.dense).any():
            row = int(np.argmax(lengths != self.dense))
            got = "null" if lengths[row] < 0 else lengths[row]
            raise ValueError(f"row {row + 1} of the batch has a vector of the wrong length (got {got}, want {self.dense} numbers)")
        flat = pc.list_flatten(column)
        return np.ascontiguousarray(pc.fill_null(flat.cast(pa.float32(), safe=False), np.nan).to_numpy()).reshape(-1, self.dense)


_workers: dict[Any, _Worker] = {}
_starting = threading.Lock()


def _worker(model: Path, options: Sequence[Any]) -> _Worker:
    """Returns the worker of this process for a model, and starts it if none is running."""
    key = (os.getpid(), model, (model / "model.json").read_bytes(), tuple(options))
    with _starting:
        if key not in _workers or _workers[key].process.poll() is not None:
            _workers[key] = _Worker(model, options)
        return _workers[key]
