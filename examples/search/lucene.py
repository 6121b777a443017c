"""Search the texts of a model with Lucene. Install jpype1 and pyarrow, too, and download lucene-core-9.12.3.jar from Maven Central."""

import re

import jpype
import jpype.imports
import numpy as np
import pyarrow.parquet as pq
from overcomplete_vectors import Model

jpype.startJVM(classpath=["lucene-core-9.12.3.jar"])
from org.apache.lucene import document, index, search as lucene, store  # noqa: E402

model = Model.load("model")
dense = np.stack(pq.read_table("sentences.parquet")["embedding"].to_numpy(zero_copy_only=False))
SHOULD, FILTER, STORED = lucene.BooleanClause.Occur.SHOULD, lucene.BooleanClause.Occur.FILTER, document.Field.Store.YES
writer = index.IndexWriter(store.ByteBuffersDirectory(), index.IndexWriterConfig())  # or store.FSDirectory.open(path)
for row in model.rows():
    doc = document.Document()
    doc.add(document.StoredField("text", row.pop("text")))
    for k, value in zip(row.pop("indices"), row.pop("values")):
        doc.add(document.FeatureField("codes", str(k), value))  # stores 9 significant bits
    for name, value in row.items():
        doc.add(document.StringField(name, str(value), STORED))
    writer.addDocument(doc)


def query(x, where=None, **steering):
    """where is a pair of a column and its value."""
    builder = lucene.BooleanQuery.Builder()
    for k, weight in zip(*model.query(x, **steering)):
        builder.add(document.FeatureField.newLinearQuery("codes", str(k), weight), SHOULD)
    return (builder.add(lucene.TermQuery(index.Term(*where)), FILTER) if where else builder).build()


def search(x, n=10, rerank="dense", **options):
    searcher = lucene.IndexSearcher(index.DirectoryReader.open(writer))
    hits = searcher.search(query(x, **options), 100 if rerank else n).scoreDocs
    rows = [model.row(str(searcher.storedFields().document(hit.doc).get("id"))) for hit in hits]
    if rerank:
        rows = [rows[i] for i in np.argsort(-dense[rows] @ x / np.linalg.norm(dense[rows], axis=1))]
    return [model.words[row] for row in rows[:n]]


def explain(x, id, n=3):
    searcher = lucene.IndexSearcher(index.DirectoryReader.open(writer))
    hit = searcher.search(lucene.TermQuery(index.Term("id", id)), 1).scoreDocs[0].doc
    parts = searcher.explain(query(x), hit).getDetails()
    named = ((model.labels[int(re.search(r"for the (\d+) feature", str(p.getDescription()))[1])], float(p.getValue())) for p in parts)
    return sorted(named, key=lambda part: -part[1])[:n]


def delete(id):
    writer.deleteDocuments(index.Term("id", id))
