//go:build full

package tier

const Full = true
