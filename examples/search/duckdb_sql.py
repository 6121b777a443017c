"""Search the texts of a model with DuckDB. Install duckdb, too."""

import duckdb
from overcomplete_vectors import Model, run

model = Model.load("model")
run("export", "model", "-f", "labels", "-o", "labels.json", "--force")
db = duckdb.connect()  # or duckdb.connect("texts.db")
labels = """(SELECT unnest(map_entries(from_json(content, '"MAP(VARCHAR, VARCHAR)"')), recursive := true) FROM read_text('labels.json'))"""
parts = "postings JOIN (SELECT unnest($1) AS dimension, unnest($2) AS weight) USING (dimension)"

def add(encoded, file):  # rows of the model, or of a directory that was encoded with it
    run("export", encoded, "--vocabulary", "model", "-f", "parquet", "-o", "rows.parquet", "--normalize", "--force")
    texts = f"SELECT * EXCLUDE (indices, values) FROM 'rows.parquet' POSITIONAL JOIN (SELECT embedding FROM '{file}')"
    postings = "SELECT id, unnest(indices) AS dimension, unnest(values) AS value FROM 'rows.parquet' ORDER BY dimension"
    sql = f"BEGIN; SELECT error('{file} needs a vector for each row') WHERE (SELECT count(*) FROM 'rows.parquet') <> (SELECT count(*) FROM '{file}');"
    for table, rows in ("texts", texts), ("postings", postings):
        sql += f"CREATE TABLE IF NOT EXISTS {table} AS {rows} LIMIT 0; DELETE FROM {table} WHERE id IN (SELECT id FROM 'rows.parquet'); INSERT INTO {table} BY NAME {rows};"
    with db.cursor() as transaction:  # its end rolls back after an error
        transaction.execute(sql + "COMMIT")

def search(x, n=10, rerank="dense", where="true", **steering):
    score = f"SELECT id, sum(value * weight) AS score FROM {parts}"
    rows = f"SELECT id FROM texts WHERE {where}"  # apart, as columns of texts may have the names of others
    db.execute(f"CREATE OR REPLACE TABLE best AS SELECT * FROM ({score} GROUP BY id) WHERE id IN ({rows}) ORDER BY score DESC LIMIT 100", model.query(x, **steering))
    found = "SELECT id FROM best ORDER BY score DESC", []
    if rerank == "products":  # by all weights
        found = f"{score} SEMI JOIN best USING (id) GROUP BY id ORDER BY score DESC", model.query(x, len(model.dictionary), signed=True, **steering)
    elif rerank == "dense":
        found = "SELECT id FROM texts SEMI JOIN best USING (id) ORDER BY list_cosine_distance(embedding, $1)", [x.tolist()]  # NaN, of zeros, is last
    return [row[0] for row in db.execute(*found).fetchmany(n)]

def explain(x, id, n=3):
    named = f"SELECT labels.value, postings.value * weight FROM {parts} JOIN {labels} AS labels ON key = dimension || if(postings.value < 0, '-', '')"
    return db.execute(f"{named} WHERE id = $3 ORDER BY 2 DESC LIMIT {n}", [*model.query(x), id]).fetchall()

def delete(id):
    db.execute("DELETE FROM texts WHERE id = $1", [id])

add("model", "sentences.parquet")
