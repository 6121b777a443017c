package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/csr"
	"overcomplete/internal/npy"
	"overcomplete/internal/safetensors"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// readers reads each file of the current directory with the library that defines its format. It prints the words, and the
// bits of the float32 numbers, as JSON.
const readers = `
import json, os, signal, sys, warnings
import numpy as np, scipy.sparse, safetensors
from gensim.models import KeyedVectors
warnings.simplefilter("ignore")

def array(path):
    a = np.load(path, allow_pickle=False)
    return a, None

def archive(path):
    with np.load(path, allow_pickle=False) as z:
        return z["vectors"], None

def tensors(path):
    of = {}
    for name, t in safetensors.deserialize(open(path, "rb").read()):
        data, shape = bytes(t["data"]), t["shape"]
        if t["dtype"] == "BF16":
            of[name] = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
        else:
            of[name] = np.frombuffer(data, {"F32": "<f4", "F64": "<f8", "F16": "<f2", "U8": "u1", "I32": "<i4", "I64": "<i8"}[t["dtype"]]).reshape(shape)
    return next(t for t in of.values() if t.ndim == 2), None

def gensim(path):
    k = KeyedVectors.load_word2vec_format(path, binary=path.endswith(".bin"))
    return k.vectors[:len(k.key_to_index)], k.index_to_key[:len(k.key_to_index)] # repeated words leave unused rows at the end

def csr(path):
    m = scipy.sparse.load_npz(path)
    if m.format != "csr":
        raise ValueError("not what a model has")
    return m.toarray(), None

of = {".npy": array, ".npz": archive, ".safetensors": tensors, ".txt": gensim, ".bin": gensim, ".csr": csr, ".crash": lambda path: os.abort()}

def read(path):
    try:
        a, words = of[os.path.splitext(path)[1]](path)
        if a.dtype.kind not in "fiu":
            raise ValueError("numbers of type %s" % a.dtype)
        print(json.dumps({"file": path, "shape": a.shape, "words": words, "bits": np.ascontiguousarray(a.astype("<f4")).view("<u4").ravel().tolist()}))
    except Exception as e:
        print(json.dumps({"file": path, "error": "%s: %s" % (type(e).__name__, e)}))
    sys.stdout.flush()

for path in sorted(os.listdir(".")):
    child = os.fork() # gensim and SciPy overrun their memory in some files
    if child == 0:
        signal.alarm(60) # after such an overrun, a file can take forever
        read(path)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(json.dumps({"file": path, "error": "crash"}), flush=True)
`

// A content is a file's content as a program reads it.
type content struct {
	File  string
	Error string
	Shape []int
	Words []string
	Bits  []uint32
}

// This program and NumPy, SciPy, safetensors or gensim read the same content from slightly damaged files, or one of
// them refuses with a reason in docs/reference/formats.md. Files that crash another program, which are few, don't count.
func TestReadersAgree(t *testing.T) {
	t.Parallel()
	interpreter := testonly.PythonPath(t)
	doc := testonly.ReadFile(t, "../../docs/reference/formats.md")
	// A reason is a part of an error message. used counts how often each is needed; reasons lists them by program.
	used := map[string]int{}
	reasons := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\| (here|there) \\|").FindAllStringSubmatch(string(doc), -1) {
		for _, reason := range strings.Split(strings.Trim(row[1], "`"), "`, `") {
			reasons[row[2]], used[reason] = append(reasons[row[2]], reason), 0
		}
	}
	documented := func(where, message string) bool {
		for _, reason := range reasons[where] {
			if strings.Contains(message, reason) {
				used[reason]++
				return true
			}
		}
		return false
	}

	dir := clitest.New(t)
	each := 30
	if testonly.Full {
		each = 300
	}
	for format, write := range damagedFiles {
		for i := range each {
			rng := rand.New(rand.NewPCG(uint64(i), 4))
			dir.Write(t, fmt.Sprintf("%s%03d.%s", format, i, format), write(rng))
		}
	}
	dir.Write(t, "the.crash", []byte("the 1 2\n")) // crashes the script
	cmd := exec.Command(interpreter, "-c", readers)
	cmd.Dir = string(dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	testonly.Must(t, testonly.Run(cmd))
	// Numbers of files that both accept, that both refuse, that only one refuses, and that crash the other program.
	accepted, refused, alone, crashed := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for line := range bytes.Lines(out.Bytes()) {
		var theirs content
		testonly.Must(t, json.Unmarshal(line, &theirs))
		ours := ourContent(t, dir, theirs)
		format := strings.TrimLeft(filepath.Ext(theirs.File), ".")
		switch {
		case theirs.Error == "crash": // no verdict
			crashed[format]++
		case ours.Error == "" && theirs.Error == "":
			accepted[format]++
			if !slices.Equal(ours.Bits, theirs.Bits) || theirs.Words != nil && !slices.Equal(ours.Words, theirs.Words) {
				t.Errorf("%s: %v\nand %v", theirs.File, ours, theirs)
			}
		case ours.Error != "" && theirs.Error != "":
			refused[format]++
		default:
			alone[format]++
			if ours.Error != "" && !documented("here", ours.Error) {
				t.Errorf("%s is refused: %s; read elsewhere: %v %q", theirs.File, ours.Error, theirs.Shape, theirs.Words)
			}
			if theirs.Error != "" && !documented("there", theirs.Error) {
				t.Errorf("%s is read: %q %v; refused elsewhere: %s", theirs.File, ours.Words, ours.Shape, theirs.Error)
			}
		}
	}
	t.Logf("of %d files of a format, both read %v and refuse %v, the other crashes %v; one refuses for %v", each, accepted, refused, crashed, used)
	if crashed["crash"] != 1 {
		t.Error("a crash has passed for a verdict")
	}
	for format := range damagedFiles {
		verdicts := accepted[format] + refused[format] + alone[format]
		if verdicts+crashed[format] != each || crashed[format] > each/10 || accepted[format] < each/20 || refused[format] < each/20 {
			t.Errorf("of %d .%s files, others have a verdict on %d and crash in %d; both read %d and refuse %d",
				each, format, verdicts, crashed[format], accepted[format], refused[format])
		}
	}
	for reason, n := range used {
		if testonly.Full && n == 0 {
			t.Errorf("docs/reference/formats.md has %q, for which no file is refused", reason)
		}
	}
}

