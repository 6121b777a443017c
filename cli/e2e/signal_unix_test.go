//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// The first signal ends a command that waits for another process to write to a pipe or to read the command's output.
func TestSignalEndsWaiting(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o old --epochs 1")
	dir.MustRun(t, "intrusion make X=in.txt -n 4 -o test.tsv")
	dir.Write(t, "pairs.txt", []byte("word0 word1 1\n"))
	pipe := filepath.Join(t.TempDir(), "pipe")
	testonly.Must(t, syscall.Mkfifo(pipe, 0o666))
	before := dir.Tree(t)
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

	// These commands read the pipe. They wait for input once they have opened it.
	for i, args := range []string{
		"paper train PIPE -o model",
		"encode old PIPE -o new --quiet",
		"top PIPE",
		"eval old --wordsim PIPE",
		"eval PIPE --wordsim pairs.txt",
		"intrusion make X=PIPE -o other.tsv",
		"intrusion score PIPE test.tsv",
		"intrusion score test.key.json PIPE",
		"intrusion auto old --input PIPE --reference in.txt",
	} {
		t.Run(args, func(t *testing.T) {
			cmd := dir.Command(strings.Fields(strings.ReplaceAll(args, "PIPE", pipe))...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			signalAtPipe(t, cmd, pipe, signals[i%len(signals)])
			checkInterrupted(t, cmd.ProcessState, stderr.String(), "")
		})
	}
	dir.Unchanged(t, before)

	// These commands write more than a pipe holds. The test reads only the first byte.
	dir.Write(t, "large.txt", clitest.Text(clitest.Vectors(3000, 20)))
	dir.MustRun(t, "paper train large.txt -o large --epochs 1")
	for i, args := range []string{
		"export large -f glove -o -",
		"export large -f csr -o -",
		"explain large word0 word1 word2 --neighbours 3000 --dimensions 0 -n 3000",
		"top large --dimensions 400 -n 3000 --json",
	} {
		t.Run(args, func(t *testing.T) {
			r, w, err := os.Pipe()
			testonly.Must(t, err)
			defer r.Close()
			cmd := dir.Command(strings.Fields(args)...)
			cmd.Stdout = w
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			testonly.Must(t, cmd.Start())
			w.Close()
			_, err = io.ReadFull(r, make([]byte, 1))
			testonly.Must(t, err)
			cmd.Process.Signal(signals[i%len(signals)])
			defer time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }).Stop()
			cmd.Wait()
			checkInterrupted(t, cmd.ProcessState, stderr.String(), "")
		})
	}
}

// signalAtPipe runs a command, and sends it a signal when it has opened a pipe for reading. It kills a command that hasn't
// ended a minute later.
func signalAtPipe(t *testing.T, cmd *exec.Cmd, pipe string, sig os.Signal) {
	t.Helper()
	link := filepath.Join(t.TempDir(), "pipe") // remains if the command removes the pipe
	testonly.Must(t, os.Link(pipe, link))
	pipe = link
	testonly.Must(t, cmd.Start())
	ended := make(chan *os.File)
	go func() {
		cmd.Wait()
		r, _ := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // in case the command hasn't opened it
		ended <- r
	}()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for a reader
	testonly.Must(t, err)
	defer writer.Close()
	cmd.Process.Signal(sig)
	defer time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }).Stop()
	r := <-ended
	r.Close()
}

// checkInterrupted checks the exit code of a program after a signal, and its line on standard error.
func checkInterrupted(t *testing.T, ended *os.ProcessState, stderr, end string) {
	t.Helper()
	if ended.ExitCode() != clitest.Interrupted {
		t.Errorf("%v, want exit code %d", ended, clitest.Interrupted)
	}
	if !strings.HasPrefix(stderr, "overcomplete: interrupted") || !strings.HasSuffix(stderr, end) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("standard error: %s", stderr)
	}
}

// After the first signal, a training with checkpoints continues to the end of its epoch, which takes long here. The second
// signal ends it at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	dir.Write(t, "in.txt", clitest.Text(clitest.Vectors(2000, 20)))
	cmd := dir.Command(strings.Fields("paper train in.txt -o model -k 2000 --epochs 100000 --dictionary-steps 2000 --checkpoint 1h --progress")...)
	stderr, err := cmd.StderrPipe()
	testonly.Must(t, err)
	testonly.Must(t, cmd.Start())
	said := bufio.NewScanner(stderr)
	for said.Scan() && !strings.HasPrefix(said.Text(), "epoch 1/") {
	}
	ended := make(chan bool)
	go func() {
		for said.Scan() {
		}
		cmd.Wait()
		close(ended)
	}()
	// The number of signals that arrive before the program handles the first one is random.
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for going := true; going; {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			going = false
		case <-again.C:
		}
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Error(cmd.ProcessState)
	}
}
