//go:build gpu && !full

package kernels

const full = false
