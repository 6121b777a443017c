package columnar

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"overcomplete/vectors"
)

// The time to read 30,000 words × 300 from a file of lists of float32: 36 MB as numbers. The
// floor is a copy of them.
func BenchmarkReadParquet(b *testing.B) {
	const words, dim = 30000, 300
	type row struct {
		Word   string    `parquet:"word"`
		Vector []float32 `parquet:"vector,list"`
	}
	rows := make([]row, words)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range rows {
		rows[i] = row{fmt.Sprint("word", i), make([]float32, dim)}
		for k := range dim {
			rows[i].Vector[k] = float32(r.NormFloat64())
		}
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Zstd} {
		b.Run(codec.String(), func(b *testing.B) {
			var file bytes.Buffer
			w := parquet.NewGenericWriter[row](&file, parquet.Compression(codec))
			if _, err := w.Write(rows); err != nil {
				b.Fatal(err)
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
			path := filepath.Join(b.TempDir(), "file")
			if err := os.WriteFile(path, file.Bytes(), 0o666); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(4 * words * dim)
			for b.Loop() {
				d, _, err := vectors.Read(b.Context(), path, vectors.ReadOptions{})
				if err != nil || d.Len() != words {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("copy", func(b *testing.B) {
		from, to := make([]float32, words*dim), make([]float32, words*dim)
		b.SetBytes(4 * words * dim)
		for b.Loop() {
			copy(to, from)
		}
	})
}
