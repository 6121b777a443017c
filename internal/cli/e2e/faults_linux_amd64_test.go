package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sys/unix"

	"overcomplete/internal/npy"
	"overcomplete/internal/testonly/clitest"
	"overcomplete/vectors"
)

// A faultCase is a command to run under faults.
type faultCase struct {
	args    string
	outputs string // files and directories that it writes, each atomically
	resumes bool   // run again, it goes on; the parts of its output come one after the other
}

// faultCases has every command that reads or writes files, in all the ways that it does.
var faultCases = []faultCase{
	{args: "paper train in.txt -o new --epochs 2", outputs: "new"},
	{args: "paper train in.txt -o old --force --epochs 2 --center", outputs: "old"},
	{args: "paper train in.npy --words words.txt -o new --epochs 2 --checkpoint 1ns --resume", outputs: "new", resumes: true},
	{args: "paper train in.txt -o checkpoint --epochs 3 -k 10 --checkpoint 1ns --resume", outputs: "checkpoint", resumes: true},
	{args: "train long.txt -o new --quiet --train-words 500 -k 20 --sparsity 0.8 --like old", outputs: "new"},
	{args: "train long.txt -o new --quiet --train-words 500 -k 20 --epochs 2 --checkpoint 1ns --resume", outputs: "new", resumes: true},
	{args: "train in.txt -o new --quiet --epochs 1 --like labelled", outputs: "new"},
	{args: "train in.txt -o new --quiet --epochs 1 --topics 3", outputs: "new"},
	{args: "train texts.parquet -o new --quiet --epochs 1", outputs: "new"},
	{args: "train zstd.arrow -o new --quiet --epochs 1 --train-words 2", outputs: "new"},
	{args: "encode labelled in.txt.gz -o old --force --shard 1/3", outputs: "old"},
	{args: "encode old in.npy --words words.txt -o new --shard 2/3", outputs: "new"},
	{args: "merge s1 s2 -o old --force", outputs: "old"},
	{args: "export old -f glove -o new", outputs: "new"},
	{args: "export old -f csr -o new", outputs: "new"},
	{args: "export old -f csr -o -"},
	{args: "export old -f safetensors -o new.safetensors", outputs: "new.safetensors"},
	{args: "export old -f arrow -o new", outputs: "new"},
	{args: "export old -f parquet -o out --force", outputs: "out"},
	{args: "export texts -f jsonl -o new --normalize", outputs: "new"},
	{args: "export b -f opensearch -o out --force", outputs: "out"},
	{args: "eval old b:binary thresh1:in.txt --data data --tasks WS-353"},
	{args: "eval in.txt --json --labelled mine=labels.txt,labels.txt"},
	{args: "recall in.txt old b -k 3 --json"},
	{args: "query old in.txt --more 1"},
	{args: "paper tune in.txt -o new --quiet --data data --lambda 0.1 --factor 1 --json", outputs: "new", resumes: true},
	{args: "paper report in.txt -o new --quiet --data data --lambda 0.1 --factor 1 --length 1", outputs: "new", resumes: true},
	{args: "top old"},
	{args: "top labelled --sort intrusion"},
	{args: "columns texts"},
	{args: "topics themed --json"},
	{args: "pipe old"},
	{args: "explain old word1"},
	{args: "explore labelled --export new --dimensions 3", outputs: "new"},
	{args: "intrusion make X=old Y=in.txt -n 2 -o new.tsv", outputs: "new.tsv new.key.json"},
	{args: "intrusion score test.key.json test.tsv"},
	{args: "intrusion auto old --input in.txt --reference reference.txt --save", outputs: "old/intrusion.json"},
	{args: "labels old"},
	{args: "labels old --import labels.tsv", outputs: "old/labels.json"},
	{args: "compare old word1 word2"},
	{args: "compare old b"},
	{args: "nearest old word1 - word2 + word3"},
	{args: "graph"},
	{args: "devices"},
	{args: "version"},
	{args: "help train"},
}

