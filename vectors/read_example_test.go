package vectors_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"overcomplete/vectors"
)

func ExampleRead() {
	dir, err := os.MkdirTemp("", "vectors")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "glove.txt")
	text := "bank 0.25 -0.5 1\nriver 0.125 2 3e-1\nbank 0 0 0\nat name@domain.com 1 2 3\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		log.Fatal(err)
	}

	dense, source, err := vectors.Read(context.Background(), []string{path}, vectors.ReadOptions{})
	var input *vectors.InputError
	switch {
	case errors.As(err, &input):
		log.Fatal("bad input: ", input) // with file, line and word
	case err != nil:
		log.Fatal(err)
	}
	fmt.Printf("%s, %d words of %d dimensions\n", source.Format, dense.Len(), dense.Dim)
	for i, id := range dense.IDs {
		fmt.Printf("%q %v\n", id, dense.Row(i))
	}
	fmt.Println(source.Warnings)
	// Output:
	// GloVe text, 3 words of 3 dimensions
	// "bank" [0.25 -0.5 1]
	// "river" [0.125 2 0.3]
	// "at name@domain.com" [1 2 3]
	// [duplicate words, only the first row of each kept: 1 ("bank")]
}

// Stream yields blocks of rows, so that a file may be larger than memory.
func ExampleStream() {
	rows := 0
	var source vectors.Source
	for d, err := range vectors.Stream(context.Background(), []string{"../testdata/godoc.50d.txt.gz"}, vectors.ReadOptions{}, &source) {
		if err != nil {
			log.Fatal(err)
		}
		if rows == 0 {
			fmt.Printf("%s … have %d numbers each\n", d.IDs[:3], d.Dim)
		}
		rows += d.Len()
	}
	fmt.Println(rows, "words of", source.Name)
	// Output:
	// [the a to] … have 50 numbers each
	// 5000 words of godoc.50d.txt.gz
}
