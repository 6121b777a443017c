package kernels

import "overcomplete/internal/backend"

// allocator returns device memory of n bytes. If zeroed is set, they are zero.
type allocator func(n int, zeroed bool) pointer[byte]

// allocated returns memory for n elements.
func allocated[T any](a allocator, n int, zeroed bool) pointer[T] {
	return pointer[T](a(int(bytesOf[T](n)), zeroed))
}

// roundedAtoms is a dictionary in 8-bit integers, as the kernels round_atoms and scale_atoms compute it.
type roundedAtoms struct {
	bytes, across               pointer[int8]
	tops, norms, shares, scales pointer[float32]
	unit                        pointer[float64]
	reach                       pointer[float32]
}

// newRoundedAtoms allocates memory. Padding stays zero, because no kernel writes there.
func newRoundedAtoms(a allocator, w widths) roundedAtoms {
	return roundedAtoms{
		bytes:  allocated[int8](a, w.byteRows(w.atoms)*w.bytePitch(w.dim), true),
		across: allocated[int8](a, w.byteRows(w.dim)*w.bytePitch(w.atoms), true),
		tops:   allocated[float32](a, w.atoms, false), norms: allocated[float32](a, w.atoms, false),
		shares: allocated[float32](a, w.searchPitch(), true), scales: allocated[float32](a, w.searchPitch(), true),
		unit: allocated[float64](a, 1, false), reach: allocated[float32](a, 1, false),
	}
}

// searchState is the memory of the search for a number of rows, and its schedule.
type searchState struct {
	codes, momentumCodes pointer[float32]
	codeBytes            pointer[int8]
	flags                pointer[int32]
	scaled, residuals    pointer[float32]
	residualBytes        pointer[int8]
	factors              pointer[float64]
	iterations           pointer[iteration]
	count                int
}

// newSearchState allocates memory without a schedule. Padding of bytes stays zero, because no kernel writes there.
func newSearchState(a allocator, w widths, rows int) searchState {
	rows = roundUp(rows, searchRows)
	codes, vectors := rows*w.searchPitch(), rows*w.bytePitch(w.dim)
	return searchState{
		codes: allocated[float32](a, codes, false), momentumCodes: allocated[float32](a, codes, false), codeBytes: allocated[int8](a, codes, true),
		flags:  allocated[int32](a, codes/searchRows/searchColumns*searchThreads, false),
		scaled: allocated[float32](a, vectors, false), residuals: allocated[float32](a, vectors, false),
		residualBytes: allocated[int8](a, vectors, true), factors: allocated[float64](a, rows, false),
	}
}

// schedule returns the iterations of FISTA.
func schedule(lambda float64, steps int) (all []iteration) {
	for lambda, momentum := range backend.FISTA(lambda, steps) {
		i := iteration{lambda: lambda, momentum: float32(momentum)}
		if backend.Enters(len(all), steps) {
			i.enters = 1
		}
		all = append(all, i)
	}
	return all
}

// launch returns the launch of the search. The argument k has its rows, step size and shape.
func (s *searchState) launch(r *roundedAtoms, k search) launch {
	k.codes, k.momentumCodes, k.codeBytes, k.flags = s.codes, s.momentumCodes, s.codeBytes, s.flags
	k.scaled, k.residuals, k.residualBytes, k.factors = s.scaled, s.residuals, s.residualBytes, s.factors
	k.bytes, k.across, k.shares, k.scales, k.unit, k.reach = r.bytes, r.across, r.shares, r.scales, r.unit, r.reach
	k.iterations, k.count = s.iterations, int32(s.count)
	return k.launch()
}
