package kernels

import "overcomplete/internal/backend"

// allocator returns device memory of n bytes. If zeroed is set, the bytes are zero.
type allocator func(n int, zeroed bool) pointer[byte]

func allocated[T any](a allocator, n int, zeroed bool) pointer[T] {
	return pointer[T](a(int(bytesOf[T](n)), zeroed))
}

// searchKernel is a kernel of the search. Its file has the kernel's name.
type searchKernel struct {
	name          string
	length, warps int // maximum length of rows, and warps per block; both 0 for search_any
}

// searchKernels are the kernels for rows of limited length, the shortest first.
var searchKernels = []searchKernel{{"search_128", 128, 4}, {"search_320", 320, 4}, {"search_384", 384, 4}, {"search_768", 768, 8}, {"search_1024", 1024, 8}}

// searchFor returns the kernel for rows of length dim. A block may use at most maxShared bytes of shared memory.
func searchFor(dim, maxShared int) searchKernel {
	for _, k := range searchKernels {
		if k.length >= dim && k.shared() <= maxShared {
			return k
		}
	}
	return searchKernel{name: "search_any"}
}

// bytePitch returns the pitch of rows of D8. It puts eight adjacent rows into different banks of shared memory.
func (k searchKernel) bytePitch() int { return k.length + 16 }

// shared returns the bytes of shared memory per block. They hold R8, two tiles of D8, Z8, and a few numbers per row.
func (k searchKernel) shared() int {
	return (searchRows+2*searchAtoms)*k.bytePitch() + searchRows*(searchAtoms+16) + 4*searchRows*(k.warps+2*4+3)
}

// tiles returns the number of tiles of atoms. The kernels need at least two.
func (k searchKernel) tiles(atoms int) int { return max(2, divide(atoms, searchAtoms)) }

// roundedAtoms is a dictionary in 8-bit integers, as the kernels round_atoms and scale_atoms compute it.
type roundedAtoms struct {
	kernel                      searchKernel // kernel that reads the dictionary
	bytes, across               pointer[int8]
	tops, norms, shares, scales pointer[float32]
	unit                        pointer[float64]
	reach                       pointer[float32]
}

// newRoundedAtoms allocates memory. Padding stays zero, because no kernel writes there.
func newRoundedAtoms(a allocator, w widths, k searchKernel) roundedAtoms {
	r := roundedAtoms{
		kernel: k,
		tops:   allocated[float32](a, w.atoms, false), norms: allocated[float32](a, w.atoms, false),
		shares: allocated[float32](a, w.searchPitch(), true), scales: allocated[float32](a, w.searchPitch(), true),
		unit: allocated[float64](a, 1, false), reach: allocated[float32](a, 1, false),
	}
	bytes, across := w.roundedBytes(k)
	r.bytes = allocated[int8](a, bytes, true)
	if across > 0 {
		r.across = allocated[int8](a, across, true)
	}
	return r
}

// roundedBytes returns the sizes of D8 and of its transpose in bytes. Only search_any needs the transpose.
func (w widths) roundedBytes(k searchKernel) (bytes, across int) {
	if k.length > 0 {
		return k.tiles(w.atoms) * searchAtoms * k.bytePitch(), 0
	}
	return w.byteRows(w.atoms) * w.bytePitch(w.dim), w.byteRows(w.dim) * w.bytePitch(w.atoms)
}

// round returns the launches of round_atoms and scale_atoms for the given atoms and step size.
func (r *roundedAtoms) round(w widths, atoms pointer[float32], step pointer[float64]) [2]launch {
	round := roundAtoms{
		bytes: r.bytes, across: r.across, tops: r.tops, norms: r.norms, atoms: atoms, shape: w.shape(0), pitch: int32(w.bytePitch(w.dim)),
	}
	scale := scaleAtoms{
		shares: r.shares, scales: r.scales, unit: r.unit, reach: r.reach, tops: r.tops, norms: r.norms, step: step, atoms: int32(w.atoms),
	}
	if r.kernel.length > 0 {
		round.pitch = int32(r.kernel.bytePitch())
		scale.bytes, scale.pitch = r.bytes, round.pitch
	}
	return [2]launch{round.launch(), scale.launch()}
}

// searchState holds the schedule of the search, and its memory for a number of rows.
type searchState struct {
	codes             pointer[float32] // codes and z
	codeBytes         pointer[int8]    // only for search_any
	flags             pointer[int32]
	scaled, residuals pointer[float32]
	residualBytes     pointer[int8] // only for search_any
	factors           pointer[float64]
	iterations        pointer[iteration]
	count             int
}

// newSearchState allocates memory without a schedule. Padding of bytes stays zero, because no kernel writes there.
func newSearchState(a allocator, w widths, rows int, k searchKernel) searchState {
	rows = roundUp(rows, searchRows)
	codes, vectors := rows*w.searchPitch(), rows*w.bytePitch(w.dim)
	s := searchState{
		codes:  allocated[float32](a, 2*codes, false),
		flags:  allocated[int32](a, codes/searchRows/searchColumns*searchThreads, false),
		scaled: allocated[float32](a, vectors, false), residuals: allocated[float32](a, vectors, false),
		factors: allocated[float64](a, rows, false),
	}
	if k.length == 0 {
		s.codeBytes, s.residualBytes = allocated[int8](a, codes, true), allocated[int8](a, vectors, true)
	}
	return s
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

// launch returns the launch of the search. The argument k contains the rows, the step size and the shape.
func (s *searchState) launch(r *roundedAtoms, k search) launch {
	k.codes, k.codeBytes, k.flags = s.codes, s.codeBytes, s.flags
	k.scaled, k.residuals, k.residualBytes, k.factors = s.scaled, s.residuals, s.residualBytes, s.factors
	k.bytes, k.across, k.shares, k.scales, k.unit, k.reach = r.bytes, r.across, r.shares, r.scales, r.unit, r.reach
	k.iterations, k.count = s.iterations, int32(s.count)
	return k.launch(r.kernel)
}
