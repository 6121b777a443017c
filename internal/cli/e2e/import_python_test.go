package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/vectors"
)

// imported are vectors that float16 and bfloat16 hold exactly, with awkward words. The
// scripts make the same.
func imported() *vectors.Dense {
	d := &vectors.Dense{Words: oddWords, Dim: 4}
	for i := range len(oddWords) * d.Dim {
		d.Data = append(d.Data, float32(i%63-31)/8)
	}
	return d
}

// makeImported is the beginning of the scripts.
const makeImported = `
import numpy as np
words = open("words.txt", encoding="utf8", newline="\n").read().split("\n")[:-1]
x = ((np.arange(4 * len(words)) % 63 - 31) / 8).reshape(len(words), 4)
`

// readAll reads all files of a directory but the list of words, which those for which
// listed says so are read with, and compares them.
func readAll(t *testing.T, dir clitest.Dir, want *vectors.Dense, least int, listed func(name string) bool) {
	t.Helper()
	files := dir.Names(t)
	if len(files) <= least {
		t.Errorf("only %d files", len(files)-1)
	}
	for _, name := range files {
		if name == "words.txt" {
			continue
		}
		o := vectors.ReadOptions{}
		want := *want
		if listed(name) {
			o.WordList = dir.Path("words.txt")
		} else if strings.Contains(name, "numbered") {
			want.Words = nil
			for i := range oddWords {
				want.Words = append(want.Words, fmt.Sprint(i))
			}
		}
		got, _, err := vectors.Read(t.Context(), []string{dir.Path(name)}, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !slices.Equal(got.Words, want.Words) || got.Dim != want.Dim || !slices.Equal(got.Data, want.Data) {
			t.Errorf("%s: %d words × %d, others than Python wrote", name, len(got.Words), got.Dim)
		}
	}
}

func writeWords(t *testing.T, dir clitest.Dir) {
	t.Helper()
	dir.Write(t, "words.txt", []byte(strings.Join(oddWords, "\n")+"\n"))
}

func TestReadsWhatNumPyWrites(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	writeWords(t, dir)
	runPython(t, dir, makeImported+`
import ml_dtypes
for type in "float16", "float32", "float64", ml_dtypes.bfloat16:
    name = np.dtype(type).name
    np.save(name + ".npy", x.astype(type))
    np.save(name + ".fortran.npy", np.asfortranarray(x.astype(type)))
    np.savez(name + ".npz", vectors=x.astype(type))
    np.savez_compressed(name + ".deflated.npz", vectors=x.astype(type))
    np.save(name + ".numbered.npy", x.astype(type))
# NumPy knows bfloat16 no more when it reads it.
again = np.load("bfloat16.npy")
assert again.dtype.str == "|V2"
np.save("again.npy", again)
`, "ml_dtypes")
	readAll(t, dir, imported(), 21, func(name string) bool { return !strings.Contains(name, "numbered") })
}

func TestReadsWhatPyArrowWrites(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	writeWords(t, dir)
	runPython(t, dir, makeImported+`
import itertools
import pyarrow as pa, pyarrow.feather, pyarrow.ipc, pyarrow.parquet

word_types = {"string": pa.string(), "large": pa.large_string(), "view": pa.string_view(), "dictionary": pa.dictionary(pa.int8(), pa.string())}
float_types = {"f16": pa.float16(), "f32": pa.float32(), "f64": pa.float64()}
flat = {name: pa.array(x.ravel().astype(t.to_pandas_dtype())) for name, t in float_types.items()}
offsets = np.arange(0, x.size + 1, 4)
list_types = {
    "list": lambda v: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), v),
    "large": lambda v: pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), v),
    "fixed": lambda v: pa.FixedSizeListArray.from_arrays(v, 4),
}
rest = pa.array(np.arange(len(words)))

def tables():
    for w, f, l in itertools.product(word_types, float_types, list_types):
        yield f"{w}.{f}.{l}", pa.table({"id": rest, "word": pa.array(words).cast(word_types[w]), "embedding": list_types[l](flat[f])})
    for f in float_types:
        columns = {f"d{k}": pa.array(x[:, k].astype(float_types[f].to_pandas_dtype())) for k in range(4)}
        yield f"wide.{f}", pa.table({"id": rest, **columns, "token": words})
        yield f"wide.{f}.numbered", pa.table(columns)
    columns = {f"d{k}": pa.array(x[:, k].astype([np.float16, np.float32, np.float64][k % 3])) for k in range(4)}
    yield "wide.mixed", pa.table({"word": words, **columns})
    # Parts of other arrays, in chunks.
    padded = pa.table({"word": ["x", *words, "y"], "v": pa.array([[9.0] * 4, *x.tolist(), [8.0] * 4], pa.list_(pa.float32(), 4))})
    yield "sliced", pa.concat_tables([padded.slice(1, 7), padded.slice(8, 1), padded.slice(9, len(words) - 8)])
    yield "listed", pa.table({"word": ["x"] * len(words), "v": list_types["fixed"](flat["f32"])})
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(x.astype(np.float32))
    yield "tensor", pa.table({"word": words, "v": tensors})
    v = list_types["list"](flat["f64"])
    yield "named", pa.table({"text": words, "other": pa.array(words), "word": words, "values": v, "vector": v, "score": pa.array(x[:, 0])})

for name, t in tables():
    simple = "string.f32" in name or "wide.f32" in name or "view" not in name and "dictionary.f16" in name
    for compression in ["uncompressed", "lz4", "zstd"] if simple else ["lz4"]:
        pa.feather.write_feather(t, f"{name}.{compression}.arrow", compression=compression, chunksize=17)
    with pa.ipc.new_stream(f"{name}.stream.arrow", t.schema) as w:
        w.write_table(t, max_chunksize=11)
    for compression in ["none", "snappy", "gzip", "zstd", "lz4"] if simple else ["snappy"]:
        for version, dictionary in itertools.product(["1.0", "2.0"], [False, True]) if simple else [("1.0", True)]:
            pa.parquet.write_table(t, f"{name}.{compression}.{version}.{dictionary}.parquet", compression=compression,
                data_page_version=version, use_dictionary=dictionary, row_group_size=19, data_page_size=100)
for f in float_types:
    t = pa.table({"word": words, "v": list_types["list"](flat[f])})
    pa.parquet.write_table(t, f"split.{f}.parquet", column_encoding={"v.list.element": "BYTE_STREAM_SPLIT", "word": "PLAIN"}, use_dictionary=False)
t = pa.table({"word": words, "v": list_types["list"](flat["f32"])})
pa.parquet.write_table(t, "checksum.parquet", write_page_checksum=True, use_compliant_nested_type=False, write_page_index=True)
import gzip
open("file.parquet.gz", "wb").write(gzip.compress(open("checksum.parquet", "rb").read()))
`, "pyarrow", "pyarrow.parquet")
	readAll(t, dir, imported(), 200, func(name string) bool { return strings.HasPrefix(name, "listed") })
}
