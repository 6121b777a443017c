package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
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
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// readers reads each file of the current directory with the library that defines its format. It prints the words, and the
// bits of the float32 numbers, as JSON.
const readers = `
import json, os, sys, warnings
import numpy as np, scipy.sparse, safetensors
from gensim.models import KeyedVectors
warnings.simplefilter("ignore")

def text(a):
    return [w if isinstance(w, str) else w.decode() for w in a.tolist()]

def array(path):
    a = np.load(path, allow_pickle=False)
    return a, None

def archive(path):
    with np.load(path, allow_pickle=False) as z:
        return z["vectors"], text(z["words"])

def tensors(path):
    of = {}
    for name, t in safetensors.deserialize(open(path, "rb").read()):
        data, shape = bytes(t["data"]), t["shape"]
        if t["dtype"] == "BF16":
            of[name] = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
        else:
            of[name] = np.frombuffer(data, {"F32": "<f4", "F64": "<f8", "F16": "<f2", "U8": "u1", "I32": "<i4", "I64": "<i8"}[t["dtype"]]).reshape(shape)
    return of["vectors"], of["words"].tobytes().decode().removesuffix("\n").split("\n")

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
	interpreter := python(t)
	doc, err := os.ReadFile("../../docs/reference/formats.md")
	testonly.Must(t, err)
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
	for i := range each {
		for format, write := range map[string]func(*rand.Rand) []byte{
			"npy": oddArray, "npz": oddArchive, "safetensors": oddTensors, "txt": oddText, "bin": oddBinary, "csr": oddMatrix,
		} {
			rng := rand.New(rand.NewPCG(uint64(i), uint64(len(format))))
			dir.Write(t, fmt.Sprintf("%s%03d.%s", format, i, format), write(rng))
		}
	}
	dir.Write(t, "the.crash", []byte("the 1 2\n")) // crashes the script
	cmd := exec.Command(interpreter, "-c", readers)
	cmd.Dir = string(dir)
	out, err := cmd.Output()
	testonly.Must(t, err)
	// Numbers of files that both accept, that both refuse, that only one refuses, and that crash the other program.
	accepted, refused, alone, crashed := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for line := range bytes.Lines(out) {
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
	for _, format := range []string{"npy", "npz", "safetensors", "txt", "bin", "csr"} {
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
		if err == nil && (m.Rows != 3 || m.Cols != 4) {
			err = fmt.Errorf("%d×%d matrix, want 3×4", m.Rows, m.Cols)
		}
		if err != nil {
			return content{Error: err.Error()}
		}
		bits := make([]uint32, 3*4)
		for i := range 3 {
			for p := m.Ptr[i]; p < m.Ptr[i+1]; p++ {
				bits[i*4+int(m.Index[p])] = math.Float32bits(m.Value[p])
			}
		}
		return content{Shape: []int{3, 4}, Bits: bits}
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

// pick returns the first choice or, with a probability of 1/12, a random one.
func pick[T any](rng *rand.Rand, choices ...T) T {
	if rng.IntN(12) > 0 {
		return choices[0]
	}
	return choices[rng.IntN(len(choices))]
}

// cut sometimes removes or adds a few bytes at the end.
func cut(rng *rand.Rand, b []byte) []byte {
	n := pick(rng, 0, -1, -4, 1, 8)
	if n < 0 {
		return b[:max(0, len(b)+n)]
	}
	return append(b, make([]byte, n)...)
}

// oddArray returns a .npy file with a few defects.
func oddArray(rng *rand.Rand) []byte {
	return oddNpy(rng, pick(rng, "<f4", "<f8", ">f4", ">f8", "<f2", "f4", "=f4", "float32", "<i4", "|u1", "<c8", "|O", "<V4", "<U1"),
		pick(rng, []int{3, 4}, []int{4, 3}, []int{1, 1}, []int{0, 4}, []int{3, 0}, []int{12}, nil, []int{3, 2, 2}, []int{12, 1}))
}

func oddNpy(rng *rand.Rand, typ string, shape []int) []byte {
	dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", pick(rng, ", ", ",", " , ")), "[]")
	if len(shape) == 1 {
		dims += ","
	}
	dims = pick(rng, "(", "[", "( ") + dims + pick(rng, ")", "]", ",)")
	quote := pick(rng, "'", `"`)
	fields := []string{
		quote + "descr" + quote + ": '" + typ + "'",
		"'fortran_order': " + pick(rng, "False", "True", "0", "false"),
		"'shape': " + dims,
	}
	rng.Shuffle(3, func(i, j int) {
		if pick(rng, false, true) {
			fields[i], fields[j] = fields[j], fields[i]
		}
	})
	fields = append(fields, pick(rng, nil, []string{"'extra': 1"}, []string{fields[2]})...)
	dict := pick(rng, "{", " {") + strings.Join(fields, pick(rng, ", ", ",", ",\n")) + pick(rng, ", }", "}", ",}", ", ", "} #")
	dict += strings.Repeat(" ", pick(rng, 54, 0, 100)) + pick(rng, "\n", "", "\n\n")
	version := pick(rng, 1, 2, 3, 0, 4)
	b := []byte{0x93, 'N', 'U', 'M', 'P', 'Y', byte(version), pick[byte](rng, 0, 1)}
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(dict)))
	}
	b = append(b, dict...)
	n := 1
	for _, d := range shape {
		n *= d
	}
	return cut(rng, append(b, oddNumbers(rng, typ, n)...))
}

