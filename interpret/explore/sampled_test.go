//go:build !full

package explore

// full makes tests try all cases instead of a sample.
const full = false
