//go:build !gpu

package main

import (
	"errors"
	"flag"
	"io"
)

func benchGPU(*flag.FlagSet, []string, io.Writer) error {
	return errors.New("this program was built without GPU support; build it with: go build -tags gpu ./bench")
}
