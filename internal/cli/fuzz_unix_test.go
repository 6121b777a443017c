//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/npy"
	"overcomplete/internal/testonly/clitest"
	"overcomplete/model"
)

// fuzzed are the commands that read files of the program's own, and which files.
var fuzzed = []struct{ args, files string }{
	{"export DIR/model -f csr -o DIR/out", "model/"},
	{"encode DIR/model DIR/in.txt -o DIR/out --quiet", "model/"},
	{"merge DIR/1 DIR/2 -o DIR/out", "1/ 2/"},
	{"paper train DIR/in.txt -o DIR/checkpoint --epochs 3 -k 4 --resume --quiet", "checkpoint/"},
	{"intrusion score DIR/test.key.json DIR/test.tsv --json", "test.key.json test.tsv"},
}

// Files whose parts are changed where bytes that are changed by chance do not reach, for
// checksums and lengths fit again: each is refused in one line and nothing is changed, or
// its output is valid. A resumed checkpoint ends with the same model.
func FuzzFiles(f *testing.F) {
	dir, _ := clitest.Sample(f)
	fuzzDir(f, dir)
	before := dir.Tree(f)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		program := []byte{byte(i)}
		for range 30 {
			program = append(program, byte(rng.IntN(256)))
		}
		f.Add(program)
	}
	run := func(line string) (code int, stdout, stderr string) {
		return inProcess(context.Background(), strings.Fields(strings.ReplaceAll(line, "DIR", string(dir)))...)
	}
	if code, _, stderr := run(fuzzed[3].args); code != 0 {
		f.Fatal(stderr)
	}
	want := dir.Learned(f, "checkpoint")
	f.Fuzz(func(t *testing.T, program []byte) {
		p := &ops{program}
		c := fuzzed[p.n(len(fuzzed))]
		changed := maps.Clone(before)
		files := slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(path string) bool {
			return strings.HasSuffix(path, "/") || !slices.ContainsFunc(strings.Fields(c.files), func(f string) bool { return strings.HasPrefix(path, f) })
		})
		for range 1 + p.n(3) {
			path := files[p.n(len(files))]
			changed[path] = string(p.change(filepath.Ext(path), []byte(changed[path])))
		}
		dir.Restore(t, changed)

		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		code, stdout, stderr := run(c.args)
		runtime.ReadMemStats(&is)
		after := dir.Tree(t)
		complaint := ""
		for line := range strings.Lines(stderr) {
			if strings.HasPrefix(line, "overcomplete: ") {
				complaint += line
			}
		}
		checkPlain(t, []string{c.args}, stdout+stderr)
		if n := is.TotalAlloc - was.TotalAlloc; n > 256<<20 {
			t.Errorf("%s: %d bytes allocated", c.args, n)
		}
		switch {
		case code == exitUsage:
			if strings.Count(complaint, "\n") != 1 || len(complaint) > 2000 || stdout != "" || !maps.Equal(changed, after) {
				t.Errorf("%s: %q, %d bytes on standard output, changed: %v", c.args, stderr, len(stdout), changed.Differences(after))
			}
		case code != 0 || complaint != "":
			t.Errorf("%s: exit code %d, %q", c.args, code, stderr)
		case strings.HasPrefix(c.args, "train"):
			if dir.Learned(t, "checkpoint") != want {
				t.Errorf("%s: has a different result", c.args)
			}
		case strings.HasPrefix(c.args, "encode"), strings.HasPrefix(c.args, "merge"):
			if _, err := model.Open(dir.Path("out")); err != nil {
				t.Error(err)
			}
		}
	})
}

// fuzzDir makes the files.
func fuzzDir(f *testing.F, dir clitest.Dir) {
	for _, line := range []string{
		"paper train in.txt -o model --epochs 1 -k 4 --center --quiet",
		"encode model in.txt -o 1 --shard 1/2 --quiet",
		"encode model in.txt -o 2 --shard 2/2 --quiet",
		"intrusion make X=in.txt -n 3 -o test.tsv",
	} {
		dir.MustRun(f, line)
	}
	if code, stderr := interruptedRun(f, dir, "paper train in.txt -o checkpoint --epochs 3 -k 4 --checkpoint 1h", 2); code != exitInterrupted {
		f.Fatal(stderr)
	}
}

// ops are the bytes that tell how files are changed. After their end all are 0.
type ops struct{ rest []byte }

// n returns a number below most.
func (p *ops) n(most int) int {
	var b [2]byte
	p.rest = p.rest[copy(b[:], p.rest):]
	return int(binary.LittleEndian.Uint16(b[:])) % most
}

