"""Search the texts of a model with Qdrant. Install qdrant-client and pyarrow, too."""

import pyarrow.parquet as pq
from overcomplete_vectors import Model
from qdrant_client import QdrantClient, models

model = Model.load("model")
dense = pq.read_table("sentences.parquet")["embedding"].to_pylist()
vectors = models.VectorParams(size=len(dense[0]), distance=models.Distance.COSINE)
eight_bits = models.SparseIndexParams(datatype=models.Datatype.UINT8)  # three quarters of the size, with the same recall
client = QdrantClient(":memory:")  # or QdrantClient("http://localhost:6333")
client.create_collection("texts", {"dense": vectors}, {"codes": models.SparseVectorParams(index=eight_bits)})

points = []
for row, vector in zip(model.rows(), dense):
    codes = models.SparseVector(indices=row.pop("indices"), values=row.pop("values"))
    points.append(models.PointStruct(id=len(points), vector={"codes": codes, "dense": vector}, payload=row))
client.upload_points("texts", points)


def search(x, n=10, rerank="dense", where=None, **steering):
    def codes(**options):
        indices, values = model.query(x, **options, **steering)
        return {"query": models.SparseVector(indices=indices, values=values), "using": "codes"}

    first = models.Prefetch(**codes(), limit=100, filter=where)
    best = {"query": x.tolist(), "using": "dense", "search_params": models.SearchParams(exact=True)}
    best = codes(weights=len(model.dictionary), signed=True) if rerank == "products" else best
    query = {**best, "prefetch": first} if rerank else {**codes(), "query_filter": where}
    return [point.payload["id"] for point in client.query_points("texts", limit=n, **query).points]


def explain(x, id, n=3):
    weights = dict(zip(*model.query(x)))
    codes = client.retrieve("texts", [model.row(id)], with_vectors=["codes"])[0].vector["codes"]
    return sorted(((model.label(k, v), v * weights.get(k, 0)) for k, v in zip(codes.indices, codes.values)), key=lambda p: -p[1])[:n]


def delete(id):
    client.delete("texts", [model.row(id)])