// faultDir makes a directory with what faultCases need.
func faultDir(t *testing.T) clitest.Dir {
	t.Helper()
	dir, d := clitest.Sample(t)
	long := clitest.Vectors(1000, 8)
	for i := range long.Words {
		long.Words[i] += strings.Repeat("x", 80)
	}
	dir.Write(t, "long.txt", clitest.Text(long)) // whose words fill more than the 64 KB of a buffer
	var packed, array bytes.Buffer
	g := gzip.NewWriter(&packed)
	g.Write(clitest.Text(d))
	g.Close()
	dir.Write(t, "in.txt.gz", packed.Bytes())
	if err := npy.Write(&array, []int{60, 8}, d.Data); err != nil {
		t.Fatal(err)
	}
	dir.Write(t, "in.npy", array.Bytes())
	dir.Write(t, "words.txt", []byte(strings.Join(d.Words, "\n")+"\n"))
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n3\tkings\n"))
	others := "dimension\tlabel\n"
	for k := range 20 {
		others += fmt.Sprintf("%d\tlabel %d\n", k, k)
	}
	dir.Write(t, "others.tsv", []byte(others))
	dir.Write(t, "labels.txt", []byte(strings.Repeat("yes\tword1 word2\nno\tword3\n", 10)))
	var pairs strings.Builder
	for i := range 10 {
		fmt.Fprintf(&pairs, "word%d word%d %d\n", i, i+10, i*i%7)
	}
	for _, name := range []string{"EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt"} {
		dir.Write(t, "data/wordsim/"+name, []byte(pairs.String()))
	}
	for _, name := range []string{"texts.parquet", "zstd.arrow"} {
		table, err := os.ReadFile("../../../vectors/columnar/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		dir.Write(t, name, table)
	}
	for _, line := range []string{
		"paper train in.txt -o old --epochs 1 -k 20",
		"paper train in.txt -o b --epochs 1 -k 20 --method B",
		"train in.txt -o themed --epochs 1 -k 20 --topics 3",
		"encode old in.txt -o s1 --shard 1/2",
		"encode old in.txt -o s2 --shard 2/2",
		"export old -f glove -o reference.txt",
		"intrusion make X=in.txt -n 3 -o test.tsv",
		"paper train in.txt -o labelled --epochs 1 -k 20",
		"labels labelled --import others.tsv",
		"intrusion auto labelled --input in.txt --reference reference.txt --save",
	} {
		dir.MustRun(t, line)
	}
	texts := &vectors.Texts{Columns: []vectors.Column{{Name: "kind"}}}
	var ids []string
	var codes [][]float32
	for i := range 40 {
		ids, codes = append(ids, fmt.Sprint(i)), append(codes, []float32{float32(i % 2), 1})
		texts.Add(fmt.Sprintf("text\n%d", i), []string{fmt.Sprint(i % 2)})
	}
	m := clitest.NewModel(ids, codes)
	m.Codes.Texts = texts
	m.Info.Encoding.SetKind(texts)
	if err := m.Save(dir.Path("texts"), false); err != nil {
		t.Fatal(err)
	}
	dir.Write(t, "out", []byte("old"))
	// A checkpoint after two epochs, for the program is killed when the next is to take its place.
	f := &faults{t: t, dir: dir}
	f.args = "paper train in.txt -o checkpoint --epochs 3 -k 10 --checkpoint 1ns"
	exchanges := 0
	f.run(func(c sysCall) syscall.Errno {
		if c.class == "exchange" {
			if exchanges++; exchanges == 2 {
				return kill
			}
		}
		return 0
	})
	left, err := fs.Glob(os.DirFS(string(dir)), "checkpoint.tmp*")
	if m := dir.Model(t, "checkpoint"); len(m.Info.Training.Epochs) != 2 || err != nil || len(left) != 1 {
		t.Fatalf("the checkpoint has %d epochs, beside it are %q, %v", len(m.Info.Training.Epochs), left, err)
	}
	if err := os.RemoveAll(dir.Path(left[0])); err != nil {
		t.Fatal(err)
	}
	return dir
}

// temporary ends what files and directories are called that are not whole yet.
var temporary = regexp.MustCompile(`\.tmp[0-9a-f]{8}`)

// If any system call of a command fails, or the program is killed anywhere, each output has its old or its new
// content, nothing else has changed, and one line names the error.
//
// For each class of system calls, OVERCOMPLETE_FAULTS of a command's calls are tried, one in each run.
// Without it that is one, and only of a sample of commands and classes unless the build tag full is set.
func TestFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes hundreds of runs")
	}
	each := 1
	if text := os.Getenv("OVERCOMPLETE_FAULTS"); text != "" {
		var err error
		if each, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for _, tt := range faultCases {
		lines = append(lines, tt.args)
	}
	checkCovered(t, lines)
	whole := faultDir(t)
	var cases atomic.Int64
	t.Cleanup(func() { t.Logf("cases: %d", cases.Load()) })
	for i, tt := range faultCases {
		if !full && i%5 > 0 {
			continue
		}
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			dir := whole.Copy(t)
			f := &faults{t: t, faultCase: tt, dir: dir, before: dir.Tree(t)}
			cases.Add(int64(f.all(rand.New(rand.NewPCG(1, uint64(i))), each)))
		})
	}
}

