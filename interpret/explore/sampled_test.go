//go:build !full

package explore

// full is whether tests try all that they can, or a sample.
const full = false
