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

// Train as the README's first command does, and print the top words of a dimension.
func Example() {
	ctx := context.Background()
	x, _, err := vectors.Read(ctx, []string{"../testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	h := train.Best()
	h.Method = "B"
	m, err := train.Fit(ctx, x, h, cpu.Device{}, train.Options{})
	if err != nil {
		log.Fatal(err)
	}
	index := interpret.NewIndex(m.Codes)
	for _, id := range index.Words(interpret.Pole{Dimension: 109}, 6) {
		fmt.Println(id)
	}
	// Output:
	// image
	// color
	// alpha
	// palette
	// images
	// pixels
}