// oddNumbers returns n numbers of a type of NumPy or safetensors; one may not be finite.
func oddNumbers(rng *rand.Rand, typ string, n int) (b []byte) {
	odd := pick(rng, 0.5, math.NaN(), math.Inf(-1), 1e39, 1e-320, -0., 3e38)
	at := rng.IntN(max(n, 1))
	for i := range n {
		x := math.Round(100*rng.NormFloat64()) / 64
		if i == at {
			x = odd
		}
		var order binary.AppendByteOrder = binary.LittleEndian
		if strings.HasPrefix(typ, ">") {
			order = binary.BigEndian
		}
		switch strings.TrimLeft(typ, "<>=|") {
		case "f8", "F64":
			b = order.AppendUint64(b, math.Float64bits(x))
		case "f2", "F16", "BF16":
			b = order.AppendUint16(b, uint16(math.Float32bits(float32(x))>>16))
		case "u1", "U8":
			b = append(b, byte(i))
		case "c8", "I64":
			b = order.AppendUint64(b, uint64(i))
		case "U1":
			b = order.AppendUint32(b, uint32('a'+i))
		case "S1":
			b = append(b, byte('a'+i))
		case "i4", "I32":
			b = order.AppendUint32(b, uint32(i))
		default:
			b = order.AppendUint32(b, math.Float32bits(float32(x)))
		}
	}
	return b
}

// oddMembers returns a .npz file of members in the order of names, with a few defects.
func oddMembers(rng *rand.Rand, names []string, members map[string][]byte) []byte {
	if pick(rng, false, true) {
		names[0], names[1] = names[1], names[0]
	}
	names = append(names, pick(rng, nil, []string{names[0]}, []string{"other"})...)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range names {
		content := members[name]
		method := pick(rng, zip.Store, zip.Deflate)
		h := &zip.FileHeader{Name: name + pick(rng, ".npy", "", ".NPY"), Method: method}
		if method == zip.Store && pick(rng, false, true) { // a raw member can have a wrong checksum
			h.CRC32 = crc32.ChecksumIEEE(content) + pick[uint32](rng, 1, 0)
			h.CompressedSize64, h.UncompressedSize64 = uint64(len(content)), uint64(len(content))
			w, _ := z.CreateRaw(h)
			w.Write(content)
			continue
		}
		w, _ := z.CreateHeader(h)
		w.Write(content)
	}
	z.Close()
	return cut(rng, b.Bytes())
}

func oddArchive(rng *rand.Rand) []byte {
	return oddMembers(rng, []string{"vectors", "words"}, map[string][]byte{
		"vectors": oddArray(rng),
		"words":   oddNpy(rng, pick(rng, "<U1", "|S1", ">U1", "<i4"), pick(rng, []int{3}, []int{4}, []int{1, 3})),
		"other":   []byte("?"),
	})
}

// npyOf returns a .npy file without defects.
func npyOf(typ string, shape string, data []byte) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", typ, shape)
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(dict)), 0)
	return append(append(b, dict...), data...)
}

