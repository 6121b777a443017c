"""Search the texts of a model with DuckDB. Install duckdb, too."""

import duckdb
from overcomplete_vectors import Model, run

model = Model.load("model")
run("export", "model", "-f", "parquet", "-o", "rows.parquet", "--normalize", "--force")
run("export", "model", "-f", "labels", "-o", "labels.json", "--force")
db = duckdb.connect()  # or duckdb.connect("texts.db")
db.execute("""
    CREATE TABLE rows AS SELECT * FROM read_parquet('rows.parquet', file_row_number = true);
    CREATE TABLE texts AS SELECT rows.* EXCLUDE (indices, values), embedding FROM rows POSITIONAL JOIN (SELECT embedding FROM 'sentences.parquet');
    CREATE TABLE postings AS SELECT file_row_number, unnest(indices) AS dimension, unnest(values) AS value FROM rows ORDER BY dimension;
    CREATE TABLE labels AS SELECT unnest(map_entries(from_json(content, '"MAP(VARCHAR, VARCHAR)"')), recursive := true) FROM read_text('labels.json');
""")
score = "SELECT file_row_number, sum(value * weight) AS score FROM postings JOIN (SELECT unnest($1) AS dimension, unnest($2) AS weight) USING (dimension)"


def search(x, n=10, rerank="dense", where="true", **steering):
    db.execute(f"""CREATE OR REPLACE TABLE best AS SELECT * FROM ({score} GROUP BY file_row_number)
        JOIN texts USING (file_row_number) WHERE {where} ORDER BY score DESC LIMIT 100""", model.query(x, **steering))  # fmt: skip
    if rerank == "products":  # by all weights
        every = model.query(x, len(model.dictionary), signed=True, **steering)
        again = f"{score} SEMI JOIN best USING (file_row_number) GROUP BY file_row_number"
        found = db.execute(f"SELECT id FROM ({again}) JOIN texts USING (file_row_number) ORDER BY score DESC", every)
    elif rerank == "dense":
        found = db.execute("SELECT id FROM best ORDER BY list_cosine_similarity(embedding, $1) DESC", [x.tolist()])
    else:
        found = db.execute("SELECT id FROM best ORDER BY score DESC")
    return [id for id, in found.fetchmany(n)]


def explain(x, id, n=3):
    parts = "SELECT labels.value, postings.value * weight FROM postings JOIN (SELECT unnest($1) AS dimension, unnest($2) AS weight) USING (dimension)"
    named = f"{parts} JOIN labels ON key = dimension::VARCHAR JOIN texts USING (file_row_number)"
    return db.execute(f"{named} WHERE id = $3 ORDER BY 2 DESC LIMIT {n}", [*model.query(x), id]).fetchall()


def delete(id):
    db.execute("DELETE FROM texts WHERE id = ?", [id])
