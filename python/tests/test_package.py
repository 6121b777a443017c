"""Tests of the package, against NumPy, SciPy and the output of the program."""

import contextlib
import datetime
import json
import os
import pickle
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
import warnings
from multiprocessing.pool import ThreadPool
from pathlib import Path
from unittest import mock

import nbformat
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from nbclient import NotebookClient
from overcomplete_vectors import BatchEncoder, Model, SparseEmbedding, _batches, _model, _program, run
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

SAMPLE = Path(__file__).resolve().parents[2] / "testdata" / "godoc.50d.txt.gz"


def planted(n=400, dense=12, atoms=24, seed=3):
    """Returns n rows, each a sum of three directions and noise, and the index of each row's strongest direction."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(atoms, dense))
    chosen = np.array([rng.choice(atoms, 3, replace=False) for _ in range(n)])
    x = directions[chosen[:, 0]] * 2 + directions[chosen[:, 1]] + directions[chosen[:, 2]]
    return (x + rng.normal(scale=0.05, size=x.shape)).astype(np.float32), chosen[:, 0]


def wait_until(condition):
    """Waits at most a minute for a condition."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "the condition was not met within a minute"
        time.sleep(0.01)


class Folder(unittest.TestCase):
    """A test whose temporary files are in its own folder."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "temporary").mkdir()
        self.enterContext(mock.patch("tempfile.tempdir", str(self.folder / "temporary")))

    def tearDown(self):
        self.assertEqual(list((self.folder / "temporary").glob("overcomplete-*")), [])

    def fake(self, script):
        """Replaces the program by a shell script."""
        path = self.folder / "fake"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return mock.patch.dict(os.environ, OVERCOMPLETE=str(path))


def answers(address):
    try:
        urllib.request.urlopen(address, timeout=1).close()
    except (urllib.error.URLError, ConnectionError):
        return False
    return True


class TestRun(Folder):
    def test_prints(self):
        self.assertRegex(run("version"), r"^overcomplete \d+\.\d+\.\d+\ncommit ")

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, r"^no flag --nothing; "):
            run("train", "--nothing")
        with self.assertRaisesRegex(ValueError, r"^nowhere\.txt: no such file or directory"):
            run("train", "nowhere.txt", "-o", self.folder / "model")
        with self.fake("echo overcomplete: no room >&2; exit 1"), self.assertRaisesRegex(RuntimeError, "^no room$"):
            run("train")
        with self.fake("echo panic; echo stack trace >&2; kill -9 $$"), self.assertRaisesRegex(RuntimeError, "^stack trace$"):
            run("train")
        with self.fake("kill -9 $$"), self.assertRaisesRegex(RuntimeError, "^overcomplete was ended by signal 9$"):
            run("train")
        with self.fake("exit 130"), self.assertRaises(KeyboardInterrupt):
            run("train")

    def test_warnings(self):
        with self.fake("echo 'warning: that is odd' >&2; echo done"), self.assertWarnsRegex(UserWarning, "^that is odd$"):
            self.assertEqual(run("train"), "done\n")

    def test_tables(self):
        """A model trained on a table has its ids, texts and columns, and the codes of its vectors."""
        x, kind = planted()
        frame = pd.DataFrame({"id": [f"t{i}" for i in range(len(x))], "text": [f"text {k}" for k in kind], "kind": [f"k{k}" for k in kind], "embedding": list(x)})
        np.save(self.folder / "x.npy", x)
        run("train", self.folder / "x.npy", "-o", self.folder / "of_array", "--rows", "texts", "-k", 24)
        want = Model.load(self.folder / "of_array").codes
        for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            run("train", table, "-o", self.folder / "model", "-k", 24, "--force")
            m = Model.load(self.folder / "model")
            pd.testing.assert_frame_equal(m.texts, frame.drop(columns="embedding"), check_dtype=False)
            self.assertEqual((m.codes != want).nnz, 0, type(table))
        some = frame[frame["kind"] == "k3"]
        run("train", some, "-o", self.folder / "some", "-k", 5)
        self.assertEqual(list(Model.load(self.folder / "some").texts), ["id", "text", "kind"])  # without the numbers of rows
        run("train", some.set_index("id"), "-o", self.folder / "some", "-k", 5, "--force")
        self.assertEqual(Model.load(self.folder / "some").words, some["id"].tolist())
        run("encode", self.folder / "model", frame[:9], "-o", self.folder / "codes")
        self.assertEqual((Model.load(self.folder / "codes").codes != m.encode(x[:9])).nnz, 0)
        run("train", frame[:150], pl.from_pandas(frame[150:]), "-o", self.folder / "model", "-k", 24, "--force")
        m = Model.load(self.folder / "model")
        self.assertEqual(m.words, frame["id"].tolist())
        self.assertEqual((m.codes != want).nnz, 0)
        with self.assertRaisesRegex(ValueError, "frame.parquet"):
            run("train", frame.drop(columns="embedding"), "-o", self.folder / "none")
        splits = type("DatasetDict", (dict,), {"column_names": {}})()  # of Hugging Face
        for no_table in (x, x.tolist(), frame["embedding"], pl.LazyFrame(frame), pa.RecordBatch.from_pandas(frame), {"text": ["a"]}, splits, None, b"a.txt"):
            with self.assertRaisesRegex(TypeError, f"^argument 2 has type {type(no_table).__name__}, want a string, a path, a number or a table \\("):
                run("train", no_table, "-o", self.folder / "none")

    def test_much_output(self):
        with self.fake("head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero | tr '\\0' '\\n' >&2"):
            self.assertEqual(len(run("train")), 3_000_000)

    def test_progress(self):
        with mock.patch("sys.stderr") as stderr:
            run("train", SAMPLE, "-o", self.folder / "model", "--epochs", 4, "--progress", verbose=True)
        text = "".join(call.args[0] for call in stderr.write.call_args_list)
        self.assertIn("\r█████░░░░░░░░░░░░░░░ epoch 1/4 ", text)
        self.assertIn("\r████████████████████ epoch 4/4 ", text)

    def test_interrupt_ends_the_program(self):
        pid = self.folder / "pid"
        script = f"trap 'echo stopped >{pid}; exit 130' INT; echo $$ >{pid}; echo epoch 1/9 >&2; while :; do sleep 0.01; done"
        with self.fake(script), mock.patch.object(_program, "_show", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            run("train", verbose=True)
        self.assertEqual(pid.read_text(), "stopped\n")

    def test_interrupted_fit_leaves_nothing(self):
        x, _ = planted()
        with mock.patch.object(_program, "_show", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            SparseEmbedding(epochs=1000, verbose=True).fit(x)


    def test_program_missing_or_another(self):
        with mock.patch.dict(os.environ, OVERCOMPLETE="", PATH=""), mock.patch("sysconfig.get_path", return_value=str(self.folder)):
            with self.assertRaisesRegex(FileNotFoundError, "^the program overcomplete is missing"):
                run("version")
        with mock.patch("importlib.metadata.version", return_value="9.9.9"), self.fake("echo overcomplete 0.0.1"):
            with self.assertRaisesRegex(RuntimeError, "fake has the wrong version \\(want overcomplete 9.9.9\\); reinstall overcomplete-vectors"):
                run("train")
        with mock.patch("importlib.metadata.version", return_value=run("version").split()[1]):
            _program.check_version.cache_clear()
            run("version")
        _program.check_version.cache_clear()


class TestModel(Folder):
    @classmethod
    def setUpClass(cls):
        cls.models = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.models)
        run("train", SAMPLE, "-o", cls.models / "words", "-k", 200, "--nonzeros", 8)
        x, kind = planted()
        cls.x = x
        texts = [["first", "second"][k % 2] + f" text of kind {k}\nin two lines" for k in kind]
        texts[5] = texts[6] = ""
        pq.write_table(pa.table({"id": [f"t{i}" for i in range(len(x))], "text": texts, "kind": kind, "embedding": list(x)}), cls.models / "x.parquet")
        run("train", cls.models / "x.parquet", "-o", cls.models / "texts", "-k", 24, "--nonzeros", 3)
        cls.texts = texts

    def test_arrays(self):
        m = Model.load(self.models / "words")
        want = sp.load_npz(self.models / "words/codes.npz")
        self.assertEqual((m.codes != want).nnz, 0)
        self.assertEqual(m.codes.shape, (5000, 200))
        for array in (m.codes.data, m.codes.indices, m.dictionary):  # arrays that are mapped from disk
            while not isinstance(array, np.memmap) and array.base is not None:
                array = array.base
            self.assertIsInstance(array, np.memmap)
        np.testing.assert_array_equal(m.dictionary, np.load(self.models / "words/dictionary.npy"))
        np.testing.assert_array_equal(m.mean, np.load(self.models / "words/mean.npy"))
        self.assertEqual(m.words[:3], (self.models / "words/words.txt").read_text().split("\n")[:3])
        self.assertIsNone(m.texts)
        self.assertEqual(repr(m), "<words: 5,000 words × 200 sparse dimensions from 50>")

    def test_top(self):
        m = Model.load(self.models / "words")
        column = m.codes.toarray()[:, 7]
        for negative in (False, True):
            table = m.top(7, 5, negative)
            order = np.argsort(column if negative else -column, kind="stable")[:5]
            self.assertEqual(list(table.columns), ["row", "word", "value"])
            self.assertEqual(table["word"].tolist(), [m.words[i] for i in order])
            np.testing.assert_array_equal(table["value"], column[order].astype(float))

    def test_nearest(self):
        m = Model.load(self.models / "words")
        a = m.codes.toarray().astype(float)
        row = m.words.index("mutex")
        cosines = a @ a[row] / (np.linalg.norm(a, axis=1) * np.linalg.norm(a[row]))
        cosines[row] = -1
        table = m.nearest("mutex", 7)
        np.testing.assert_allclose(table["cosine"], np.sort(cosines)[:-8:-1], rtol=1e-6)
        self.assertEqual(m.nearest(row, 7)["word"].tolist(), table["word"].tolist())
        printed = json.loads(run("nearest", m.path, "mutex", "-n", 7, "--json"))
        self.assertEqual(printed["nearest"][0]["word"], table["word"][0])
        self.assertAlmostEqual(printed["nearest"][0]["cosine"]["sum"], table["cosine"][0], 5)
        more, less = (int(k) for k in np.argsort(-np.abs(a[row]))[:2])
        table = m.nearest("mutex", 50, more={more: 2}, less={less: 0.25})
        scores = dict(zip(table["word"], table["score"]))
        printed = json.loads(run("nearest", m.path, "mutex", "-n", 7, "--more", f"{more}=2", "--less", f"{less}=0.25", "--json"))["nearest"]
        np.testing.assert_allclose([scores[n["word"]] for n in printed], [n["score"] for n in printed], atol=1e-6)
        self.assertTrue(table["score"].is_monotonic_decreasing)

    def test_query(self):
        m = Model.load(self.models / "texts")
        for options, flags in [({}, []), ({"weights": 5, "more": {3: 0.25}, "less": {1: 2}}, ["--weights", 5, "--more", "3=0.25", "--less", "1=2"]), ({"signed": True}, ["--signed"])]:
            printed = [json.loads(line) for line in run("query", m.path, self.models / "x.parquet", *flags).split("\n")[:-1]]
            for x, row in zip(self.x, printed, strict=True):
                dimensions, weights = m.query(x, **options)
                self.assertEqual(dimensions, row["indices"])
                np.testing.assert_allclose(weights, row["values"], rtol=1e-4, atol=1e-6)  # sums of float32
        with self.assertRaisesRegex(ValueError, "^x is not a dense vector of 12 finite numbers \\(got 3 numbers\\)$"):
            m.query([1, 2, 3])
        with self.assertRaisesRegex(ValueError, "finite"):
            m.query([np.nan] * 12)
        with self.assertRaisesRegex(ValueError, "^x is a string"):
            m.query("seven")
        with self.assertRaisesRegex(IndexError, r"no dimension 24 \(want 0 to 23\)"):
            m.query(self.x[0], more={24: 1})
        for scale in (1e-30, 1e30):  # float32 can't hold their squares
            np.testing.assert_allclose(m.query(self.x[0] * scale)[1], m.query(self.x[0])[1], rtol=1e-5)
        for options, flags in [({"weights": -1}, ["--weights", -1]), ({"weights": 0}, ["--weights", 0]), ({"weights": 1.5}, ["--weights", 1.5]), ({"weights": True}, ["--weights", True]), ({"more": {3: np.nan}}, ["--more", "3=nan"]),
                               ({"less": {3: -1}}, ["--less", "3=-1"]), ({"more": {3: 1e7}}, ["--more", "3=1e7"]), ({"more": {True: 1}}, ["--more", "True=1"]),
                               ({"more": {3: 1}, "less": {3: 1}}, ["--more", "3=1", "--less", "3=1"])]:
            with self.assertRaises((ValueError, IndexError), msg=options):
                m.query(self.x[0], **options)
            with self.assertRaises(ValueError, msg=flags):
                run("query", m.path, self.models / "x.parquet", *flags)
        signed = Model.load(self.models / "words")  # has method A
        self.assertLess(min(signed.query(np.ones(50))[1]), 0)

    def test_rows(self):
        m = Model.load(self.models / "texts")
        codes, norms = m.codes.toarray(), np.linalg.norm(m.mean + m.codes @ m.dictionary, axis=1)
        for normalize in (True, False):
            rows = list(m.rows(normalize=normalize))
            self.assertEqual([row["id"] for row in rows], m.words)
            for i, row in enumerate(rows):
                self.assertEqual(list(row), ["id", "text", "kind", "dimensions", "indices", "values"])
                self.assertIsInstance(row["kind"], int)
                want = codes[i] / norms[i] if normalize else codes[i]
                self.assertEqual(row["indices"], np.flatnonzero(codes[i]).tolist())
                np.testing.assert_allclose(row["values"], want[row["indices"]], rtol=1e-5)
        new = self.folder / "new"
        run("encode", m.path, self.models / "x.parquet", "-o", new, "--max-rows", 2)
        self.assertEqual(list(m.rows(new)), list(Model.load(new).rows()))
        with self.assertRaisesRegex(ValueError, "words was not encoded with the dictionary of"):
            list(m.rows(self.models / "words"))

    def test_explain_and_labels(self):
        m = Model.load(self.models / "words")
        table = m.explain("mutex", 3)
        code = m.codes[[m.row("mutex")]].toarray()[0]
        self.assertEqual(table["dimension"].tolist(), np.argsort(-np.abs(code), kind="stable")[:3].tolist())
        printed = json.loads(run("top", m.path, int(table["dimension"][0]), "--json"))
        self.assertEqual(table["label"][0], printed[0]["poles"][0]["label"])
        self.assertEqual(len(m.labels), 200)
        table = m.explain("mutex", 200)  # has method A: a negative value has the label of the negative pole
        negative = table[table["value"] < 0]
        self.assertGreater(len(negative), 0)
        self.assertTrue(negative["label"].str.startswith("−").all())
        self.assertFalse(table[table["value"] > 0]["label"].str.startswith("−").any())

    def test_texts(self):
        m = Model.load(self.models / "texts")
        self.assertEqual(m.texts["text"].tolist(), self.texts)
        self.assertEqual(list(m.texts.columns), ["id", "text", "kind"])
        self.assertEqual(m.row("t17"), 17)
        self.assertEqual(list(m.nearest("t17", 2).columns), ["row", "id", "cosine", "text"])
        query = self.texts[17].split()[-1]
        found = m.search(query, 500)
        self.assertEqual(list(found.columns), ["row", "id", "text"])
        self.assertEqual(sorted(found["text"]), sorted(t for t in self.texts if query in t.split()))
        np.save(self.folder / "x.npy", self.x[:9])
        (self.folder / "texts.txt").write_text("one 3\ntwo three\none two\nt0\n3 - 4\n" + "else\n" * 4)
        run("train", self.folder / "x.npy", "--words", self.folder / "texts.txt", "--rows", "texts", "-o", self.folder / "model", "-k", 5, "--topics", 0)
        m = Model.load(self.folder / "model")
        # Texts with all words come first. A number is neither a dimension nor an id, and a minus subtracts nothing.
        for query, want in {"one two": [2, 0, 1], "3": [0, 4], "two - three": [1, 2], '"two': [1, 2], "«two»": [1, 2], "4": [4], "#4": [4]}.items():
            self.assertEqual(m.search(query)["row"].tolist(), want, query)
            self.assertEqual(m.search(query, 1)["row"].tolist(), want[:1], query)
        self.assertEqual(m.row("8"), 8)
        with self.assertRaisesRegex(ValueError, '^no text has a word of "8"$'):
            m.search("8")
        with self.assertRaisesRegex(ValueError, "words: the rows are words, not texts"):
            Model.load(self.models / "words").search("mutex")
        with mock.patch.dict(sys.modules, pandas=None):
            table = m.top(3, 2)
        self.assertEqual((type(table), list(table)), (dict, ["row", "id", "value", "text"]))

    def test_stop_words(self):
        shutil.copytree(self.models / "texts", self.folder / "model")
        m = Model.load(self.folder / "model")
        before = m.labels
        self.assertTrue(any("kind" in label for label in before), before)
        m.set_stop_words(["KIND", "lines"])
        words = [label for label in m.labels if not label.endswith("…")]  # the others quote a text
        self.assertFalse(any("kind" in label and "…" not in label for label in words), words)  # … ends the beginning of a text
        self.assertTrue(words)
        m.set_stop_words("kind")
        self.assertEqual((m.path / "stop_words.txt").read_text(), "kind\n")
        m.set_stop_words([])
        self.assertEqual(m.labels, before)
        with self.assertRaisesRegex(ValueError, "rows of .*words are words"):
            Model.load(self.models / "words").set_stop_words(["a"])

    def test_encode(self):
        m = Model.load(self.models / "texts")
        for x in (self.x, self.x.astype(float), self.x.tolist(), pl.DataFrame(self.x), pd.DataFrame(self.x), pd.Series(list(self.x)),
                  pq.read_table(self.models / "x.parquet")["embedding"], pl.read_parquet(self.models / "x.parquet")["embedding"]):  # fmt: skip
            self.assertEqual((m.encode(x) != m.codes).nnz, 0, type(x))
        self.assertLessEqual(np.diff(m.encode(self.x, nonzeros=1).indptr).max(), 1)
        self.assertEqual(m.nearest(self.x[17], 1)["id"][0], "t17")
        self.assertEqual(m.explain(self.x[17])["dimension"].tolist(), m.explain("t17")["dimension"].tolist())

    def test_topics(self):
        run("train", self.models / "x.parquet", "-o", self.folder / "model", "-k", 24, "--nonzeros", 3, "--topics", 6)
        m = Model.load(self.folder / "model")
        printed = json.loads(run("topics", m.path, "--json"))
        table, rows = m.topics(), m.row_topics()
        self.assertEqual(list(table.columns), ["id", "label", "share", "count", "examples"])
        self.assertEqual(rows, printed["rows"])
        self.assertEqual(table["label"].tolist(), [topic["label"] for topic in printed["topics"]])
        for topic in table.itertuples():
            self.assertEqual(topic.count, rows.count(topic.id))
            self.assertTrue(set(topic.examples) <= {" ".join(text.split()) for text in self.texts}, topic.examples)
            within = m.topics(within=topic.id)
            self.assertIn(within["count"].sum(), (0, topic.count))
        with self.assertRaises(KeyError):
            m.topics(within=99)
        table = m.topics(3, column="kind")
        self.assertEqual(len(table), 3)
        self.assertEqual(set(table["id"]), set(m.row_topics(3)) - {None})
        for topic in table.itertuples():
            best = max(topic.values, key=topic.values.get)
            kinds = [kind for kind, of in zip(m.texts["kind"], m.row_topics(3)) if of == topic.id]
            self.assertAlmostEqual(topic.values[best], kinds.count(best) / len(kinds))
        with self.assertRaisesRegex(ValueError, "has no topics"):
            Model.load(self.models / "words").topics()
        new = self.folder / "new"
        run("encode", m.path, self.models / "x.parquet", "-o", new, "--max-rows", 100)
        table = m.topics(encoded=new)
        self.assertEqual(dict(zip(table["id"], table["label"])).items() - dict(zip(m.topics()["id"], m.topics()["label"])).items(), set())
        self.assertEqual((table["count"].sum(), m.row_topics(encoded=new)), (98, rows[:100]))  # two texts are empty

    def test_topics_over_time(self):
        """The periods are the same as in pandas."""
        days = pd.Series(pd.date_range("1968-11-20", periods=len(self.x), freq="31h", tz="Asia/Kolkata"))
        table = pa.table({"text": [f"text {k}" for k in range(len(self.x))], "day": days.map(lambda d: d.isoformat()), "kind": ["a"] * len(self.x), "embedding": list(self.x)})
        pq.write_table(table, self.folder / "x.parquet")
        run("train", self.folder / "x.parquet", "-o", self.folder / "model", "-k", 24, "--nonzeros", 3, "--topics", 3)
        m = Model.load(self.folder / "model")
        for by, code in {"day": "D", "week": "W-SUN", "month": "M", "quarter": "Q", "year": "Y", None: "M"}.items():
            periods = days.dt.tz_localize(None).dt.to_period(code)
            every = pd.period_range(periods.min(), periods.max(), freq=code)
            name = {"week": lambda p: str(p.start_time.date()), "quarter": lambda p: f"{p.year}-Q{p.quarter}"}.get(by, str)
            table, rows = m.topics(column="day", by=by), pd.Series(m.row_topics())
            for topic in table.itertuples():
                shares = periods[rows == topic.id].value_counts(normalize=True)
                self.assertEqual(list(topic.values), [name(p) for p in every])
                np.testing.assert_allclose(list(topic.values.values()), [shares.get(p, 0) for p in every])
        with self.assertRaisesRegex(ValueError, "row 1: not a date"):
            m.topics(column="kind", by="month")

    def test_batches(self):
        """The codes of any kind of batch are bit-identical to encode's. One process of the program encodes all batches."""
        table = pq.read_table(self.models / "x.parquet")
        want = Model.load(self.models / "texts").codes

        def check(codes, lo, hi):
            self.assertEqual(codes.schema.names, ["kind", "id", "indices", "values"])
            self.assertEqual(codes.column("id").to_pylist(), [f"t{i}" for i in range(lo, hi)])
            rows = [want[[i]] for i in range(lo, hi)]
            self.assertEqual(codes.column("indices").to_pylist(), [row.indices.tolist() for row in rows])
            self.assertEqual(codes.column("values").to_pylist(), [row.data.tolist() for row in rows])

        encoder = pickle.loads(pickle.dumps(BatchEncoder(self.models / "texts", keep=["kind", "id"])))
        check(encoder(table), 0, 400)
        process = next(iter(_batches._workers.values())).process
        check(encoder(table.slice(17, 100)), 17, 117)
        check(encoder(table.slice(5, 0)), 5, 5)
        check(encoder(pa.concat_tables([table.slice(0, 3), table.slice(3, 4)])), 0, 7)
        place, rows = table.schema.names.index("embedding"), table["embedding"]
        for kind in (pa.list_(pa.float32(), 12), pa.large_list(pa.float64())):
            check(encoder(table.set_column(place, "embedding", rows.cast(kind))), 0, 400)
        for i, batch in enumerate(encoder.batches(table.to_batches(max_chunksize=150))):
            self.assertIsInstance(batch, pa.RecordBatch)
            check(batch, 150 * i, min(150 * i + 150, 400))
        self.assertEqual([w.process for w in _batches._workers.values()], [process])
        lists = rows.to_pylist()
        for why, name, column in [
            (r"no column 'embedding' in the batch \(columns: id, text, kind, vectors\)", "vectors", rows), (r"row 3 .* \(got null, want 12 numbers\)", "embedding", [*lists[:2], None, *lists[3:]]),
            (r"row 4 .* \(got 11, want 12 numbers\)", "embedding", [*lists[:3], lists[3][1:], *lists[4:]]), ("got string, want lists of 12", "embedding", table["id"]),
            ("got list<.*string>, want lists of 12", "embedding", pa.chunked_array([pa.array([["1"] * 12] * 400)])),
            ("got list<.*date32.*>, want lists of 12", "embedding", pa.chunked_array([pa.array([[datetime.date(2026, 1, 1)] * 12] * 400)])),
            ("^row 5: the vector is too large", "embedding", [*lists[:4], [None] * 12, *lists[5:]]),
        ]:  # fmt: skip
            with self.assertRaisesRegex(ValueError, why):
                encoder(table.set_column(place, name, column if isinstance(column, pa.ChunkedArray) else pa.array(column, rows.type)))
        check(encoder(table), 0, 400)  # by a new process, since the last error ended the old one
        (worker,) = _batches._workers.values()
        worker.process.kill()
        worker.process.wait()
        check(encoder(table), 0, 400)
        for worker in _batches._workers.values():
            worker.process.communicate()
        _batches._workers.clear()

    def test_bad_input(self):
        m = Model.load(self.models / "texts")
        for error, why, call in [
            (ValueError, "can't read the model", lambda: Model.load(self.folder)),
            (KeyError, "no word or id 'none'", lambda: m.nearest("none")),
            (KeyError, "no row 400", lambda: m.nearest(400)),
            (IndexError, "no dimension 24", lambda: m.top(24)),
            (IndexError, "no dimension 24", lambda: m.nearest(3, less={24: 1})),
            (ValueError, "dimension 2 is in both", lambda: m.nearest(3, more={2: 1}, less={2: 1})),
            (ValueError, "no text", lambda: m.search("-qwertz")),
            (ValueError, "", lambda: m.search(" ")),
            (ValueError, "^X.npy: .*11", lambda: m.encode(self.x[:, 1:])),
            (ValueError, r"^X.npy: row 1: value 4 is not a finite number in the range of float32 \(got NaN\)$", lambda: m.encode(np.where(np.arange(12) == 3, np.nan, self.x[:3]))),
            (ValueError, "nonzeros", lambda: m.encode(self.x, nonzeros=0)),
        ]:  # fmt: skip
            with self.assertRaisesRegex(error, why):
                call()

    def test_explorer_ends_with_its_process(self):
        script = "import sys, time; from overcomplete_vectors import Model; Model.load(sys.argv[1]).explore(); sys.stdout.flush(); time.sleep(600)"
        p = subprocess.Popen([sys.executable, "-c", script, str(self.models / "texts")], stdout=subprocess.PIPE, text=True)
        address = p.stdout.readline().strip()
        with urllib.request.urlopen(address) as page:
            self.assertIn("frame-ancestors http://localhost:*", page.headers["Content-Security-Policy"])
        p.send_signal(signal.SIGKILL)
        p.communicate()
        wait_until(lambda: not answers(address))

    def test_explorer(self):
        m = Model.load(self.models / "texts")
        with mock.patch("builtins.print") as printed:
            m.explore()
            m.explore()
        first, second = (call.args[0] for call in printed.call_args_list)
        self.assertEqual(first, second)  # both calls show the same explorer
        shutil.copytree(self.models / "texts", self.folder / "without", ignore=shutil.ignore_patterns("codes.npz"))
        with self.assertRaisesRegex(ValueError, "codes.npz"):
            Model.load(self.folder / "without").explore()

    def test_damaged_codes(self):
        path = self.folder / "damaged"
        for damage, why in [(lambda data: data[:-30], "can't read the codes"), (lambda data: data.replace(np.arange(3, dtype="i4").tobytes(), b"\xff" * 12), "can't read the codes")]:
            shutil.copytree(self.models / "words", path)
            m = Model.load(path)
            rows = np.arange(2001, dtype="i4")
            codes = sp.csr_array((np.ones(2000, "f4"), rows[:-1] % 200, rows), shape=(2000, 200))
            sp.save_npz(path / "codes.npz", codes, compressed=False)
            (path / "codes.npz").write_bytes(damage((path / "codes.npz").read_bytes()))
            with self.assertRaisesRegex(ValueError, why):
                m.codes
            shutil.rmtree(path)

    def test_relative_paths(self):
        with contextlib.chdir(self.models):
            m = Model.load("words")
        self.assertEqual(m.encode(np.ones((1, 50))).shape, (1, 200))
        for why, x in [("got 3 numbers, want 50", np.ones(3)), ("got 100 numbers, want 50", np.ones((2, 50)))]:
            with self.assertRaisesRegex(ValueError, why):
                m.nearest(x)
        for x in (sp.csr_array((1, 50)), np.ones((1, 50)) * 1j):
            with self.assertRaisesRegex(TypeError, "sparse or complex"):
                m.encode(x)
        dates = np.ones((2, 50), "M8[s]")
        for x in (np.ma.ones((2, 50)), dates, dates - dates, pd.DataFrame(dates), dates.tolist()):
            with self.assertRaises(TypeError):
                m.encode(x)
            with self.assertRaises(TypeError):
                SparseEmbedding(16, nonzeros=4).fit(x)


