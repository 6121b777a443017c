"""The recipe of examples/search for Lucene, which requires Java and the jar build/lucene-core-9.12.3.jar."""

import shutil
import unittest
from pathlib import Path

from test_recipes import Recipes


class TestLucene(Recipes):
    def test_lucene(self):
        shutil.copy(Path(__file__).resolve().parents[2] / "build" / "lucene-core-9.12.3.jar", ".")
        self.check("lucene.py", ("kind", "2"), (None, "dense"), digits=2)  # 9 bits of a value below 1


if __name__ == "__main__":
    unittest.main()
