"""Tests of examples/search: each engine finds the rows that NumPy finds, in the same order."""

import json
import os
import runpy
import shutil
import tempfile
import unittest
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from overcomplete_vectors import Model, run
from qdrant_client import models

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "search"


class Recipes(unittest.TestCase):
    method = "B"

    @classmethod
    def setUpClass(cls):
        folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.addClassCleanup(os.chdir, os.getcwd())
        os.chdir(folder)
        rng = np.random.default_rng(5)
        directions = rng.normal(size=(60, 24))
        x = np.stack([rng.exponential(size=4) @ directions[rng.choice(60, 4, replace=False)] for _ in range(620)]).astype(np.float32)
        cls.x, cls.queries = x[:600], x[600:]  # the last 100 rows are added to the index later
        rows = {"id": [f"t{i}" for i in range(600)], "text": [f"text {i % 50}" for i in range(600)]}
        rows |= dict.fromkeys(["codes", "dense", "score", "file_row_number", "dimension", "_id"], rows["text"])  # names that recipes use
        rows |= dict.fromkeys(["features", "values"], [2**53 + i % 3 for i in range(600)])  # reserved names, exported as features_ and values_
        rows |= {"long": ["é" * 20_000] * 600, "half": [i / 2 for i in range(600)]}
        table = pa.table(rows | {"embedding": list(cls.x)})
        pq.write_table(table.slice(0, 500), "sentences.parquet")
        pq.write_table(table.slice(500), "new.parquet")
        pq.write_table(pa.table({"embedding": [*cls.x[500:599], np.zeros(24, np.float32)]}), "blank.parquet")
        run("train", "sentences.parquet", "-o", "model", "-k", 320, "--nonzeros", 12, "--method", cls.method, "--topics", 0)
        run("train", "sentences.parquet", "-o", "other", "-k", 320, "--nonzeros", 12, "--method", cls.method, "--topics", 0, "--seed", 2)
        run("encode", "model", "new.parquet", "-o", "new")
        cls.model = Model.load("model")
        codes = np.vstack([Model.load(name).codes.toarray() for name in ("model", "new")])
        cls.index = codes / np.linalg.norm(cls.model.mean + codes @ cls.model.dictionary, axis=1, keepdims=True)
        cls.stored = cls.index
        cls.dense = cls.x / np.linalg.norm(cls.x, axis=1, keepdims=True)

    def largest(self, products):
        """Returns the products with zeros in place of all but the 128 largest weights."""
        keys = np.abs(products) if self.method == "A" else np.maximum(products, 0)
        return np.where(keys >= np.sort(keys)[-128], products * (keys > 0), 0)

    def score(self, rows, weights):
        return rows @ weights

    def nearest(self, x, rerank, where=slice(None), steering=0):
        """Returns the ids that a search must find, best first."""
        rows = np.arange(len(self.x))[where]
        products = self.model.dictionary @ (x / np.linalg.norm(x)) + steering
        scores = {None: self.score(self.stored, self.largest(products)), "products": self.index @ products, "dense": self.dense @ x}
        best = rows[np.argsort(-scores[None][rows])][:100]
        return [f"t{i}" for i in best[np.argsort(-scores[rerank][best])][:10]]

    def check(self, recipe, where, module=None):
        """Compares a recipe with NumPy. The argument where selects rows with values_ 2⁵³ + 2; with the name of a module, it returns the filter."""
        self.assertLessEqual((RECIPES / recipe).read_text("utf-8").count("\n"), 40)
        names = runpy.run_path(str(RECIPES / recipe))
        search = names["search"]
        where = where(names[module]) if module else where
        with self.assertRaisesRegex(ValueError, "other was not encoded with the dictionary of"):
            names["add"]("other", "sentences.parquet")
        names["add"]("new", "new.parquet")
        recall = dict.fromkeys((None, "products", "dense"), 0.0)
        for x in self.queries[:10]:
            for rerank in recall:
                found = search(x, rerank=rerank)
                self.assertEqual(found, self.nearest(x, rerank))
                recall[rerank] += len(set(found) & {f"t{i}" for i in np.argsort(-self.dense @ x)[:10]}) / 100
        self.assertGreater(recall[None], 0.5)
        self.assertGreater(recall["products"], 0.75)
        self.assertGreater(recall["dense"], 0.95)
        x = self.queries[0]
        self.assertEqual(search(x, where=where), self.nearest(x, "dense", slice(2, None, 3)))
        steering = np.zeros(320)
        steering[[7, 8]] = 0.5, -0.25
        for rerank in (None, "products"):
            self.assertEqual(search(x, rerank=rerank, more={7: 0.5}, less={8: 0.25}), self.nearest(x, rerank, steering=steering))
        for i in (3, 599):
            x, row = self.x[i], self.index[i]
            parts = row * self.largest(self.model.dictionary @ (x / np.linalg.norm(x)))
            for (label, part), k in zip(names["explain"](x, f"t{i}"), np.argsort(-parts)[:3], strict=True):
                self.assertEqual(label, self.model.label(k, row[k]))
                self.assertAlmostEqual(part, parts[k], 5)
        for encoded, file in ("new", "sentences.parquet"), ("model", "new.parquet"):  # more and fewer vectors than rows
            with self.assertRaisesRegex(Exception, "is longer than|is shorter than|a vector for each row"):
                names["add"](encoded, file)
            for rerank in recall:
                self.assertEqual(search(x, rerank=rerank), self.nearest(x, rerank))
        names["add"]("new", "blank.parquet")  # without the vector of t599
        self.assertIn("t599", search(x, rerank=None))
        self.assertEqual(search(x, 9), self.nearest(x, "dense")[1:])
        names["delete"]("t599")
        self.assertEqual(search(x, 9), self.nearest(x, "dense")[1:])
        for _ in range(2):  # replaces rows
            names["add"]("new", "new.parquet")
        for rerank in recall:
            self.assertEqual(search(x, rerank=rerank), self.nearest(x, rerank))
        return names


class TestRecipes(Recipes):
    def test_scipy(self):
        self.check("scipy_csr.py", lambda row: row["values_"] > 2**53 + 1)

    def test_qdrant(self):
        self.check("qdrant.py", models.Filter(must=[models.FieldCondition(key="values_", match=models.MatchValue(value=2**53 + 2))]))

    def test_duckdb(self):
        names = self.check("duckdb_sql.py", "values_ > 9007199254740993")
        pq.write_table(pa.table({"embedding": ["no vector"] * 100}), "strings.parquet")
        with self.assertRaises(duckdb.ConversionException):
            names["add"]("new", "strings.parquet")
        self.assertEqual(names["search"](self.x[599]), self.nearest(self.x[599], "dense"))
        labels = json.loads(Path("labels.json").read_text("utf-8"))
        self.assertEqual({int(k): label for k, label in labels.items()}, {k: label for k, label in enumerate(self.model.labels) if label})

    def test_milvus(self):
        self.check("milvus.py", "values_ > 9007199254740993")["client"].close()


class TestSigned(Recipes):
    """Codes of method A have both signs, as do weights for them."""

    method = "A"

    test_scipy, test_qdrant = TestRecipes.test_scipy, TestRecipes.test_qdrant

    def test_duckdb(self):
        self.check("duckdb_sql.py", "values_ > 9007199254740993")


if __name__ == "__main__":
    unittest.main()
