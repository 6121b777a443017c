//go:build full

package explore

// full has tests try all that others draw a sample of.
const full = true
