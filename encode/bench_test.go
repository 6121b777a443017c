package encode_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/testonly/encodetest"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// ready is a device, and its encoder, that has the codes of a block before it is asked for them.
type ready struct {
	rounds
	codes []*encode.Codes // of blocks, in turn
	next  int
}

func (r *ready) Encoder(*model.Dictionary, encode.Options) (encode.Encoder, error) { return r, nil }

func (r *ready) Start(context.Context, []float32) func() (*encode.Codes, error) {
	codes := r.codes[r.next%len(r.codes)]
	r.next++
	return func() (*encode.Codes, error) { return codes, nil }
}

// What the host does for each row, 300 → 3000 with 90 nonzeros, around an encoder: of vectors in
// memory, as after a training, and of a file, which is read and written.
func BenchmarkStream(b *testing.B) {
	const dim, atoms, most, blocks = 300, 3000, 90, 16
	x, d := encodetest.Problem(encode.Block, dim, atoms)
	d.Mean = x[:dim]
	device := &ready{rounds: rounds{options: encode.Options{Lambda: 1, Steps: 1, Nonzeros: most}}}
	for range blocks { // more than caches hold
		codes := new(encode.Codes)
		codes.Cols = atoms
		for range encode.Block {
			index, value := make([]int32, most), make([]float32, most)
			for j := range most {
				index[j], value[j] = int32(j*atoms/most), x[j]
			}
			codes.AppendRow(index, value)
			codes.Loss = append(codes.Loss, 1)
		}
		device.codes = append(device.codes, codes)
	}
	all := &vectors.Dense{Dim: dim, Data: slices.Repeat(x, blocks)}
	for i := range blocks * encode.Block {
		all.Words = append(all.Words, "word"+strconv.Itoa(i))
	}
	h := train.Paper()
	h.Atoms, h.Center = atoms, true
	m := &model.Model{Info: model.Info{Training: model.Training{Input: model.Input{Dim: dim}, Recipe: h}, Format: model.FormatVersion}, Dictionary: *d}
	perRow := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(all.Len()), "ns/row")
	}
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			if _, err := encode.Model(b.Context(), m, all, device, encode.Options{}); err != nil {
				b.Fatal(err)
			}
		}
		perRow(b)
	})
	b.Run("file", func(b *testing.B) {
		file := fmt.Appendln(nil, all.Len(), dim)
		for i, word := range all.Words {
			file, _ = binary.Append(append(file, word+" "...), binary.LittleEndian, all.Row(i))
		}
		dir := b.TempDir()
		path := filepath.Join(dir, "vectors.bin")
		if err := os.WriteFile(path, file, 0o666); err != nil {
			b.Fatal(err)
		}
		may := encode.FileOptions{MayReplace: modeldir.MayReplace(true)}
		for b.Loop() {
			if _, _, err := encode.File(b.Context(), m, path, filepath.Join(dir, "out"), device, encode.Options{}, may); err != nil {
				b.Fatal(err)
			}
		}
		perRow(b)
	})
}
