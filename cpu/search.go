package cpu

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"

	"overcomplete/internal/backend"
	"overcomplete/internal/simd"
)

// searchRow is the state of the search for one row: a list of the atoms that entered its code. The slices are padded
// with zeros to a multiple of [simd.Width], and have room for [simd.Width] more elements.
type searchRow struct {
	n           int       // number of atoms in the list
	index       []int32   // the atoms; atoms that entered together are adjacent and in increasing order
	z, b        []float32 // z: extrapolated codes; b: codes
	share, dots []float32 // values of Coarse.Share, and products with the residual
	members     []byte    // a bit per atom, which is 1 if the atom is in the list

	full    bool    // no atoms enter in the current step
	scale   float64 // 2⁻ᵉ, where e is the exponent of the largest |y_j|
	step    float32 // scale of the residual's bytes
	reach   float32 // about the largest |z·share| in the list
	skipped bool    // the row is zero, or has numbers that are not finite

	entered int   // number of atoms that enter; they follow the list in index and dots
	ends    []int // for each group of atoms that entered together: the end of the group in the list
	next    []int // for each of these groups: position of the next product to store
}

// searchRowBytes is the size of a searchRow per atom, if all atoms are in the list: five numbers and a bit. The factor
// 1.5 accounts for reserve, which allocates half as much again.
const searchRowBytes = 5*4*1.5 + 1./8

// searchLane is a worker's memory for the search.
type searchLane struct {
	rows    []searchRow
	y       simd.Matrix // scaled rows
	r       simd.Matrix // one residual
	bytes   []int8      // bytes of all rows' residuals
	open    []int       // rows that atoms may enter in the current step
	entered []int8      // bytes of the residuals of the open rows
	decoded []int32
	active  []int32   // atoms whose coefficient in bytes is not zero
	values  []int8    // coefficients of the active atoms
	sums    []int32   // scratch memory for Correlate
	chosen  []float32 // indexed by atom: the atom's value if choose keeps the atom

	magnitudes []uint32
}

// schedule holds the thresholds and momenta of consecutive steps. The thresholds are for rows of scale 1.
type schedule struct {
	thresholds []float64
	momenta    []float32
}

