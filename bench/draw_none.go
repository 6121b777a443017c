//go:build gpu

package main

import "errors"

// draw is left out of the bundle for GPU machines: fonts are a third of a program.
func (r *GrowthReport) draw(string) error     { return errFigures }
func (r *MemoryReport) draw(string) error     { return errFigures }
func (r *VocabularyReport) draw(string) error { return errFigures }

var errFigures = errors.New("this program was built with GPU support, without figures; draw them with: go run ./bench")
