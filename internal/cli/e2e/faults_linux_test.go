package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/internal/testonly/tier"
)

// A faultCase is a command to run under faults.
type faultCase struct {
	args    string
	outputs string // files and directories that it writes, each atomically
	resumes bool   // run again, it resumes; the parts of its output are placed one after the other
}

// faultCases has each kind of output.
var faultCases = []faultCase{
	{args: "paper train in.txt -o new --epochs 2", outputs: "new"},
	{args: "paper train in.txt -o checkpoint --epochs 3 -k 10 --checkpoint 1ns --resume", outputs: "checkpoint", resumes: true},
	{args: "train long.txt -o old --force --quiet --train-rows 500 -k 20 --sparsity 0.8", outputs: "old"},
	{args: "train long.txt -o new --quiet --train-rows 500 -k 20 --epochs 2 --checkpoint 1ns --resume", outputs: "new", resumes: true},
	{args: "train texts.parquet -o new --quiet --epochs 1", outputs: "new"},
	{args: "encode old in.txt -o s1 --force --shard 1/3", outputs: "s1"},
	{args: "merge s1 s2 -o old --force", outputs: "old"},
	{args: "export old -f glove -o new", outputs: "new"},
	{args: "export old -f csr -o new", outputs: "new"},
	{args: "export old -f parquet -o out --force", outputs: "out"},
	{args: "paper tune in.txt -o new --quiet --data data --lambda 0.1 --factor 1 --json", outputs: "new", resumes: true},
	{args: "paper report in.txt -o new --quiet --data data --lambda 0.1 --factor 1 --length 1", outputs: "new", resumes: true},
	{args: "explore old --export new --dimensions 3", outputs: "new"},
	{args: "intrusion make X=old Y=in.txt -n 2 -o new.tsv", outputs: "new.tsv new.key.json"},
	{args: "intrusion auto old --input in.txt --reference reference.txt --save", outputs: "old/intrusion.json"},
	{args: "labels old --import labels.tsv", outputs: "old/labels.json"},
}

// faultDir makes a directory with what faultCases need.
func faultDir(t *testing.T) clitest.Dir {
	t.Helper()
	dir, _ := clitest.Sample(t)
	long := clitest.Vectors(1000, 8)
	for i := range long.IDs {
		long.IDs[i] += strings.Repeat("x", 80)
	}
	dir.Write(t, "long.txt", clitest.Text(long)) // whose words fill more than the 64 KB of a buffer
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n3\tkings\n"))
	var pairs strings.Builder
	for i := range 10 {
		fmt.Fprintf(&pairs, "word%d word%d %d\n", i, i+10, i*i%7)
	}
	for _, name := range []string{"EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt"} {
		dir.Write(t, "data/wordsim/"+name, []byte(pairs.String()))
	}
	table, err := os.ReadFile("../../../vectors/columnar/testdata/texts.parquet")
	if err != nil {
		t.Fatal(err)
	}
	dir.Write(t, "texts.parquet", table)
	for _, line := range []string{
		"paper train in.txt -o old --epochs 1 -k 20",
		"encode old in.txt -o s1 --shard 1/2",
		"encode old in.txt -o s2 --shard 2/2",
		"export old -f glove -o reference.txt",
	} {
		dir.MustRun(t, line)
	}
	dir.Write(t, "out", []byte("old"))
	// A checkpoint after an epoch: the program is killed when the next one takes its place.
	f := &faults{t: t, dir: dir}
	f.args = "paper train in.txt -o checkpoint --epochs 3 -k 10 --checkpoint 1ns"
	f.run("inject=renameat2:signal=KILL")
	left, err := fs.Glob(os.DirFS(string(dir)), "checkpoint.tmp*")
	if m := dir.Model(t, "checkpoint"); len(m.Info.Training.Epochs) != 1 || err != nil || len(left) != 1 {
		t.Fatalf("the checkpoint has %d epochs, beside it are %q, %v", len(m.Info.Training.Epochs), left, err)
	}
	if err := os.RemoveAll(dir.Path(left[0])); err != nil {
		t.Fatal(err)
	}
	return dir
}

// temporary ends what files and directories are called that are not whole yet.
var temporary = regexp.MustCompile(`\.tmp[0-9a-f]{8}`)

// callErrors are the system calls that fail, with their errors.
var callErrors = map[string]string{
	"read,pread64,getdents64": "EIO", "openat": "EIO", "fstat,newfstatat": "EIO", // of one of the files that are there
	"fsync": "EIO", "mkdirat": "ENOSPC", "linkat": "EIO", "renameat": "EIO", "renameat2": "EINVAL", "unlinkat": "EIO",
}

