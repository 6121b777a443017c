package encodetest

import (
	"math"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
)

// Search returns the code of y before the selection of its largest values, by the definition in package encode. The
// dictionary's step size is s, and no atoms enter a code with capacity nonzeros or more. Devices compute the same bits.
// All conversions to float32 round; those that seem to have no effect keep the compiler from fusing operations.
func Search(y []float32, d *model.Dictionary, s float64, o encode.Options, capacity int) []float32 {
	const levels, smallest = 63, 0x1p-100
	atoms := d.Len()
	code := make([]float32, atoms)

	// The dictionary in 8-bit integers.
	var top float32
	tops := make([]float32, atoms)
	for k := range tops {
		tops[k] = largest(d.Atom(k))
		top = max(top, tops[k])
	}
	unit := float64(top) / levels
	bytes := make([][]int, atoms)
	share, scale := make([]float32, atoms), make([]float32, atoms)
	var reach float32
	for k := range bytes {
		bytes[k] = make([]int, d.Dim)
		if tops[k] < 0x1p-120 {
			continue
		}
		share[k] = tops[k] / top
		scale[k] = float32(2 * s * unit * unit * float64(share[k]))
		factor, squares := levels/tops[k], 0
		for j, x := range d.Atom(k) {
			bytes[k][j] = int(math.RoundToEven(float64(float32(factor * x))))
			squares += bytes[k][j] * bytes[k][j]
		}
		norm := float32(math.Sqrt(float64(squares)))
		reach = max(reach, float32(scale[k]*share[k])*norm)
	}

	// The row, scaled to a largest magnitude of 1 to 2.
	top = largest(y)
	if !(top > 0 && top <= math.MaxFloat32) {
		return code
	}
	exponent := floorLog2(top)
	scaled := make([]float32, len(y))
	for j, x := range y {
		scaled[j] = float32(math.Ldexp(float64(x), -exponent))
	}

	z, b, r := make([]float32, atoms), make([]float32, atoms), append([]float32(nil), scaled...)
	t, nonzeros := 0, 0
	for lambda, momentum := range backend.FISTA(o.Lambda, o.Steps) {
		threshold := float32(math.Ldexp(lambda*s*unit, -exponent))
		step := powerOf2(floorLog2(max(largest(r), smallest)) - 5)
		residual, squares := make([]int, len(r)), 0
		for j, x := range r {
			residual[j] = int(math.RoundToEven(float64(x / step)))
			squares += residual[j] * residual[j]
		}
		if t == 0 {
			reach = float32(float32(reach/2*step) * float32(math.Sqrt(float64(float32(squares)))))
		}
		enter := backend.Enters(t, o.Steps) && nonzeros < capacity
		nonzeros = 0
		for k := range b {
			if b[k] == 0 && !enter {
				z[k] = 0
				continue
			}
			sum := 0
			for j, x := range residual {
				sum += x * bytes[k][j]
			}
			u := z[k] + float32(step*float32(float32(sum)*scale[k]))
			var x float32
			if u > threshold {
				x = u - threshold
			} else if u < -threshold && !o.Nonnegative {
				x = u + threshold
			}
			z[k] = x + float32(float32(momentum)*float32(x-b[k]))
			if b[k] = x; x != 0 {
				nonzeros++
			}
		}
		unit := powerOf2(floorLog2(max(reach, smallest)) - 5)
		decoded := make([]int, len(r))
		var most float32
		for k, x := range z {
			x *= share[k]
			most = max(most, x, -x)
			x = min(max(x/unit, -127), 127)
			for j, v := range bytes[k] {
				decoded[j] += int(math.RoundToEven(float64(x))) * v
			}
		}
		for j := range r {
			r[j] = scaled[j] - float32(unit*float32(decoded[j]))
		}
		if most >= smallest {
			reach = most
		}
		t++
	}
	for k, x := range b {
		code[k] = float32(float64(x) * math.Ldexp(1/unit, exponent))
	}
	return code
}

func largest(x []float32) (m float32) {
	for _, v := range x {
		m = max(m, v, -v)
	}
	return m
}

// floorLog2 returns the exponent e of 2^e ≤ x < 2^(e+1).
func floorLog2(x float32) int {
	_, e := math.Frexp(float64(x))
	return e - 1
}

func powerOf2(e int) float32 { return float32(math.Ldexp(1, e)) }
