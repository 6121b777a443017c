"""Search the texts of a model with OpenSearch, or with Elasticsearch and its client. Install opensearch-py and pyarrow, too."""

from itertools import islice

import numpy as np
import pyarrow.parquet as pq
from opensearchpy import OpenSearch
from overcomplete_vectors import Model, run

model = Model.load("model")
dense = np.stack(pq.read_table("sentences.parquet")["embedding"].to_numpy(zero_copy_only=False))
run("export", "model", "-f", "opensearch", "--normalize", "-o", "rows.bulk", "--force")
client = OpenSearch("http://localhost:9200", timeout=60)
client.indices.delete(index="texts", ignore_unavailable=True)
client.indices.create(index="texts", body={"mappings": {"properties": {"features": {"type": "rank_features"}}}})
with open("rows.bulk", encoding="utf-8", newline="\n") as lines:
    while part := "".join(islice(lines, 2000)):  # two lines per row; engines refuse large requests
        response = client.bulk(body=part, index="texts", refresh=True)
        assert not response["errors"], response


def search(x, n=10, rerank="dense", where=None, **steering):
    weighted = zip(*model.query(x, **steering))  # rank_feature refuses negative weights
    features = [{"rank_feature": {"field": f"features.{k}", "linear": {}, "boost": w}} for k, w in weighted]
    query = {"bool": {"should": features, "filter": where or []}}
    hits = client.search(index="texts", body={"query": query, "size": 100, "_source": ["features"]})["hits"]["hits"]
    rows = [model.row(hit["_id"]) for hit in hits]
    every = {str(k): w for k, w in zip(*model.query(x, len(model.dictionary), signed=True, **steering))}
    scores = {None: -np.arange(len(hits)), "dense": dense[rows] @ x / np.linalg.norm(dense[rows], axis=1)}
    scores["products"] = np.array([sum(v * every[k] for k, v in hit["_source"]["features"].items()) for hit in hits])
    return [hits[i]["_id"] for i in np.argsort(-scores[rerank])[:n]]


def explain(x, id, n=3):
    weights, features = dict(zip(*model.query(x))), client.get(index="texts", id=id)["_source"]["features"]
    return sorted(((model.labels[int(k)], v * weights.get(int(k), 0)) for k, v in features.items()), key=lambda p: -p[1])[:n]


def delete(id):
    client.delete(index="texts", id=id, refresh=True)