// If a system call of a command fails, or the program is killed anywhere, each output has its old or its new content,
// nothing else has changed, and one line names the error. A sample of commands and calls is tried, and all with the tag
// full.
func TestFaults(t *testing.T) {
	t.Parallel()
	whole := faultDir(t)
	var cases atomic.Int64
	t.Cleanup(func() { t.Logf("cases: %d", cases.Load()) })
	for i, tt := range faultCases {
		if !tier.Full && i%3 > 0 {
			continue
		}
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			dir := whole.Copy(t)
			f := &faults{t: t, faultCase: tt, dir: dir, before: dir.Tree(t)}
			cases.Add(int64(f.all(rand.New(rand.NewPCG(1, uint64(i))))))
		})
	}
}

// File systems that flush no names are tolerated; other failures to flush them are errors.
func TestUnflushedNames(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	f := &faults{t: t, dir: dir, before: dir.Tree(t)}
	f.args = "paper train in.txt -o new --epochs 1"
	for name, want := range map[string]string{"EINVAL": "", "EOPNOTSUPP": "", "EIO": "input/output error", "ENOSPC": "no space left on device"} {
		code, _, stderr, _ := f.run("inject=fsync:error="+name, "-P", string(dir))
		if (code != 0) != (want != "") || want != "" && (code != clitest.Failed || !strings.Contains(stderr, "the directory can't be flushed to disk: "+want)) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
		dir.Restore(t, f.before)
	}
}

// learned is in the message of a training that has a dictionary, but no codes. Then encode continues it.
const learned = " has the dictionary"

// faults runs a command under faults.
type faults struct {
	t *testing.T
	faultCase
	dir          clitest.Dir
	before, want clitest.Tree // all files; the latter without seconds
	stdout       string
}

// all runs the command with each kind of fault.
func (f *faults) all(rng *rand.Rand) (cases int) {
	code, stdout, stderr, log := f.run("trace=openat")
	if code != 0 {
		f.t.Fatal(stderr)
	}
	var read []string // files that the command opens
	for _, path := range opened.FindAllStringSubmatch(log, -1) {
		if name, err := filepath.Rel(string(f.dir), path[1]); err == nil && f.before[name] != "" {
			read = append(read, path[1])
		}
	}
	f.stdout, f.want = seconds.ReplaceAllString(stdout, ""), withoutSeconds(f.dir.Tree(f.t))
	try := func(expression string, options ...string) {
		if !tier.Full && rng.IntN(2) > 0 {
			return
		}
		f.dir.Restore(f.t, f.before)
		code, stdout, stderr, log := f.run(expression, options...)
		if code < 0 || strings.Contains(log, "(INJECTED)") { // the command makes such a call
			cases++
			f.one(expression, code, stdout, stderr)
		}
	}
	for calls, failure := range callErrors {
		if strings.Contains(calls, ",") || calls == "openat" {
			try("inject="+calls+":error="+failure, "-P", read[rng.IntN(len(read))])
			continue
		}
		try("inject=" + calls + ":error=" + failure)
		// At the first such call, or where a thread has made some.
		try("inject=" + calls + ":signal=KILL")
		try(fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, 2+rng.IntN(5)))
	}
	for blocks := range 2 { // the first or a later write fails
		f.dir.Restore(f.t, f.before)
		code, stdout, stderr := clitest.Output(f.t, underShell(f.dir, fmt.Sprint("ulimit -f ", blocks), strings.Fields(f.args)...))
		f.one("write", code, stdout, stderr)
		cases++
	}
	return cases
}

// opened finds the paths of opened files in the log of strace.
var opened = regexp.MustCompile(`openat.* = \d+<([^>]*)>`)

// one checks a run with a fault, and that a command that resumes then succeeds.
func (f *faults) one(fault string, code int, stdout, stderr string) {
	complain := func(format string, args ...any) {
		f.t.Errorf("%s: exit code %d, %s\n%s", fault, code, fmt.Sprintf(format, args...), epochs.ReplaceAllString(stderr, ""))
	}
	if err := f.check(fault, code, stdout, stderr); err != nil {
		complain("%v", err)
	}
	if f.resumes && !strings.Contains(stderr, learned) && !maps.Equal(without(withoutSeconds(f.dir.Tree(f.t))), f.want) {
		code, _, stderr = f.dir.Run(f.t, f.args)
		if after := withoutSeconds(f.dir.Tree(f.t)); code != 0 || !maps.Equal(without(after), f.want) {
			complain("run again, it writes %v", f.want.Differences(without(after)))
		}
	}
}

