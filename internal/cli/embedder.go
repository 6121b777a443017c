package cli

import (
	"context"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

const aboutEmbedder = `With --embedder, words are texts of your own. COMMAND, which a shell runs, reads them from
standard input, one a line, and writes the vector of each on a line: numbers with spaces
or commas between, in brackets or not. The codes of these vectors are explained. With
--embedder cat a "text" is itself such numbers.`

// askTexts has an embedder turn texts into vectors, and encodes these with a model as encode does.
func askTexts(cmd *cobra.Command, path, embedder string, texts []string) (q asked, err error) {
	if !model.Is(path) {
		return q, usagef("%s: --embedder needs a model that can encode vectors, which this is not", path)
	}
	m, err := loadModel(cmd, path)
	if err != nil {
		return q, err
	}
	x, err := embed(cmd.Context(), cmd.ErrOrStderr(), embedder, texts, m.Dictionary.Dim)
	if err != nil {
		return q, err
	}
	encoded, err := encode.Model(cmd.Context(), m, x, cpu.Device{}, encode.Defaults(m.Info))
	if err != nil {
		return q, err
	}
	q.codes, q.by = interpret.NewIndex(encoded.Codes), newIndex(cmd, m)
	for row := range texts {
		q.rows = append(q.rows, row)
	}
	q.labels, err = loadLabels(path, q.by.Codes.Cols)
	return q, err
}

// embed has a command turn each text into a vector of so many numbers. White space in a text is
// one space for it, so that a text is a line.
func embed(ctx context.Context, stderr io.Writer, command string, texts []string, dim int) (*vectors.Dense, error) {
	var lines strings.Builder
	for i, text := range texts {
		fields := strings.Fields(text)
		if len(fields) == 0 {
			return nil, usagef("text %d is empty", i+1)
		}
		lines.WriteString(strings.Join(fields, " ") + "\n")
	}
	shell := []string{"sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/C"}
	}
	run := exec.CommandContext(ctx, shell[0], shell[1], command)
	run.Stdin, run.Stderr = strings.NewReader(lines.String()), stderr
	run.WaitDelay = time.Second               // for what it left running, which has its output
	most := 64 * (len(texts) + 1) * (dim + 1) // bytes: as many digits as anybody writes
	printed := &limited{most: most}
	run.Stdout = printed
	err := run.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case printed.over:
		return nil, usagef("--embedder %q wrote more than %d bytes: want a line of %d numbers for each text, and nothing else", command, most, dim)
	case err != nil:
		return nil, usagef("--embedder %q: %w", command, err)
	}
	x := &vectors.Dense{Words: texts, Dim: dim}
	vectorLines := strings.Split(strings.TrimRight(printed.text.String(), "\r\n"), "\n")
	if len(vectorLines) != len(texts) {
		return nil, usagef("--embedder %q wrote %d lines for %d texts: want a line of %d numbers for each", command, len(vectorLines), len(texts), dim)
	}
	for i, line := range vectorLines {
		numbers := strings.Fields(strings.ReplaceAll(strings.Trim(strings.TrimSpace(line), "[]"), ",", " "))
		if len(numbers) != dim {
			return nil, usagef("--embedder %q: line %d has %d numbers, and the vectors of the model %d", command, i+1, len(numbers), dim)
		}
		for _, number := range numbers {
			v, err := strconv.ParseFloat(number, 32)
			if err != nil || v-v != 0 {
				return nil, usagef("--embedder %q: line %d has %.30q, want a finite number", command, i+1, number)
			}
			x.Data = append(x.Data, float32(v))
		}
	}
	return x, nil
}

// limited keeps what is written, up to a number of bytes.
type limited struct {
	text strings.Builder
	most int
	over bool // more was written
}

func (l *limited) Write(p []byte) (int, error) {
	if l.over = l.text.Len()+len(p) > l.most; l.over {
		return 0, io.ErrShortWrite
	}
	return l.text.Write(p)
}