class TestSparseEmbedding(Folder):
    def test_check_estimator(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about few rows in many dimensions
            for result in check_estimator(SparseEmbedding(), on_fail=None, on_skip=None):
                self.assertIn(result["status"], ("passed", "skipped"), result)

    def test_codes(self):
        x, _ = planted()
        e = SparseEmbedding(24, nonzeros=3)
        a = e.fit_transform(x)
        self.assertIsInstance(a, sp.csr_array)
        self.assertEqual((a.shape, a.dtype, np.diff(a.indptr).max(), a.data.min() > 0), ((400, 24), np.float32, 3, True))
        self.assertEqual((a != clone(e).fit(x).transform(x)).nnz, 0)
        error = ((x - e.inverse_transform(a)) ** 2).sum(1).mean()
        self.assertAlmostEqual(error / e.reconstruction_err_, 1, 4)
        self.assertLess(error, 0.3 * x.var(0).sum())
        self.assertEqual(e.get_feature_names_out()[:2].tolist(), ["sparseembedding0", "sparseembedding1"])
        again = pickle.loads(pickle.dumps(e))
        self.assertEqual((again.transform(x[:9]) != a[:9]).nnz, 0)
        self.assertLess(SparseEmbedding(24, method="A", nonzeros=3).fit_transform(x).min(), 0)
        for n_jobs in (-1, -2, -1000):
            self.assertEqual((SparseEmbedding(24, nonzeros=3, n_jobs=n_jobs).fit_transform(x) != a).nnz, 0)
        with mock.patch("os.cpu_count", return_value=8):
            self.assertEqual([_model.workers(n) for n in (None, -1, -2, -8, -9, 3)], [[], [], *(["--workers", n] for n in "7113")])
        with self.assertRaises(NotFittedError):
            SparseEmbedding().get_feature_names_out()

    def test_frames(self):
        x, _ = planted()
        frame = pd.DataFrame(x, columns=[f"x{i}" for i in range(12)])
        e = SparseEmbedding(24).fit(frame)
        self.assertEqual(e.feature_names_in_.tolist(), list(frame.columns))
        want = e.transform(frame).toarray()
        frame.index = [f"t{i}" for i in range(400)]
        for codes in (e.set_output(transform="pandas").transform(frame), clone(e).fit_transform(frame)):
            np.testing.assert_array_equal(codes.to_numpy(), want)
            self.assertEqual(codes.index.tolist(), frame.index.tolist())
            self.assertEqual(codes.columns.tolist(), [f"sparseembedding{k}" for k in range(24)])
            self.assertAlmostEqual(codes.sparse.density, (want != 0).mean())
        self.assertEqual(e.transform(x).index.tolist(), list(range(400)))
        np.testing.assert_array_equal(e.set_output(transform="polars").transform(frame).to_numpy(), want)

    def test_columns_of_lists(self):
        """A column of lists in a data frame, or a frame of one such column, is the same as its matrix."""
        x, kind = planted()
        frame = pd.DataFrame({"kind": kind, "embedding": list(x)})
        e = SparseEmbedding(24, nonzeros=4)
        want = e.fit_transform(x)
        for column in (frame["embedding"], frame[["embedding"]], pl.from_pandas(frame)[["embedding"]], pa.Table.from_pandas(frame).select(["embedding"])):
            self.assertEqual((e.fit_transform(column) != want).nnz, 0, type(column))
            self.assertEqual((e.fit(column).transform(column) != want).nnz, 0)
        for selected in ("embedding", ["embedding"]):
            columns = ColumnTransformer([("e", clone(e), selected), ("kind", "passthrough", ["kind"])]).fit(frame)
            names = columns.get_feature_names_out().tolist()
            self.assertEqual(names, [f"e__sparseembedding{k}" for k in range(24)] + ["kind__kind"])
            np.testing.assert_array_equal(columns.transform(frame).toarray()[:, :24], want.toarray())
        with self.assertRaisesRegex(ValueError, "input_features"):
            e.fit(x).get_feature_names_out(["one"])
        for at, bad, why in [(3, None, "got None"), (0, None, "got None"), (9, float("nan"), "got nan"), (399, x[0][1:], "got 11 numbers"), (5, [], "got 0 numbers")]:
            rows = list(x)
            rows[at] = bad
            for data in (pd.Series(rows), pd.DataFrame({"embedding": rows})):
                with self.assertRaisesRegex(ValueError, f"^row {at + 1}: the vector has the wrong length \\({why}, want 12 numbers\\)"):
                    SparseEmbedding(24).fit(data)
        self.assertRaisesRegex(ValueError, "", SparseEmbedding(24).fit, pd.Series([None, None]))

    def test_random_state(self):
        """A RandomState draws a seed for each fit. The second fit differs from the first, and a copy repeats both."""
        x = np.random.default_rng(5).normal(size=(400, 12)).astype("f4")
        first, second = (np.random.RandomState(3) for _ in range(2))
        a = SparseEmbedding(24, nonzeros=3, random_state=first)
        codes = [a.fit_transform(x) for _ in range(2)]
        b = SparseEmbedding(24, nonzeros=3, random_state=second)
        for want in codes:
            self.assertEqual((b.fit_transform(x) != want).nnz, 0)
        seed = np.random.RandomState(3).randint(np.iinfo(np.int32).max)
        self.assertEqual((SparseEmbedding(24, nonzeros=3, random_state=seed).fit_transform(x) != codes[0]).nnz, 0)
        self.assertGreater((codes[0] != codes[1]).nnz, 0)

    def test_feature_names(self):
        x, kind = planted()
        texts = [f"kind{'abcdef'[k]} of\na text" if k < 6 else "" for k in kind]
        texts[7] = None
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no warning about few dimensions
            pipeline = make_pipeline(SparseEmbedding(8, nonzeros=2)).set_output(transform="pandas")
            codes = pipeline.fit_transform(x, sparseembedding__texts=texts)
        names = codes.columns.tolist()
        self.assertEqual(names, pipeline.get_feature_names_out().tolist())
        self.assertEqual(len(set(names)), 8)
        self.assertTrue(any("kind" in name for name in names), names)
        e = clone(pipeline[0]).fit(x, texts=texts, stop_words=["Kinda", "text"])
        self.assertFalse(any("text" in name or "kinda" in name for name in e.get_feature_names_out()))
        e = clone(e).fit(x, texts=texts, stop_words="text")
        self.assertFalse(any("text" in name for name in e.get_feature_names_out()))
        for odd in ("Content, price and quality were good.", "text,id", "{}", '{"text": "a"}', "PAR1", "\ufeff", "\ud800\0", "a\n" * 1_000_000):
            e = clone(e).fit(x, texts=[odd, *texts[1:]])
            self.assertEqual(e.get_feature_names_out().tolist(), names, odd[:20])  # one text in 400 labels no dimension
        for column in (np.array(texts), pd.Series(texts, dtype="string"), pl.Series(texts), pa.chunked_array([texts])):
            self.assertEqual(clone(e).fit(x, texts=column).get_feature_names_out().tolist(), names, type(column))
        self.assertIn("said", str(clone(e).fit(x, texts=['{"text": "said"}'] * 400).get_feature_names_out()))
        e = pipeline[0]
        e._labels = ["", "money", "bank", *"abcde"]
        self.assertEqual(e.get_feature_names_out().tolist(), ["sparseembedding0", "money", "bank", *"abcde"])
        with self.assertRaisesRegex(ValueError, r"^texts: want one for each row of X \(got shape \(3,\) for 400 rows\)"):
            e.fit(x, texts=texts[:3])

    def test_search(self):
        x, kind = planted()
        search = GridSearchCV(make_pipeline(SparseEmbedding(24), LogisticRegression(max_iter=2000)), {"sparseembedding__nonzeros": [1, 3]}, n_jobs=2, cv=3)
        search.fit(x, kind % 2)
        self.assertGreater(search.best_score_, 0.8)

    def test_odd_input(self):
        x, _ = planted()
        want = SparseEmbedding(24, nonzeros=3).fit_transform(x)
        for odd in (np.asfortranarray(x), x.astype(object), np.repeat(x, 2, axis=1)[:, ::2]):
            self.assertEqual((SparseEmbedding(24, nonzeros=3).fit_transform(odd) != want).nnz, 0)
        half = x.astype(np.float16)
        got, want = (SparseEmbedding(24, nonzeros=3).fit_transform(h) for h in (half, half.astype(np.float32)))
        self.assertEqual((got != want).nnz, 0)
        x[7] = 0
        self.assertEqual(SparseEmbedding(24, nonzeros=3).fit_transform(x).shape, (400, 24))
        self.assertEqual(SparseEmbedding(50).fit_transform(x[:30]).shape, (30, 50))  # more dimensions than rows
        nan, inf = x.copy(), x.copy()
        nan[3, 4], inf[3, 4] = np.nan, np.inf
        e = SparseEmbedding(24).fit(x)
        for why, bad in [("NaN", nan), ("infinity", inf), ("2D", x[0]), ("dim 3", x[None]), ("0 sample", x[:0]), ("0 feature", x[:, :0]), ("too large|scale them", x * np.float32(1e30)),
                         ("convert|numeric", np.full((9, 12), "a")), ("ragged|inhomogeneous|sequence|shape|2D", [[1.0, 2.0], [3.0]])]:  # fmt: skip
            for call in (SparseEmbedding(24).fit, e.transform):
                with self.assertRaisesRegex(ValueError, why):
                    call(bad)
        with self.assertRaisesRegex(TypeError, "[Ss]parse"):
            e.transform(sp.csr_array(x))

    def test_temporary_folder(self):
        x, _ = planted()
        with mock.patch("tempfile.tempdir", str(self.folder / "nowhere")), self.assertRaises(FileNotFoundError):
            SparseEmbedding(24).fit(x)

    def test_two_at_once(self):
        x, _ = planted()
        want = SparseEmbedding(24, nonzeros=3).fit_transform(x)
        with ThreadPool(2) as pool:
            for got in pool.map(SparseEmbedding(24, nonzeros=3).fit_transform, [x, x]):
                self.assertEqual((got != want).nnz, 0)

    def test_model_removed_meanwhile(self):
        run("train", SAMPLE, "-o", self.folder / "model", "--epochs", 1)
        m = Model.load(self.folder / "model")
        column = m.top(3)
        shutil.rmtree(self.folder / "model")
        self.assertTrue(m.top(3).equals(column))  # read before the removal
        with self.assertRaisesRegex(RuntimeError, "has changed since it was loaded"):
            m.encode(np.ones((2, 50)))
        run("train", SAMPLE, "-o", self.folder / "model", "--epochs", 1, "-k", 60)
        with self.assertRaisesRegex(RuntimeError, "load it again"):
            m.labels
        self.assertEqual(len(Model.load(self.folder / "model").labels), 60)

    def test_verbose(self):
        x, _ = planted()
        with mock.patch("sys.stderr"):
            e = SparseEmbedding(24, nonzeros=3, verbose=True)
            self.assertEqual((e.fit_transform(x) != e.transform(x)).nnz, 0)

    def test_ends_with_python(self):
        """Killing the process of a fit ends the program."""
        script = "import numpy as np; from overcomplete_vectors import SparseEmbedding; SparseEmbedding(epochs=10**6).fit(np.random.default_rng(1).normal(size=(2000, 50)))"
        noted = self.folder / "pid"
        with self.fake(f"echo $$ >{noted}.new; mv {noted}.new {noted}; exec {shutil.which(os.environ['OVERCOMPLETE'])} \"$@\""):
            p = subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"TMPDIR": str(self.folder)})
            wait_until(noted.exists)
            p.send_signal(signal.SIGKILL)
            p.wait()
        wait_until(lambda: not Path(f"/proc/{noted.read_text().strip()}").exists())

    def test_bad_parameters(self):
        x, _ = planted()
        for why, e in [("method", SparseEmbedding(method="C")), ("sparsity", SparseEmbedding(sparsity=2)), ("^-k is -1", SparseEmbedding(-1)),
                       ("device", SparseEmbedding(device="abacus")), ("nonzeros", SparseEmbedding(24, nonzeros=3, sparsity=0.9)), (r"^-k is .\[3\]", SparseEmbedding([3])), ("method is .None", SparseEmbedding(method=None))]:  # fmt: skip
            with self.assertRaisesRegex(ValueError, why):
                e.fit(x)


