//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// damageDir returns a directory with a model of in.txt, named words, and the models texts and other.
func damageDir(t *testing.T) clitest.Dir {
	t.Helper()
	dir, x := clitest.Sample(t)
	reference := clitest.Vectors(60, 8)
	slices.Reverse(reference.Data)
	dir.Write(t, "reference.txt", clitest.Text(reference))
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n3\tthree\n"))
	var table []byte
	for i := range x.IDs {
		row, err := json.Marshal(map[string]any{
			"id": fmt.Sprint("d%", i), "text": fmt.Sprintf("text of %s and more%d rain%[2]d", x.IDs[i], i%7), "kind": []string{"wet", "dry", "new"}[i%3], "vector": x.Row(i),
		})
		testonly.Must(t, err)
		table = append(append(table, row...), '\n')
	}
	dir.Write(t, "table.jsonl", table)
	for _, line := range []string{
		"train in.txt -o words -k 12 --method B --nonzeros 6 --quiet",
		"train in.txt -o other --seed 2 --method B -k 20 --nonzeros 6 --quiet",
		"train table.jsonl -o texts -k 20 --nonzeros 6 --quiet",
		"intrusion auto words --input in.txt --reference reference.txt --save",
		"labels words --import labels.tsv",
		"labels texts --import labels.tsv",
	} {
		dir.MustRun(t, line)
	}
	return dir
}

// A model with a damaged file is refused in one line without output, or its undamaged part is read. Damaged codes are
// never read as other codes. Files are truncated, changed in a byte, given a number that is too large, or replaced by
// another file.
func TestDamagedModels(t *testing.T) {
	damages := 2 // of each kind for each file
	if testonly.Full {
		damages = 60
	}
	dir := damageDir(t)
	before := dir.Tree(t)
	lines := map[string][]string{
		"words": {"top DIR/words --sort intrusion --json", "explain DIR/words word3 --json", "compare DIR/words DIR/other --json", "encode DIR/words DIR/in.txt -o DIR/out --quiet", "explore DIR/words --export DIR/out --words word3"},
		"texts": {"topics DIR/texts --json --column kind", "nearest DIR/texts d%3 --json", "labels DIR/texts --topics 3", "export DIR/texts -f jsonl -o -", "explore DIR/texts --export DIR/out"},
	}
	run := func(line string) (code int, stdout, stderr string) {
		return inProcess(context.Background(), strings.Fields(strings.ReplaceAll(line, "DIR", string(dir)))...)
	}
	wanted := map[string]string{}
	for _, model := range lines {
		for _, line := range model {
			code, stdout, stderr := run(line)
			if code != 0 {
				t.Fatal(line, stderr)
			}
			wanted[line] = stdout
			dir.Restore(t, before)
		}
	}
	tried, refused, same := 0, 0, 0
	rng := rand.New(rand.NewPCG(1, 2))
	try := func(path, content string) {
		tried++
		model, name, _ := strings.Cut(path, "/")
		line := lines[model][rng.IntN(len(lines[model]))]
		dir.Write(t, path, []byte(content))
		allocated := testonly.CountBytes()
		code, stdout, stderr := run(line)
		if n := allocated(); n > 256<<20 {
			t.Errorf("%s: %d bytes allocated", line, n)
		}
		complaints := 0
		for complaint := range strings.Lines(stderr) {
			if strings.HasPrefix(complaint, "overcomplete: ") {
				if complaints++; utf8.RuneCountInString(complaint) > 400 {
					t.Errorf("%s, damaged %s: %s", line, name, complaint)
				}
			}
		}
		checkPlain(t, []string{line}, stderr)
		switch {
		case code == exitUsage && complaints == 1 && stdout == "":
			refused++
			before[path] = content
			dir.Unchanged(t, before)
		case code != 0 || complaints > 0:
			t.Errorf("%s, damaged %s: exit code %d, %q", line, name, code, stderr)
		case stdout == wanted[line]:
			same++
		case name == "codes.npz":
			t.Errorf("%s, damaged %s: prints other codes", line, name)
		}
	}
	for model := range lines {
		for path, content := range before {
			if !strings.HasPrefix(path, model+"/") || strings.HasSuffix(path, "/") || path == model+"/" {
				continue
			}
			restored := func(damaged string) {
				try(path, damaged)
				before[path] = content
				dir.Restore(t, before)
			}
			for range damages {
				at := rng.IntN(len(content))
				if rng.IntN(2) == 0 { // half of the damage is in headers, at the beginning
					at = rng.IntN(min(128, len(content)))
				}
				flipped := []byte(content)
				flipped[at] ^= 1 << rng.IntN(8)
				restored(string(flipped))
				restored(content[:at])
				restored(content[:at] + content[at+1:])
				restored(content[:at] + strings.Repeat("9", 1+rng.IntN(30)) + content[at:])
				restored(string(slices.Insert([]byte(content), at, 0xff)))
			}
			for other, content := range before {
				if !strings.HasSuffix(other, "/") && strings.HasPrefix(other, "words/") || strings.HasPrefix(other, "texts/") {
					restored(content)
				}
			}
		}
	}
	t.Logf("cases: %d, of them %d refused and %d without effect", tried, refused, same)
}
