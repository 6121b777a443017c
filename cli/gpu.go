//go:build gpu

package cli

// gpuSupport reports whether this program has GPU support.
const gpuSupport = true
