package explore

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/parallel"
	"overcomplete/interpret"
	"overcomplete/vectors"
)

// chart is what the map shows.
type chart struct {
	Points  []point  `json:"points"`  // the live dimensions, the strongest first
	Regions []region `json:"regions"` // parts of the map, in the order of point.Region
}

// point is a live dimension's place on the map.
type point struct {
	Dimension int     `json:"dimension"`
	X         float32 `json:"x"` // 0 to 1
	Y         float32 `json:"y"`
	Region    int     `json:"region"`
}

// region is a part of the map.
type region struct {
	X      float32  `json:"x"` // its middle
	Y      float32  `json:"y"`
	Words  []string `json:"words"`  // that are more at home here than elsewhere
	Colour int      `json:"colour"` // 0 to regionColours−1, unlike that of its neighbours
}

const (
	regionColours = 8
	regionWords   = 3
	regionTexts   = 5 // of each of its dimensions, that keywords of a region are from
)

// layout makes the map of the live dimensions: those that the same words use are close.
func (x *Explorer) layout() chart {
	n, dim := len(x.strongest), x.model.Dictionary.Dim
	atoms := make([]float32, 0, n*dim)
	for _, k := range x.strongest {
		atoms = append(atoms, x.model.Dictionary.Atoms[k*dim:(k+1)*dim]...)
	}
	at := place(x.neighbours(min(links, n-1)), components(atoms, n, dim))
	c := chart{Points: make([]point, n), Regions: []region{}}
	for i, p := range at {
		c.Points[i] = point{Dimension: x.strongest[i], X: float32(p[0]), Y: float32(p[1])}
	}
	x.divide(&c)
	return c
}

// link is what a dimension has with another, both by their indices in x.strongest.
type link struct {
	to    int
	value float64 // a squared distance, or a weight
}

// neighbours returns for each dimension in x.strongest the k others whose values in all
// words have the largest cosine with its own, the closest first, and the squared distances
// of these values, scaled to unit length.
//
// The inner products of one dimension with all others are summed over its words. Of those
// it takes only so many, evenly, that about 10⁹ values are added up in all.
func (x *Explorer) neighbours(k int) [][]link {
	codes := x.model.Codes
	norms := make([]float64, len(x.strongest))
	for i, d := range x.strongest {
		for _, v := range x.index.Values(d) {
			norms[i] += float64(v) * float64(v)
		}
		norms[i] = math.Sqrt(norms[i])
	}
	most := max(50, int(1e9*float64(codes.Rows)/float64(codes.Nonzeros()+1)/float64(codes.Cols)))
	near := make([][]link, len(x.strongest))
	parallel.Ranges(len(near), func(lo, hi int) {
		products := make([]float64, codes.Cols)
		cosines := make([]float64, len(near))
		for i := lo; i < hi; i++ {
			clear(products)
			rows, values := x.index.Dimension(x.strongest[i])
			taken := min(most, len(rows))
			for j := range taken {
				j = j * len(rows) / taken
				index, value := codes.Row(int(rows[j]))
				v := float64(values[j])
				for l, other := range index {
					products[other] += v * float64(value[l])
				}
			}
			scale := float64(len(rows)) / float64(taken)
			for j, other := range x.strongest {
				cosines[j] = scale * products[other] / norms[i] / norms[j]
			}
			for _, j := range largest(cosines, i, k) {
				near[i] = append(near[i], link{j, max(2-2*cosines[j], 0)})
			}
		}
	})
	return near
}

// largest returns the indices of the k largest values, but for the index self.
func largest(values []float64, self, k int) []int {
	top := make([]int, 0, k+1)
	for j, v := range values {
		if j == self || len(top) == k && v <= values[top[k-1]] {
			continue
		}
		i := len(top)
		for i > 0 && v > values[top[i-1]] {
			i--
		}
		top = slices.Insert(top, i, j)[:min(len(top)+1, k)]
	}
	return top
}

// components returns the first two principal components of n atoms' directions, row-major
// and of length dim; zeros where there are no more.
func components(atoms []float32, n, dim int) [][2]float64 {
	at := make([][2]float64, n)
	if n < 2 {
		return at
	}
	x := mat.NewDense(n, dim, nil)
	for i := range n {
		row := x.RawRowView(i)
		sum := 0.0
		for c, v := range atoms[i*dim : (i+1)*dim] {
			row[c] = float64(v)
			sum += row[c] * row[c]
		}
		for c := range row {
			row[c] /= cmp.Or(math.Sqrt(sum), 1)
		}
	}
	var covariance mat.SymDense
	stat.CovarianceMatrix(&covariance, x, nil)
	var eigen mat.EigenSym
	if !eigen.Factorize(&covariance, true) {
		return at
	}
	var axes, projected mat.Dense
	eigen.VectorsTo(&axes) // by increasing eigenvalue
	projected.Mul(x, axes.Slice(0, dim, max(dim-2, 0), dim))
	_, found := projected.Dims()
	for i := range at {
		for c := range found {
			at[i][c] = projected.At(i, found-1-c)
		}
	}
	return at
}

