"""Spark and Ray, on two processors of this machine, encode a folder of Parquet files like the command does."""

import os
import signal
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import scipy.sparse as sp
from overcomplete_vectors import BatchEncoder, run
from overcomplete_vectors._batches import _Worker
from overcomplete_vectors._program import program
from pyspark.sql import SparkSession

SCHEMA = "id string, indices array<int>, values array<float>"


class TestEngines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.folder = Path(temporary)
        rng = np.random.default_rng(3)
        x = rng.normal(size=(2000, 16)).astype(np.float32) @ rng.normal(size=(16, 16)).astype(np.float32)
        table = pa.table({"id": [f"t{i}" for i in range(len(x))], "text": [f"text {i}" for i in range(len(x))], "embedding": list(x)})
        pq.write_table(table, cls.folder / "all.parquet")
        (cls.folder / "shards").mkdir()
        for i in range(5):
            pq.write_table(table.slice(400 * i, 400), cls.folder / "shards" / f"part-{i}.parquet")
        wrapper = cls.folder / "overcomplete"  # records each start of the program
        wrapper.write_text(f'#!/bin/sh\necho "$1" >>{cls.folder}/started\nexec {program()} "$@"\n')
        wrapper.chmod(0o755)
        os.environ["OVERCOMPLETE"] = str(wrapper)
        run("train", cls.folder / "all.parquet", "-o", cls.folder / "model", "-k", 64, "--nonzeros", 5)
        cls.want = sp.csr_array(sp.load_npz(cls.folder / "model" / "codes.npz"))

    def setUp(self):
        (self.folder / "started").write_text("")

    def check(self, name):
        """Checks that Parquet files hold each row once with the codes of the command, bit by bit, as read by three libraries."""
        folder = self.folder / name
        table = pq.read_table(folder).to_pydict()
        self.assertEqual(pl.read_parquet(folder / "*.parquet").to_dict(as_series=False), table)
        rows = duckdb.sql(f"SELECT id, indices, values FROM '{folder}/*.parquet'").fetchall()
        self.assertEqual(sorted(rows), sorted(zip(table["id"], table["indices"], table["values"])))
        self.assertEqual(len(table["id"]), 2000)
        self.assertEqual(set(table["id"]), {f"t{i}" for i in range(2000)})
        for name, indices, values in zip(table["id"], table["indices"], table["values"]):
            want = self.want[[int(name[1:])]]
            self.assertEqual((indices, values), (want.indices.tolist(), want.data.tolist()))

    def started(self):
        return (self.folder / "started").read_text().split()

    def killed_once(self, name, encode, row, program=False):
        """Returns a function that calls encode. Once, while the program encodes a batch with the given row, it kills its process or the program."""
        killed = self.folder / name

        def die(worker, *_):
            os.kill(worker.process.pid if program else os.getpid(), signal.SIGKILL)
            raise EOFError

        def encode_or_die(batch):
            if row in batch.column("id").to_pylist() and not killed.exists():
                killed.touch()
                with mock.patch.object(_Worker, "_read", die):
                    return encode(batch)
            return encode(batch)

        return encode_or_die

    def test_spark(self):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        encoder = BatchEncoder(self.folder / "model")
        spark = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", False).config("spark.sql.execution.arrow.maxRecordsPerBatch", 150).getOrCreate()
        self.addCleanup(spark.stop)
        frame = spark.read.parquet(str(self.folder / "shards"))
        frame.mapInArrow(encoder.batches, SCHEMA).write.parquet(str(self.folder / "spark"))
        self.check("spark")
        self.assertLessEqual(len(self.started()), 2)  # processes for 15 batches
        for program in False, True:
            encode = self.killed_once(f"spark-killed-{program}", encoder, "t1234", program)
            frame.mapInArrow(lambda batches: map(encode, batches), SCHEMA).write.parquet(str(self.folder / f"spark-again-{program}"))
            self.assertTrue((self.folder / f"spark-killed-{program}").exists())
            self.check(f"spark-again-{program}")

    def test_ray(self):
        encoder = BatchEncoder(self.folder / "model")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        self.addCleanup(ray.shutdown)
        data = ray.data.read_parquet(str(self.folder / "shards"))
        data.map_batches(encoder, batch_format="pyarrow", batch_size=150).write_parquet(str(self.folder / "ray"))
        self.check("ray")
        self.assertLessEqual(len(self.started()), 2)
        encode = self.killed_once("ray-killed", encoder, "t1234")
        data.map_batches(encode, batch_format="pyarrow", batch_size=150).write_parquet(str(self.folder / "ray-again"))
        self.assertTrue((self.folder / "ray-killed").exists())
        self.check("ray-again")
        encode = self.killed_once("ray-program", encoder, "t1234", program=True)
        with self.assertRaisesRegex(Exception, "overcomplete was ended by signal 9"):  # Ray doesn't retry after an error of Python
            data.map_batches(encode, batch_format="pyarrow", batch_size=150).materialize()


if __name__ == "__main__":
    unittest.main()
