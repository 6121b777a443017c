package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// imported returns vectors of the odd words that keep selects. Float16 and bfloat16 hold their numbers exactly.
func imported(keep func(word string) bool) *vectors.Dense {
	d := &vectors.Dense{Dim: 4}
	for i, word := range oddWords {
		if keep(word) {
			d.IDs = append(d.IDs, word)
			for j := range d.Dim {
				d.Data = append(d.Data, float32((i*d.Dim+j)%63-31)/8)
			}
		}
	}
	return d
}

// Vectors that NumPy, safetensors and gensim write are read unchanged, in each type.
func TestReadsWhatPythonWrites(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	dir.Write(t, "words.txt", []byte(strings.Join(oddWords, "\n")+"\n"))
	runPython(t, dir, `
import ml_dtypes, numpy as np
from gensim.models import KeyedVectors
from safetensors import TensorSpec, serialize_file
from safetensors.numpy import save_file

words = open("words.txt", "rb").read().decode().split("\n")[:-1]
x = ((np.arange(4 * len(words)) % 63 - 31) / 8).reshape(len(words), 4)
for type in "float16", "float32", "float64", ml_dtypes.bfloat16:
    name = np.dtype(type).name
    np.save(f"numbered.{name}.npy", x.astype(type))
    np.save(f"listed.{name}.npy", x.astype(type))
    np.save(f"listed.{name}.fortran.npy", np.asfortranarray(x.astype(type)))
    np.savez(f"listed.{name}.npz", vectors=x.astype(type))
    np.savez_compressed(f"listed.{name}.deflated.npz", vectors=x.astype(type))
# NumPy knows bfloat16 no more when it reads it.
again = np.load("listed.bfloat16.npy")
assert again.dtype.str == "|V2"
np.save("listed.again.npy", again)

for type in "float16", "float32", "float64":
    save_file({"vectors": x.astype(type), "other": x.astype(np.int64)}, "listed." + type)
save_file({"model.embed_tokens.weight": x.astype(np.float32), "norm": x[0]}, "listed.tensors", metadata={"format": "pt"})
# safetensors has no bfloat16 of NumPy: it is the upper half of a float32.
half = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
serialize_file({"embeddings": TensorSpec(dtype="bfloat16", shape=list(x.shape), data_ptr=half.ctypes.data, data_len=half.nbytes)}, "listed.bfloat16")

def save(name, keep, **options):
    v = KeyedVectors(x.shape[1])
    v.add_vectors([word for word in words if keep(word)], x[[keep(word) for word in words]])
    v.save_word2vec_format(name, **options)

# A row of text begins with its word; spaces around it are no part of it. In the binary form a space ends the word.
save("text", lambda word: word == word.strip(" "))
save("text.headless", lambda word: word == word.strip(" "), write_header=False)
save("text.gz", lambda word: word == word.strip(" "))
save("binary", lambda word: " " not in word, binary=True)
save("binary.gz", lambda word: " " not in word, binary=True)
`)
	files := dir.Names(t)
	if len(files) != 32 {
		t.Errorf("%d files", len(files))
	}
	for _, name := range files {
		want, o := imported(func(string) bool { return true }), vectors.ReadOptions{}
		switch kind, _, _ := strings.Cut(name, "."); kind {
		case "words":
			continue
		case "listed":
			o.WordList = dir.Path("words.txt")
		case "numbered":
			for i := range want.IDs {
				want.IDs[i] = fmt.Sprint(i)
			}
		case "text":
			want = imported(func(word string) bool { return word == strings.Trim(word, " ") })
		case "binary":
			want = imported(func(word string) bool { return !strings.Contains(word, " ") })
		}
		got, _, err := vectors.Read(t.Context(), []string{dir.Path(name)}, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !slices.Equal(got.IDs, want.IDs) || got.Dim != want.Dim || !slices.Equal(got.Data, want.Data) {
			t.Errorf("%s: %d words × %d, others than Python wrote: %.2000q", name, len(got.IDs), got.Dim, got.IDs)
		}
	}
}
