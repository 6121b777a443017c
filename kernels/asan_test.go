//go:build gpu && asan

package kernels

func init() { sanitizers = []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"} }
