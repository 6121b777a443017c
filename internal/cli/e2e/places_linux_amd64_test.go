package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"overcomplete/internal/testonly/clitest"
)

// fails returns the fate of a class of calls from the nth on, of which the first is 1.
func fails(class string, n int, errno syscall.Errno) func(sysCall) syscall.Errno {
	return func(c sysCall) syscall.Errno {
		if c.class != class {
			return 0
		}
		if n--; n > 0 {
			return 0
		}
		return errno
	}
}

// firstOf returns the first error of several fates.
func firstOf(fates ...func(sysCall) syscall.Errno) func(sysCall) syscall.Errno {
	return func(c sysCall) (errno syscall.Errno) {
		for _, f := range fates {
			if e := f(c); errno == 0 {
				errno = e
			}
		}
		return errno
	}
}

// Where the second of two files can't be given its name, and the first not be taken back
// either, what was there is still somewhere, and the message says where.
func TestFilesTogetherTwoFaults(t *testing.T) {
	t.Parallel()
	dir := faultDir(t)
	dir.Write(t, "out", []byte("old vectors"))
	dir.Write(t, "out_dict", []byte("old dictionary"))
	f := &faults{t: t, dir: dir, before: dir.Tree(t)}
	const renames = 2 // that two files take
	for _, tt := range []struct {
		name, args string
		fate       func() func(sysCall) syscall.Errno
		want       map[string]string // what is said of a file which is not what it was
	}{
		{"the second and what undoes the first", "export old -f authors -o out --force", func() func(sysCall) syscall.Errno {
			return fails("rename", renames, syscall.EIO)
		}, map[string]string{"out": "what was there is now "}},
		{"the second, without links", "export old -f authors -o out --force", func() func(sysCall) syscall.Errno {
			n := 0
			return firstOf(fails("link", 1, syscall.EPERM), func(c sysCall) syscall.Errno {
				if c.class == "rename" {
					if n++; n == 2*renames {
						return syscall.EIO
					}
				}
				return 0
			})
		}, nil},
		{"all from the second on, without links", "export old -f authors -o out --force", func() func(sysCall) syscall.Errno {
			return firstOf(fails("link", 1, syscall.EPERM), fails("rename", 2*renames, syscall.EIO))
		}, map[string]string{"out": "what was there is now ", "out_dict": "what was there is now "}},
		{"the second of two new ones, and removing", "export old -f authors -o new", func() func(sysCall) syscall.Errno {
			return firstOf(fails("link", 2, syscall.EIO), fails("rename", 1, syscall.EIO), fails("unlink", 1, syscall.EIO))
		}, map[string]string{"new": "is left over"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer dir.Restore(t, f.before)
			f.args = tt.args
			ended, _, stderr := f.run(tt.fate())
			if ended.ExitStatus() != clitest.Failed || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "overcomplete: ") {
				t.Errorf("exit code %d, %s", ended.ExitStatus(), stderr)
			}
			after := dir.Tree(t)
			for path := range after {
				if was, ok := f.before[path]; (!ok || was != after[path]) && !temporary.MatchString(path) && tt.want[path] == "" {
					t.Errorf("%s is new", path)
				}
				if temporary.MatchString(path) && !strings.Contains(stderr, path) {
					t.Errorf("nothing is said of %s: %s", path, stderr)
				}
			}
			for path, said := range tt.want {
				if !strings.Contains(stderr, dir.Path(path)+": "+said) && !strings.Contains(stderr, dir.Path(path)+" "+said) {
					t.Errorf("nothing is said of %s: %s", path, stderr)
				}
			}
			for path, was := range f.before {
				if after[path] == was {
					continue
				}
				kept := regexp.MustCompile(regexp.QuoteMeta(path) + `: what was there is now \S*(` + path + `\.tmp\w+)`).FindStringSubmatch(stderr)
				if kept == nil || after[kept[1]] != was {
					t.Errorf("%s is lost: %s", path, stderr)
				}
			}
		})
	}
}

// unflushed returns the fate of opening (class open) or flushing (class fsync) the program's
// directory, from the nth time on.
func unflushed(dir, class string, n int, errno syscall.Errno) func(sysCall) syscall.Errno {
	f := fails(class, n, errno)
	return func(c sysCall) syscall.Errno {
		if c.path != dir {
			return 0
		}
		return f(c)
	}
}

