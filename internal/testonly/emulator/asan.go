//go:build asan

package emulator

// sanitizers are flags of the compiler that have memory, and what C++ leaves undefined,
// checked as the driver runs.
var sanitizers = []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
