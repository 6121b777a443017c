//go:build gpu

package main

import "errors"

// draw is left out of the bundle for GPU machines: fonts are a third of a program.
func draw(benchmark, string) error {
	return errors.New("this program was built with GPU support, without figures; draw them with: go run ./bench")
}
