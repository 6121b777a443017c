"""Search the texts of a model with Lucene. Install jpype1 and pyarrow, too, and download lucene-core-9.12.3.jar from Maven Central."""

import jpype.imports
import pyarrow.parquet as pq
from overcomplete_vectors import Model

jpype.startJVM(classpath=["lucene-core-9.12.3.jar"])
from org.apache.lucene import document as doc, index, search as lucene, store  # noqa: E402
types = {str: lambda k, v, store: doc.StringField(k, v[:8000], store), int: doc.LongField, float: doc.DoubleField}  # terms have at most 32,766 bytes
writer = index.IndexWriter(store.ByteBuffersDirectory(), index.IndexWriterConfig())  # or store.FSDirectory.open(path)
model, rows, dense, searchers = Model.load("model"), {}, {}, lucene.SearcherManager(writer, None)

def add(encoded, file):  # rows of the model, or of a directory that was encoded with it
    for row, x in list(zip(model.rows(encoded), pq.read_table(file)["embedding"].to_numpy(), strict=True)):  # a list: lengths are checked before anything changes
        rows[row["id"]], dense[row["id"]] = row, x / ((x @ x) ** 0.5 or 1)
        columns = {k: v for k, v in row.items() if k not in ("text", "dimensions", "indices", "values") and v is not None}
        fields = [types[type(v)](k, v, doc.Field.Store.YES) for k, v in columns.items()]
        fields += [doc.FeatureField("values", str(k), v) for k, v in zip(row["indices"], row["values"])]  # 9 significant bits
        writer.updateDocument(index.Term("id", row["id"]), fields)
    searchers.maybeRefresh()

def search(x, n=10, rerank="dense", where=None, **steering):  # where: a query of Lucene
    query, searcher, clause = lucene.BooleanQuery.Builder(), searchers.acquire(), lucene.BooleanClause.Occur  # to score all rows, below, is faster than to skip some
    for k, weight in zip(*model.query(x, **steering)):  # FeatureField refuses negative weights
        query.add(doc.FeatureField.newLinearQuery("values", str(k), weight), clause.SHOULD)
    hits = searcher.search((query.add(where, clause.FILTER) if where else query).build(), lucene.TopScoreDocCollectorManager(100, 2**31 - 1)).scoreDocs
    best = [str(searcher.storedFields().document(hit.doc).get("id")) for hit in hits]
    searchers.release(searcher)
    every = dict(zip(*model.query(x, len(model.dictionary), signed=True, **steering))) if rerank == "products" else {}
    score = {None: lambda id: 0, "dense": lambda id: dense[id] @ x, "products": lambda id: sum(v * every.get(k, 0) for k, v in zip(rows[id]["indices"], rows[id]["values"]))}
    return sorted(best, key=score[rerank], reverse=True)[:n]

def explain(x, id, n=3):
    weights, row = dict(zip(*model.query(x))), rows[id]
    return sorted(((model.label(k, v), v * weights.get(k, 0)) for k, v in zip(row["indices"], row["values"])), key=lambda p: -p[1])[:n]

def delete(id):
    writer.deleteDocuments(index.Term("id", id)), searchers.maybeRefresh()

add("model", "sentences.parquet")