class TestNotebook(unittest.TestCase):
    def test_example(self):
        """The notebook's cells run and show the explorer in a frame."""
        folder = SAMPLE.parents[1] / "examples" / "python"
        self.addCleanup(shutil.rmtree, folder / "godoc.model", ignore_errors=True)
        notebook = nbformat.read(folder / "words.ipynb", as_version=4)
        client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
        with client.setup_kernel():
            for i, cell in enumerate(notebook.cells):
                client.execute_cell(cell, i)
            shown = [o["data"] for cell in notebook.cells for o in cell.get("outputs", []) if "data" in o]
            frame = next(d["text/html"] for d in shown if "<iframe" in d.get("text/html", ""))
            with urllib.request.urlopen(re.search('src="([^"]+)"', frame)[1]) as page:
                self.assertIn(b"<title>overcomplete</title>", page.read())
        self.assertIn("mutex, lock", str(shown))
        scores = [float(s) for s in re.findall(r"0\.\d+", shown[-1]["text/plain"])]
        self.assertGreater(min(scores), 0.7)

    def test_texts(self):
        """Its cells print what is saved, except the explorer's. Other kinds of processor differ in the last bits."""
        path = SAMPLE.parents[1] / "examples" / "python" / "texts.ipynb"
        saved, notebook = (nbformat.read(path, as_version=4) for _ in range(2))
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
        printed = [[o.get("data", {}).get("text/plain", "").split("\n") for cell in n.cells[:-1] for o in cell.get("outputs", [])] for n in (saved, notebook)]
        if platform.machine() == "x86_64":
            self.assertEqual(*printed)
        self.assertIn("<iframe", str(notebook.cells[-1].outputs))


if __name__ == "__main__":
    unittest.main()
