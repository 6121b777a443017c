"""Writes tables into the current directory with the programs that people use, and prints what they contain as JSON."""
import datetime, decimal, json, os, sys, uuid, warnings

import datasets, duckdb, fastparquet, numpy as np, pandas as pd, polars as pl, pyarrow as pa, pyarrow.feather, pyarrow.ipc, pyarrow.parquet as pq

warnings.simplefilter("ignore")
datasets.disable_progress_bars()
UTC = datetime.timezone.utc
N, DIM = 96, 8
X = (np.random.default_rng(1).normal(size=(N, DIM)) * 30).round().clip(-100, 100).astype("f4") / 16  # exact in all types, as decimals too
LISTS = X.tolist()
TEXTS = [f"text {i} «ü»\n日本" * (i % 5) for i in range(N)]
NAMES = [f"d{i}" for i in range(N)]
NUMBERS = [1000 + 3 * i for i in range(N)]
UUIDS = [uuid.UUID(int=i << 100 | 7) for i in range(N)]
PRICES = [None if i % 7 == 3 else i * 1.25 for i in range(N)]


def cycle(values):
    return [values[i % len(values)] for i in range(N)]


def iso(t):
    if isinstance(t, datetime.datetime) and t.tzinfo:
        return iso(t.astimezone(UTC).replace(tzinfo=None)) + "Z"
    s = t.isoformat()
    return s.rstrip("0").rstrip(".") if "." in s else s


def show(v):
    if v is None:
        return ""
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (datetime.date, datetime.time)):
        return iso(v)
    if isinstance(v, float):
        return repr(v).removesuffix(".0")
    return str(v)


expected = {}


def expect(name, ids=NAMES, texts=TEXTS, data=X, warnings=(), error="", options=None, **columns):
    """Notes what a file or folder contains. Columns are lists of values."""
    expected[name] = {
        "ids": [show(i) for i in ids], "texts": texts, "data": np.asarray(data, "f4").ravel().tolist(), "warnings": list(warnings),
        "error": error, "options": options or {}, "columns": {k: [show(v) for v in values] for k, values in columns.items()},
    }


def both(name, table, **o):
    """Writes a table in Parquet and as an Arrow file and stream."""
    pq.write_table(table, f"{name}.parquet")
    pa.feather.write_feather(table, f"{name}.arrow", compression="zstd")
    with pa.ipc.new_stream(f"{name}.arrows", table.schema) as w:
        w.write_table(table, max_chunksize=10)
    for ending in "parquet", "arrow", "arrows":
        expect(f"{name}.{ending}", **o)


MICROS = cycle([datetime.datetime(1850, 7, 1, 12), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), datetime.datetime(1970, 1, 1), None,
                datetime.datetime(2024, 3, 5, 10, 11, 12, 500000), datetime.datetime(2300, 1, 1, 0, 0, 1), datetime.datetime(9999, 12, 31, 23, 59, 59)])
NANOS = cycle([datetime.datetime(1700, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 3, 5, 10, 11, 12)])
ZONED = [None if t is None or t.year > 9000 else t.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30))) for t in MICROS]
DAYS = [t and t.date() for t in MICROS]
CLOCK = cycle([datetime.time(0), datetime.time(10, 11, 12, 120000), None, datetime.time(23, 59, 59)])
DECIMALS = cycle([decimal.Decimal("0.05"), decimal.Decimal("-1.50"), None, decimal.Decimal("12345678901.25")])
BOOLS = cycle([True, False, None])

# pyarrow: all types.
lists = pa.array(LISTS, pa.list_(pa.float32()))
id_text = {"id": NAMES, "text": TEXTS}
for width in 8, 16, 32, 64:
    for kind in "int", "uint":
        whole = pa.type_for_alias(f"{kind}{width}")
        values = cycle([0, 1, 2 ** (width - (kind == "int")) - 1, -(2 ** (width - 1)) if kind == "int" else 7])
        ids = range(N)
        # One int64 number of ids can't be a float32, but ids are text.
        both(f"{kind}{width}", pa.table({"id": pa.array(ids, whole), "text": TEXTS, "n": pa.array(values, whole), "v": lists}), ids=ids, n=values)
        numbers = np.abs(X * 16).astype(kind + str(width)) if kind == "uint" else (X * 16).astype(kind + str(width))
        both(f"list-{kind}{width}", pa.table({**id_text, "embedding": pa.array(list(numbers)), "price": PRICES}), data=numbers, price=PRICES)
        columns = {f"dim_{k}": numbers[:, k] for k in range(DIM)}
        both(f"wide-{kind}{width}", pa.table({**id_text, "price": PRICES, **columns}), data=numbers, price=PRICES)
