package cpu

import "overcomplete/cpu/simd"

// ErrLevel is returned, wrapped, when the environment asks for instructions that
// this processor does not have.
var ErrLevel = simd.ErrLevel

// Level returns the instructions that training on this processor will use,
// generic, avx2, avx512 or neon, and why.
func Level() (name, why string, err error) {
	k, why, err := simd.Choose()
	if err != nil {
		return "", "", err
	}
	return k.Name, why, nil
}