// divide cuts the map into regions and names each by words of which it has the most and others
// have little, or by keywords of its texts.
func (x *Explorer) divide(c *chart) {
	var of []int
	places := make([][2]float32, len(c.Points))
	for i, p := range c.Points {
		places[i] = [2]float32{p.X, p.Y}
	}
	c.Regions, of = cluster(places)
	regionOf := make([]int, x.model.Codes.Cols) // of a dimension
	scales := make([]float64, x.model.Codes.Cols)
	for i := range c.Points {
		p := &c.Points[i]
		p.Region = of[i]
		regionOf[p.Dimension] = of[i]
		for _, v := range x.index.Values(p.Dimension) {
			scales[p.Dimension] += float64(v) * float64(v)
		}
	}
	x.nameRegions(c.Regions, regionOf, scales)
}

// cluster divides places into regions by k-means, and says of each place which it is in.
func cluster(places [][2]float32) (regions []region, of []int) {
	n := len(places)
	if n == 0 {
		return []region{}, nil
	}
	x := &vectors.Dense{Words: make([]string, n), Dim: 2}
	for _, p := range places {
		x.Data = append(x.Data, p[:]...)
	}
	count := int(math.Ceil(math.Sqrt(float64(n)) / 2.5))
	of, err := interpret.KMeans(context.Background(), x, count, 1)
	if err != nil {
		panic(err) // places are finite, and nobody cancels
	}
	regions = make([]region, count)
	sizes := make([]float32, count)
	for i, p := range places {
		r := &regions[of[i]]
		sizes[of[i]]++
		r.X += (p[0] - r.X) / sizes[of[i]]
		r.Y += (p[1] - r.Y) / sizes[of[i]]
	}
	for i := range regions {
		regions[i].Words = []string{}
		regions[i].Colour = colour(regions[:i], regions[i])
	}
	return regions, of
}

// nameRegions sets the regions' words. A word's share of a dimension is its squared value
// by the sum of all words'; what a region has of a word is the sum over its dimensions. The
// words are those with the largest square of that, divided by the sum over all regions.
func (x *Explorer) nameRegions(regions []region, regionOf []int, scales []float64) {
	type scored struct {
		row   int
		score float64
	}
	if x.about.Texts {
		x.nameByTexts(regions, regionOf)
		return
	}
	best := make([][]scored, len(regions))
	shares := make([]float64, len(regions))
	for row := range x.model.Codes.Rows {
		clear(shares)
		sum := 0.0
		index, values := x.model.Codes.Row(row)
		for j, d := range index {
			share := float64(values[j]) * float64(values[j]) / scales[d]
			shares[regionOf[d]] += share
			sum += share
		}
		for r, share := range shares {
			s := scored{row, share * share / sum}
			if share == 0 || len(best[r]) == regionWords && s.score <= best[r][regionWords-1].score {
				continue
			}
			at, _ := slices.BinarySearchFunc(best[r], s, func(a, b scored) int { return -cmp.Compare(a.score, b.score) })
			best[r] = slices.Insert(best[r], at, s)[:min(len(best[r])+1, regionWords)]
		}
	}
	for r := range regions {
		for _, s := range best[r] {
			regions[r].Words = append(regions[r].Words, x.model.Codes.Words[s.row])
		}
	}
}

// nameByTexts sets the regions' words to keywords of the strongest texts of their dimensions.
func (x *Explorer) nameByTexts(regions []region, regionOf []int) {
	rows := make([][]int, len(regions))
	for k, d := range x.about.Dimensions {
		if d.Words > 0 {
			for _, e := range x.index.Top(k, regionTexts) {
				rows[regionOf[k]] = append(rows[regionOf[k]], e.Row)
			}
		}
	}
	for r := range regions {
		slices.Sort(rows[r])
		regions[r].Words = append(regions[r].Words, x.index.Keywords(slices.Compact(rows[r]), regionWords)...)
	}
}

// colour returns the colour whose nearest region among others is furthest from r.
func colour(others []region, r region) int {
	least := make([]float64, regionColours)
	for c := range least {
		least[c] = math.Inf(1)
	}
	for _, o := range others {
		d := distance2([2]float64{float64(o.X), float64(o.Y)}, [2]float64{float64(r.X), float64(r.Y)})
		least[o.Colour] = min(least[o.Colour], d)
	}
	return slices.Index(least, slices.Max(least))
}

