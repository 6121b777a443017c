//go:build gpu && full

package kernels

// full has tests try all that others draw a sample of.
const full = true
