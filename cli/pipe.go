package cli

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"math"

	"github.com/spf13/cobra"

	"overcomplete/encode"
	"overcomplete/internal/float32s"
	"overcomplete/internal/input"
	"overcomplete/vectors"
)

func newPipe() *cobra.Command {
	var f encodeFlags
	cmd := &cobra.Command{
		Use:   "pipe MODEL",
		Short: "Encode batches of vectors from another process",
		Long: `Pipe reads batches of vectors from standard input and writes the codes of each batch to
standard output before it reads the next. It has the codes of encode, accepts rows of
zeros, and ends with the input. All numbers are little-endian:

  batch  the number of rows n as int64, and n×L numbers as float32
  codes  in compressed rows: n + 1 row pointers as int64, then the columns as int32 and
         the values as float32 of all nonzeros`,
		Example: `  overcomplete pipe model --workers 1 < batches > codes`,
		Args:    cobra.ExactArgs(1),
		RunE:    f.pipe,
	}
	flags := cmd.Flags()
	flags.Var(count(&f.nonzeros, 0), "nonzeros", "maximum number of nonzeros per row (default MODEL's)")
	f.registerDevice(cmd)
	return cmd
}

func (f *encodeFlags) pipe(cmd *cobra.Command, args []string) error {
	if err := f.deviceFlags.check(cmd, nil); err != nil {
		return err
	}
	m, o, err := f.openDictionary(cmd, args[0])
	if err != nil {
		return err
	}
	e, err := chosenDevice{&f.deviceFlags, io.Discard}.Encoder(&m.Dictionary, o)
	if err != nil {
		return err
	}
	defer e.Close()
	r, w := bufio.NewReader(cmd.InOrStdin()), bufio.NewWriter(raw(cmd.OutOrStdout()))
	for {
		x, err := input.Wait(cmd.Context(), func() (*vectors.Dense, error) { return readBatch(r, m.Dictionary.Dim) })
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := writeCodes(cmd.Context(), w, e, x); err != nil {
			return err
		}
	}
}

// readBatch reads a batch of rows of length dim. It returns io.EOF if there are no more batches.
func readBatch(r io.Reader, dim int) (*vectors.Dense, error) {
	var rows int64
	if err := binary.Read(r, binary.LittleEndian, &rows); err == io.EOF {
		return nil, err
	} else if err != nil {
		return nil, usagef("standard input: %w", err)
	}
	if rows < 0 || rows > math.MaxInt32 {
		return nil, usagef("standard input: the batch has %d rows, want 0 to %d", rows, math.MaxInt32)
	}
	x := &vectors.Dense{Dim: dim}
	for len(x.IDs) < int(rows) { // memory grows with the input, not with the number of rows in the header
		n := min(int(rows)-len(x.IDs), encode.Block)
		part := make([]float32, n*dim)
		if err := float32s.Read(r, part); err != nil {
			return nil, usagef("standard input: the batch ends before its %d rows of %d numbers: %w", rows, dim, err)
		}
		x.IDs, x.Data = append(x.IDs, make([]string, n)...), append(x.Data, part...)
	}
	return x, nil
}

// writeCodes encodes a batch and writes its codes.
func writeCodes(ctx context.Context, w *bufio.Writer, e encode.Encoder, x *vectors.Dense) error {
	codes := vectors.CSR{Ptr: []int64{0}}
	s := &encode.Stream{Encoder: e}
	for block, err := range s.Codes(ctx, func(yield func(*vectors.Dense, error) bool) { yield(x, nil) }) {
		if err != nil {
			return err
		}
		codes.Append(&block.CSR)
	}
	for _, part := range []any{codes.Ptr, codes.Index, codes.Value} {
		if err := binary.Write(w, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	return w.Flush()
}
