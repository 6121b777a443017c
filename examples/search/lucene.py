"""Search the texts of a model with Lucene. Install jpype1 and pyarrow, too, and download lucene-core-9.12.3.jar from Maven Central."""

import jpype.imports
import numpy as np
import pyarrow.parquet as pq
from overcomplete_vectors import Model

jpype.startJVM(classpath=["lucene-core-9.12.3.jar"])
from org.apache.lucene import document as doc, index, search as lucene, store  # noqa: E402
model, stored, codes = Model.load("model"), doc.Field.Store.YES, ("text", "dimensions", "indices", "values")
dense = np.stack(pq.read_table("sentences.parquet")["embedding"].to_numpy(zero_copy_only=False))
writer = index.IndexWriter(store.ByteBuffersDirectory(), index.IndexWriterConfig())  # or store.FSDirectory.open(path)
for row in (rows := list(model.rows())):
    fields = [(doc.StringField if isinstance(v, str) else doc.DoubleField)(k, v, stored) for k, v in row.items() if k not in codes and v is not None]
    writer.addDocument(fields + [doc.FeatureField("values", str(k), v) for k, v in zip(row["indices"], row["values"])])  # 9 significant bits
searchers = lucene.SearcherManager(writer, None)


def search(x, n=10, rerank="dense", where=None, **steering):  # where: a query of Lucene
    query, searcher, clause = lucene.BooleanQuery.Builder(), searchers.acquire(), lucene.BooleanClause.Occur  # to score all rows, below, is faster than to skip some
    for k, weight in zip(*model.query(x, **steering)):  # FeatureField refuses negative weights
        query.add(doc.FeatureField.newLinearQuery("values", str(k), weight), clause.SHOULD)
    hits = searcher.search((query.add(where, clause.FILTER) if where else query).build(), lucene.TopScoreDocCollectorManager(100, 2**31 - 1)).scoreDocs
    best = np.array([model.row(str(searcher.storedFields().document(hit.doc).get("id"))) for hit in hits], int)
    searchers.release(searcher)
    if rerank == "products":  # by all weights
        weights = dict(zip(*model.query(x, len(model.dictionary), signed=True, **steering)))
        best = sorted(best, key=lambda i: -sum(v * weights.get(k, 0) for k, v in zip(rows[i]["indices"], rows[i]["values"])))
    elif rerank == "dense":
        best = best[np.argsort(-dense[best] @ x / np.linalg.norm(dense[best], axis=1))]
    return [model.words[i] for i in best[:n]]


def explain(x, id, n=3):
    weights, row = dict(zip(*model.query(x))), rows[model.row(id)]
    return sorted(((model.label(k, v), v * weights.get(k, 0)) for k, v in zip(row["indices"], row["values"])), key=lambda p: -p[1])[:n]


def delete(id):
    writer.deleteDocuments(index.Term("id", id)), searchers.maybeRefresh()
