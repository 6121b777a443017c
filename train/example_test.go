package train_test

import (
	"context"
	"fmt"
	"log"

	"overcomplete/cpu"
	"overcomplete/interpret"
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
	h := train.Best()
	h.Method = "B"
	m, err := train.Fit(ctx, x, h, cpu.Device{}, train.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range interpret.TopWords(m.Codes, 6)[109] {
		fmt.Println(m.Codes.Words[e.Row])
	}
	// Output:
	// image
	// color
	// alpha
	// palette
	// images
	// pixels
}
