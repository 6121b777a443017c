package vectors

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The formats of text, with the same words and vectors. A byte is about a tenth of a number.
func BenchmarkRecords(b *testing.B) {
	const rows, dim = 1000, 384
	rng := rand.New(rand.NewPCG(1, 2))
	var header strings.Builder
	header.WriteString("word")
	for i := range dim {
		fmt.Fprintf(&header, ",e%d", i)
	}
	files := map[string]*bytes.Buffer{}
	add := func(format, s string, a ...any) {
		if files[format] == nil {
			files[format] = new(bytes.Buffer)
		}
		fmt.Fprintf(files[format], s, a...)
	}
	add("wide.csv", "%s\n", header.String())
	add("list.csv", "word,embedding\n")
	for i := range rows {
		vector := make([]float32, dim)
		for k := range vector {
			vector[k] = float32(rng.NormFloat64()) / 20
		}
		numbers := strings.Trim(fmt.Sprint(vector), "[]")
		commas := strings.ReplaceAll(numbers, " ", ",")
		list := strings.ReplaceAll(numbers, " ", ", ")
		add("text", "w%d %s\n", i, numbers)
		add("wide.csv", "w%d,%s\n", i, commas)
		add("list.csv", "w%d,\"[%s]\"\n", i, list)
		add("list.jsonl", `{"word": "w%d", "embedding": [%s]}`+"\n", i, list)
		add("base64.jsonl", `{"word": "w%d", "embedding": "%s"}`+"\n", i, base64Of(vector...))
	}
	for _, name := range []string{"text", "wide.csv", "list.csv", "list.jsonl", "base64.jsonl"} {
		path := tempFile(b, files[name].String())
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var s Source
				for _, err := range Stream(b.Context(), []string{path}, ReadOptions{}, &s) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*dim), "ns/number")
		})
	}
}
