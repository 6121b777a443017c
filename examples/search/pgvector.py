"""Search the texts of a model with pgvector. Install psycopg[binary] and pyarrow, too."""

import json
import psycopg
import pyarrow.parquet as pq
from overcomplete_vectors import Model

model = Model.load("model")
K, L = model.dictionary.shape
db = psycopg.connect(autocommit=True)  # to the server and database of PGHOST, PGUSER and PGDATABASE
db.execute("CREATE EXTENSION IF NOT EXISTS vector; DROP TABLE IF EXISTS texts")
db.execute(f"CREATE TABLE texts (id text PRIMARY KEY, columns jsonb, codes sparsevec({K}), dense vector({L}))")

def sparse(indices, values):
    return "{" + ",".join(f"{k + 1}:{v}" for k, v in zip(indices, values)) + f"}}/{K}"

def add(encoded, file):  # rows of the model, or of a directory that was encoded with it
    rows, vectors = list(model.rows(encoded)), pq.read_table(file)["embedding"].to_pylist()
    with db.transaction(), db.cursor() as cursor:
        cursor.execute("DELETE FROM texts WHERE id = ANY(%s)", [[row["id"] for row in rows]])
        with cursor.copy("COPY texts FROM STDIN") as copy:
            for row, vector in zip(rows, vectors, strict=True):
                codes = sparse(row.pop("indices"), row.pop("values"))
                copy.write_row([row["id"], json.dumps(row), codes, str(vector)])

def search(x, n=10, rerank="dense", where={}, **steering):
    first, every = sparse(*model.query(x, **steering)), sparse(*model.query(x, K, signed=True, **steering))
    best = "SELECT * FROM texts WHERE columns @> %s ORDER BY codes <#> %s LIMIT 100"
    order, by = {None: ("codes <#> %s", first), "products": ("codes <#> %s", every), "dense": ("dense <=> %s", str(x.tolist()))}[rerank]
    return [id for id, in db.execute(f"SELECT id FROM ({best}) ORDER BY {order} LIMIT %s", [json.dumps(where), first, by, n])]

def explain(x, id, n=3):
    weights, (codes,) = dict(zip(*model.query(x))), db.execute("SELECT codes::text FROM texts WHERE id = %s", [id]).fetchone()
    parts = (part.split(":") for part in codes[1 : codes.index("}")].split(","))
    return sorted(((model.label(int(k) - 1, float(v)), float(v) * weights.get(int(k) - 1, 0)) for k, v in parts), key=lambda p: -p[1])[:n]

def delete(id):
    db.execute("DELETE FROM texts WHERE id = %s", [id])

add("model", "sentences.parquet")
