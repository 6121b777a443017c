package cli

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/pflag"

	"overcomplete/internal/testonly/clitest"
)

// pairLines are command lines to add pairs of flags to. The tag full adds those that take long.
var pairLines = []string{
	"merge DIR/shard1 DIR/shard2 -o DIR/out",
	"topics DIR/texts",
	"top DIR/model",
	"top DIR/in.txt",
	"top DIR/model 5",
	"explain DIR/model word3",
	"explain DIR/encoded word3",
	"explain DIR/in.txt word3",
	"nearest DIR/model word3",
	"nearest DIR/texts text",
	"compare DIR/model word3 word4",
	"compare DIR/model DIR/encoded",
	"columns DIR/texts",
	"columns DIR/texts kind",
	"columns DIR/encodedtexts",
	"labels DIR/model",
	"labels DIR/texts",
	"eval DIR/model --wordsim DIR/pairs",
	"recall DIR/in.txt DIR/model --number 20",
	"query DIR/model DIR/in.txt",
	"intrusion make model=DIR/model -o DIR/out.tsv -n 3",
	"intrusion auto DIR/model --input DIR/in.txt --reference DIR/reference.txt",
	"explore DIR/texts --export DIR/out.html",
	"graph",
	"graph --dot code",
	"version",
}

// pairValues are values of flags, none of them the default, by command and flag or by flag.
var pairValues = map[string]string{
	"atoms": "12", "factor": "2", "epochs": "1", "dictionary-steps": "2", "seed": "7", "method": "B", "sparsity": "0.7", "nonzeros": "2",
	"lambda": "0.3", "anchor": "0.1", "train-words": "first:30", "topics": "3", "like": "DIR/model", "max-words": "40", "words": "DIR/list",
	"rows": "texts", "text-column": "note", "id-column": "number", "vector-columns": "second", "tau": "0.001", "rate": "0.3", "loss": "huber",
	"huber-delta": "1", "encode-steps": "3", "gap": "0.01", "shard": "1/2", "column": "kind", "dimensions": "4",
	"sort": "coherence", "neighbours": "2", "vocabulary": "DIR/model", "more": "0", "less": "1", "against": "DIR/new.arrow", "values": "1", "by": "month", "stop-words": "DIR/list",
	"import": "DIR/labels.tsv", "data": "DIR/data", "tasks": "WS-353", "wordsim": "DIR/pairs2", "labelled": "spam=DIR/spam,DIR/spam",
	"queries": "DIR/new.arrow", "number": "5", "weights": "3", "host": "localhost", "port": "0", "embed": "cat", "export": "DIR/out.html", "dot": "code", "length": "1",
	"reference": "DIR/reference.txt", "heatmap": "word1,word2",
	"top words": "2", "explain words": "2", "nearest words": "2", "nearest dimensions": "1", "labels words": "1", "explore words": "d%3", "explore dimensions": "3",
}

// unseenFlags change nothing that is compared: progress, the device and its memory, what is replaced and resumed, and
// malformed rows, which these files lack.
var unseenFlags = []string{"help", "skip-bad", "quiet", "progress", "device", "precision", "workers", "overcommit", "output", "force", "checkpoint", "resume"}

// sameByChance are flags that change nothing in these files beside others: what they choose is there anyway.
var sameByChance = []string{
	"train DIR/in.txt -o DIR/out --dictionary-steps=2", // of at least 256 rows each
	"train DIR/table.arrow -o DIR/out --dictionary-steps=2",
	"train DIR/in.txt -o DIR/out --rows=texts --method=B", // the default for texts
	"train DIR/table.arrow -o DIR/out --method=B",
	"train DIR/table.arrow -o DIR/out --rows=texts",
	"paper train DIR/in.txt -o DIR/out --lambda=0.3 --authors-stop",
	"paper train DIR/in.txt -o DIR/out --from-words --authors-stop",
	"encode DIR/model DIR/in.txt -o DIR/out --shard=1/2", // whose rows are one block
	"top DIR/model 5 --rare",
	"nearest DIR/texts text --rare", // of texts no row is rare
	"compare DIR/model DIR/encoded --rare",
	"labels DIR/texts --rare",
}

var seconds = regexp.MustCompile(`"seconds": ?[0-9.e-]+|[0-9.]+ ms`)

