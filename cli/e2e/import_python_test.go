package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// imported returns vectors of the odd words, with numbers that float16 and bfloat16 hold exactly. The scripts make the
// same vectors.
func imported() *vectors.Dense {
	d := &vectors.Dense{IDs: slices.Clone(oddWords), Dim: 4}
	for i := range len(oddWords) * d.Dim {
		d.Data = append(d.Data, float32(i%63-31)/8)
	}
	return d
}

// makeImported is the beginning of the scripts. It makes the vectors of imported.
const makeImported = `
import numpy as np
words = open("words.txt", encoding="utf8", newline="\n").read().split("\n")[:-1]
x = ((np.arange(4 * len(words)) % 63 - 31) / 8).reshape(len(words), 4)
`

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
`)
	files := dir.Names(t)
	if len(files) != 22 {
		t.Errorf("%d files", len(files))
	}
	for _, name := range files {
		if name == "words.txt" {
			continue
		}
		want, o := imported(), vectors.ReadOptions{WordList: dir.Path("words.txt")}
		if strings.Contains(name, "numbered") {
			o.WordList = ""
			for i := range want.IDs {
				want.IDs[i] = fmt.Sprint(i)
			}
		}
		got, _, err := vectors.Read(t.Context(), []string{dir.Path(name)}, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !slices.Equal(got.IDs, want.IDs) || got.Dim != want.Dim || !slices.Equal(got.Data, want.Data) {
			t.Errorf("%s: %d words × %d, others than Python wrote", name, len(got.IDs), got.Dim)
		}
	}
}
