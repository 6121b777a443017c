package train_test

import (
	"context"
	"fmt"
	"log"

	"overcomplete/cpu"
	"overcomplete/train"
	"overcomplete/vectors"
)

// What the README's first command trains, and one of the dimensions.
func Example() {
	ctx := context.Background()
	x, _, err := vectors.Read(ctx, "../testdata/godoc.50d.txt.gz", vectors.ReadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	h := train.Paper()
	h.Method, h.Lambda, h.Center = "B", 1, true
	m, err := train.Fit(ctx, x, h, cpu.Device{}, train.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Codes.Top(210, 6))
	// Output:
	// [compressed deflate reader compressor compression zlib]
}
