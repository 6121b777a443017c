package cli

import (
	"encoding/json"
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

// An embedder is a running command of the user's that computes vectors of texts: of a JSON string in each
// line of its input it writes a JSON array of numbers.
type embedder struct {
	cmd     *cobra.Command
	process *exec.Cmd

	mu      sync.Mutex // one text at a time
	texts   io.WriteCloser
	vectors *json.Decoder
}

// startEmbedder starts a command, which the shell parses and which ends with cmd.
func startEmbedder(cmd *cobra.Command, command string) (*embedder, error) {
	e := &embedder{cmd: cmd, process: exec.CommandContext(cmd.Context(), "sh", "-c", command)}
	e.process.Stderr = cmd.ErrOrStderr()
	var err error
	if e.texts, err = e.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := e.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e.vectors = json.NewDecoder(out)
	if err := e.process.Start(); err != nil {
		return nil, usagef("--embed: %w", err)
	}
	return e, nil
}

// embed returns the code of a text by the dictionary of m. A command that takes longer than a minute is ended.
func (e *embedder) embed(m *model.Model, text string) (interpret.Code, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer time.AfterFunc(time.Minute, func() { e.process.Process.Kill() }).Stop()
	if err := json.NewEncoder(e.texts).Encode(text); err != nil {
		return interpret.Code{}, fmt.Errorf("the command of --embed has ended: %w", err)
	}
	x := &vectors.Dense{Words: []string{"text"}, Dim: m.Dictionary.Dim}
	if err := e.vectors.Decode(&x.Data); err != nil {
		return interpret.Code{}, fmt.Errorf("the command of --embed wrote no vector: %w", err)
	}
	if len(x.Data) != x.Dim {
		return interpret.Code{}, fmt.Errorf("the command of --embed wrote %d numbers, want %d", len(x.Data), x.Dim)
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
