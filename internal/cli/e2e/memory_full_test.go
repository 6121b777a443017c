//go:build full && linux && amd64

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"

	"overcomplete/internal/npy"
	"overcomplete/internal/testonly/clitest"
)

// The commands of the table in docs/reliability.md have hardly more memory resident than it
// says. How much Go leaves uncollected differs from run to run, by less than a third.
func TestMostMemory(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	const words, dim = 40_000, 100
	x := clitest.Vectors(words, dim)
	dir.Write(t, "x.txt", clitest.Text(x))
	dir.Write(t, "words.txt", []byte(strings.Join(x.Words, "\n")+"\n"))
	var array, columns, packed bytes.Buffer
	npy.Write(&array, []int{words, dim}, x.Data)
	npy.WriteHeader(&columns, npy.Header{Type: "<f4", Fortran: true, Shape: []int{words, dim}})
	columns.Write(array.Bytes()[array.Len()-4*len(x.Data):]) // other numbers, as large
	g := gzip.NewWriter(&packed)
	g.Write(array.Bytes())
	g.Close()
	dir.Write(t, "x.npy", array.Bytes())
	dir.Write(t, "columns.npy", columns.Bytes())
	dir.Write(t, "x.npy.gz", packed.Bytes())
	dir.Write(t, "pairs.txt", []byte("word1 word2 1\nword3 word4 2\nword5 word6 3\nword7 word8 2\n"))
	dir.Write(t, "small.txt", clitest.Text(clitest.Vectors(2000, 20)))
	var pairs strings.Builder
	for i := range 100 {
		fmt.Fprintf(&pairs, "word%d word%d %d\n", i, i+100, i*i%7)
	}
	for _, name := range []string{"EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt"} {
		dir.Write(t, "data/wordsim/"+name, []byte(pairs.String()))
	}
	dir.Write(t, "stdin", bytes.Repeat([]byte("1\n"), 1000)) // a judge's answers
	text, err := os.ReadFile("../../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| command | MB |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `(.*)`.* \\| (\\d+) \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) != strings.Count(table, "\n") { // but for the line below the heads
		t.Fatalf("%d rows in\n%s", len(rows), table)
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, row[1])
	}
	checkCovered(t, lines)
	for _, row := range rows {
		said, _ := strconv.Atoi(row[2])
		used := resident(t, dir, row[1]) / 1e6
		t.Logf("%4d MB, %4d in the table: %s", used, said, row[1])
		if used > said+said/3 {
			t.Errorf("%s: %d MB, the table has %d", row[1], used, said)
		}
	}
}

// resident runs the program and returns the most bytes that it had resident.
func resident(t *testing.T, dir clitest.Dir, args string) (bytes int) {
	t.Helper()
	cmd := dir.Command(strings.Fields(args)...)
	stdin, err := os.Open(dir.Path("stdin"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	cmd.Stdin = stdin
	cmd.Env = append(cmd.Env, "GOMAXPROCS=2")
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