for name, kind in ("half", pa.float16()), ("double", pa.float64()):
    both(f"list-{name}", pa.table({**id_text, "embedding": pa.array(list(X.astype(kind.to_pandas_dtype())), pa.list_(kind))}))
both("large", pa.table({"id": pa.array(NAMES, pa.large_string()), "text": pa.array(TEXTS, pa.large_string()), "v": pa.array(LISTS, pa.large_list(pa.float32()))}))
both("views", pa.table({"id": pa.array(NAMES, pa.string_view()), "text": pa.array(TEXTS, pa.string_view()), "v": lists}))
both("fixed", pa.table({**id_text, "v": pa.array(LISTS, pa.list_(pa.float32(), DIM))}))
both("times", pa.table({**id_text, "v": lists, "ms": pa.array([t and t.replace(microsecond=t.microsecond // 1000 * 1000) for t in MICROS], pa.timestamp("ms")),
     "us": pa.array(MICROS, pa.timestamp("us")), "ns": pa.array(NANOS, pa.timestamp("ns")), "zone": pa.array(ZONED, pa.timestamp("us", "Asia/Kolkata")),
     "day": pa.array(DAYS, pa.date32()), "clock": pa.array(CLOCK, pa.time64("us")), "clock_ns": pa.array(CLOCK, pa.time64("ns")), "clock_ms": pa.array(CLOCK, pa.time32("ms"))}),
     ms=MICROS, us=MICROS, ns=NANOS, zone=ZONED, day=DAYS, clock=CLOCK, clock_ns=CLOCK, clock_ms=CLOCK)
both("decimals", pa.table({**id_text, "v": lists, "d64": pa.array(DECIMALS, pa.decimal128(18, 2)), "d128": pa.array(DECIMALS, pa.decimal128(38, 2)), "d256": pa.array(DECIMALS, pa.decimal256(60, 2))}),
     d64=DECIMALS, d128=DECIMALS, d256=DECIMALS)
both("dictionaries", pa.table({"id": pa.array(NAMES).dictionary_encode(), "text": pa.array(TEXTS).dictionary_encode(), "v": lists, "stars": pa.array(cycle([1, None, 5])).dictionary_encode()}),
     stars=cycle([1, None, 5]))
both("binary", pa.table({**id_text, "raw": [b"a"] * N, "view": pa.array([b"a"] * N, pa.binary_view()), "v": lists}), warnings=['columns not read: "raw" (binary), "view" (binary)'])
both("binary-text", pa.table({"text": [t.encode() for t in TEXTS], "label": NAMES, "v": lists}), error="""column "text" can't have the text: its type is binary; cast it to strings, or name another column""")
both("uuid", pa.table({"id": pa.array([u.bytes for u in UUIDS], pa.uuid()), "text": TEXTS, "v": lists}), ids=UUIDS)
both("nested", pa.table({**id_text, "v": lists, "tags": [["a"]] * N, "image": [{"bytes": b"\xff", "path": "x"}] * N, "props": pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())), "ok": BOOLS}),
     ok=BOOLS, warnings=['columns not read: "tags" (list of string), "image" (struct), "props" (map)'])
both("ids", pa.table({"id": pa.array(DAYS[:1] + [datetime.date(2000, 1, 1) + datetime.timedelta(i) for i in range(1, N)]), "v": lists}), ids=[DAYS[0]] + [datetime.date(2000, 1, 1) + datetime.timedelta(i) for i in range(1, N)], texts=None)
both("strings", pa.table({**id_text, "embedding": [json.dumps(v) for v in LISTS], "price": PRICES}), price=PRICES)
both("numpy-strings", pa.table({**id_text, "embedding": [str(v) for v in X]}))  # "[ 1.5 -2.25 …]", in lines
both("bytes", pa.table({**id_text, "embedding": [v.tobytes() for v in X], "price": PRICES}),
     error="""column "embedding" can't be the vectors: its type is binary (want lists of numbers); unpack it first: numpy.unpackbits for binary embeddings, numpy.frombuffer for others, or name the columns to read""")
packed = np.packbits(np.random.default_rng(2).normal(size=(N, 64 * 8)) > 0, axis=1)
for name, bits in ("uint8", packed), ("int8", (packed.astype(int) - 128).astype("int8")):
    message = f'column "embedding" (list of {name}) seems to have packed bits of binary embeddings; unpack them first with numpy.unpackbits, after adding 128 if they are int8; or name the column to read its numbers'
    both(f"bits-{name}", pa.table({**id_text, "embedding": list(bits)}), error=message)
both("named-bits", pa.table({**id_text, "embedding": list(packed)}), data=packed, options={"VectorColumns": "embedding"})
both("no-vectors", pa.table({**id_text, "price": PRICES}),
     error='no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; got "id" (string), "text" (string), "price" (float64)); name the columns to read')
both("two", pa.table({**id_text, "vector": lists, "embedding": lists}), error='several columns can be the vectors, "vector" (list of float32), "embedding" (list of float32); name the one to read')
both("one-of-two", pa.table({**id_text, "a": lists, "b": pa.array((2 * X).tolist())}), data=2 * X, options={"VectorColumns": "b"}, warnings=['columns not read: "a" (list of float32)'])

# Strings that are UTF-8 at first, then not, and a large cell.
rows = 600
texts = [b"a"] * 500 + [b"b\xffc"] + [b"a"] * 99
labels = texts[100:] + texts[:100]  # invalid in row 400
large = ["x"] * 300 + ["y" * 10_000_000] + ["z"] * 299
strings = lambda values: pa.Array.from_buffers(pa.string(), len(values), pa.array(values).buffers())  # without checks
both("invalid", pa.table({"text": strings(texts), "label": strings(labels), "large": large, "v": list(np.tile(X, (rows // N + 1, 1))[:rows])}), ids=range(rows), data=np.tile(X, (rows // N + 1, 1))[:rows],
     texts=[t.decode(errors="replace") for t in texts], label=[t.decode(errors="replace") for t in labels], large=large,
     warnings=['texts that are not UTF-8, invalid bytes replaced by U+FFFD: 2 (400, 500)'])

# Spark's vectors.
spark = pa.array([{"type": 1, "values": v} for v in X], pa.struct([("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))]))
both("spark", pa.table({**id_text, "features": spark, "score": PRICES}),
     error="""column "features" can't be the vectors: its type is struct (want lists of numbers); store lists of numbers, or name the columns to read""")

# pyarrow: encodings, pages and codecs of Parquet.
table = pa.table({"id": NUMBERS, "text": TEXTS, "n": pa.array([None if i % 5 == 4 else (i * 977) ** 3 for i in range(N)]), "small": pa.array(range(N), pa.int16()), "e": lists})
n = table["n"].to_pylist()
ints, texts = ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN"), ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "PLAIN")
for k, codec in enumerate(["none", "snappy", "gzip", "zstd", "lz4"]):
    for version in "1.0", "2.0":
        floats = ["PLAIN", "BYTE_STREAM_SPLIT"][k % 2]
        name = f"encodings-{codec}-{version}.parquet"
        pq.write_table(table, name, compression=codec, data_page_version=version, use_dictionary=False, write_page_checksum=True, row_group_size=40, data_page_size=200, write_batch_size=7,
                       column_encoding={"id": ints[k % 3], "n": ints[k % 3], "small": ints[k % 2], "text": texts[k % 3], "e.list.element": floats})
        expect(name, ids=NUMBERS, n=n, small=range(N))
pq.write_table(pa.table({**id_text, "v": lists, "when": pa.array(NANOS, pa.timestamp("ns"))}), "int96.parquet", use_deprecated_int96_timestamps=True)
expect("int96.parquet", when=NANOS)
pq.write_table(pa.table({**id_text, "v": lists}), "old-lists.parquet", use_compliant_nested_type=False)
expect("old-lists.parquet")
many = 30_000  # of several pages
texts = [f"text {i // 3}" * (i % 3) for i in range(many)]
pq.write_table(pa.table({"id": range(many), "text": texts, "v": list(np.tile(X, (many // N + 1, 1))[:many])}), "many.parquet", use_dictionary=False,
               column_encoding={"id": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "v.list.element": "BYTE_STREAM_SPLIT"})
expect("many.parquet", ids=range(many), texts=texts, data=np.tile(X, (many // N + 1, 1))[:many])

# Arrow files without the end marker, with several dictionaries, and empty batches.
batches = pa.table({**id_text, "v": lists}).to_batches(max_chunksize=40)
with pa.ipc.new_file("batches.arrow", batches[0].schema) as w:
    for b in [batches[0].slice(0, 0), *batches]:
        w.write_batch(b)
expect("batches.arrow")
content = open("batches.arrow", "rb").read()
footer = len(content) - 10 - int.from_bytes(content[-10:-6], "little")
assert content[footer - 8:footer] == b"\xff\xff\xff\xff\0\0\0\0"
open("no-eos.arrow", "wb").write(content[:footer - 8] + content[footer:])
expect("no-eos.arrow")

# pandas.
frame = pd.DataFrame({"id": NUMBERS, "text": TEXTS, "price": PRICES, "kind": pd.Categorical(cycle(["x", "y", None])), "n": pd.array(cycle([1, None, -3]), "Int64"),
                      "when": pd.to_datetime(NANOS), "ok": cycle([True, False, True])})
columns = {"price": PRICES, "kind": cycle(["x", "y", None]), "n": cycle([1, None, -3]), "when": NANOS, "ok": cycle([True, False, True])}
frame.assign(embedding=list(X)).to_parquet("pandas.parquet")
frame.assign(embedding=list(X)).to_feather("pandas.arrow")
pd.concat([frame, pd.DataFrame(X)], axis=1).to_parquet("pandas-wide.parquet")
frame.assign(embedding=list(X))[::-1].to_parquet("pandas-index.parquet")
for name in "pandas.parquet", "pandas.arrow", "pandas-wide.parquet":
    expect(name, ids=NUMBERS, **columns)
expect("pandas-index.parquet", ids=NUMBERS[::-1], texts=TEXTS[::-1], data=X[::-1], **{k: v[::-1] for k, v in columns.items()})

# Polars.
p = pl.DataFrame({"id": NUMBERS, "text": TEXTS, "kind": pl.Series(cycle(["x", "y", None]), dtype=pl.Categorical), "level": pl.Series(cycle(["low", "high"]), dtype=pl.Enum(["low", "high"])),
                  "when": pl.Series(MICROS, dtype=pl.Datetime("us")), "zone": pl.Series(ZONED, dtype=pl.Datetime("us", "UTC")), "day": DAYS, "clock": CLOCK, "money": DECIMALS,
                  "small": pl.Series(cycle([1, None, 200]), dtype=pl.UInt8), "ok": BOOLS, "raw": [b"a"] * N})
columns = {"kind": cycle(["x", "y", None]), "level": cycle(["low", "high"]), "when": MICROS, "zone": ZONED, "day": DAYS, "clock": CLOCK, "money": DECIMALS, "small": cycle([1, None, 200]), "ok": BOOLS}
for name, kind, data in ("array", pl.Array(pl.Float32, DIM), X), ("list", pl.List(pl.Float64), X), ("int8", pl.List(pl.Int8), np.trunc(X)):
    t = p.with_columns(embedding=pl.Series(data.astype("f8").tolist() if name != "int8" else data.astype(int).tolist(), dtype=kind))
    t.write_parquet(f"polars-{name}.parquet")
    t.write_ipc(f"polars-{name}.arrow")
    t.write_ipc(f"polars-{name}-lz4.arrow", compression="lz4")
    t.write_ipc_stream(f"polars-{name}.arrows")
    for ending in ".parquet", ".arrow", "-lz4.arrow", ".arrows":
        expect(f"polars-{name}{ending}", ids=NUMBERS, data=data, warnings=['columns not read: "raw" (binary)'], **columns)

# DuckDB.
connection = duckdb.connect()
connection.execute("SET TimeZone = 'Asia/Kolkata'")
source = pa.table({"i": NUMBERS, "u": [str(u) for u in UUIDS], "t": TEXTS, "m": pa.array(MICROS, pa.timestamp("us")), "z": pa.array(ZONED, pa.timestamp("us", "UTC")), "d": pa.array(DAYS),
                   "c": pa.array(CLOCK, pa.time64("us")), "x": pa.array(DECIMALS, pa.decimal128(18, 2)), "b": BOOLS, "e": lists})
select = """SELECT i::BIGINT AS id, t AS text, m AS "when", z AS zone, d AS "day", c AS clock, x AS money, (i % 7)::DECIMAL(4, 1) AS small, b AS ok, (i % 100)::UTINYINT AS tiny,
    ['low', 'high'][1 + (i % 2)::INT]::ENUM('low', 'high') AS level, e::{} AS embedding FROM source"""
columns = {"when": MICROS, "zone": ZONED, "day": DAYS, "clock": CLOCK, "money": DECIMALS, "small": [decimal.Decimal(i % 7).quantize(decimal.Decimal("0.1")) for i in NUMBERS], "ok": BOOLS,
           "tiny": [i % 100 for i in NUMBERS], "level": [["low", "high"][i % 2] for i in NUMBERS]}
for version in "v1", "v2":
    for codec in "snappy", "zstd", "gzip", "lz4_raw", "uncompressed":
        name = f"duckdb-{version}-{codec}.parquet"
        kind = {"snappy": "FLOAT[]", "zstd": f"DOUBLE[{DIM}]", "gzip": f"FLOAT[{DIM}]", "lz4_raw": "DECIMAL(9, 4)[]", "uncompressed": "FLOAT[]"}[codec]
        connection.execute(f"COPY ({select.format(kind)}) TO '{name}' (FORMAT parquet, PARQUET_VERSION {version}, COMPRESSION {codec})")
        expect(name, ids=NUMBERS, **columns)
connection.execute("COPY (SELECT u::UUID AS id, t AS text, e AS embedding FROM source) TO 'duckdb-uuid.parquet' (FORMAT parquet)")
expect("duckdb-uuid.parquet", ids=UUIDS)

# fastparquet.
frame = pd.DataFrame({"id": NUMBERS, "text": TEXTS, "stars": np.arange(N, dtype="i1"), "n": np.arange(N, dtype="u2"), "price": PRICES, "when": pd.to_datetime(NANOS), "ok": cycle([True, False]),
                      **{f"e{k}": X[:, k] for k in range(DIM)}}).astype({"text": object})
columns = {"stars": range(N), "n": range(N), "price": PRICES, "when": NANOS, "ok": cycle([True, False])}
for name, o in ("", {}), ("-int96", {"times": "int96"}), ("-zstd", {"compression": "ZSTD"}), ("-groups", {"row_group_offsets": 30}), ("-nulls", {"has_nulls": True}), ("-bytes", {"object_encoding": {"text": "utf8"}}):
    fastparquet.write(f"fastparquet{name}.parquet", frame.astype({"when": "datetime64[ns]"}), **o)
    expect(f"fastparquet{name}.parquet", ids=NUMBERS, **columns)

# Hugging Face datasets.
features = datasets.Features({"id": datasets.Value("int64"), "text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"]), "embedding": datasets.List(datasets.Value("float32"))})
d = datasets.Dataset.from_dict({"id": NUMBERS, "text": TEXTS, "label": cycle([1, 0, -1, None]), "embedding": LISTS}, features=features)
labels = cycle(["good", "bad", -1, None])
d.to_parquet("datasets.parquet")
d.save_to_disk("datasets", num_shards=3)
datasets.DatasetDict({"train": d.select(range(N // 2)), "test": d.select(range(N // 2, N))}).save_to_disk("dict")
half = N // 2
expect("datasets.parquet", ids=NUMBERS, label=labels)
expect("datasets", ids=NUMBERS, label=labels)
order = [*range(half, N), *range(half)]  # of the folders' names
expect("dict", ids=[NUMBERS[i] for i in order], texts=[TEXTS[i] for i in order], data=X[order], label=[labels[i] for i in order])

json.dump(expected, sys.stdout)
