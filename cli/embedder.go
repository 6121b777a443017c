package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// An embedder is a running command of the user that computes the vectors of texts. For each input line, a JSON string,
// the command writes a line with a JSON array of numbers.
type embedder struct {
	cmd     *cobra.Command
	process *exec.Cmd

	mu    sync.Mutex // held while a text is embedded
	texts io.WriteCloser
	lines chan []byte   // closed when the output ends
	limit time.Duration // for an answer
	late  bool          // an answer is not yet read, which came too late
}

// maxVectorLine is the largest number of bytes of an output line. waitingLines is the largest number of lines in memory
// that were not requested.
const maxVectorLine, waitingLines = 1 << 24, 16

// shell returns a process that runs a command line with sh. When ctx is cancelled, this process and all processes that
// it started end.
func shell(ctx context.Context, cmd *cobra.Command, command string) *exec.Cmd {
	process := exec.CommandContext(ctx, "sh", "-c", command)
	process.Stderr = cmd.ErrOrStderr()
	process.WaitDelay = time.Second // limits the wait for a process that has left the group
	inGroup(process)
	return process
}

// startEmbedder starts a command line with sh. The caller must call close.
func startEmbedder(cmd *cobra.Command, command string) (*embedder, error) {
	e := &embedder{cmd: cmd, process: shell(cmd.Context(), cmd, command), lines: make(chan []byte, waitingLines), limit: time.Minute}
	var err error
	if e.texts, err = e.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := e.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := e.process.Start(); err != nil {
		return nil, usagef("--embed: %w", err)
	}
	go func() {
		defer close(e.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxVectorLine)
		for lines.Scan() {
			select {
			case e.lines <- append([]byte{}, lines.Bytes()...):
			case <-cmd.Context().Done():
				return
			}
		}
	}()
	return e, nil
}

// close ends the command and the processes that it started.
func (e *embedder) close() {
	e.process.Cancel()
	e.process.Wait()
}

// embed returns the code of a text by the dictionary of m.
func (e *embedder) embed(m *model.Model, text string) (interpret.Code, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := &vectors.Dense{IDs: []string{"text"}, Dim: m.Dictionary.Dim}
	line, err := e.ask(text)
	if err == nil {
		err = json.Unmarshal(line, &x.Data)
		switch {
		case err != nil:
			err = fmt.Errorf("wrote no vector: %w (got %.60q)", err, line)
		case len(x.Data) != x.Dim:
			err = fmt.Errorf("wrote %d numbers, want %d", len(x.Data), x.Dim)
		}
	}
	if err != nil {
		return interpret.Code{}, fmt.Errorf("the command of --embed %w", err)
	}
	o := encode.Defaults(m.Info)
	if own := m.Info.Encoding; own.Steps > 0 || own.Gap > 0 {
		o.Steps, o.Gap = own.Steps, own.Gap
	}
	encoded, err := encode.Model(e.cmd.Context(), m, x, cpu.Device{}, o)
	if err != nil {
		return interpret.Code{}, err
	}
	index, value := encoded.Codes.Row(0)
	return interpret.Code{Index: index, Value: value}, nil
}

// ask sends a text to the command and returns the line that the command writes for it. If unread lines are left from
// earlier texts, ask drops them and returns an error instead, so that no line is taken for the answer to another text.
// A command may be slow to start: after an answer that takes longer than the limit, ask returns errors until the answer
// has come.
func (e *embedder) ask(text string) ([]byte, error) {
	if e.late {
		select {
		case <-e.lines:
			e.late = false
		default:
			return nil, errors.New("still computes the vector of an earlier text: ask again later")
		}
	}
	var unasked []byte
	for range len(e.lines) {
		if line, open := <-e.lines; open {
			unasked = line
		}
	}
	if unasked != nil {
		return nil, fmt.Errorf("wrote more than a line for each text (got %.60q): ask again", unasked)
	}
	if err := json.NewEncoder(e.texts).Encode(text); err != nil {
		return nil, fmt.Errorf("has ended: %w", err)
	}
	select {
	case line, open := <-e.lines:
		if !open {
			return nil, errors.New("has ended, or wrote a line of more than 16 MiB")
		}
		return line, nil
	case <-time.After(e.limit):
		e.late = true
		return nil, fmt.Errorf("has not answered within %v: ask again later", e.limit)
	}
}
