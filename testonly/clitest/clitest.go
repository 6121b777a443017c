// Package clitest runs command lines as processes, each in a directory of its own, and creates small vectors and
// models for them. Tests can therefore run in parallel and see the output of the program:
//
//	dir := clitest.Sample(t)
//	dir.MustRun(t, "train in.txt -o model -k 20")
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
	"overcomplete/testonly"
)

// Exit codes, which the program's help lists.
const (
	Failed      = 1
	Usage       = 2
	Interrupted = 130
)

var program string // path of the program that runs command lines

// asProgram is the environment variable that makes a test binary run as the program.
const asProgram = "OVERCOMPLETE_TEST_PROGRAM"

// Main is the TestMain of tests that run their own binary as the program. In such a process it calls the function main.
func Main(m *testing.M, main func() int) {
	if os.Getenv(asProgram) != "" {
		os.Exit(main())
	}
	var err error
	if program, err = os.Executable(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// MainOfBuilt is the TestMain of tests that run the program, built as in releases.
func MainOfBuilt(m *testing.M) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "overcomplete")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "overcomplete")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintf(os.Stderr, "%v: %s", err, out)
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// A Dir is a directory in which a test runs command lines. File names are relative to it.
type Dir string

// New returns an empty directory.
func New(t testing.TB) Dir {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // path without symbolic links
	testonly.Must(t, err)
	return Dir(dir)
}

// Path returns the path of a file.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// Command returns a command that isn't started.
func (d Dir) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = string(d), append(os.Environ(), asProgram+"=1")
	return cmd
}

// Output runs a command and returns its exit code and its output.
func Output(t testing.TB, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &err
	if err, ok := errors.AsType[*exec.ExitError](testonly.Run(cmd)); ok && err.ExitCode() < 0 {
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

// MustRun runs a command line and fails the test unless it succeeds.
func (d Dir) MustRun(t testing.TB, line string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := d.Run(t, line)
	if code != 0 {
		t.Fatalf("%s: exit code %d\n%s", line, code, stderr)
	}
	return stdout, stderr
}

// Write writes a file and creates its directories.
func (d Dir) Write(t testing.TB, name string, data []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(d.Path(name)), 0o777)
	if err == nil {
		err = os.WriteFile(d.Path(name), data, 0o666)
	}
	testonly.Must(t, err)
}

// Read returns the content of a file.
func (d Dir) Read(t testing.TB, name string) []byte {
	t.Helper()
	return testonly.ReadFile(t, d.Path(name))
}

// Names returns the names of the directory's entries.
func (d Dir) Names(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(string(d))
	testonly.Must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Model opens a model.
func (d Dir) Model(t testing.TB, name string) *model.Model {
	t.Helper()
	m, err := model.Open(d.Path(name))
	testonly.Must(t, err)
	return m
}

// Learned returns the bytes of a model's codes and dictionary.
func (d Dir) Learned(t testing.TB, name string) string {
	t.Helper()
	return string(d.Read(t, name+"/codes.npz")) + string(d.Read(t, name+"/dictionary.npy"))
}

// A Tree is the content of a directory, by path. The paths of directories end in a slash.
type Tree map[string]string

// Tree returns the content of the directory.
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
	testonly.Must(t, err)
	return all
}

// Restore restores the content that Tree returned, of this directory or of another.
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
			testonly.Must(t, os.MkdirAll(d.Path(path), 0o777))
		} else {
			d.Write(t, path, []byte(before[path]))
		}
	}
}

// Unchanged checks that the directory still has the content that Tree returned.
func (d Dir) Unchanged(t testing.TB, before Tree) {
	t.Helper()
	if changed := before.Differences(d.Tree(t)); changed != nil {
		t.Fatalf("changed files: %q", changed)
	}
}

// Differences lists the files that b lacks (-), adds (+) or changes (≠), compared with a.
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
