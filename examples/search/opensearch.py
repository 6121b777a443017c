"""Search the texts of a model with OpenSearch, or with Elasticsearch and its client. Install opensearch-py and pyarrow, too."""

import json
import numpy as np
import pyarrow.parquet as pq
from opensearchpy import OpenSearch, helpers
from overcomplete_vectors import Model, run

model, dense = Model.load("model"), {}
client = OpenSearch("http://localhost:9200", timeout=60)
client.indices.delete(index="texts", ignore_unavailable=True)
client.indices.create(index="texts", body={"mappings": {"properties": {"features": {"type": "rank_features"}}}})

def add(encoded, file):  # rows of the model, or of a directory that was encoded with it
    run("export", encoded, "--vocabulary", "model", "-f", "opensearch", "--normalize", "-o", "rows.bulk", "--force")
    lines, vectors = open("rows.bulk", encoding="utf-8", newline="\n"), pq.read_table(file)["embedding"].to_numpy()
    documents = [{**json.loads(action)["index"], "_source": row} for action, row in zip(lines, lines)]
    dense.update(list(zip((document["_id"] for document in documents), vectors, strict=True)))  # a list: lengths are checked before anything changes
    helpers.bulk(client, documents, index="texts", max_chunk_bytes=50_000_000, refresh=True)  # raises errors of rows

def values(features):  # feature 7- has the negative values of dimension 7
    return {int(k.rstrip("-")): -v if "-" in k else v for k, v in features.items()}

def search(x, n=10, rerank="dense", where=None, **steering):
    feature = lambda k, w: {"field": f"features.{k}{'-' * (w < 0)}", "linear": {}, "boost": abs(w)}  # noqa: E731
    query = {"bool": {"should": [{"rank_feature": feature(k, w)} for k, w in zip(*model.query(x, **steering))], "filter": where or []}}
    hits = client.search(index="texts", body={"query": query, "size": 100, "_source": ["features"], "track_total_hits": True})["hits"]["hits"]
    every = dict(zip(*model.query(x, len(model.dictionary), signed=True, **steering)))
    score = {None: lambda hit: 0, "dense": lambda hit: dense[hit["_id"]] @ x / (np.linalg.norm(dense[hit["_id"]]) or 1)}
    score["products"] = lambda hit: sum(v * every.get(k, 0) for k, v in values(hit["_source"]["features"]).items())
    return [hit["_id"] for hit in sorted(hits, key=score[rerank], reverse=True)[:n]]

def explain(x, id, n=3):
    weights, row = dict(zip(*model.query(x))), client.get(index="texts", id=id)["_source"]
    return sorted(((model.label(k, v), v * weights.get(k, 0)) for k, v in values(row["features"]).items()), key=lambda p: -p[1])[:n]

def delete(id):
    client.delete(index="texts", id=id, refresh=True)

add("model", "sentences.parquet")
