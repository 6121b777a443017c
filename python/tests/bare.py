"""Tests the package with only NumPy and SciPy installed. Run it with -W error."""

import tempfile
from pathlib import Path

import numpy as np
from overcomplete_vectors import Model, run

sample = Path(__file__).resolve().parents[2] / "testdata" / "godoc.50d.txt.gz"
with tempfile.TemporaryDirectory() as folder:
    run("train", sample, "-o", Path(folder) / "model", "--epochs", 1)
    model = Model.load(Path(folder) / "model")
    table = model.nearest("mutex", 3)
    assert isinstance(table, dict) and len(table["word"]) == 3, table
    assert model.encode(np.ones((2, 50))).shape == (2, 500)
    del model
try:
    from overcomplete_vectors import SparseEmbedding
except ImportError as error:
    assert str(error) == "SparseEmbedding needs scikit-learn: pip install 'scikit-learn>=1.6'", error
else:
    raise AssertionError(f"imported {SparseEmbedding} without scikit-learn")