// change changes a file in its own structure or, now and then, its bytes.
func (p *ops) change(ext string, content []byte) []byte {
	if p.n(8) == 0 {
		return p.changeBytes(content)
	}
	switch ext {
	case ".json":
		return p.changeJSON(content)
	case ".npy":
		return p.changeArray(content)
	default: // lines
		lines := bytes.SplitAfter(content, []byte("\n"))
		i, j := p.n(len(lines)), p.n(len(lines))
		switch p.n(4) {
		case 0:
			lines = slices.Delete(lines, i, i+1)
		case 1:
			lines[i], lines[j] = lines[j], lines[i]
		case 2:
			lines = slices.Insert(lines, i, lines[j])
		case 3:
			if lines[i] = p.changeBytes(lines[i]); ext == ".jsonl" {
				lines[i] = p.changeJSON(lines[j])
			}
		}
		return bytes.Join(lines, nil)
	}
}

func (p *ops) changeBytes(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) == 0 {
		return []byte{byte(p.n(256))}
	}
	at := p.n(len(b))
	switch p.n(4) {
	case 0:
		return b[:at]
	case 1:
		b[at] ^= 1 << p.n(8)
		return b
	case 2:
		return slices.Insert(b, at, []byte([]string{"\x00", "\n", "\xff", "\x1b[2J", " ", "9", "\u202e"}[p.n(7)])...)
	default:
		return append(b, b[at:]...)
	}
}

// changeJSON puts another value in the place of one in an object, or removes it.
func (p *ops) changeJSON(text []byte) []byte {
	var root any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return p.changeBytes(text)
	}
	type place struct {
		was any
		set func(v any, remove bool)
	}
	var places []place
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				places = append(places, place{v[key], func(x any, remove bool) {
					if v[key] = x; remove {
						delete(v, key)
					}
				}})
				visit(v[key])
			}
		case []any:
			for i := range v {
				places = append(places, place{v[i], func(x any, _ bool) { v[i] = x }})
				visit(v[i])
			}
		}
	}
	visit(root)
	if len(places) == 0 {
		return p.changeBytes(text)
	}
	at := places[p.n(len(places))]
	odd := []any{nil, true, []any{}, map[string]any{}}
	numbers := []any{json.Number("0"), json.Number("-1"), json.Number("1"), json.Number("2"), json.Number("3.5"), json.Number("59"), json.Number("61"),
		json.Number("2147483648"), json.Number("9223372036854775807"), json.Number("9223372036854775808"), json.Number("1e999"), json.Number("-1e-999")}
	texts := []any{"", "A", "float16", "word1", "\x1b[2J\u202e", "a\nb", strings.Repeat("long", 100)}
	switch at.was.(type) {
	case json.Number:
		odd = append(numbers, odd...)
	case string:
		odd = append(texts, odd...)
	case []any:
		odd = append(odd, []any{nil}, []any{at.was}, append(at.was.([]any), at.was.([]any)...))
	default:
		odd = append(odd, false, numbers[0], texts[1])
	}
	at.set(odd[p.n(len(odd))], p.n(8) == 0)
	out, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	if bytes.HasSuffix(text, []byte("\n")) {
		out = append(out, '\n')
	}
	return out
}

// changeArray changes the header of a .npy file, or an element.
func (p *ops) changeArray(content []byte) []byte {
	r := bytes.NewReader(content)
	h, err := npy.ReadHeader(r)
	if err != nil {
		return p.changeBytes(content)
	}
	data, _ := io.ReadAll(r)
	switch p.n(5) {
	case 0:
		if len(h.Shape) > 0 {
			h.Shape[p.n(len(h.Shape))] = []int{0, 1, 3, 5, 59, 61, 1 << 31, 1 << 40, math.MaxInt64}[p.n(9)]
		}
	case 1:
		h.Shape = []npy.Shape{nil, {1}, {60}, {4, 8}, {8, 4}, {2, 2, 2}, {0, math.MaxInt64}}[p.n(7)]
	case 2:
		h.Type = []string{"<f4", "<f8", "<i4", "<i8", ">f4", "<f2", "|S3", "<U6", "|O", "<c8", "|V4", "|S99999999999"}[p.n(12)]
	case 3:
		h.Fortran = !h.Fortran
	case 4:
		if len(data) >= 8 {
			at := 4 * p.n(len(data)/4)
			odd := []uint32{0, 1, 5, 0x7fc00000, 0xff800000, 0x7f7fffff, 1, 0x80000000, 0x7fffffff, 0xffffffff}
			binary.LittleEndian.PutUint32(data[at:], odd[p.n(len(odd))])
		}
	}
	var b bytes.Buffer
	if npy.WriteHeader(&b, h) != nil {
		return p.changeBytes(content)
	}
	return append(b.Bytes(), data...)
}
