//go:build unix

package cli

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first signal ends a command that waits for somebody else: for a pipe to be written
// to, or its own output to be read.
func TestSignalEndsWaiting(t *testing.T) {
	exe := program(t)
	sampleDir(t)
	mustRun(t, "train --recipe paper in.txt -o old --epochs 1")
	mustRun(t, "intrusion make X=in.txt -n 4 -o test.json")
	writeFile(t, "answers.jsonl", nil)
	writeFile(t, "pairs.txt", []byte("word0 word1 1\n"))
	if err := syscall.Mkfifo("pipe", 0o666); err != nil {
		t.Fatal(err)
	}
	before := withoutPipe(t)
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	handled := make(chan os.Signal, 1) // what tests ignore, under nohup for one, the program would too
	signal.Notify(handled, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(handled)

	// Commands that read the pipe. Once it has been opened, they do.
	for i, args := range []string{
		"train --recipe paper pipe -o model",
		"encode old pipe -o new --quiet",
		"top pipe",
		"heatmap pipe a,b -o map.svg",
		"transform pipe --method thresh1 -o out",
		"eval old --wordsim pipe",
		"eval old --labelled mine=pipe,in.txt",
		"eval pipe --wordsim pairs.txt",
		"intrusion make X=pipe -o other.json",
		"intrusion judge pipe -o answers.jsonl --judge ann",
		"intrusion score pipe answers.jsonl",
		"intrusion score test.key.json pipe",
		"intrusion auto old --input pipe --reference in.txt",
		"clusters old --input pipe",
	} {
		t.Run(args, func(t *testing.T) {
			if strings.HasPrefix(args, "clusters") {
				mustRun(t, "train --recipe paper in.txt -o b --method B --epochs 1")
				defer os.RemoveAll("b")
				args = "clusters b --input pipe"
			}
			cmd := exec.Command(exe, strings.Fields(args)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				cmd.Wait()
				if r, err := os.OpenFile("pipe", os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
					r.Close() // nobody else may have opened it
				}
				close(ended) // then nothing but the next command opens it
			}()
			writer, err := os.OpenFile("pipe", os.O_WRONLY, 0) // which waits for who reads
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			cmd.Process.Signal(signals[i%len(signals)])
			checkInterrupted(t, cmd, ended, &stderr)
		})
	}
	if after := withoutPipe(t); !maps.Equal(before, after) {
		t.Errorf("changed files; there are %q", slices.Sorted(maps.Keys(after)))
	}

	// Commands that write more than a pipe holds, of which only the beginning is read.
	writeFile(t, "large.txt", gloVeText(sampleVectors(3000, 20)))
	mustRun(t, "train --recipe paper large.txt -o large --epochs 1")
	for i, args := range []string{
		"export large -f glove -o -",
		"export large -f csr -o -",
		"transform large.txt --method thresh2 -o -",
		"explain large word0 word1 word2 --neighbours 3000 --dimensions 0 -n 3000",
		"top large --dimensions 400 -n 3000 --json",
	} {
		t.Run(args, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := exec.Command(exe, strings.Fields(args)...)
			cmd.Stdout = w
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			cmd.Process.Signal(signals[i%len(signals)])
			ended := make(chan struct{})
			go func() {
				cmd.Wait()
				close(ended)
			}()
			checkInterrupted(t, cmd, ended, &stderr)
		})
	}
}

// A computation that would take years ends, too.
func TestInterruptedSteps(t *testing.T) {
	sampleDir(t)
	mustRun(t, "train --recipe paper in.txt -o old --epochs 1")
	before := tree(t, ".")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel) // at whatever step it is
	var stderr bytes.Buffer
	if code := run(ctx, strings.Fields("encode old in.txt -o new --encode-steps 2147483647 --quiet"), io.Discard, &stderr); code != exitInterrupted {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
	if after := tree(t, "."); !maps.Equal(before, after) {
		t.Errorf("changed files; there are %q", slices.Sorted(maps.Keys(after)))
	}
}

// A blocked writer never returns.
type blockedWriter struct{ entered chan struct{} }

func (w blockedWriter) Write([]byte) (int, error) {
	close(w.entered)
	select {}
}

// A command ends even if nobody reads its standard error, which has to be told that.
func TestInterruptedWithoutReaders(t *testing.T) {
	sampleDir(t)
	before := tree(t, ".")
	ctx, cancel := context.WithCancel(t.Context())
	stderr := blockedWriter{make(chan struct{})}
	go func() {
		<-stderr.entered
		cancel()
	}()
	if code := run(ctx, strings.Fields("train --recipe paper in.txt -o model --epochs 100000"), io.Discard, stderr); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if after := tree(t, "."); !maps.Equal(before, after) {
		t.Errorf("changed files; there are %q", slices.Sorted(maps.Keys(after)))
	}
}

// withoutPipe is the tree of the current directory but for the pipe, which can't be read.
func withoutPipe(t *testing.T) map[string]string {
	t.Helper()
	if err := os.Rename("pipe", "../pipe"); err != nil {
		t.Fatal(err)
	}
	defer os.Rename("../pipe", "pipe")
	return tree(t, ".")
}

// checkInterrupted waits for a command that was signalled, but not for ever.
func checkInterrupted(t *testing.T, cmd *exec.Cmd, ended <-chan struct{}, stderr *bytes.Buffer) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		<-ended
		t.Fatal("it goes on")
	}
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("%v, want exit code %d", cmd.ProcessState, exitInterrupted)
	}
	if stderr != nil && (!strings.HasPrefix(stderr.String(), "overcomplete: interrupted") || strings.Count(stderr.String(), "\n") != 1) {
		t.Errorf("standard error: %s", stderr)
	}
}
