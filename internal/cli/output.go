package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/escape"
	"overcomplete/internal/modeldir"
)

// A stream is standard output or standard error, to which commands write by an
// [escape.Writer]. A write that nobody reads ends soon after the command is interrupted.
type stream struct {
	ctx context.Context
	w   io.Writer

	mu      sync.Mutex
	pending []byte // a copy, for nobody may touch what is still being written
	err     error  // of the first write that failed; none is tried after it
}

// patience is how long an interrupted command waits for its last words to be read.
const patience = time.Second

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.pending = append(s.pending[:0], p...)
	written := make(chan error, 1)
	go func() {
		_, err := s.w.Write(s.pending)
		written <- err
	}()
	select {
	case s.err = <-written:
	case <-s.ctx.Done():
		select {
		case s.err = <-written:
		case <-time.After(patience):
			s.err = interrupted{"what it printed was not read to the end"}
		}
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// raw returns what a command's output goes to as it is. It is for what is no text, or is
// escaped already.
func raw(w io.Writer) io.Writer {
	if e, ok := w.(escape.Writer); ok {
		return e.Writer
	}
	return w
}

// terminalOf returns the terminal that a command's output goes to, if that is one.
func terminalOf(w io.Writer) (*os.File, bool) {
	w = raw(w)
	if s, ok := w.(*stream); ok {
		w = s.w
	}
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// say writes a line about a command's work, whatever is in it.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, escape.Text(fmt.Sprintf(format, args...)))
}

func warn(w io.Writer, format string, args ...any) { say(w, "warning: "+format, args...) }

// printJSON prints what a command found, for --json.
func printJSON(w io.Writer, v any) error { return escape.JSON(raw(w), v) }

// addOutput adds the flags that say where to write, and whether to replace what is there.
func addOutput(cmd *cobra.Command, output *string, what, replaced string) {
	cmd.Flags().StringVarP(output, "output", "o", "", what)
	addForce(cmd, replaced)
	cmd.MarkFlagRequired("output")
}

func addForce(cmd *cobra.Command, replaced string) {
	cmd.Flags().Bool("force", false, "replace "+replaced)
}

// forced reports whether what is there may be replaced.
func forced(cmd *cobra.Command) bool {
	force, _ := cmd.Flags().GetBool("force")
	return force
}

// writeFiles is [atomicfile.WriteFiles] where these may be.
func writeFiles(cmd *cobra.Command, paths []string, write func(files []io.Writer) error) error {
	for _, path := range paths {
		if modeldir.Contains(path) {
			return usagef("%s: %w", path, modeldir.ErrContained)
		}
	}
	return atomicfile.WriteFiles(cmd.Context(), paths, forced(cmd), write)
}

// addJSON adds the flag that has [show] print JSON.
func addJSON(cmd *cobra.Command, usage string) { cmd.Flags().Bool("json", false, usage) }

// show prints what a command found: as JSON if that was asked for, or else the text that print
// writes.
func show(cmd *cobra.Command, found any, print func(b *strings.Builder)) error {
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		return printJSON(cmd.OutOrStdout(), found)
	}
	var b strings.Builder
	print(&b)
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}
