package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"

	"overcomplete/internal/npy"
)

// The commands of the table in docs/reliability.md have hardly more memory resident than it
// says. How much Go leaves uncollected differs from run to run, by less than a third.
func TestMostMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	exe := program(t)
	doc, err := filepath.Abs("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := sampleDir(t)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	const words, dim = 40_000, 100
	x := sampleVectors(words, dim)
	writeFile(t, "x.txt", gloVeText(x))
	writeFile(t, "words.txt", []byte(strings.Join(x.Words, "\n")+"\n"))
	var array, columns, packed bytes.Buffer
	npy.Write(&array, []int{words, dim}, x.Data)
	npy.WriteHeader(&columns, npy.Header{Type: "<f4", Fortran: true, Shape: []int{words, dim}})
	columns.Write(array.Bytes()[array.Len()-4*len(x.Data):]) // other numbers, as large
	g := gzip.NewWriter(&packed)
	g.Write(array.Bytes())
	g.Close()
	writeFile(t, "x.npy", array.Bytes())
	writeFile(t, "columns.npy", columns.Bytes())
	writeFile(t, "x.npy.gz", packed.Bytes())
	writeFile(t, "pairs.txt", []byte("word1 word2 1\nword3 word4 2\nword5 word6 3\nword7 word8 2\n"))
	writeFile(t, "small.txt", gloVeText(sampleVectors(2000, 20)))
	var pairs strings.Builder
	for i := range 100 {
		fmt.Fprintf(&pairs, "word%d word%d %d\n", i, i+100, i*i%7)
	}
	if err := os.MkdirAll("data/wordsim", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt"} {
		writeFile(t, "data/wordsim/"+name, []byte(pairs.String()))
	}
	writeFile(t, "stdin", bytes.Repeat([]byte("1\n"), 1000)) // a judge's answers
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| command | MB |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `(.*)`.* \\| (\\d+) \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) != strings.Count(table, "\n") { // but for the line below the heads
		t.Fatalf("%d rows in\n%s", len(rows), table)
	}
	covered := map[string]bool{}
	for _, row := range rows {
		cmd, _, err := newRoot().Find(strings.Fields(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		covered[cmd.CommandPath()] = true
	}
	checkCovered(t, covered)
	for _, row := range rows {
		said, _ := strconv.Atoi(row[2])
		used := resident(t, exe, dir, row[1]) / 1e6
		t.Logf("%4d MB, %4d in the table: %s", used, said, row[1])
		if used > said+said/3 {
			t.Errorf("%s: %d MB, the table has %d", row[1], used, said)
		}
	}
}

// resident runs the program and returns the most bytes that it had resident.
func resident(t *testing.T, exe, dir, args string) (bytes int) {
	t.Helper()
	cmd := exec.Command(exe, strings.Fields(args)...)
	cmd.Dir = dir
	stdin, err := os.Open(filepath.Join(dir, "stdin"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	cmd.Stdin = stdin
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	ended, _, stderr := trace(t, cmd, func(c sysCall) syscall.Errno {
		if c.class == "exit" {
			status, _ := os.ReadFile("/proc/" + strconv.Itoa(c.process) + "/status")
			_, most, _ := strings.Cut(string(status), "VmHWM:")
			fmt.Sscan(most, &bytes)
			bytes <<= 10
		}
		return 0
	})
	if ended.ExitStatus() != 0 || bytes == 0 {
		t.Fatalf("%s: exit code %d, %d bytes\n%s", args, ended.ExitStatus(), bytes, stderr)
	}
	return bytes
}
