package intrusion_test

import (
	"cmp"
	"context"
	"fmt"
	"log"

	"overcomplete/cpu"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/train"
	"overcomplete/vectors"
)

// How much the dimensions of a model mean, and those of controls as sparse as it. Guessing finds
// 2 in 10. The judge should be other vectors of the same words; here, for want of them, the
// halves of the same vectors judge each other.
func Example() {
	ctx := context.Background()
	x, _, err := vectors.Read(ctx, "../../../testdata/godoc.50d.txt.gz", vectors.ReadOptions{MaxWords: 2000})
	check(err)
	learned, reference := half(x, 0), half(x, 1)

	recipe := train.Best()
	recipe.Atoms = 100
	m, err := train.Fit(ctx, learned, recipe, cpu.Device{}, train.Options{})
	check(err)
	test, err := intrusion.NewTest(learned, reference, m.Codes.Words)
	check(err)
	results, err := test.Score(ctx, "model", 0, m, cpu.Device{}, intrusion.RandomDictionary, intrusion.WordRows)
	check(err)
	for _, r := range results {
		fmt.Printf("%-17s  %.0f in 10 intruders found\n", cmp.Or(string(r.Control), r.Name), 10*r.Any.Mean)
	}
	// Output:
	// model              7 in 10 intruders found
	// random dictionary  4 in 10 intruders found
	// word rows          7 in 10 intruders found
}

// half returns every other number of each row, from the first or the second.
func half(x *vectors.Dense, first int) *vectors.Dense {
	h := &vectors.Dense{Words: x.Words, Dim: x.Dim / 2}
	for i := first; i < len(x.Data); i += 2 {
		h.Data = append(h.Data, x.Data[i])
	}
	return h
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
