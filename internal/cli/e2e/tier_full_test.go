//go:build full

package e2e

const full = true
