package cli

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"overcomplete/internal/npy"
	"overcomplete/internal/testonly/clitest"
	"overcomplete/model"
)

// versions is a directory with models that programs of each format wrote: see its README.md.
const versions = "testdata/versions"

// What older programs wrote is opened, encoded with, merged and gone on with, and comes to what it came
// to then.
func TestModelsOfEachFormat(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	if err := os.CopyFS(string(dir), os.DirFS(versions)); err != nil {
		t.Fatal(err)
	}
	const (
		paper = " --recipe paper --lambda 1"
		best  = " --sparsity 0.8 --train-words " // and the order of the rows, which is taken for another from version to version where they are few
	)
	for name, resume := range map[string]string{
		"1/paper": "", "2/best": "", "3/paper": paper, "3/best": best + "first:60", "4/paper": paper, "4/best": best + "all", "4/b": "", "4/texts": "",
	} {
		t.Run(name, func(t *testing.T) {
			format, _ := strconv.Atoi(name[:1])
			if m := dir.Model(t, name); m.Info.Format != format {
				t.Errorf("format %d", m.Info.Format)
			}
			if got, _ := dir.MustRun(t, "export "+name+" -f sparse -o -"); got != string(dir.Read(t, name+".sparse")) {
				t.Error("other codes")
			}
			// A gap of 1e-5 of the objective leaves codes √1e-5 of their size from the minimum.
			dir.MustRun(t, "encode "+name+" more.txt -o "+name+".now --exact --gap 1e-5")
			got, _ := dir.MustRun(t, "export "+name+".now -f sparse -o -")
			sameCodes(t, got, string(dir.Read(t, name+".encoded")), 3e-3)
			if resume == "" {
				return
			}
			_, stderr := dir.MustRun(t, "train words.txt -k 16 --epochs 4 --resume -o "+name+".checkpoint"+resume)
			if !strings.Contains(stderr, "resuming after epoch 3\n") {
				t.Error(stderr)
			}
			// Kinds of processor differ in the last digits.
			got, _ = dir.MustRun(t, "export "+name+".checkpoint -f sparse -o -")
			sameCodes(t, got, string(dir.Read(t, name+".sparse")), 1e-3)
		})
	}
	for _, format := range []string{"3", "4"} {
		dir.MustRun(t, "merge "+format+"/shard1 "+format+"/shard2 -o "+format+"/merged")
		got, _ := dir.MustRun(t, "export "+format+"/merged -f sparse -o -")
		sameCodes(t, got, string(dir.Read(t, format+"/best.sparse")), 0)
	}
	if got, _ := dir.MustRun(t, "export 4/best.safetensors -f sparse -o -"); got != string(dir.Read(t, "4/best.sparse")) {
		t.Error("other codes in .safetensors")
	}
	code, _, stderr := dir.Run(t, "train words.txt -k 16 --epochs 4 --resume -o 1/paper.checkpoint"+paper)
	if code != exitUsage || !strings.Contains(stderr, "is of an older version, whose state.json has no hash of its own: let that version finish it, or train anew") {
		t.Errorf("a checkpoint of format 1: exit code %d, %s", code, stderr)
	}
}

// sameCodes compares codes in the format sparse, up to a tolerance times the largest of their values.
func sameCodes(t *testing.T, got, want string, tolerance float64) {
	t.Helper()
	parse := func(text string) (words []string, codes []map[string]float64, largest float64) {
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			code := make(map[string]float64)
			for _, f := range fields[1:] {
				k, v, _ := strings.Cut(f, ":")
				x, err := strconv.ParseFloat(v, 64)
				if err != nil {
					t.Fatal(err)
				}
				code[k] = x
				largest = max(largest, math.Abs(x))
			}
			words, codes = append(words, fields[0]), append(codes, code)
		}
		return words, codes, largest
	}
	words, codes, _ := parse(got)
	wantWords, wantCodes, largest := parse(want)
	if !slices.Equal(words, wantWords) {
		t.Fatalf("words %q, want %q", words, wantWords)
	}
	for i, code := range codes {
		for k := range 16 {
			k := strconv.Itoa(k)
			if x, w := code[k], wantCodes[i][k]; !(math.Abs(x-w) <= tolerance*largest) {
				t.Fatalf("%s: dimension %s is %v, want %v", words[i], k, x, w)
			}
		}
	}
}