// The constants of t-SNE. At 12 neighbours, the recall of them on models of 3,000
// dimensions is within a hundredth of what twice the steps and links and half of theta give.
const (
	links        = 24 // of a row with others
	perplexity   = 16
	steps        = 300
	early        = 100 // steps with exaggeration
	exaggeration = 4
	theta        = 0.8 // how large and near a square may seem to be taken as one
)

// place puts rows on a plane, in the unit square, so that neighbours stay such. Near are
// the nearest other rows of each with their squared distances, by increasing ones; start
// is where they begin. Same arguments, same places.
//
// It is t-SNE (van der Maaten and Hinton 2008) with the affinities of near alone, and the
// repulsion by squares (Barnes–Hut, van der Maaten 2014). Every row's place is moved by
// one goroutine, which sums in a fixed order.
func place(near [][]link, start [][2]float64) [][2]float64 {
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
	for i := range at { // or else what is at one place stays there
		at[i][0] += 1e-4 * rng.Float64()
		at[i][1] += 1e-4 * rng.Float64()
	}
	weights := affinities(near)
	speed := make([][2]float64, n)
	gains := slices.Repeat([][2]float64{{1, 1}}, n)
	push := make([][2]float64, n)
	parts := make([]float64, n) // of Z
	rate := float64(n) / 3
	var tree quadtree
	for step := range steps {
		pull, momentum := 1.0, .8
		if step < early {
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
					if g*speed[i][c] > 0 { // it goes up again: slow down
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

// affinities returns the pᵢⱼ = (p(j|i) + p(i|j))/2n of each row with those that it is near
// to, or that are near to it.
func affinities(near [][]link) [][]link {
	n := len(near)
	weights := make([][]link, n)
	parallel.Ranges(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			weights[i] = slices.Clone(near[i])
			scale(weights[i], float64(2*n))
		}
	})
	own := make([]int, n)
	for i := range weights {
		own[i] = len(weights[i])
	}
	for i := range weights {
		for j := range own[i] {
			l := &weights[i][j]
			back := slices.IndexFunc(weights[l.to][:own[l.to]], func(m link) bool { return m.to == i })
			switch {
			case back < 0:
				weights[l.to] = append(weights[l.to], link{i, l.value})
			case i < l.to: // each has the other's: both have the sum
				m := &weights[l.to][back]
				l.value += m.value
				m.value = l.value
			}
		}
	}
	return weights
}

// scale turns a row's squared distances d into the probabilities p(j|i) = exp(−βd)/Σ,
// divided by total, with β such that their entropy is log perplexity, or as near as it can.
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

// fit moves and scales the points into a square of the given side; what is
// shorter than the side is centred.
func fit(at [][2]float64, side float64) {
	low, high := at[0], at[0]
	for _, p := range at {
		for c := range 2 {
			low[c], high[c] = min(low[c], p[c]), max(high[c], p[c])
		}
	}
	extent := cmp.Or(max(high[0]-low[0], high[1]-low[1]), 1)
	for i := range at {
		for c := range 2 {
			rest := 1 - (high[c]-low[c])/extent
			at[i][c] = side * ((at[i][c]-low[c])/extent + rest/2)
		}
	}
}

// quadtree divides a plane into squares with points; the first is the root.
type quadtree []square

type square struct {
	middle, mean [2]float64
	side         float64
	points       float64
	quarters     [4]int32 // their indices in the tree, 0 where there are no points
	leaf         bool     // all points are at mean
}

// deepest is how often squares are divided: points that are closer count as one.
const deepest = 48

// build makes it the tree of the points at.
func (t *quadtree) build(at [][2]float64) {
	low, high := at[0], at[0]
	for _, p := range at {
		for c := range p {
			low[c], high[c] = min(low[c], p[c]), max(high[c], p[c])
		}
	}
	*t = append((*t)[:0], square{middle: [2]float64{(low[0] + high[0]) / 2, (low[1] + high[1]) / 2}, side: max(high[0]-low[0], high[1]-low[1])})
	for _, p := range at {
		t.insert(p)
	}
}

func (t *quadtree) insert(p [2]float64) {
	at := int32(0)
	for depth := range deepest {
		s := &(*t)[at]
		leaf := s.leaf && depth < deepest-1 && s.mean != p
		if leaf { // what is here goes down as well
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

// quarter returns the quarter of a square that p is in.
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

// repulsion returns Σ q²·(p−y) and Σ q over all points y but p itself, q = 1/(1+‖p−y‖²).
// Points of a square count as one where it is less than theta of its distance wide.
func (t *quadtree) repulsion(p [2]float64) (force [2]float64, norm float64) {
	var stack [4 * deepest]int32
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
