//go:build !gpu

package cli

// gpuSupport is whether this program can run on GPUs.
const gpuSupport = false