// File systems that flush no names are tolerated; other failures to flush them are errors.
func TestUnflushedNames(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	f := &faults{t: t, dir: dir, before: dir.Tree(t)}
	f.args = "paper train in.txt -o new --epochs 1"
	for errno, want := range map[syscall.Errno]int{syscall.EINVAL: 0, syscall.ENOTSUP: 0, syscall.EIO: clitest.Failed, syscall.ENOSPC: clitest.Failed} {
		ended, _, stderr := f.run(func(c sysCall) syscall.Errno {
			if c.class == "fsync" && c.path == string(dir) {
				return errno
			}
			return 0
		})
		if ended.ExitStatus() != want || want != 0 && !strings.Contains(stderr, "the directory can't be flushed to disk: "+errno.Error()) {
			t.Errorf("%v: exit code %d, %s", errno, ended.ExitStatus(), stderr)
		}
		dir.Restore(t, f.before)
	}
}

// On a file system that cannot exchange two directories, a model that is replaced is missing for a moment.
// Killed then, a training says where its checkpoint is, and resumes when that is moved back.
func TestDisplaced(t *testing.T) {
	t.Parallel()
	dir := faultDir(t)
	f := &faults{t: t, dir: dir}
	f.args = "paper train in.txt -o checkpoint --epochs 3 -k 10 --checkpoint 1ns --resume"
	renames := 0
	f.run(func(c sysCall) syscall.Errno {
		if c.class == "exchange" {
			return syscall.EINVAL
		}
		if c.class == "rename" {
			if renames++; renames == 2 {
				return kill
			}
		}
		return 0
	})
	old, err := fs.Glob(os.DirFS(string(dir)), "checkpoint.tmp*/old")
	if err != nil || len(old) != 1 {
		t.Fatalf("there are %q, %v", old, err)
	}
	if code, _, stderr := dir.Run(t, f.args); code != clitest.Usage || !strings.Contains(stderr, old[0]) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if err := os.Rename(dir.Path(old[0]), dir.Path("checkpoint")); err != nil {
		t.Fatal(err)
	}
	dir.MustRun(t, f.args)
}

// learned is in the message of a training that has a dictionary, but no codes. Then
// encode goes on.
const learned = " has the dictionary"

// faults runs a command under faults.
type faults struct {
	t *testing.T
	faultCase
	dir          clitest.Dir
	before, want clitest.Tree // all files; the latter without seconds
	stdout       string
}

// all runs the command once for each class of its calls, or more often, with a fault at a random call.
func (f *faults) all(rng *rand.Rand, each int) (cases int) {
	calls := map[string]int{}
	ended, stdout, stderr := f.run(func(c sysCall) syscall.Errno {
		calls["kill"]++
		if c.class != "exit" {
			calls[c.class]++
		}
		return 0
	})
	if ended.ExitStatus() != 0 {
		f.t.Fatalf("exit code %d: %s", ended.ExitStatus(), stderr)
	}
	f.stdout, f.want = seconds.ReplaceAllString(stdout, ""), withoutSeconds(f.dir.Tree(f.t))
	for _, class := range slices.Sorted(maps.Keys(calls)) {
		if !full && class != "kill" && rng.IntN(4) > 0 {
			continue
		}
		for _, at := range rng.Perm(calls[class])[:min(each, calls[class])] {
			f.dir.Restore(f.t, f.before)
			f.one(class, at)
			cases++
		}
	}
	return cases
}

// one runs the command with a fault at a call. The run may make fewer calls, because their number
// depends on the scheduler and the garbage collector.
func (f *faults) one(class string, at int) {
	var failed sysCall
	n := 0
	ended, stdout, stderr := f.run(func(c sysCall) syscall.Errno {
		if class != "kill" && c.class != class {
			return 0
		}
		if n++; n != at+1 {
			return 0
		}
		failed = c
		if class == "kill" {
			return kill
		}
		return errnos[class]
	})
	if n <= at {
		return
	}
	complain := func(format string, args ...any) {
		f.t.Errorf("%s %d, %+v: exit code %d, %s\n%s", class, at, failed, ended.ExitStatus(), fmt.Sprintf(format, args...), epochs.ReplaceAllString(stderr, ""))
	}
	if err := f.check(class, failed, ended, stdout, stderr); err != nil {
		complain("%v", err)
	}
	if f.resumes && !strings.Contains(stderr, learned) && !maps.Equal(without(withoutSeconds(f.dir.Tree(f.t))), f.want) {
		ended, _, stderr = f.run(func(sysCall) syscall.Errno { return 0 })
		if after := withoutSeconds(f.dir.Tree(f.t)); ended.ExitStatus() != 0 || !maps.Equal(without(after), f.want) {
			complain("run again, it writes %v", f.want.Differences(without(after)))
		}
	}
}

