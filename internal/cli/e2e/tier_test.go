//go:build !full

package e2e

// full is whether tests that try many cases try all of them, or some.
const full = false
