//go:build !full

package kernels

const full = false