// That names can't be flushed to disk is an error, unless the file system never does that.
func TestUnflushedNames(t *testing.T) {
	t.Parallel()
	dir := faultDir(t)
	f := &faults{t: t, dir: dir, before: dir.Tree(t)}
	for args, code := range map[string]int{
		"export old -f glove -o new":                   clitest.Failed,
		"paper train in.txt -o new --epochs 1":         clitest.Failed,
		"intrusion judge test.json -o new --judge ann": clitest.Usage, // which begins when its file is there
	} {
		f.args, f.stdin = args, "1\n1\n1\n"
		for _, tt := range []struct {
			class string
			errno syscall.Errno
			fine  bool
		}{
			{"fsync", syscall.EINVAL, true}, {"fsync", syscall.ENOTSUP, true},
			{"fsync", syscall.EIO, false}, {"fsync", syscall.ENOSPC, false}, {"fsync", syscall.EDQUOT, false}, {"fsync", syscall.ESTALE, false},
			{"open", syscall.EACCES, true}, {"open", syscall.EPERM, true},
			{"open", syscall.EIO, false}, {"open", syscall.EMFILE, false}, {"open", syscall.ESTALE, false},
		} {
			ended, _, stderr := f.run(unflushed(string(dir), tt.class, 1, tt.errno))
			if tt.fine && ended.ExitStatus() != 0 {
				t.Errorf("%s, %s: %v: exit code %d, %s", args, tt.class, tt.errno, ended.ExitStatus(), stderr)
			}
			if !tt.fine && (ended.ExitStatus() != code || !regexp.MustCompile(`(?m)^overcomplete: \S*new: `).MatchString(stderr) || !strings.Contains(stderr, ": the directory can't be flushed to disk: "+tt.errno.Error())) {
				t.Errorf("%s, %s: %v: exit code %d, %s", args, tt.class, tt.errno, ended.ExitStatus(), stderr)
			}
			dir.Restore(t, f.before)
		}
	}
}

// A model that is replaced is removed when the names are on disk, for only then a loss of
// power does not bring it back.
func TestUnflushedReplacement(t *testing.T) {
	t.Parallel()
	dir := faultDir(t)
	f := &faults{t: t, dir: dir, before: dir.Tree(t)}
	f.args = "paper train in.txt -o old --epochs 2 -k 10 --force"
	if ended, _, stderr := f.run(func(sysCall) syscall.Errno { return 0 }); ended.ExitStatus() != 0 {
		t.Fatal(stderr)
	}
	replacement := inside(withoutSeconds(dir.Tree(t)), "old")
	dir.Restore(t, f.before)
	was := inside(withoutSeconds(maps.Clone(f.before)), "old")
	for _, exchanges := range []bool{true, false} {
		for n, tt := range []struct {
			kept       string
			there, old clitest.Tree
		}{
			{"the new one is kept as ", was, replacement},    // none before it is replaced
			{"what was there is kept as ", replacement, was}, // none after that
		} {
			t.Run(fmt.Sprint(exchanges, n), func(t *testing.T) {
				defer dir.Restore(t, f.before)
				fate := unflushed(string(dir), "fsync", n+1, syscall.EIO)
				if !exchanges {
					fate = firstOf(fate, fails("exchange", 1, syscall.EINVAL))
				}
				ended, _, stderr := f.run(fate)
				line, kept, ok := strings.Cut(strings.TrimSuffix(stderr, "\n"), tt.kept)
				if ended.ExitStatus() != clitest.Failed || !ok || !strings.Contains(line, "overcomplete: "+dir.Path("old")+": ") {
					t.Fatalf("exit code %d, %s", ended.ExitStatus(), stderr)
				}
				kept, err := filepath.Rel(string(dir), kept)
				if err != nil {
					t.Fatal(err)
				}
				after := withoutSeconds(dir.Tree(t))
				if !maps.Equal(inside(after, "old"), tt.there) || !maps.Equal(inside(after, kept), tt.old) {
					t.Errorf("there are %v", f.before.Differences(after))
				}
			})
		}
	}
}

// inside returns what is in a directory, by the names that it has there.
func inside(all clitest.Tree, dir string) clitest.Tree {
	is := clitest.Tree{}
	for path, content := range under(all, dir) {
		is[strings.TrimPrefix(path, dir)] = content
	}
	return is
}

