"""A scikit-learn transformer."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from ._model import Model, encode, option, workers
from ._program import is_column, matrix, run, save


class SparseEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sparse codes of dense vectors, with dimensions that people can read.

    A row x of X is encoded as a sparse code a of n_components numbers with x ≈ μ + aD. The dictionary D is learned from
    at most 16,000 random rows of X, or 2·K if that is more, by online dictionary learning.

        codes = SparseEmbedding(n_components=1024, nonzeros=40).fit_transform(X)

    Parameters
    ----------
    n_components : int, optional
        Number of dimensions, K. The default for X of n×L is the least of 10·L, 2,359,296/L and n/2.
    method : "A" or "B"
        Codes have either sign with A, and are nonnegative with B.
    sparsity : float, optional
        Fraction of zeros in the codes. The default is 0.97, lower if rows would have fewer than 8 nonzeros.
    nonzeros : int, optional
        Maximum number of nonzeros per row, as an alternative to sparsity.
    epochs : int, optional
        Maximum number of epochs. The default is 4.
    random_state : int or numpy.random.RandomState
        Seed, or a generator that draws it. None means 1. The training rows are the same for any seed, and so is the row
        from which an atom is initialised and towards which it is regularised. Most dimensions therefore don't depend on it.
    n_jobs : int, optional
        Number of processors. The default and −1 mean all, −2 all except one. Results don't depend on it.
    device : str
        "cpu", "cuda" (an NVIDIA GPU), or "auto" (a GPU if available, otherwise the CPU).
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    components_ : array of K×L float32
        The atoms D.
    mean_ : array of L float32
        The mean μ.
    reconstruction_err_ : float
        Reconstruction error: the mean of ‖x − μ − aD‖² over the rows of X.
    n_nonzero_ : int
        Maximum nonzeros per row.
    n_features_in_, feature_names_in_ :
        As in other estimators.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        method: str = "B",
        sparsity: float | None = None,
        nonzeros: int | None = None,
        epochs: int | None = None,
        random_state: int | np.random.RandomState | None = 1,
        n_jobs: int | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.sparsity = sparsity
        self.nonzeros = nonzeros
        self.epochs = epochs
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, texts: Sequence[str] | None = None, stop_words: Sequence[str] = ()) -> "SparseEmbedding":
        """Trains a dictionary on X, n×L. If texts are given, one per row, keywords of the texts label the dimensions.

        The keywords leave out the stop words.

        Raises ValueError if X, texts or a parameter is invalid.
        """
        self._fit(X, texts, stop_words)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, texts: Sequence[str] | None = None, stop_words: Sequence[str] = ()) -> Any:
        """Trains a dictionary on X, n×L, and returns the codes of X, n×K, the same as fit followed by transform."""
        return self._output(self._fit(X, texts, stop_words), X)

    def _fit(self, X: Any, texts: Sequence[str] | None, stop_words: Sequence[str]) -> sp.csr_array:
        self._of_column = is_column(X)
        X = validate_data(self, matrix(X), dtype=np.float32, ensure_min_samples=2)
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(np.iinfo(np.int32).max)
        with tempfile.TemporaryDirectory(prefix="overcomplete-") as name:
            folder = Path(name)
            save(folder / "X.npy", X)
            if texts is not None:
                column = np.asarray(texts if hasattr(texts, "__array__") else list(texts), object)
                if column.shape != (len(X),):
                    raise ValueError(f"texts: want one for each row of X (got shape {column.shape} for {len(X)} rows)")
                lines = (json.dumps({"text": text if isinstance(text, str) else ""}) + "\n" for text in column)
                (folder / "texts.jsonl").write_text("".join(lines), "utf-8", newline="\n")
            options = [
                *option("--words", None if texts is None else "texts.jsonl"),
                *option("-k", self.n_components), *option("--sparsity", self.sparsity), *option("--nonzeros", self.nonzeros),
                *option("--epochs", self.epochs), *workers(self.n_jobs), *option("--seed", seed),
                "--method", str(self.method), "--rows", "texts", "--topics", 0, "--device", str(self.device), "--progress" if self.verbose else "--quiet",
            ]  # fmt: skip
            run("train", "X.npy", "-o", "model", *options, verbose=self.verbose, cwd=folder)
            info = json.loads((folder / "model/model.json").read_text("utf-8"))
            self.components_ = np.load(folder / "model/dictionary.npy")
            self.mean_ = np.load(folder / "model/mean.npy")
            codes = sp.csr_array(sp.load_npz(folder / "model/codes.npz"))
            self._labels = [""] * len(self.components_)
            if texts is not None:
                model = Model.load(folder / "model")
                model.set_stop_words(stop_words)
                self._labels = model.labels
        self.n_nonzero_ = int(info["encoding"]["nonzeros"])
        self.reconstruction_err_ = float(info["encoding"]["error"])
        self._n_features_out = len(self.components_)
        self._info = json.dumps(info)
        return codes

    def transform(self, X: Any) -> Any:
        """Returns the codes of X, n×K, as a csr_array or, after set_output, a data frame."""
        check_is_fitted(self)
        x = validate_data(self, matrix(X), dtype=np.float32, reset=False)
        with tempfile.TemporaryDirectory(prefix="overcomplete-") as name:
            model = Path(name)
            (model / "model.json").write_text(self._info, "utf-8")
            np.save(model / "dictionary.npy", self.components_)
            np.save(model / "mean.npy", self.mean_)
            codes = encode(model.resolve(), x, self.n_nonzero_, self.n_jobs, self.device, self.verbose)
        return self._output(codes, X)

    def _output(self, codes: sp.csr_array, X: Any) -> Any:
        """Returns codes in the container of set_output; data frames of pandas have the index of X."""
        container = _get_output_config("transform", self)["dense"]
        if container == "default":
            return codes
        if container != "pandas":
            return codes.toarray()
        import pandas as pd

        return pd.DataFrame.sparse.from_spmatrix(codes, index=X.index if hasattr(X, "iloc") else None)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Returns the names of the K dimensions: distinct labels or, without texts, names such as sparseembedding7."""
        check_is_fitted(self)
        # The name of a column of lists isn't the name of a feature.
        names = super().get_feature_names_out(None if self._of_column else input_features)
        return np.asarray([label or name for label, name in zip(self._labels, names)], dtype=object)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Returns the reconstructions μ + aD of codes a, n×L."""
        check_is_fitted(self)
        return np.asarray(X @ self.components_ + self.mean_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
