package explore

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"overcomplete/internal/parallel"
)

// A link is an edge from a point to a neighbour.
type link struct {
	to    int
	value float64 // squared distance, or weight
}

// Constants of t-SNE. On a model of 3,000 dimensions, twice the iterations and links and half of theta change the
// recall of 12 neighbours by less than 0.01.
const (
	perplexity      = 16
	iterations      = 300
	earlyIterations = 100 // iterations with exaggeration
	exaggeration    = 4
	theta           = 0.8 // a square whose side is below theta times its distance counts as one point
)

// embedPoints places n points in the unit square so that neighbours are close. The argument near holds the nearest
// neighbours of each point with their squared distances, nearest first. The argument start holds the initial places.
//
// It uses t-SNE (van der Maaten and Hinton 2008), with affinities of nearest neighbours only and Barnes–Hut
// repulsion (van der Maaten 2014). One goroutine sums the forces on a point in a fixed order, so that the result
// doesn't depend on the number of processors.
func embedPoints(near [][]link, start [][2]float64) [][2]float64 {
	n := len(near)
	at := slices.Clone(start)
	if n < 3 {
		for i := range at {
			at[i] = [2]float64{(float64(i) + 1) / float64(n+1), .5}
		}
		return at
	}
	fit(at, 1e-2)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range at { // separate points at the same place
		at[i][0] += 1e-4 * rng.Float64()
		at[i][1] += 1e-4 * rng.Float64()
	}
	weights := affinities(near)
	speed := make([][2]float64, n)
	gains := slices.Repeat([][2]float64{{1, 1}}, n)
	push := make([][2]float64, n)
	parts := make([]float64, n) // each point's part of the sum Z
	rate := float64(n) / 3
	var tree quadtree
	for step := range iterations {
		pull, momentum := 1.0, .8
		if step < earlyIterations {
			pull, momentum = exaggeration, .5
		}
		tree.build(at)
		parallel.Ranges(n, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				push[i], parts[i] = tree.repulsion(at[i])
			}
		})
		z := 0.0
		for _, part := range parts {
			z += part
		}
		parallel.Ranges(n, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				var gradient [2]float64 // a quarter of equation (5)
				for _, l := range weights[i] {
					w := pull * l.value / (1 + distance2(at[i], at[l.to]))
					for c := range gradient {
						gradient[c] += w * (at[i][c] - at[l.to][c])
					}
				}
				for c, g := range gradient {
					g -= push[i][c] / z
					if g*speed[i][c] > 0 { // overshot
						gains[i][c] = max(.8*gains[i][c], .01)
					} else {
						gains[i][c] += .2
					}
					speed[i][c] = momentum*speed[i][c] - rate*gains[i][c]*g
				}
			}
		})
		for i := range at {
			at[i][0] += speed[i][0]
			at[i][1] += speed[i][1]
		}
	}
	fit(at, 1)
	return at
}

func distance2(a, b [2]float64) float64 {
	return (a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1])
}

// affinities returns pᵢⱼ = (p(j|i) + p(i|j))/2n for each point i and each j such that i or j is a neighbour of the
// other, in increasing order of j.
func affinities(near [][]link) [][]link {
	n := len(near)
	sums := make([]map[int]float64, n)
	for i := range sums {
		sums[i] = map[int]float64{}
	}
	for i := range near {
		weights := slices.Clone(near[i])
		scale(weights, float64(2*n))
		for _, l := range weights {
			sums[i][l.to] += l.value
			sums[l.to][i] += l.value
		}
	}
	symmetric := make([][]link, n)
	for i, sum := range sums {
		for _, j := range slices.Sorted(maps.Keys(sum)) {
			symmetric[i] = append(symmetric[i], link{j, sum[j]})
		}
	}
	return symmetric
}

// scale converts the squared distances d of a point to probabilities p(j|i) = exp(−βd)/Σ, divided by total. It
// finds the β for which their entropy is nearest to log perplexity.
func scale(row []link, total float64) {
	if len(row) == 0 {
		return
	}
	least := row[0].value
	weigh := func(beta float64) (sum, mean float64) {
		for _, l := range row {
			p := math.Exp(-beta * (l.value - least))
			sum += p
			mean += p * (l.value - least)
		}
		return sum, mean / sum
	}
	low, high, beta := 0.0, math.Inf(1), 1.0
	for range 50 {
		sum, mean := weigh(beta)
		if math.Log(sum)+beta*mean > math.Log(min(perplexity, float64(len(row)))) {
			low = beta
		} else {
			high = beta
		}
		beta = (low + min(high, 3*beta)) / 2
	}
	sum, _ := weigh(beta)
	for j := range row {
		row[j].value = math.Exp(-beta*(row[j].value-least)) / sum / total
	}
}

