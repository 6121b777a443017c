//go:build unix

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"overcomplete/internal/npy"
)

// What does not fit into the memory that a process may have is told in one line, with
// what it needs, and changes nothing: Go would end the program in many lines. A limit of
// the shell's stands for a small machine, and holes in files, which take no place on a
// disk, for large ones.
func TestLittleMemory(t *testing.T) {
	exe := program(t)
	sampleDir(t)
	mustRun(t, "train --recipe paper in.txt -o old --epochs 1")
	writeFile(t, "words.txt", []byte(strings.Repeat("a\n", 14_000)))
	header := func(h npy.Header) []byte {
		var b bytes.Buffer
		if err := npy.WriteHeader(&b, h); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	large := func(name string, begin []byte, size int64) {
		t.Helper()
		writeFile(t, name, begin)
		if err := os.Truncate(name, size); err != nil {
			t.Skip(err) // this file system has no such files
		}
	}
	array := header(npy.Header{Type: "<f4", Shape: []int{14_000, 1 << 20}})
	large("large.npy", array, int64(len(array))+14_000<<22)
	tensor := `{"vectors":{"dtype":"F32","shape":[14000,1048576],"data_offsets":[0,58720256000]}}`
	large("large.safetensors", append([]byte{byte(len(tensor)), 0, 0, 0, 0, 0, 0, 0}, tensor...), int64(8+len(tensor))+14_000<<22)
	// Of a model's dictionary.
	mustRun(t, "export old -f safetensors -o old.safetensors")
	info := strings.Replace(string(readFile(t, "old/model.json")), `"dim": 8`, `"dim": 100000000`, 1)
	if err := os.CopyFS("huge", os.DirFS("old")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "huge/model.json", []byte(info))
	array = header(npy.Header{Type: "<f4", Shape: []int{80, 100_000_000}})
	large("huge/dictionary.npy", array, int64(len(array))+80*400_000_000)
	// Vectors of text that take more than the text does.
	var text bytes.Buffer
	g, _ := gzip.NewWriterLevel(&text, gzip.BestSpeed)
	row := strings.Repeat(" 0", 1<<16) + "\n"
	for i := range 4_000 { // 1 GB
		g.Write([]byte(strings.Repeat("x", i%100+1) + strings.Repeat("y", i/100) + row))
	}
	g.Close()
	writeFile(t, "many.txt.gz", text.Bytes())

	before := names(t, ".")
	for args, want := range map[string]string{
		"train --recipe paper large.npy --words words.txt -o model":         "large.npy: array of shape [14000 1048576]: 58.7 GB is more than there is memory for",
		"train --recipe paper large.safetensors --words words.txt -o model": `large.safetensors: tensor "vectors" of shape [14000 1048576]: 58.7 GB is more than there is memory for`,
		"top huge":                   "huge: dictionary.npy: array of shape [80 100000000]: 32.0 GB is more than there is memory for",
		"export huge -f csr -o out":  "huge: dictionary.npy: array of shape [80 100000000]: 32.0 GB is more than there is memory for",
		"encode huge in.txt -o out":  "huge: dictionary.npy: array of shape [80 100000000]: 32.0 GB is more than there is memory for",
		"train --recipe paper many.txt.gz -o model": "many.txt.gz: after ",
		"heatmap in.txt " + strings.Repeat("word1,", 9000) + "word2 -o x.png": "a picture of 9001 words: ",
		"train --recipe paper in.txt -o model -k 100000000":                                  "60 words × 100000000 sparse dimensions need about ",
		"train --recipe paper in.txt -o model -k 100000000 --overcommit":                     "which the system does not give; ",
	} {
		cmd := exec.Command("sh", append([]string{"-c", `ulimit -v 2500000 && exec "$0" "$@"`, exe}, strings.Fields(args)...)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Run()
		lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
		if last := lines[len(lines)-1]; cmd.ProcessState.ExitCode() != exitUsage || stdout.Len() > 0 || len(lines) > 2 || !strings.HasPrefix(last, "overcomplete: ") || !strings.Contains(last, want) {
			t.Errorf("%s: %v, %q, %.1000s", args, cmd.ProcessState, &stdout, &stderr)
		}
		if after := names(t, "."); !slices.Equal(before, after) {
			t.Errorf("%s: there are %q", args, after)
		}
	}
}