// readCSR reads a sparse matrix as model.Open does.
func readCSR(data []byte) (*vectors.CSR, error) {
	r, err := csr.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	m, err := r.Next(r.Rows)
	if err == nil {
		err = r.Finish()
	}
	return m, err
}

// ourContent reads a file with this program. For an array without words, it writes a list of row numbers as words.
func ourContent(t *testing.T, dir clitest.Dir, theirs content) content {
	t.Helper()
	if strings.HasSuffix(theirs.File, ".csr") {
		m, err := readCSR(dir.Read(t, theirs.File))
		if err == nil && m.Rows*m.Cols > 1<<20 {
			err = errors.New("too large to compare")
		}
		if err != nil {
			return content{Error: err.Error()}
		}
		bits := make([]uint32, m.Rows*m.Cols)
		for i := range m.Rows {
			for p := m.Ptr[i]; p < m.Ptr[i+1]; p++ {
				bits[i*m.Cols+int(m.Index[p])] = math.Float32bits(m.Value[p])
			}
		}
		return content{Shape: []int{m.Rows, m.Cols}, Bits: bits}
	}
	var o vectors.ReadOptions
	if strings.HasSuffix(theirs.File, ".npy") {
		rows := 3
		if len(theirs.Shape) > 0 {
			rows = theirs.Shape[0]
		}
		var words strings.Builder
		for i := range rows {
			fmt.Fprintln(&words, i)
		}
		dir.Write(t, "words", []byte(words.String()))
		o.WordList = dir.Path("words")
	}
	x, _, err := vectors.Read(t.Context(), []string{dir.Path(theirs.File)}, o)
	if err != nil {
		return content{Error: err.Error()}
	}
	c := content{Shape: []int{x.Len(), x.Dim}, Words: x.IDs}
	for _, v := range x.Data {
		c.Bits = append(c.Bits, math.Float32bits(v))
	}
	return c
}

// swaps are replacements of parts of files by what other programs write, or by mistakes. In binary data, 0x3f000000 is 0.5.
var swaps = []string{
	"<f4→<f8", "<f4→>f4", "<f4→<f2", "<f4→float32", "<f4→|u1", "<f4→<c8", "<f4→|O", "<f4→|b1", "<i4→<i8",
	"(3, 4)→(4, 3)", "(3, 4)→(12,)", "(3, 4)→(0, 4)", "(3, 4)→(3,4)", "(3,)→(2,)", "(5,)→(4,)", "(4,)→(3,)", "False→True", "False→0", "'descr'→\"descr\"", "'shape'→'x': 0, 'shape'",
	`"F32"→"F64"`, `"F32"→"BF16"`, `"F32"→"I32"`, `"F32"→"F32","x":1`, `"F32"→"F32","dtype":"F32"`, "[3,4]→[4,3]", "[3,4]→[12]", "[3,4]→[2,2,3]", `"vectors"→"__metadata__":{"a":1},"vectors"`, `{"→ {"`,
	"0.5→nan", "0.5→-inf", "0.5→1e39", "0.5→1_0", "0.5→x", "0.5→+.5", "0.5→1.e2", "0.5→0x10", "0.5→0.5 ", "of→", "of→the", "of→New York", "of→1.5", "last 1→last 0 1", "4 5→3 5", "4 5→4 6", "3 4\n→0 4\n",
	"\x00\x00\x00\x3f→\x00\x00\xc0\x7f", "\x00\x00\x00\x3f→\x00\x00\x00\x00", "\x03\x00\x00\x00→\x00\x00\x00\x00", "\x02\x00\x00\x00\x02\x00\x00\x00\x05→\x00\x00\x00\x00\x00\x00\x00\x00\x00", "csr→csc",
}