// What is written are the files, keys and types of the format that it says, or older programs, and newer ones,
// would take it for what it isn't.
func TestWritesItsFormat(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	if err := os.CopyFS(string(dir), os.DirFS(versions)); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("../../vectors/columnar/testdata/texts.parquet")
	if err != nil {
		t.Fatal(err)
	}
	dir.Write(t, "texts.parquet", table)
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\tnote\tscore\n0\ta\tb\t1\n"))
	for _, line := range []string{
		"train words.txt -k 16 --recipe paper --epochs 2 --sparsity 0.7 -o paper",
		"train words.txt -k 16 --recipe paper --epochs 2 --loss huber --huber-delta 0.5 --center -o huber",
		"train words.txt -k 16 --train-words first:40 -o best",
		"train words.txt --like best -o like",
		"train texts.parquet -k 4 -o texts",
		"encode best more.txt -o shard --shard 1/2",
		"encode paper more.txt -o exact --exact --gap 1e-5 --lambda 1e-6", // with some that do not get there
		"labels best --import labels.tsv",
		"export best -f safetensors -o best.safetensors",
		"export texts -f safetensors -o texts.safetensors",
	} {
		dir.MustRun(t, line)
	}
	for _, line := range []string{"train words.txt -k 16 --recipe paper --epochs 4 -o checkpoint1", "train words.txt -k 16 -o checkpoint2"} {
		if code, stderr := interruptedRun(t, dir, line+" --checkpoint 1h", 1); code != exitInterrupted {
			t.Fatal(stderr)
		}
	}
	has := make(map[string]bool)
	for _, name := range []string{"paper", "huber", "best", "like", "texts", "shard", "exact", "checkpoint1", "checkpoint2"} {
		for file, content := range clitest.Dir(dir.Path(name)).Tree(t) {
			if !strings.HasSuffix(file, "/") {
				listParts(t, has, file, []byte(content))
			}
		}
	}
	listParts(t, has, "a.safetensors", dir.Read(t, "best.safetensors"))
	listParts(t, has, "a.safetensors", dir.Read(t, "texts.safetensors"))

	name := fmt.Sprintf("format-%d.txt", model.FormatVersion)
	want := readList(t, name)
	for _, line := range slices.Sorted(maps.Keys(has)) {
		if !want[line] {
			t.Errorf("%s has no line %q", name, line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(want)) {
		if !has[line] {
			t.Errorf("%s has the line %q, and nothing like that is written", name, line)
		}
	}
	if t.Failed() {
		t.Error("raise model.FormatVersion, keep models of the last format as README.md says, and list the files of the new one; " +
			"or, if programs of both kinds read both, correct the list")
	}
	if _, err := os.Stat(path.Join(versions, strconv.Itoa(model.FormatVersion))); err != nil {
		t.Errorf("there are no models of format %d", model.FormatVersion)
	}
}

// readList returns the lines of a file of versions.
func readList(t *testing.T, name string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(path.Join(versions, name))
	if err != nil {
		t.Error(err)
	}
	lines := make(map[string]bool)
	for line := range strings.Lines(string(content)) {
		lines[strings.TrimSuffix(line, "\n")] = true
	}
	return lines
}

// listParts adds lines of what is in a file of a model: keys and types, but no values.
func listParts(t *testing.T, lines map[string]bool, file string, content []byte) {
	t.Helper()
	array := func(name string, r io.Reader) {
		h, err := npy.ReadHeader(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines[fmt.Sprintf("%s: %s of %d dimensions", name, h.Type, len(h.Shape))] = true
	}
	switch path.Ext(file) {
	case ".json":
		listKeys(t, lines, file, content)
	case ".jsonl":
		for line := range bytes.Lines(content) {
			listKeys(t, lines, file, line)
		}
	case ".txt":
		lines[file+": lines"] = true
	case ".npy":
		array(file, bytes.NewReader(content))
	case ".npz":
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			array(file+"/"+f.Name, r)
		}
	case ".safetensors":
		var header map[string]struct {
			Type string `json:"dtype"`
			Info string `json:"model.json"`
		}
		if err := json.Unmarshal(content[8:8+binary.LittleEndian.Uint64(content)], &header); err != nil {
			t.Fatal(err)
		}
		for name, h := range header {
			if lines[file+"/"+name+": "+h.Type] = true; h.Info != "" {
				listKeys(t, lines, "model.json", []byte(h.Info))
			}
		}
	default:
		t.Errorf("%s is no file of a model", file)
	}
}

func listKeys(t *testing.T, lines map[string]bool, file string, content []byte) {
	t.Helper()
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, v := range v {
				walk(at+" "+key, v)
			}
		case []any:
			for _, v := range v {
				walk(at+" []", v)
			}
		default:
			lines[fmt.Sprintf("%s: %T", at, v)] = true
		}
	}
	var v any
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	walk(file, v)
}

// Command lines that worked go on to: commands and flags stay what they are.
func TestFlagsStay(t *testing.T) {
	has := make(map[string]bool)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		has[c.CommandPath()] = true
		c.Flags().VisitAll(func(f *pflag.Flag) {
			has[fmt.Sprintf("%s --%s %s %s", c.CommandPath(), f.Name, f.Shorthand, f.Value.Type())] = true
		})
		for _, c := range c.Commands() {
			walk(c)
		}
	}
	walk(newRoot())
	want := readList(t, "flags.txt")
	for _, line := range slices.Sorted(maps.Keys(has)) {
		if !want[line] {
			t.Logf("not in flags.txt: %s", line)
		}
	}
	for line := range want {
		if !has[line] {
			t.Errorf("there is no %q any more: keep it beside what took its place, or say in CHANGELOG.md that it is gone", line)
		}
	}
}