// A checkpoint that fails is told, and none that follow: they are as good as if it had not.
// Killed after them, the training goes on to the same bits.
func TestCheckpointsAfterFault(t *testing.T) {
	t.Parallel()
	dir := faultDir(t)
	f := &faults{t: t, dir: dir}
	const line = "paper train in.txt --epochs 6 -k 10 --center "
	dir.MustRun(t, line+"-o whole")
	f.args = line + "-o new --checkpoint 1ns --resume"
	f.before = dir.Tree(t)
	for class, harm := range map[string]bool{
		"write": true, "fsync": true, "mkdir": true, "open": true, "read": true, "stat": true, "rename": true, "close": true,
		"unlink": false, // which is tried in other ways, too
	} {
		t.Run(class, func(t *testing.T) {
			defer dir.Restore(t, f.before)
			var temps []string
			failed := ""
			ended, _, stderr := f.run(func(c sysCall) syscall.Errno {
				if name := temporary.FindString(c.path); name != "" && (len(temps) == 0 || temps[len(temps)-1] != name) {
					temps = append(temps, name)
				}
				checkpoint := len(temps) - 1 // the first name was to see whether there can be one
				switch {
				case checkpoint == 2 && failed == "" && c.class == class && strings.HasPrefix(c.path, "new.tmp"):
					failed = c.path
					return errnos[class]
				case class == "rename" && c.class == "exchange":
					return errnos["exchange"]
				case checkpoint == 5:
					return kill
				}
				return 0
			})
			if failed == "" || !ended.Signaled() {
				t.Fatalf("%v, %s", ended, stderr)
			}
			if warned := strings.Contains(stderr, "warning: no checkpoint after epoch 2: "); warned != harm || strings.Count(stderr, "warning: ") > 1 {
				t.Errorf("%s: %s", failed, stderr)
			}
			if m := dir.Model(t, "new"); len(m.Info.Training.Epochs) != 4 {
				t.Errorf("%s: the checkpoint has %d epochs", failed, len(m.Info.Training.Epochs))
			}
			dir.MustRun(t, f.args)
			if dir.Learned(t, "new") != dir.Learned(t, "whole") {
				t.Errorf("%s: the training came to another result", failed)
			}
		})
	}
	// Nor do many that can't be flushed fill the disk.
	t.Run("names are never flushed", func(t *testing.T) {
		defer dir.Restore(t, f.before)
		ended, _, stderr := f.run(unflushed(string(dir), "fsync", 2, syscall.EIO))
		left, err := fs.Glob(os.DirFS(string(dir)), "new.tmp*")
		if ended.ExitStatus() != clitest.Failed || err != nil || len(left) != 1 || !strings.Contains(stderr, "the new one is kept as "+dir.Path(left[0])) {
			t.Fatalf("exit code %d, there are %q: %s", ended.ExitStatus(), left, stderr)
		}
		if err := os.RemoveAll(dir.Path("new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir.Path(left[0]+"/new"), dir.Path("new")); err != nil {
			t.Fatal(err)
		}
		if dir.Learned(t, "new") != dir.Learned(t, "whole") {
			t.Error("the training came to another result")
		}
	})
}

// Where it can't be told whether what is there is the directory of a model, it is not taken for
// one without labels and scores.
func TestUntoldLabels(t *testing.T) {
	t.Parallel()
	dir := faultDir(t)
	f := &faults{t: t, dir: dir, before: dir.Tree(t)}
	for _, args := range []string{
		"top labelled --sort coherence",
		"explore labelled --export new --dimensions 3",
		"train in.txt -o new --quiet --epochs 1 --like labelled",
	} {
		f.args = args
		_, wanted, _ := f.run(func(sysCall) syscall.Errno { return 0 })
		want := withoutSeconds(dir.Tree(t))
		for at := 1; ; at++ {
			dir.Restore(t, f.before)
			n := 0
			ended, stdout, stderr := f.run(func(c sysCall) syscall.Errno {
				if c.class == "stat" && c.path == "labelled" {
					if n++; n == at {
						return syscall.EIO
					}
				}
				return 0
			})
			if n < at {
				if at == 1 {
					t.Errorf("%s does not look at the model", args)
				}
				break
			}
			if ended.ExitStatus() == 0 && (stdout != wanted || !maps.Equal(withoutSeconds(dir.Tree(t)), want)) {
				t.Errorf("%s, %d: passes in silence: %s", args, at, stderr)
			}
		}
		dir.Restore(t, f.before)
	}
}
