"""Sparse, overcomplete vectors whose dimensions people can read.

    from overcomplete_vectors import SparseEmbedding, Model, run

    codes = SparseEmbedding(n_components=1024, nonzeros=40).fit_transform(X)

    run("train", "sentences.parquet", "-o", "model")
    model = Model.load("model")
    model.explore()

`SparseEmbedding` is a scikit-learn transformer and requires scikit-learn. `Model` opens a model on disk. `BatchEncoder`
encodes Arrow batches for Spark and Ray. `run` runs any command of the program `overcomplete`, which the package contains.
"""

from typing import Any

from ._batches import BatchEncoder
from ._model import Model
from ._program import run

__all__ = ["BatchEncoder", "Model", "SparseEmbedding", "run"]


def __getattr__(name: str) -> Any:
    if name == "SparseEmbedding":
        try:
            from ._sklearn import SparseEmbedding
        except ImportError as error:
            raise ImportError("SparseEmbedding needs scikit-learn: pip install 'scikit-learn>=1.6'") from error
        return SparseEmbedding
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
