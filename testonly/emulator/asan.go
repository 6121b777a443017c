//go:build asan

package emulator

// sanitizers are compiler flags that check memory accesses and undefined behaviour at run time.
var sanitizers = []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

const suffix = "-asan"