// damaged returns content after up to two changes: a swap, or another byte. It corrects the length of a changed header.
func damaged(rng *rand.Rand, content []byte) []byte {
	const others = "\x00\n '{}[]():,.<|-+#_01459aefFix"
	b := slices.Clone(content)
	for range rng.IntN(3) {
		at, c := rng.IntN(len(b)), others[rng.IntN(len(others))]
		switch rng.IntN(6) {
		case 0:
			b = slices.Insert(b, at, c)
		case 1:
			b = slices.Delete(b, at, at+1)
		case 2:
			b[at] = c
		default:
			var fitting []string
			for _, swap := range swaps {
				if old, _, _ := strings.Cut(swap, "→"); bytes.Contains(b, []byte(old)) {
					fitting = append(fitting, swap)
				}
			}
			if fitting == nil {
				continue
			}
			old, new, _ := strings.Cut(fitting[rng.IntN(len(fitting))], "→")
			length := slices.Index([]bool{len(b) > 8 && b[8] == '{', bytes.HasPrefix(b, []byte("\x93NUMPY"))}, true)
			if b = bytes.Replace(b, []byte(old), []byte(new), 1); length >= 0 {
				b[8*length] += byte(len(new) - len(old))
			}
		}
	}
	return b
}

// damagedFiles returns a damaged small file of each format, in archives with one damaged array.
var damagedFiles = map[string]func(rng *rand.Rand) []byte{
	"npy": func(rng *rand.Rand) []byte { return damaged(rng, array([]int{3, 4}, numbers)) },
	"npz": func(rng *rand.Rand) []byte {
		return archive(rng, "vectors.npy", array([]int{3, 4}, numbers), "scale.npy", array([]int{1}, numbers[:1]))
	},
	"csr": func(rng *rand.Rand) []byte {
		var format bytes.Buffer
		npy.WriteHeader(&format, npy.Header{Type: "|S3"})
		format.WriteString("csr")
		return archive(rng, "indices.npy", array([]int{5}, []int32{0, 3, 1, 2, 3}), "indptr.npy", array([]int{4}, []int32{0, 2, 2, 5}),
			"format.npy", format.Bytes(), "shape.npy", array([]int{2}, []int64{3, 4}), "data.npy", array([]int{5}, numbers[:5]))
	},
	"safetensors": func(rng *rand.Rand) []byte {
		var b bytes.Buffer
		safetensors.Write(&b, nil, []safetensors.Tensor{safetensors.New("vectors", []int{3, 4}, numbers), safetensors.New("scale", []int{1}, numbers[:1])})
		return damaged(rng, b.Bytes())
	},
	"txt": func(rng *rand.Rand) []byte {
		return damaged(rng, []byte("4 5\nthe 0.5 1e-3 -2 3 4\nof 1 2 3.25 4 5\nand 1 2 3 4 6\nlast 1 2 3 4 5\n"))
	},
	"bin": func(rng *rand.Rand) []byte {
		var b bytes.Buffer
		b.WriteString("3 4\n")
		for i, word := range []string{"the ", "of ", "and "} {
			b.WriteString(word)
			binary.Write(&b, binary.LittleEndian, numbers[4*i:][:4])
			b.WriteString("\n")
		}
		return damaged(rng, b.Bytes())
	},
}

var numbers = []float32{0.5, 1, -2, 3.25, 1e-3, 5, 6, 7, 8, 9, 10, 11}

// array returns a file of NumPy.
func array[T npy.Number](shape []int, data []T) []byte {
	var b bytes.Buffer
	npy.Write(&b, shape, data)
	return b.Bytes()
}

// archive returns a zip file of names and arrays. It damages one array, and sometimes it changes or repeats a name.
func archive(rng *rand.Rand, members ...any) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	one := 1 + 2*rng.IntN(len(members)/2)
	members[one] = damaged(rng, members[one].([]byte))
	switch rng.IntN(20) {
	case 0:
		members = members[2:]
	case 1:
		members = members[:len(members)-2]
	case 2:
		members = append(members, members[0], members[1])
	case 3:
		members = append(members, "other.npy", []byte("?"))
	case 4:
		members[0] = "no ending"
	case 5:
		members[2] = strings.TrimSuffix(members[2].(string), ".npy")
	}
	for i := 0; i < len(members); i += 2 {
		w, _ := z.Create(members[i].(string))
		w.Write(members[i+1].([]byte))
	}
	z.Close()
	return b.Bytes()
}
