//go:build !full

package testonly

// Full makes tests try all cases instead of a sample. The build tag full sets it.
const Full = false
