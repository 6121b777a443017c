//go:build !asan

package emulator

var sanitizers []string

const suffix = ""
