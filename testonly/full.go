//go:build full

package testonly

const Full = true
