//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"overcomplete/internal/npy"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// A command that needs more memory than the process may use prints an error of one line and changes nothing. Without a
// check, Go would end the program with many lines. The shell's limit simulates a small machine, and sparse files simulate
// large files.
func TestLittleMemory(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o old --epochs 1")
	dir.Write(t, "words.txt", []byte(strings.Repeat("a\n", 14_000)))
	header := func(h npy.Header) []byte {
		var b bytes.Buffer
		testonly.Must(t, npy.WriteHeader(&b, h))
		return b.Bytes()
	}
	large := func(name string, begin []byte, size int64) {
		t.Helper()
		dir.Write(t, name, begin)
		if err := os.Truncate(dir.Path(name), size); err != nil {
			t.Skip(err) // the file system has no sparse files
		}
	}
	array := header(npy.Header{Type: "<f4", Shape: []int{14_000, 1 << 20}})
	large("large.npy", array, int64(len(array))+14_000<<22)
	tensor := `{"vectors":{"dtype":"F32","shape":[14000,1048576],"data_offsets":[0,58720256000]}}`
	large("large.safetensors", append([]byte{byte(len(tensor)), 0, 0, 0, 0, 0, 0, 0}, tensor...), int64(8+len(tensor))+14_000<<22)
	// A model with a huge dictionary.
	info := strings.ReplaceAll(string(dir.Read(t, "old/model.json")), `"dim": 8`, `"dim": 100000000`)
	testonly.Must(t, os.CopyFS(dir.Path("huge"), os.DirFS(dir.Path("old"))))
	dir.Write(t, "huge/model.json", []byte(info))
	array = header(npy.Header{Type: "<f4", Shape: []int{80, 100_000_000}})
	large("huge/dictionary.npy", array, int64(len(array))+80*400_000_000)
	// Vectors that need more memory than their text. A file may contain several streams of gzip, so that repeated text is
	// compressed only once.
	g := gzip.NewWriter(nil)
	packed := func(content string) []byte {
		var b bytes.Buffer
		g.Reset(&b)
		g.Write([]byte(content))
		g.Close()
		return b.Bytes()
	}
	var text []byte
	row := packed(strings.Repeat(" 0", 1<<16) + "\n")
	for i := range 4_000 { // 1 GB
		text = append(append(text, packed(strings.Repeat("x", i%100+1)+strings.Repeat("y", i/100))...), row...)
	}
	dir.Write(t, "many.txt.gz", text)

	dir.Write(t, "word.txt", []byte("a\n"))
	zeros := packed(string(make([]byte, 1<<20)))
	dir.Write(t, "packed.npz.gz", append(packed("PK\x03\x04"), bytes.Repeat(zeros, 2800)...))

	before := dir.Names(t)
	for args, want := range map[string]string{
		"paper train large.npy --words words.txt -o model":         "large.npy: 14000 rows of 1048576 numbers: 58.7 GB doesn't fit into memory",
		"paper train large.safetensors --words words.txt -o model": `large.safetensors: 14000 rows of 1048576 numbers: 58.7 GB doesn't fit into memory`,
		"top huge":                                              "huge: dictionary.npy: array of shape [80 100000000]: 32.0 GB doesn't fit into memory",
		"export huge -f csr -o out":                             "huge: dictionary.npy: array of shape [80 100000000]: 32.0 GB doesn't fit into memory",
		"encode huge in.txt -o out":                             "huge: dictionary.npy: array of shape [80 100000000]: 32.0 GB doesn't fit into memory",
		"paper train many.txt.gz -o model":                      "many.txt.gz: after ",
		"paper train packed.npz.gz --words word.txt -o model":   "expand to more than 100 times their size",
		"paper train in.txt -o model -k 100000000":              "60 rows × 100000000 sparse dimensions need about ",
		"train in.txt --quiet -o model -k 1000000":              "learning 1000000 sparse dimensions takes about 4006.0 GB, and there can be ",
		"train in.txt --quiet -o model -k 8000000 --overcommit": "which is more than any machine has; lower -k",
		"train in.txt --quiet -o model -k 100000000":            "learning 100000000 sparse dimensions takes about 40000000.0 GB, which is more than any machine has; lower -k",
	} {
		cmd := underShell(dir, "ulimit -v 2800000", strings.Fields(args)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Run()
		lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
		if last := lines[len(lines)-1]; cmd.ProcessState.ExitCode() != clitest.Usage || stdout.Len() > 0 || len(lines) > 3 || !strings.HasPrefix(last, "overcomplete: ") || !strings.Contains(last, want) {
			t.Errorf("%s: %v, %q, %.1000s", args, cmd.ProcessState, &stdout, &stderr)
		}
		if after := dir.Names(t); !slices.Equal(before, after) {
			t.Errorf("%s: there are %q", args, after)
		}
	}
}

// At any limit, commands succeed or end with one line, because they check the memory of rows, their index, their topics
// and their words before they use it. The runtime's reservations of address space differ by run and hide some messages in
// some runs, so that the test tries other limits until it has seen each.
func TestEveryLimit(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	const rows, dim = 200_000, 4
	var array bytes.Buffer
	testonly.Must(t, npy.Write(&array, []int{rows, dim}, clitest.Vectors(rows, dim).Data))
	dir.Write(t, "x.npy", array.Bytes())
	var texts bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&texts, "{\"text\": \"%d %s\"}\n", i, strings.Repeat("text ", 20))
	}
	dir.Write(t, "texts.jsonl", texts.Bytes())
	dir.MustRun(t, "train x.npy --words texts.jsonl -o model -k 16 --nonzeros 3 --rows texts --quiet")
	for command, missing := range map[string][]string{
		"topics model":                 {"the topics of "},
		"nearest model xyz":            {"the words of ", "is no id"},
		"export model -f parquet -o -": {"a group of rows: "},
	} {
		for offset := 0; offset < 10_000 && len(missing) > 0; offset += 1000 {
			for limit, whole := 1_500_000+offset, false; !whole; limit += 10_000 {
				cmd := underShell(dir, fmt.Sprint("ulimit -v ", limit), strings.Fields(command)...)
				code, _, stderr := clitest.Output(t, cmd)
				if strings.Count(stderr, "\n") > 1 || code != 0 && !strings.HasPrefix(stderr, "overcomplete: ") || limit > 2_500_000 {
					t.Fatalf("%s, %d kB: exit code %d\n%.2000s", command, limit, code, stderr)
				}
				missing = slices.DeleteFunc(missing, func(part string) bool { return strings.Contains(stderr, part) })
				whole = !strings.Contains(stderr, "doesn't fit into memory")
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s: no message with %q", command, missing)
		}
	}
}