// check returns an error unless the program has ended as it should and left what it
// should.
func (f *faults) check(class string, failed sysCall, ended unix.WaitStatus, stdout, stderr string) error {
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
	if class == "kill" {
		return nil
	}

	var line string // that says what was wrong
	for l := range strings.Lines(stderr) {
		if strings.HasPrefix(l, "overcomplete: ") {
			line += l
		}
	}
	switch code := ended.ExitStatus(); {
	case class == "mmap" && (code == 2 || ended.Signaled()) && line == "":
		return nil // Go's own end, without the memory that the system said it had
	case code == 0 && strings.Contains(stderr, "can't be read for this summary: ") && !states["old"]:
		// The summary lacks dimensions.
	case code == 0 && (line != "" || states["old"] || seconds.ReplaceAllString(stdout, "") != f.stdout):
		return errors.New("is no success")
	case code == 0 && (class == "write" || class == "fsync") && !strings.Contains(stderr, "warning: "):
		return errors.New("passes in silence")
	case code != 0 && (code != clitest.Failed && code != clitest.Usage || strings.Count(line, "\n") != 1 || !strings.HasSuffix(stderr, line)):
		return errors.New("is not told in one line")
	case code != 0 && (class == "write" && code != clitest.Failed || class == "read" && code != clitest.Usage && !f.isOutput(failed.path)):
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

// run runs the command once.
func (f *faults) run(fate func(sysCall) syscall.Errno) (ended unix.WaitStatus, stdout, stderr string) {
	f.t.Helper()
	cmd := f.dir.Command(strings.Fields(f.args)...)
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1") // faster, for less is to be traced
	return trace(f.t, cmd, fate)
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

// A sysCall is a system call that a traced program is about to make, about a file.
type sysCall struct {
	class   string // what it does, one of errnos, or "exit"
	path    string // of the file, in the directory of the program; "" for standard output
	process int
}

// errnos has the error that each class of calls is made to fail with.
var errnos = map[string]syscall.Errno{
	"read": syscall.EIO, "write": syscall.ENOSPC, "fsync": syscall.EIO, "close": syscall.EIO, "truncate": syscall.EIO,
	"open": syscall.EIO, "stat": syscall.EIO, "mkdir": syscall.ENOSPC, "link": syscall.EIO, "rename": syscall.EIO, "exchange": syscall.EINVAL, "unlink": syscall.EIO,
	"mmap": syscall.ENOMEM,
}

// numbers has the system calls of a class, and which of their arguments is the file: a
// number of an open file, or of a directory with a path after it.
var numbers = map[uint64]struct {
	class string
	arg   int
	path  bool
}{
	unix.SYS_READ: {"read", 0, false}, unix.SYS_PREAD64: {"read", 0, false}, unix.SYS_GETDENTS64: {"read", 0, false},
	unix.SYS_WRITE: {"write", 0, false}, unix.SYS_PWRITE64: {"write", 0, false},
	unix.SYS_COPY_FILE_RANGE: {"write", 2, false}, unix.SYS_SENDFILE: {"write", 0, false},
	unix.SYS_FSYNC: {"fsync", 0, false}, unix.SYS_FDATASYNC: {"fsync", 0, false}, unix.SYS_CLOSE: {"close", 0, false},
	unix.SYS_FTRUNCATE: {"truncate", 0, false}, unix.SYS_FSTAT: {"stat", 0, false}, unix.SYS_NEWFSTATAT: {"stat", 0, true},
	unix.SYS_OPENAT: {"open", 0, true}, unix.SYS_MKDIRAT: {"mkdir", 0, true}, unix.SYS_LINKAT: {"link", 2, true},
	unix.SYS_RENAMEAT: {"rename", 0, true}, unix.SYS_RENAMEAT2: {"rename", 0, true}, unix.SYS_UNLINKAT: {"unlink", 0, true},
	unix.SYS_MMAP: {"mmap", -1, false}, unix.SYS_EXIT_GROUP: {"exit", -1, false},
}

// kill, instead of an error, is the program's end.
const kill = ^syscall.Errno(0)

// hang is far longer than any traced command takes.
const hang = 5 * time.Minute

// trace runs cmd in its directory, which must be a real path, and calls fate before each call of the
// classes above that concerns a file below that directory or standard output, requests memory or ends
// the program. A call for which fate returns an error is not made, except close, and fails with it.
func trace(t *testing.T, cmd *exec.Cmd, fate func(sysCall) syscall.Errno) (ended unix.WaitStatus, stdout, stderr string) {
	t.Helper()
	runtime.LockOSThread() // only the thread that traces may
	defer runtime.UnlockOSThread()
	// Files, for a pipe would have to be read meanwhile.
	outputs := [2]*os.File{}
	for i := range outputs {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		outputs[i] = f
	}
	cmd.Stdout, cmd.Stderr = outputs[0], outputs[1]
	// A group of its own, to wait for its threads and for no other test's program.
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Skipf("no program can be traced here: %v", err)
	}
	defer cmd.Process.Release()
	leader := cmd.Process.Pid
	check := func(err error) {
		if err != nil && err != unix.ESRCH { // it may have been killed
			cmd.Process.Kill()
			t.Fatal(err)
		}
	}
	_, err := unix.Wait4(leader, &ended, unix.WALL, nil)
	check(err)
	defer time.AfterFunc(hang, func() {
		t.Errorf("%s hangs", cmd)
		cmd.Process.Kill()
	}).Stop()
	check(unix.PtraceSetOptions(leader, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL))
	check(unix.PtraceSyscall(leader, 0))
	inCall := map[int]bool{}          // by thread
	result := map[int]syscall.Errno{} // that a thread's call is to have
	for {
		thread, err := unix.Wait4(-leader, &ended, unix.WALL|unix.WNOTHREAD, nil)
		check(err)
		if ended.Exited() || ended.Signaled() {
			if thread == leader { // the last one to end
				break
			}
			delete(inCall, thread) // another may get its number
			continue
		}
		var signal int
		switch {
		case ended.StopSignal() == unix.SIGTRAP|0x80: // before or after a system call
			var regs unix.PtraceRegs
			check(unix.PtraceGetRegs(thread, &regs))
			if inCall[thread] {
				delete(inCall, thread)
				if errno, ok := result[thread]; ok {
					delete(result, thread)
					regs.Rax = uint64(-int64(errno))
					check(unix.PtraceSetRegs(thread, &regs))
				}
				break
			}
			call, ok := fileCall(leader, &regs, cmd.Dir)
			inCall[thread] = true
			if !ok {
				break
			}
			switch errno := fate(call); errno {
			case 0:
			case kill:
				cmd.Process.Kill()
			default:
				result[thread] = errno
				if call.class != "close" {
					regs.Orig_rax = ^uint64(0) // no system call
					check(unix.PtraceSetRegs(thread, &regs))
				}
			}
		case ended.StopSignal() == unix.SIGTRAP, ended.StopSignal() == unix.SIGSTOP: // a thread has been made
		default:
			signal = int(ended.StopSignal())
		}
		check(unix.PtraceSyscall(thread, signal))
	}
	var text [2]bytes.Buffer
	for i, f := range outputs {
		f.Seek(0, 0)
		text[i].ReadFrom(f)
	}
	return ended, text[0].String(), text[1].String()
}

// fileCall returns the call that a process is about to make, if it is one to look at.
func fileCall(process int, regs *unix.PtraceRegs, dir string) (call sysCall, ok bool) {
	n, ok := numbers[regs.Orig_rax]
	if !ok || n.arg < 0 {
		return sysCall{class: n.class, process: process}, ok
	}
	if regs.Orig_rax == unix.SYS_RENAMEAT2 && regs.R8 == unix.RENAME_EXCHANGE {
		n.class = "exchange"
	}
	args := [...]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10}
	file := dir
	if fd := int32(args[n.arg]); fd != unix.AT_FDCWD {
		if file, _ = os.Readlink("/proc/" + strconv.Itoa(process) + "/fd/" + strconv.Itoa(int(fd))); fd == 1 && n.class == "write" {
			return sysCall{class: n.class, process: process}, true
		}
	}
	if n.path {
		name := make([]byte, unix.PathMax)
		got, _ := unix.ProcessVMReadv(process, []unix.Iovec{{Base: &name[0], Len: uint64(len(name))}},
			[]unix.RemoteIovec{{Base: uintptr(args[n.arg+1]), Len: len(name)}}, 0)
		name, _, _ = bytes.Cut(name[:max(got, 0)], []byte{0})
		if filepath.IsAbs(string(name)) {
			file = ""
		}
		file = filepath.Join(file, string(name))
	}
	inside, ok := strings.CutPrefix(file, dir+"/")
	return sysCall{n.class, inside, process}, ok || file == dir
}
