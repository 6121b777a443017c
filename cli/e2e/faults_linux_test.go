package e2e

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly/clitest"
)

// underStrace returns a command that runs under strace. With GOMAXPROCS=1 there are fewer calls to trace.
func underStrace(t *testing.T, dir clitest.Dir, options, line string) *exec.Cmd {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	cmd := dir.Command(strings.Fields(line)...)
	cmd.Args = slices.Concat(strings.Fields("strace -f -qq -o /dev/null "+options), []string{cmd.Path}, cmd.Args[1:])
	cmd.Path, cmd.Env = strace, append(cmd.Env, "GOMAXPROCS=1")
	return cmd
}

const killed = -1 // exit code of a program that a signal ends

// If a system call of a command fails, or the program is killed at one, all files have their old or their new content.
// An error is one line, and names the temporary file if it remains.
func TestFaults(t *testing.T) {
	t.Parallel()
	whole, _ := clitest.Sample(t)
	for _, line := range []string{"paper train in.txt -o old --epochs 1 -k 20", "encode old in.txt -o s1 --shard 1/2", "encode old in.txt -o s2 --shard 2/2"} {
		whole.MustRun(t, line)
	}
	whole.Write(t, "out", []byte("old"))
	whole.Write(t, "labels.tsv", []byte("dimension\tlabel\n3\tkings\n"))
	for line, input := range map[string]string{ // a command for each kind of output, and a file that it reads
		"paper train in.txt -o new --epochs 1": "in.txt",
		"merge s1 s2 -o old --force":           "s2/codes.npz",
		"export old -f csr -o new":             "old/codes.npz",
		"export old -f glove -o out --force":   "old/dictionary.npy",
		"labels old --import labels.tsv":       "labels.tsv",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir, before := clitest.New(t), whole.Tree(t)
			dir.Restore(t, before)
			dir.MustRun(t, line)
			old, _ := split(before)
			done, _ := split(dir.Tree(t))
			for _, tt := range []struct {
				name string
				code int
				cmd  *exec.Cmd
			}{
				{"read", clitest.Failed, underStrace(t, dir, "-P "+dir.Path(input)+" -e inject=read,pread64:error=EIO", line)},
				{"write", clitest.Failed, underShell(dir, "ulimit -f 0", strings.Fields(line)...)},
				{"fsync", clitest.Failed, underStrace(t, dir, "-e inject=fsync:error=EIO", line)},
				{"rename", clitest.Failed, underStrace(t, dir, "-e inject=renameat,renameat2,linkat:error=EIO", line)},
				{"remove", clitest.Failed, underStrace(t, dir, "-e inject=renameat,renameat2,linkat,unlinkat:error=EIO", line)},
				{"no exchange", 0, underStrace(t, dir, "-e inject=renameat2:error=EINVAL", line)},
				{"kill at fsync", killed, underStrace(t, dir, "-e inject=fsync:signal=KILL", line)},
				{"kill at rename", killed, underStrace(t, dir, "-e inject=renameat,renameat2,linkat:signal=KILL", line)},
			} {
				dir.Restore(t, before)
				code, _, stderr := clitest.Output(t, tt.cmd)
				after, temporary := split(dir.Tree(t))
				want := old
				if code == 0 {
					want = done
				}
				if d := want.Differences(after); d != nil && !(code == killed && maps.Equal(after, done)) {
					t.Errorf("%s: changed files %q", tt.name, d)
				}
				lines := strings.Count("\n"+stderr, "\novercomplete: ")
				if code != tt.code || code > 0 != (lines == 1) || lines > 1 {
					t.Errorf("%s: exit code %d, want %d; standard error %q", tt.name, code, tt.code, stderr)
				}
				if code != killed && !slices.Equal(temporary, temporaryNames(stderr)) {
					t.Errorf("%s: temporary files %q; %s", tt.name, temporary, stderr)
				}
			}
		})
	}
}

// A training with checkpoints that is killed resumes to the same bits. The test kills it at each kind of call that changes
// a directory.
func TestKilledTraining(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"paper train in.txt -o model -k 10 --epochs 3 --checkpoint 1ns --resume",
		"train in.txt -o model -k 20 --nonzeros 5 --epochs 3 --checkpoint 1ns --resume",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir, _ := clitest.Sample(t)
			dir.MustRun(t, strings.Replace(line, "-o model", "-o whole", 1))
			for _, call := range []string{"mkdirat", "fsync", "renameat", "renameat2", "unlinkat"} { // renameat2 exchanges checkpoints
				if code, _, stderr := clitest.Output(t, underStrace(t, dir, "-e inject="+call+":signal=KILL", line)); code != killed {
					t.Errorf("%s: exit code %d, %s", call, code, stderr)
				}
			}
			if _, stderr := dir.MustRun(t, line); !strings.Contains(stderr, "resuming after epoch 1\n") {
				t.Error(stderr)
			}
			if dir.Learned(t, "model") != dir.Learned(t, "whole") {
				t.Error("the resumed training has another result")
			}
		})
	}
}

// File systems that can't flush names are tolerated. Other failures to flush names are errors.
func TestUnflushedNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"EINVAL": "", "EOPNOTSUPP": "", "EIO": "input/output error", "ENOSPC": "no space left on device"} {
		dir, _ := clitest.Sample(t)
		cmd := underStrace(t, dir, "-P "+string(dir)+" -e inject=fsync:error="+name, "paper train in.txt -o new --epochs 1")
		code, _, stderr := clitest.Output(t, cmd)
		if (code != 0) != (want != "") || want != "" && (code != clitest.Failed || !strings.Contains(stderr, "the directory can't be flushed to disk: "+want)) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
	}
}

var (
	temporary = regexp.MustCompile(`[^/ ]*\.tmp[0-9a-f]{8}`)
	seconds   = regexp.MustCompile(`"seconds": [^\n]*`)
)

// temporaryNames returns the names of temporary files and directories in text, sorted.
func temporaryNames(text string) []string {
	names := temporary.FindAllString(text, -1)
	for i, name := range names {
		names[i] = filepath.Base(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// split returns the files that aren't temporary, without the times of trainings, and the names of the temporary files.
func split(all clitest.Tree) (files clitest.Tree, names []string) {
	files = clitest.Tree{}
	for path, content := range all {
		if temporary.MatchString(path) {
			names = append(names, path)
		} else {
			files[path] = seconds.ReplaceAllString(content, "")
		}
	}
	return files, temporaryNames(strings.Join(names, " "))
}
