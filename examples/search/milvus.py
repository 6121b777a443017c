"""Search the texts of a model with Milvus. Install pymilvus, milvus-lite and pyarrow, too."""

import numpy as np
import pyarrow.parquet as pq
from overcomplete_vectors import Model
from pymilvus import DataType, MilvusClient

model, dense = Model.load("model"), {}
client = MilvusClient("texts.db")  # Milvus Lite, or MilvusClient("http://localhost:19530")
schema = client.create_schema(enable_dynamic_field=True)  # for text and columns
schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=512).add_field("values", DataType.SPARSE_FLOAT_VECTOR)
indexes = client.prepare_index_params()
indexes.add_index("values", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
client.drop_collection("texts")
client.create_collection("texts", schema=schema, index_params=indexes)

def add(encoded, file):  # rows of the model, or of a directory that was encoded with it
    rows = [row | {"values": dict(zip(row.pop("indices"), row["values"]))} for row in model.rows(encoded)]
    dense.update(list(zip((row["id"] for row in rows), pq.read_table(file)["embedding"].to_numpy(), strict=True)))  # a list: lengths are checked before anything changes
    for i in range(0, len(rows), 1000):
        client.upsert("texts", rows[i : i + 1000])
    client.flush("texts")  # builds the index: without it, a query takes seconds

def search(x, n=10, rerank="dense", where="", **steering):
    query = [dict(zip(*model.query(x, **steering)))]  # Milvus refuses negative weights
    hits = client.search("texts", query, anns_field="values", limit=100 if rerank else n, filter=where, output_fields=["values"])[0]
    every = dict(zip(*model.query(x, len(model.dictionary), signed=True, **steering)))
    score = {None: lambda hit: hit["distance"], "products": lambda hit: sum(v * every.get(k, 0) for k, v in hit["entity"]["values"].items())}
    score["dense"] = lambda hit: dense[hit["id"]] @ x / (np.linalg.norm(dense[hit["id"]]) or 1)
    return [hit["id"] for hit in sorted(hits, key=score[rerank], reverse=True)[:n]]

def explain(x, id, n=3):
    weights, (row,) = dict(zip(*model.query(x))), client.get("texts", [id], output_fields=["values"])
    return sorted(((model.label(k, v), v * weights.get(k, 0)) for k, v in row["values"].items()), key=lambda part: -part[1])[:n]

def delete(id):
    client.delete("texts", [id])

add("model", "sentences.parquet")
