//go:build unix

package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// underShell returns a command that a shell starts after the shell command first, such as a limit.
func underShell(dir clitest.Dir, first string, args ...string) *exec.Cmd {
	cmd := dir.Command(args...)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", first + ` && exec "$0" "$@"`}, cmd.Args...)
	return cmd
}

// Signals, limits and closed pipes end a command as docs/reference/guarantees.md says.
func TestProcess(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o old --epochs 1")
	dir.Write(t, "large.txt", clitest.Text(clitest.Vectors(3000, 20)))
	before := dir.Tree(t)

	for _, tt := range []struct {
		name   string
		signal os.Signal
		args   string
	}{
		{"interrupt", os.Interrupt, "paper train large.txt -o model --epochs 100000"},
		{"hang up", syscall.SIGHUP, "paper train large.txt -o model --epochs 100000"},
		{"terminate", syscall.SIGTERM, "paper train large.txt -o old --force --epochs 100000"},
		{"interrupt authors", os.Interrupt, "paper train large.txt -o model --authors-order --epochs 100000 -k 10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ended, after := signalled(t, tt.signal, dir.Command(strings.Fields(tt.args+" --progress")...))
			checkInterrupted(t, ended, after, ", no file was written\n")
			dir.Unchanged(t, before)
		})
	}

	t.Run("hang up under nohup", func(t *testing.T) {
		defer os.RemoveAll(dir.Path("model"))
		if ended, _ := signalled(t, syscall.SIGHUP, underShell(dir, `trap "" HUP`, strings.Fields("paper train in.txt -o model --epochs 500 --progress")...)); !ended.Success() {
			t.Error(ended)
		}
		dir.Model(t, "model")
	})

	// The reader of the program's output has closed the pipe.
	for _, tt := range []struct {
		name string
		code int
		pipe func(cmd *exec.Cmd, w *os.File)
	}{
		{"closed standard error", 0, func(cmd *exec.Cmd, w *os.File) { cmd.Stderr = w }},
		{"closed standard output", clitest.Failed, func(cmd *exec.Cmd, w *os.File) { cmd.Stdout = w }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer os.RemoveAll(dir.Path("model"))
			r, w, err := os.Pipe()
			testonly.Must(t, err)
			defer w.Close()
			r.Close()
			cmd := dir.Command(strings.Fields("paper train in.txt -o model --epochs 3")...)
			tt.pipe(cmd, w)
			cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("%v, want exit code %d", cmd.ProcessState, tt.code)
			}
			dir.Model(t, "model")
		})
	}
}

// signalled runs a training that shows its progress, and sends it a signal once it has printed its first epoch. It returns
// the state of the ended process, and the lines after it that aren't of epochs.
func signalled(t *testing.T, sig os.Signal, cmd *exec.Cmd) (ended *os.ProcessState, after string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	testonly.Must(t, err)
	testonly.Must(t, cmd.Start())
	sent := false
	for s := bufio.NewScanner(stderr); s.Scan(); {
		if epoch := strings.HasPrefix(s.Text(), "epoch "); sent && !epoch {
			after += s.Text() + "\n"
		} else if epoch && !sent {
			sent = true
			cmd.Process.Signal(sig)
		}
	}
	cmd.Wait()
	if !sent {
		t.Fatalf("%s ended before its first epoch: %v", cmd, cmd.ProcessState)
	}
	return cmd.ProcessState, after
}