// fit scales points to a square of the given side, and centres them.
func fit(at [][2]float64, side float64) {
	low, high := bounds(at)
	extent := cmp.Or(max(high[0]-low[0], high[1]-low[1]), 1)
	for i := range at {
		for c := range 2 {
			rest := 1 - (high[c]-low[c])/extent
			at[i][c] = side * ((at[i][c]-low[c])/extent + rest/2)
		}
	}
}

// bounds returns the corners of the smallest rectangle with all points.
func bounds(at [][2]float64) (low, high [2]float64) {
	low, high = at[0], at[0]
	for _, p := range at {
		for c, v := range p {
			low[c], high[c] = min(low[c], v), max(high[c], v)
		}
	}
	return low, high
}

// A quadtree divides a plane into squares that contain points. The first square is the root.
type quadtree []square

type square struct {
	middle, mean [2]float64
	side         float64
	points       float64
	quarters     [4]int32 // indices in the tree; 0 for a quarter without points
	leaf         bool     // all points are at the same place, mean
}

// maxDepth is the largest depth of the tree. A square at this depth treats its points as one.
const maxDepth = 48

// build replaces the tree by a tree of the given points.
func (t *quadtree) build(at [][2]float64) {
	low, high := bounds(at)
	*t = append((*t)[:0], square{middle: [2]float64{(low[0] + high[0]) / 2, (low[1] + high[1]) / 2}, side: max(high[0]-low[0], high[1]-low[1])})
	for _, p := range at {
		t.insert(p)
	}
}

func (t *quadtree) insert(p [2]float64) {
	at := int32(0)
	for depth := range maxDepth {
		s := &(*t)[at]
		leaf := s.leaf && depth < maxDepth-1 && s.mean != p
		if leaf { // the point in this leaf moves down, too
			s.leaf = false
			mean, points := s.mean, s.points
			quarter := &(*t)[t.quarter(at, mean)]
			quarter.mean, quarter.points, quarter.leaf = mean, points, true
			s = &(*t)[at]
		}
		s.leaf = s.leaf || s.points == 0
		s.points++
		for c := range p {
			s.mean[c] += (p[c] - s.mean[c]) / s.points
		}
		if s.leaf {
			return
		}
		at = t.quarter(at, p)
	}
}

// quarter returns the quarter of a square that contains p. It adds a missing quarter.
func (t *quadtree) quarter(at int32, p [2]float64) int32 {
	s := &(*t)[at]
	half := square{middle: s.middle, side: s.side / 2}
	which := 0
	for c := range p {
		if p[c] > s.middle[c] {
			which += 1 + c
			half.middle[c] += s.side / 4
		} else {
			half.middle[c] -= s.side / 4
		}
	}
	if s.quarters[which] == 0 {
		s.quarters[which] = int32(len(*t))
		*t = append(*t, half)
		return int32(len(*t) - 1)
	}
	return s.quarters[which]
}

// repulsion returns Σ q²·(p−y) and Σ q over all points y except p, with q = 1/(1+‖p−y‖²). It treats the points of a
// square as one if the side is less than theta times the distance.
func (t *quadtree) repulsion(p [2]float64) (force [2]float64, norm float64) {
	var stack [4 * maxDepth]int32
	for top := 1; top > 0; {
		top--
		s := &(*t)[stack[top]]
		dx, dy := p[0]-s.mean[0], p[1]-s.mean[1]
		d := dx*dx + dy*dy
		if !s.leaf && s.side*s.side >= theta*theta*d {
			for _, q := range s.quarters {
				if q != 0 {
					stack[top] = q
					top++
				}
			}
			continue
		}
		if d == 0 { // p itself
			continue
		}
		q := 1 / (1 + d)
		norm += s.points * q
		force[0] += s.points * q * q * dx
		force[1] += s.points * q * q * dy
	}
	return force, norm
}