// search runs the search of package encode and leaves the codes in the lists of the lane's rows. It stops earlier
// if ctx is cancelled.
func (e *encoder) search(ctx context.Context, l *encodeLane, rows, steps int) {
	var plan schedule // the steps to run next; atoms enter only in the first
	s := &l.search
	s.prepare(e, l.y, rows)
	t := 0
	for lambda, momentum := range backend.FISTA(e.options.Lambda, steps) {
		plan.thresholds = append(plan.thresholds, lambda*e.step*e.coarse.Unit)
		plan.momenta = append(plan.momenta, float32(momentum))
		if t++; t < steps && !backend.Enters(t, steps) {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		e.enter(s, rows, plan.thresholds[0])
		for i := range rows {
			if !s.rows[i].skipped {
				e.advance(s, i, &plan, t == steps)
			}
		}
		plan.thresholds, plan.momenta = plan.thresholds[:0], plan.momenta[:0]
	}
}

// prepare scales the rows of y, and empties their lists.
func (s *searchLane) prepare(e *encoder, y simd.Matrix, rows int) {
	pitch := simd.BytePitch(e.dim)
	s.y.Resize(rows, e.dim)
	s.r.Resize(1, e.dim)
	s.bytes = zeroed(s.bytes, (rows+simd.TileRows)*pitch)
	s.decoded = simd.Sized(s.decoded, pitch)
	for len(s.rows) < rows {
		s.rows = append(s.rows, searchRow{members: make([]byte, (e.k+63)/64*8)})
	}
	for i := range rows {
		row := &s.rows[i]
		clear(row.members)
		row.n, row.ends = 0, row.ends[:0]
		top := simd.Largest(y.Row(i))
		row.skipped = !(top > 0 && top <= math.MaxFloat32)
		if row.skipped {
			continue
		}
		_, exponent := math.Frexp(float64(top))
		row.scale = math.Ldexp(1, 1-exponent)
		scaled := s.y.Padded(i)
		clear(scaled)
		for j, v := range y.Row(i) {
			scaled[j] = float32(float64(v) * row.scale)
		}
		bytes := s.quantise(e, i, scaled, float32(float64(top)*row.scale))
		row.reach = e.coarse.Reach / 2 * row.step * float32(math.Sqrt(float64(float32(e.kernels.SquaresOfBytes(bytes[:e.dim])))))
	}
}

// quantise rounds the residual r of a row to bytes. largest is the largest magnitude of r.
func (s *searchLane) quantise(e *encoder, row int, r []float32, largest float32) []int8 {
	step := unitOf(largest)
	s.rows[row].step = step
	pitch := simd.BytePitch(e.dim)
	bytes := s.bytes[row*pitch:][:pitch]
	e.kernels.QuantiseRow(bytes, r, 1/step)
	return bytes
}

// unitOf returns the power of two u with 32 ≤ x/u < 64. It treats x below 2⁻¹⁰⁰ as 2⁻¹⁰⁰.
func unitOf(x float32) float32 {
	const exponent = 0xff << 23
	return math.Float32frombits(math.Float32bits(max(x, 0x1p-100))&exponent) / 32
}

// enter multiplies residuals with all atoms, and adds the atoms that enter a row's code to the row's list. It skips
// rows whose codes have enough nonzeros.
func (e *encoder) enter(s *searchLane, rows int, threshold float64) {
	floor, pitch := e.floor(), simd.BytePitch(e.dim)
	s.open, s.entered = s.open[:0], simd.Sized(s.entered, len(s.bytes))
	for i := range rows {
		row := &s.rows[i]
		if row.full = row.skipped || row.n >= e.capacity && row.nonzeros() >= e.capacity; !row.full {
			copy(s.entered[len(s.open)*pitch:], s.bytes[i*pitch:][:pitch])
			s.open = append(s.open, i)
			row.next = append(append(row.next[:0], 0), row.ends...)
		}
	}
	e.coarse.Correlate(e.kernels, s.entered, len(s.open), &s.sums, func(i, column int, sums []int32) {
		row := &s.rows[s.open[i]]
		end := int32(column + len(sums))
		scale := e.coarse.Scale[column:][:len(sums)]
		for r, j := range row.next[:len(row.ends)] {
			for ; j < row.ends[r] && row.index[j] < end; j++ {
				k := int(row.index[j]) - column
				row.dots[j] = float32(sums[k]) * scale[k]
			}
			row.next[r] = j
		}
		n := row.n + row.entered
		row.reserve(n + len(sums))
		limit := row.threshold(threshold) / row.step
		row.entered += e.kernels.Candidates(row.index[n:], row.dots[n:], sums, scale, row.members[column/8:], int32(column), limit, floor)
	})
	for _, i := range s.open {
		s.rows[i].append(e.coarse.Share)
	}
}

func (row *searchRow) nonzeros() (n int) {
	for _, b := range row.b[:row.n] {
		if b != 0 {
			n++
		}
	}
	return n
}

// threshold returns a threshold in the scale of the row.
func (row *searchRow) threshold(t float64) float32 { return float32(t * row.scale) }

// reserve grows the list to a capacity of n atoms.
func (row *searchRow) reserve(n int) {
	n = simd.Pitch(n) + simd.Width
	if n <= len(row.index) {
		return
	}
	n += n / 2
	row.index = append(make([]int32, 0, n), row.index...)[:n]
	for _, x := range []*[]float32{&row.z, &row.b, &row.share, &row.dots} {
		*x = append(make([]float32, 0, n), *x...)[:n]
	}
}

// append adds the atoms that entered to the list. Atoms whose codes became zero stay in the list: they are few.
func (row *searchRow) append(shares []float32) {
	first := row.n
	row.n, row.entered = first+row.entered, 0
	row.ends = append(row.ends, row.n)
	clear(row.z[first:row.n])
	clear(row.b[first:row.n])
	share := row.share[first:row.n]
	for i, k := range row.index[first:row.n] {
		share[i] = shares[k]
		row.members[k/8] |= 1 << (k % 8)
	}
	row.pad()
}

// pad clears the padding of the list.
func (row *searchRow) pad() {
	end := simd.Pitch(row.n)
	clear(row.index[row.n:end])
	for _, x := range [][]float32{row.z, row.b, row.share, row.dots} {
		clear(x[row.n:end])
	}
}

// advance runs the steps of a plan on row i. The plan ends the search if last is true. Atoms enter only in the plan's
// first step. If the row isn't full, the method enter has already stored the products for this first step.
func (e *encoder) advance(s *searchLane, i int, plan *schedule, last bool) {
	row := &s.rows[i]
	padded, pitch := simd.Pitch(row.n), simd.BytePitch(e.dim)
	s.active, s.values = simd.Sized(s.active, padded+simd.Width), simd.Sized(s.values, padded+simd.Width)
	enter := uint32(math.MaxUint32)
	if row.full {
		enter = 0
	}
	bytes := s.bytes[i*pitch:][:pitch]
	for t, momentum := range plan.momenta {
		if enter == 0 {
			e.coarse.Dots(e.kernels, row.dots, row.index[:padded], bytes)
		}
		unit := unitOf(row.reach)
		n, largest := e.kernels.Advance(s.active, s.values, row.index, row.dots[:padded], row.z, row.b, row.share,
			row.step, row.threshold(plan.thresholds[t]), e.floor(), momentum, 1/unit, enter)
		if largest >= 0x1p-100 {
			row.reach = largest
		}
		enter = 0
		if last && t+1 == len(plan.momenta) {
			return
		}
		for ; n%4 != 0; n++ {
			s.active[n], s.values[n] = 0, 0
		}
		e.coarse.Decode(e.kernels, s.decoded, s.active[:n], s.values[:n])
		r := s.r.Padded(0)
		s.quantise(e, i, r, e.kernels.Residual(r, s.y.Padded(i), s.decoded, unit))
	}
}

// choose reduces the list to the atoms with the largest magnitudes, at most limit atoms. Among equal magnitudes it
// prefers lower atom indices. It sorts the list by atom, and scales the values to codes.
func (s *searchLane) choose(row *searchRow, unit float64, limit int) {
	least, equal := s.kthLargest(row.b[:row.n], limit)
	unit /= row.scale
	s.chosen = simd.Sized(s.chosen, 8*len(row.members))
	clear(row.members)
	for i, v := range row.b[:row.n] {
		if m := max(v, -v); m >= least && m > 0 {
			k := row.index[i]
			s.chosen[k] = v
			row.members[k/8] |= 1 << (k % 8)
		}
	}
	row.n = 0
	for first := 0; first < len(row.members); first += 8 {
		for left := binary.LittleEndian.Uint64(row.members[first:]); left != 0; left &= left - 1 {
			k := 8*first + bits.TrailingZeros64(left)
			v := s.chosen[k]
			if max(v, -v) == least {
				if equal == 0 {
					continue
				}
				equal--
			}
			row.index[row.n], row.b[row.n] = int32(k), float32(float64(v)*unit)
			row.n++
		}
	}
}

// kthLargest returns the k-th largest magnitude of x, and how many of the k largest have this magnitude. It returns 0
// and k if x has at most k elements. It determines the bits of the magnitude eight at a time, from the highest.
func (s *searchLane) kthLargest(x []float32, k int) (least float32, equal int) {
	if len(x) <= k {
		return 0, k
	}
	s.magnitudes = simd.Sized(s.magnitudes, len(x))
	left := s.magnitudes // magnitudes that share their first bits with the k-th largest
	for i, v := range x {
		left[i] = math.Float32bits(v) << 1
	}
	for shift := 24; shift >= 0; shift -= 8 {
		var counts [256]int32
		for _, m := range left {
			counts[byte(m>>shift)]++
		}
		digit := byte(255)
		for ; int(counts[digit]) < k; digit-- {
			k -= int(counts[digit])
		}
		n := 0
		for _, m := range left {
			left[n] = m
			if byte(m>>shift) == digit {
				n++
			}
		}
		left = left[:n]
	}
	return math.Float32frombits(left[0] >> 1), k
}
