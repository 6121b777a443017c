//go:build !full

// Package tier selects the number of cases that tests try.
package tier

// Full makes tests try all cases instead of a sample. The build tag full sets it.
const Full = false
