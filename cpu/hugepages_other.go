//go:build !linux

package cpu

func hugePages([]float32) {}
