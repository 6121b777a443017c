// Package clitest is what tests of the command line share: directories in which they run
// command lines, each in a process of its own, and small vectors and models. So tests run
// beside each other, and all that a command says and leaves is what people get.
package clitest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"overcomplete/model"
)

// Exit codes, as the program's help says.
const (
	Failed      = 1
	Usage       = 2
	Interrupted = 130
)

// What runs command lines, and what it needs in its environment.
var (
	program     string
	environment []string
)

// asProgram is set in the environment of a test binary that is to be the program.
const asProgram = "OVERCOMPLETE_TEST_PROGRAM"

// Main is the TestMain of tests that do not need the program as people build it: the test
// binary stands for it, and does what main says when a test runs it.
func Main(m *testing.M, main func() int) {
	if os.Getenv(asProgram) != "" {
		os.Exit(main())
	}
	var err error
	if program, err = os.Executable(); err != nil {
		panic(err)
	}
	environment = []string{asProgram + "=1"}
	os.Exit(m.Run())
}

// MainOfBuilt is the TestMain of tests that need the program as people build it.
func MainOfBuilt(m *testing.M) {
	code, err := runBuilt(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runBuilt(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "overcomplete")
	build := exec.Command("go", "build", "-o", program, "overcomplete")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return m.Run(), nil
}

// A Dir is a directory in which a test runs command lines. Names of files are those in it.
type Dir string

// New returns an empty directory.
func New(t testing.TB) Dir {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // as programs see it
	if err != nil {
		t.Fatal(err)
	}
	return Dir(dir)
}

// Path returns the path of a file.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// Command returns a command that can be changed before it is run.
func (d Dir) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = string(d), append(os.Environ(), environment...)
	return cmd
}

// Output runs a command and returns its exit code and what it has written.
func Output(t testing.TB, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &err
	if err, ok := errors.AsType[*exec.ExitError](cmd.Run()); ok && err.ExitCode() < 0 {
		t.Logf("%q: %v", cmd.Args[1:], err)
	} else if cmd.ProcessState == nil {
		t.Fatalf("%q does not start", cmd.Args)
	}
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}

// Run runs a command line, split at spaces.
func (d Dir) Run(t testing.TB, line string) (code int, stdout, stderr string) {
	t.Helper()
	return Output(t, d.Command(strings.Fields(line)...))
}

// MustRun runs a command line that has to succeed.
func (d Dir) MustRun(t testing.TB, line string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := d.Run(t, line)
	if code != 0 {
		t.Fatalf("%s: exit code %d\n%s", line, code, stderr)
	}
	return stdout, stderr
}

// Write writes a file, and makes the directories that it is in.
func (d Dir) Write(t testing.TB, name string, data []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(d.Path(name)), 0o777)
	if err == nil {
		err = os.WriteFile(d.Path(name), data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns what is in a file.
func (d Dir) Read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(d.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Names returns the names of what is in the directory.
func (d Dir) Names(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(string(d))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Model opens a model.
func (d Dir) Model(t testing.TB, name string) *model.Model {
	t.Helper()
	m, err := model.Open(d.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Learned returns what a training learned, as it is stored.
func (d Dir) Learned(t testing.TB, name string) string {
	t.Helper()
	return string(d.Read(t, name+"/codes.npz")) + string(d.Read(t, name+"/dictionary.npy"))
}

// Copy makes another directory with the same files.
func (d Dir) Copy(t testing.TB) Dir {
	t.Helper()
	other := New(t)
	if err := os.CopyFS(string(other), os.DirFS(string(d))); err != nil {
		t.Fatal(err)
	}
	return other
}

// A Tree is what is in a directory: files with their content, directories with a slash.
type Tree map[string]string

// Tree returns what there is.
func (d Dir) Tree(t testing.TB) Tree {
	t.Helper()
	all := make(Tree)
	err := fs.WalkDir(os.DirFS(string(d)), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			all[path+"/"] = ""
			return err
		}
		content, err := os.ReadFile(d.Path(path))
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Restore makes the directory what it was when Tree returned it.
func (d Dir) Restore(t testing.TB, before Tree) {
	t.Helper()
	after := d.Tree(t)
	for path := range after {
		if _, ok := before[path]; !ok {
			os.RemoveAll(d.Path(path))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if is, ok := after[path]; ok && is == before[path] {
			continue
		}
		if strings.HasSuffix(path, "/") {
			if err := os.MkdirAll(d.Path(path), 0o777); err != nil {
				t.Fatal(err)
			}
		} else {
			d.Write(t, path, []byte(before[path]))
		}
	}
}

// Unchanged checks that the directory is what it was when Tree returned it.
func (d Dir) Unchanged(t testing.TB, before Tree) {
	t.Helper()
	if changed := before.Differences(d.Tree(t)); changed != nil {
		t.Fatalf("changed files: %q", changed)
	}
}

// Differences names the files of b that are others: those that are gone (-), new (+) or
// changed (≠).
func (a Tree) Differences(b Tree) (names []string) {
	for path := range a {
		if is, ok := b[path]; !ok {
			names = append(names, "-"+path)
		} else if is != a[path] {
			names = append(names, "≠"+path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			names = append(names, "+"+path)
		}
	}
	slices.Sort(names)
	return names
}