// check returns an error unless the program has ended as it should and left what it
// should.
func (f *faults) check(fault string, code int, stdout, stderr string) error {
	before, after := withoutSeconds(maps.Clone(f.before)), withoutSeconds(f.dir.Tree(f.t))
	states := map[string]bool{}
	for _, output := range strings.Fields(f.outputs) {
		switch is := under(after, output); {
		case f.resumes && !strings.Contains(stderr, learned):
		case maps.Equal(is, under(f.want, output)):
			states["new"] = true
		case maps.Equal(is, under(before, output)):
			states["old"] = true
		case strings.Contains(stderr, output+learned) && is[output+"/dictionary.npy"] == f.want[output+"/dictionary.npy"]:
			// The dictionary is kept if its codes can't be saved.
		default:
			return fmt.Errorf("%s is neither old nor new: %v", output, under(before, output).Differences(is))
		}
	}
	notOutput := func(path, _ string) bool { return !f.isOutput(path) }
	if d := only(before, notOutput).Differences(only(after, notOutput)); d != nil {
		return fmt.Errorf("others have changed: %v", d)
	}
	if code < 0 { // killed
		return nil
	}

	var line string // that says what was wrong
	for l := range strings.Lines(stderr) {
		if strings.HasPrefix(l, "overcomplete: ") {
			line += l
		}
	}
	switch {
	case code == 0 && strings.Contains(stderr, "can't be read for this summary: ") && !states["old"]:
		// The summary lacks dimensions.
	case code == 0 && (line != "" || states["old"] || seconds.ReplaceAllString(stdout, "") != f.stdout):
		return errors.New("is no success")
	case code == 0 && strings.HasPrefix(fault, "inject=fsync") && !strings.Contains(stderr, "warning: "):
		return errors.New("passes in silence")
	case code != 0 && (code != clitest.Failed && code != clitest.Usage || strings.Count(line, "\n") != 1 || !strings.HasSuffix(stderr, line)):
		return errors.New("is not told in one line")
	case code != 0 && fault == "write" && code != clitest.Failed:
		return errors.New("has another's exit code")
	}
	// Temporary files that remain are named, and only these.
	named := temporary.FindAllString(stderr, -1)
	for path := range after {
		if name := temporary.FindString(path); name != "" && !slices.Contains(named, name) {
			return fmt.Errorf("no message about %s", path)
		}
	}
	for _, name := range named {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(after)), func(path string) bool { return strings.Contains(path, name) }) {
			return fmt.Errorf("there is no %s", name)
		}
	}
	return nil
}

// run runs the command under strace with an expression and further options. The code of a program that was killed is
// negative; log lists the calls.
func (f *faults) run(expression string, options ...string) (code int, stdout, stderr, log string) {
	f.t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		f.t.Skip(err)
	}
	cmd := f.dir.Command(strings.Fields(f.args)...)
	file := filepath.Join(f.t.TempDir(), "log")
	args := append([]string{"strace", "-f", "-qq", "-y", "-o", file, "-e", expression}, options...)
	cmd.Args = append(append(args, cmd.Path), cmd.Args[1:]...)
	cmd.Path = strace
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1") // fewer calls to trace
	code, stdout, stderr = clitest.Output(f.t, cmd)
	calls, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	return code, stdout, stderr, string(calls)
}

var (
	seconds = regexp.MustCompile(`"seconds": [^\n]*`)
	epochs  = regexp.MustCompile(`(?m)^(epoch|read|training) .*\n`)
)

// withoutSeconds leaves out how long trainings took.
func withoutSeconds(all clitest.Tree) clitest.Tree {
	for path, content := range all {
		if strings.HasSuffix(path, ".json") {
			all[path] = seconds.ReplaceAllString(content, "")
		}
	}
	return all
}

// isOutput reports whether a file is an output, or a temporary one.
func (f *faults) isOutput(path string) bool {
	return temporary.MatchString(path) || slices.ContainsFunc(strings.Fields(f.outputs), func(o string) bool { return within(path, o) })
}

func within(path, output string) bool { return path == output || strings.HasPrefix(path, output+"/") }

// only returns the files that are wanted.
func only(all clitest.Tree, wanted func(path, content string) bool) clitest.Tree {
	is := maps.Clone(all)
	maps.DeleteFunc(is, func(path, content string) bool { return !wanted(path, content) })
	return is
}

// under returns what is within an output.
func under(all clitest.Tree, output string) clitest.Tree {
	return only(all, func(path, _ string) bool { return within(path, output) })
}

// without returns what is not temporary.
func without(all clitest.Tree) clitest.Tree {
	return only(all, func(path, _ string) bool { return !temporary.MatchString(path) })
}
