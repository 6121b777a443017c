package vectors

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"overcomplete/internal/modeldir"
	"overcomplete/internal/safetensors"
)

func (r *reader) readSafetensors(ctx context.Context, _ heading, c *content) (iter.Seq2[chunk, error], error) {
	file, size, err := c.RandomAccess()
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Open(file, size)
	if err != nil {
		return nil, err
	}
	if _, ok := f.Metadata[modeldir.Info]; ok {
		return nil, errors.New("is an exported model, not dense vectors; use the directory that it was exported from")
	}
	matrices := slices.DeleteFunc(f.Matrices(), func(name string) bool { return name == "words" })
	if len(matrices) == 0 && r.options.VectorColumns == "" {
		return nil, errors.New("contains no tensor of two dimensions of type F32, F64, F16 or BF16")
	}
	name, err := vectorsName(matrices, r.options.VectorColumns, []string{"vectors", "embeddings", "weight"}, "tensor", " of two dimensions")
	if err != nil {
		return nil, err
	}
	array, err := f.Array(name)
	return r.readArray(ctx, array, cmp.Or(err, r.checkNames(f.Names())))
}
