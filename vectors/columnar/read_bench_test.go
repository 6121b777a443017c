package columnar

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// BenchmarkStream reads 20,000 × 384 numbers, and reports MB/s of float32. A lower bound of its time is the SHA-256 of
// the file, which Stream computes concurrently.
func BenchmarkStream(b *testing.B) {
	const rows, dim = 20000, 384
	type row struct {
		ID string    `parquet:"id,plain"`
		V  []float32 `parquet:"embedding,list"`
	}
	var text, array, table bytes.Buffer
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]float32, rows*dim)
	all := make([]row, rows)
	for i := range all {
		all[i] = row{fmt.Sprint("w", i), data[i*dim : (i+1)*dim]}
		text.WriteString(all[i].ID)
		for k := range dim {
			all[i].V[k] = float32(rng.NormFloat64())
			fmt.Fprintf(&text, " %.6f", all[i].V[k])
		}
		text.WriteByte('\n')
	}
	if err := npy.Write(&array, npy.Shape{rows, dim}, data); err != nil {
		b.Fatal(err)
	}
	if err := parquet.Write(&table, all, parquet.Compression(&parquet.Snappy)); err != nil {
		b.Fatal(err)
	}
	for _, format := range []struct {
		name    string
		content []byte
	}{{"text", text.Bytes()}, {"npy", array.Bytes()}, {"Parquet", table.Bytes()}} {
		path := filepath.Join(b.TempDir(), format.name)
		if err := os.WriteFile(path, format.content, 0o644); err != nil {
			b.Fatal(err)
		}
		bench := func(name string, read func() error) {
			b.Run(format.name+name, func(b *testing.B) {
				b.SetBytes(4 * rows * dim)
				for b.Loop() {
					if err := read(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		bench("", func() error {
			for _, err := range vectors.Stream(b.Context(), []string{path}, vectors.ReadOptions{}, new(vectors.Source)) {
				if err != nil {
					return err
				}
			}
			return nil
		})
		bench("/floor", func() error {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = io.Copy(sha256.New(), file)
			return err
		})
	}
}