// oddMatrix returns a 3×4 sparse matrix of SciPy with a few defects.
func oddMatrix(rng *rand.Rand) []byte {
	pointers := pick(rng, []int32{0, 2, 2, 5}, []int32{0, 2, 1, 5}, []int32{1, 2, 3, 5}, []int32{0, 0, 0, 0}, []int32{0, 2, 2, 4}, []int32{0, 2, 5}, []int32{0, 2, 2, 6})
	indices := pick(rng, []int32{0, 3, 1, 2, 3}, []int32{3, 0, 1, 2, 3}, []int32{0, 0, 1, 2, 3}, []int32{0, 4, 1, 2, 3}, []int32{0, -1, 1, 2, 3}, []int32{0, 3, 1, 2})
	ints := func(x []int32) []byte {
		b := []byte{}
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		return npyOf("<i4", fmt.Sprintf("(%d,)", len(x)), b)
	}
	var shape []byte
	for _, d := range pick(rng, []uint64{3, 4}, []uint64{4, 3}, []uint64{3}, []uint64{3, 4, 1}, []uint64{3, math.MaxUint64}) {
		shape = binary.LittleEndian.AppendUint64(shape, d)
	}
	format := pick(rng, "csr", "csc", "coo")
	typ := pick(rng, "<f4", "<f8", ">f4", "<i4")
	n := pick(rng, 5, 4, 6)
	return oddMembers(rng, []string{"indices", "indptr", "format", "shape", "data"}, map[string][]byte{
		"indices": ints(indices), "indptr": ints(pointers), "shape": npyOf("<i8", fmt.Sprintf("(%d,)", len(shape)/8), shape),
		"format": npyOf("|S3", "()", []byte(format)), "data": npyOf(typ, fmt.Sprintf("(%d,)", n), oddNumbers(rng, typ, n)), "other": []byte("?"),
	})
}

// oddTensors returns a .safetensors file with a few defects.
func oddTensors(rng *rand.Rand) []byte {
	typ := pick(rng, "F32", "F64", "F16", "BF16", "I32", "U8", "F31", "")
	shape := pick(rng, []int{3, 4}, []int{4, 3}, []int{2, 2, 3}, []int{12}, []int{0, 4}, []int{}, []int{-3, -4})
	n := 1
	for _, d := range shape {
		n *= d
	}
	data := oddNumbers(rng, typ, max(n, 0))
	words := []byte(pick(rng, "a\nb\nc\n", "a\nb\nc", "a\nb\n", "a\nb\n\xff\n"))
	first := pick(rng, 0, 1, 4)
	gap := pick(rng, 0, -1, 1)
	join := func(x []int) string { return strings.ReplaceAll(fmt.Sprint(x), " ", ",") }
	entries := []string{
		fmt.Sprintf(`"vectors":{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]%s}`, typ, join(shape), first, first+len(data), pick(rng, "", `,"x":1`, `,"dtype":"F32"`)),
		fmt.Sprintf(`"words":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}`, len(words), len(data)+gap, len(data)+gap+len(words)),
	}
	entries = append(entries, pick(rng, nil, []string{`"__metadata__":{"a":"b"}`}, []string{`"__metadata__":{"a":1}`}, []string{entries[1]}, []string{`"none":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`})...)
	header := pick(rng, "{", " {", "[") + strings.Join(entries, pick(rng, ",", ", ", ",,")) + pick(rng, "}", "} ", "}\x00", "", ",}", "}}")
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)+pick(rng, 0, 1, -1)))
	return cut(rng, append(append(append(b, header...), data...), words...))
}

// oddText returns word2vec text with a few defects.
func oddText(rng *rand.Rand) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s", pick(rng, "4 5", "3 5", "5 5", "4 6", "4 5 ", "-4 5", "4"), pick(rng, "\n", "\r\n", "\n\n"))
	for _, word := range []string{"the", "of", "and"} {
		b.WriteString(pick(rng, word, "the", "New York", "", "naïve", "a\u00a0b", "\xff", "1.5", "#") + " ")
		for range 5 {
			fmt.Fprintf(&b, "%s%s", pick(rng, fmt.Sprint(math.Round(100*rng.NormFloat64())/64), "1e-3", "+.5", "nan", "inf", "-1e39", "1e-50", "0x10", "1_0", "x", "", "0.1000000014901161193847656251", "1.e2"),
				pick(rng, " ", "\t", "  "))
		}
		b.WriteString(pick(rng, "\n", "\r\n", " \n", "\n\n"))
	}
	b.WriteString("last 1 2 3 4 5" + pick(rng, "\n", "", " 6\n"))
	return []byte(b.String())
}

// oddBinary returns word2vec's binary form with a few defects.
func oddBinary(rng *rand.Rand) []byte {
	b := []byte(pick(rng, "3 4\n", "2 4\n", "4 4\n", "3 5\n", "3 4 \n"))
	newline := pick(rng, "\n", "")
	for _, word := range []string{"the", "of", "and"} {
		b = append(b, pick(rng, word, "the", "New York", "", "naïve", "\xff", "a\tb")+" "...)
		b = append(b, oddNumbers(rng, "<f4", 4)...)
		b = append(b, pick(rng, newline, "", " ")...)
	}
	return cut(rng, b)
}
