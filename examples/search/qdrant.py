"""Search the texts of a model with Qdrant. Install qdrant-client and pyarrow, too."""

import uuid
import pyarrow.parquet as pq
from overcomplete_vectors import Model
from qdrant_client import QdrantClient, models

model = Model.load("model")
vectors = models.VectorParams(size=model.dictionary.shape[1], distance=models.Distance.COSINE)
eight_bits = models.SparseIndexParams(datatype=models.Datatype.UINT8)  # three quarters of the size, with the same recall
client = QdrantClient(":memory:")  # or QdrantClient("http://localhost:6333")
client.create_collection("texts", {"dense": vectors}, {"codes": models.SparseVectorParams(index=eight_bits)})

def point(id):  # ids of Qdrant are numbers or UUIDs
    return str(uuid.uuid5(uuid.NAMESPACE_OID, id))

def sparse(indices, values):
    return models.SparseVector(indices=indices, values=values)

def add(encoded, file):  # rows of the model, or of a directory that was encoded with it
    rows = list(zip(model.rows(encoded), pq.read_table(file)["embedding"].to_pylist(), strict=True))  # a list: lengths are checked before anything changes
    vectors = (({"codes": sparse(row.pop("indices"), row.pop("values")), "dense": x}, row) for row, x in rows)
    client.upload_points("texts", (models.PointStruct(id=point(row["id"]), vector=v, payload=row) for v, row in vectors), wait=True)

def search(x, n=10, rerank="dense", where=None, **steering):
    first = {"query": sparse(*model.query(x, **steering)), "using": "codes"}
    best = {"query": x.tolist(), "using": "dense", "search_params": models.SearchParams(exact=True)}
    if rerank == "products":  # by all weights
        best = {"query": sparse(*model.query(x, len(model.dictionary), signed=True, **steering)), "using": "codes"}
    query = {**best, "prefetch": models.Prefetch(**first, limit=100, filter=where)} if rerank else {**first, "query_filter": where}
    return [point.payload["id"] for point in client.query_points("texts", limit=n, **query).points]

def explain(x, id, n=3):
    weights, codes = dict(zip(*model.query(x))), client.retrieve("texts", [point(id)], with_vectors=["codes"])[0].vector["codes"]
    return sorted(((model.label(k, v), v * weights.get(k, 0)) for k, v in zip(codes.indices, codes.values)), key=lambda p: -p[1])[:n]

def delete(id):
    client.delete("texts", [point(id)])

add("model", "sentences.parquet")
