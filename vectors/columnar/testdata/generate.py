"""Writes the tables of this folder, each as NAME.arrow and NAME.parquet, with pyarrow 26.0."""
import pyarrow as pa, pyarrow.feather, pyarrow.ipc, pyarrow.parquet

nan, big = float("nan"), 1e300


def write(name, **columns):
    table = pa.table(columns)
    pa.feather.write_feather(table, f"{name}.arrow", compression="uncompressed")
    pa.parquet.write_table(table, f"{name}.parquet", compression="none")


def lists(rows, number=pa.float32()):
    return pa.array(rows, pa.list_(number))


rows = [[1, 2], [3, 4], [5, 6]]
write("lists", word=["a", "b", "c"], v=lists(rows))
write("fixed", word=pa.array(["a", "b", "a"]).dictionary_encode(), v=pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float16(), 2)))
write("wide", id=[7, 8, 9], word=["a", "b", "c"], e0=pa.array([1, 3, 5], pa.float32()), e1=[2.0, 4.0, 6.0])
write("bare", v=lists(rows, pa.float64()))
write("nulls", word=["a", None, "c", "d"], v=lists([[1, 2], [3, 4], None, [5, None]]))
write("numbers", word=["a", "b", "c", "d"], v=lists([[1, 2], [3, nan], [big, 4], [5]], pa.float64()))
write("empty", word=["a", "b"], v=lists([[1, 2], []]))
write("widenulls", word=["a", "b", "c", None], x=[1.0, None, 3, 4], y=[2.0, 3, nan, 5])
write("integers", word=["a"], v=pa.array([[1]], pa.list_(pa.int32())), x=[1])
write("words", first=["a"], last=["b"], v=lists([[1]]))
write("vectors", word=["a"], first=lists([[1]]), last=lists([[1]]))
write("none", word=pa.array([], pa.string()), v=lists([]))

table = pa.table({"word": ["a", "b", "c"], "v": lists(rows)})
with pa.ipc.new_stream("stream.arrow", table.schema) as w:
    w.write_table(table, max_chunksize=2)
pa.feather.write_feather(table, "zstd.arrow", compression="zstd")
pa.parquet.write_table(table, "groups.parquet", compression="zstd", row_group_size=2, data_page_version="2.0")

# As Hugging Face datasets write them: a text may be anything.
texts = ["first\nsecond line", "", "a <b>tag</b> \x1b[31mred", None, "a <b>tag</b> \x1b[31mred", "שלום e\u0301 ไทย", "x" * 100]
vectors = lists([[i, 1] for i in range(7)])
write("texts", doc_id=[f"d-{i}" for i in range(7)], text=texts, label=pa.array([0, 1, -2, None, 0, 1, 0], pa.int64()),
      seen=[True, False, None, True, True, False, False], score=[.5, None, 1, 2, 3, 1 / 3, 123456789.125], kind=pa.array(list("aababba")).dictionary_encode(),
      when=pa.array([1] * 7, pa.timestamp("s")), size=pa.array([2**32 - 1] * 7, pa.uint32()), embedding=vectors)
pa.parquet.write_table(pa.parquet.read_table("texts.parquet"), "texts2.parquet", compression="snappy", data_page_version="2.0", use_dictionary=False)
pa.parquet.write_table(pa.table({"text": ["a b c", "c d e"], "n": pa.array([1, 2], pa.int64()), "v": lists([[1], [2]])}), "delta.parquet",
                       use_dictionary=False, column_encoding={"n": "DELTA_BINARY_PACKED", "text": "PLAIN", "v.list.element": "PLAIN"})
write("repeated", id=pa.array([1, 2, 1], pa.int32()), text=["a b c", "c d e", "e f g"], v=lists([[1], [2], [3]]))
write("noid", id=["x", None, "z"], text=["a b c", "c d e", "e f g"], v=lists([[1], [2], [3]]))
uuids = [f"00000000-0000-1eef-0000-{i:012}" for i in range(3)]
write("uuids", id=uuids, v=lists([[1], [2], [3]]))
write("numbers_only", id=[100, 200, 300], v=lists([[1], [2], [3]]))
write("floats", id=[123456781.0, 2.0, 3.0], text=["a", "b", "a"], v=lists([[1], [2], [3]]))
write("badid", id=["x\ty", "y", "z"], text=["a b c", "c d e", "e f g"], v=lists([[1], [2], [3]]))
write("novector", text=["a b c", "c d e", "e f g"], v=lists([[1], None, [3]]))


# Files that are encrypted, differently each time: all of one, and the words of the other.
import base64, pyarrow.parquet.encryption as encryption


class Keys(encryption.KmsClient):
    def wrap_key(self, key, name):
        return base64.b64encode(key)

    def unwrap_key(self, key, name):
        return base64.b64decode(key)


keys = encryption.CryptoFactory(lambda _: Keys())
table = pa.table({"word": ["a", "b", "c"], "v": lists(rows)})
for name, plain, columns in ("encrypted", False, ["word", "v.list.element"]), ("encrypted_word", True, ["word"]):
    how = encryption.EncryptionConfiguration("key", column_keys={"key": columns}, plaintext_footer=plain)
    how = keys.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    with pa.parquet.ParquetWriter(f"{name}.parquet", table.schema, encryption_properties=how) as w:
        w.write_table(table)