// Each flag changes the result of a command or is refused, alone and beside each other flag: none overrules another.
func TestFlagPairs(t *testing.T) {
	dir := pairDir(t)
	tried, refused := 0, 0
	lines := slices.Clone(pairLines)
	for _, format := range formatNames() {
		lines = append(lines, "export DIR/texts -o DIR/out -f "+format)
	}
	for _, line := range lines {
		run := func(flags ...string) string {
			args := append(strings.Fields(line), flags...)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "DIR", string(dir.Dir))
			}
			tried++
			code, stdout, stderr := inProcess(context.Background(), args...)
			return dir.result(t, args, code, stdout, stderr)
		}
		cmd, _, err := newRoot().Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(line+" ", " --"+f.Name+" ") || slices.Contains(unseenFlags, f.Name) {
				return
			}
			name := "--" + f.Name
			if f.Value.Type() != "bool" {
				value, ok := pairValues[cmd.Name()+" "+f.Name]
				if !ok {
					value = pairValues[f.Name]
				}
				name += "=" + value
			}
			names = append(names, name)
		})
		without := run()
		if without == wasRefused {
			t.Fatalf("%s is refused", line)
		}
		alone := map[string]string{}
		check := func(with, name, got, without string) {
			line := strings.Join(strings.Fields(line+" "+with+" "+name), " ")
			if got == without && !slices.Contains(sameByChance, line) {
				t.Errorf("%s: the last flag has no effect", line)
			}
		}
		for _, name := range names {
			alone[name] = run(name)
			check("", name, alone[name], without)
		}
		for i, a := range names {
			for _, b := range names[:i] {
				both := run(a, b)
				if both == wasRefused {
					refused++
					continue
				}
				if alone[b] != without {
					check(a, b, both, alone[a])
				}
				if alone[a] != without {
					check(b, a, both, alone[b])
				}
			}
		}
	}
	t.Logf("cases: %d, of them %d refused pairs", tried, refused)
}

const wasRefused = "refused"

// result returns what a command printed and wrote, except seconds and model.json, or wasRefused. It removes the files.
func (d pairFiles) result(t *testing.T, args []string, code int, stdout, stderr string) string {
	t.Helper()
	after := d.Tree(t)
	written := d.before.Differences(after)
	switch {
	case code == exitUsage && len(written) == 0 && stdout == "" && strings.Contains(stderr, "overcomplete: "):
		return wasRefused
	case code != 0:
		t.Errorf("%q: exit code %d, %q, files %q", args, code, stderr, written)
	}
	result := []string{stdout}
	for _, file := range written {
		_, name, _ := strings.Cut(file, "out")
		name = "out" + name
		if !strings.HasSuffix(name, "model.json") {
			result = append(result, name, after[name])
		}
	}
	d.Restore(t, d.before)
	return seconds.ReplaceAllString(strings.Join(result, "\n"), "")
}

type pairFiles struct {
	clitest.Dir
	before clitest.Tree
}

// pairDir has the files of pairLines.
func pairDir(t *testing.T) pairFiles {
	t.Helper()
	dir, _ := evalDir(t)
	words := clitest.Vectors(60, 8)
	dir.Write(t, "list", []byte(strings.ReplaceAll(strings.Join(words.Words, "\n"), "word", "name")))
	reference := clitest.Vectors(60, 8)
	slices.Reverse(reference.Data)
	words.Words[59] = "word%59" // to escape
	dir.Write(t, "in.txt", clitest.Text(words))
	dir.Write(t, "reference.txt", clitest.Text(reference))
	dir.Write(t, "pairs", []byte("word1 word2 1\nword3 word4 3\nword5 word6 2\nword7 word8 5\n"))
	dir.Write(t, "pairs2", []byte("word1 word3 1\nword3 word5 3\nword5 word7 2\nword7 word9 5\n"))
	dir.Write(t, "spam", bytes.Repeat([]byte("yes\tword1 word2\nno\tword3 word4\n"), 10))
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n3\tthree\n"))
	dir.Write(t, "table.arrow", pairTable(t, 60, 0))
	dir.Write(t, "new.arrow", pairTable(t, 30, 5))
	for _, line := range []string{
		"train in.txt -o model -k 20 --nonzeros 6 --train-words first:40", "train in.txt -o other --seed 2 --method B -k 20 --nonzeros 6", "train table.arrow -o texts -k 20 --nonzeros 6", "encode texts table.arrow -o encodedtexts", "encode model in.txt -o encoded",
		"encode model in.txt -o shard1 --shard 1/2", "encode model in.txt -o shard2 --shard 2/2",
	} {
		dir.MustRun(t, line+" --quiet")
	}
	return pairFiles{dir, dir.Tree(t)}
}

// pairTable returns an Arrow table of texts with columns to choose from, a row from start on.
func pairTable(t *testing.T, rows, start int) []byte {
	t.Helper()
	text := func(name string) arrow.Field { return arrow.Field{Name: name, Type: arrow.BinaryTypes.String} }
	list := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.FixedSizeListOf(8, arrow.PrimitiveTypes.Float32)}
	}
	schema := arrow.NewSchema([]arrow.Field{text("id"), text("number"), text("text"), text("note"), text("kind"), list("vector"), list("second")}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	x := clitest.Vectors(rows+start+1, 8)
	for i := start; i < start+rows; i++ {
		for c, value := range []string{fmt.Sprint("d%", i), fmt.Sprint("n", i), fmt.Sprintf("text of %s and more%d rain%[2]d", x.Words[i], i%7), fmt.Sprintf("a note number %d", i), []string{"wet", "dry", "new"}[i%3]} {
			b.Field(c).(*array.StringBuilder).Append(value)
		}
		for c := range 2 {
			l := b.Field(5 + c).(*array.FixedSizeListBuilder)
			l.Append(true)
			l.ValueBuilder().(*array.Float32Builder).AppendValues(x.Row(i+c), nil)
		}
	}
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	err := w.Write(b.NewRecordBatch())
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
