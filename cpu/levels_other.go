//go:build !amd64 && !arm64

package cpu

func processorLevels() []*kernels { return nil }
