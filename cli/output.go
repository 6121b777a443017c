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
	"overcomplete/internal/modeldir"
	"overcomplete/internal/printing"
	"overcomplete/vectors"
)

// A stream is standard output or standard error. A blocked write returns soon after the command is
// interrupted.
type stream struct {
	ctx context.Context
	w   io.Writer

	mu      sync.Mutex
	pending []byte // copy of the bytes being written, because the write may continue after Write has returned
	err     error  // error of the first failed write; later writes are dropped
}

// patience is the time that an interrupted command waits for its output to be read.
const patience = time.Second

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.pending = append(s.pending[:0], p...)
	written := make(chan error, 2)
	go func() {
		_, err := s.w.Write(s.pending)
		written <- err
	}()
	defer context.AfterFunc(s.ctx, func() {
		time.Sleep(patience)
		written <- interrupted{"its output was not read to the end"}
	})()
	if s.err = <-written; s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// raw returns the writer below a [printing.Writer], for output that is binary or already escaped.
func raw(w io.Writer) io.Writer {
	if e, ok := w.(printing.Writer); ok {
		return e.Writer
	}
	return w
}

// terminalOf returns the terminal that w writes to, if any.
func terminalOf(w io.Writer) (*os.File, bool) {
	w = raw(w)
	if s, ok := w.(*stream); ok {
		w = s.w
	}
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// tableWriter returns the writer for a table that a command can read back. It escapes control characters only if the
// output is a terminal.
func tableWriter(cmd *cobra.Command) io.Writer {
	w := cmd.OutOrStdout()
	if _, terminal := terminalOf(w); terminal {
		return w
	}
	return raw(w)
}

// say writes a line, with control characters escaped.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, printing.Text(fmt.Sprintf(format, args...)))
}

func warn(w io.Writer, format string, args ...any) { say(w, "warning: "+format, args...) }

// warnOf prints the warnings about a source of vectors.
func warnOf(w io.Writer, source *vectors.Source) {
	for _, warning := range source.Warnings {
		warn(w, "%s: %s", source.Name, warning)
	}
}

// printJSON prints a command's result for --json.
func printJSON(w io.Writer, v any) error { return printing.JSON(raw(w), v) }

// addOutput adds the required flag --output, and --force.
func addOutput(cmd *cobra.Command, output *string, what, replaced string) {
	cmd.Flags().StringVarP(output, "output", "o", "", what)
	addForce(cmd, replaced)
	cmd.MarkFlagRequired("output")
}

func addForce(cmd *cobra.Command, replaced string) {
	cmd.Flags().Bool("force", false, "replace "+replaced)
}

// isSet reports whether the command has a flag that is true.
func isSet(cmd *cobra.Command, flag string) bool {
	set, _ := cmd.Flags().GetBool(flag)
	return set
}

// writeFile is [atomicfile.WriteFile], but refuses to write into the directory of a model.
func writeFile(cmd *cobra.Command, path string, write func(w io.Writer) error) error {
	if modeldir.Contains(path) {
		return usagef("%s: %w", path, modeldir.ErrContained)
	}
	return atomicfile.WriteFile(cmd.Context(), path, isSet(cmd, "force"), write)
}

// addJSON adds --json, for [show].
func addJSON(cmd *cobra.Command, usage string) { cmd.Flags().Bool("json", false, usage) }

// show prints a command's result: as JSON with --json, or otherwise the text that the function print writes.
func show(cmd *cobra.Command, result any, print func(b *strings.Builder)) error {
	if isSet(cmd, "json") {
		return printJSON(cmd.OutOrStdout(), result)
	}
	var b strings.Builder
	print(&b)
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}
