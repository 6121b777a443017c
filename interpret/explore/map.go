package explore

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/cluster"
	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/vectors"
)

const (
	links         = 24 // nearest neighbours that determine the position of a point
	regionColours = 8
	regionWords   = 3
	regionTexts   = 20 // nearest texts of a region, which its keywords describe

	maxRows   = 4000              // rows on the map of rows
	maxValues = regionColours - 1 // values of a column that have their own colour; all others share the last one
)

// A place is the position of a point on a map.
type place struct {
	X      float32 `json:"x"` // 0 to 1
	Y      float32 `json:"y"`
	Region int     `json:"region"`
}

// A region is a part of a map.
type region struct {
	X      float32  `json:"x"` // centre
	Y      float32  `json:"y"`
	Words  []string `json:"words"`  // keywords
	Colour int      `json:"colour"` // 0 to regionColours−1; neighbours have different colours

	Topic *topics.ID `json:"topic,omitempty"` // topic of the region
}

// A dimensionMap is the map of live dimensions.
type dimensionMap struct {
	Points  []point  `json:"points"` // the live dimensions, strongest first
	Regions []region `json:"regions"`
}

type point struct {
	Dimension int `json:"dimension"`
	place
}

// A rowMap is the map of words or texts.
type rowMap struct {
	Points  []rowPoint  `json:"points"` // in row order
	Regions []region    `json:"regions"`
	Columns []colouring `json:"columns"`
	texts
}

type rowPoint struct {
	Row  int    `json:"row"`
	Word string `json:"word"`
	place
}

// A colouring is a column whose values colour the texts.
type colouring struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // most frequent values, in decreasing order of frequency
	Of     []int    `json:"of"`     // for each point, the index of its value in Values, or −1

	column vectors.Column
	counts []int // number of rows of each value
}

// layoutDimensions returns the map of live dimensions. Dimensions with nonzeros in the same rows are close.
func (x *Explorer) layoutDimensions() dimensionMap {
	n, dim := len(x.strongest), x.model.Dictionary.Dim
	atoms := make([]float32, 0, n*dim)
	for _, k := range x.strongest {
		atoms = append(atoms, x.model.Dictionary.Atoms[k*dim:(k+1)*dim]...)
	}
	places, regions := divide(embedPoints(x.neighbours(min(links, n-1)), components(atoms, n, dim)))
	c := dimensionMap{Points: make([]point, n), Regions: regions}
	regionOf := make([]int, x.model.Codes.Cols)
	for i, k := range x.strongest {
		c.Points[i] = point{k, places[i]}
		regionOf[k] = places[i].Region
	}
	members := make([]interpret.Code, len(regions)) // the dimensions of each region
	for k, norm := range x.columnNorms() {
		if norm > 0 {
			// Normalize, so that all dimensions have the same weight.
			m := &members[regionOf[k]]
			m.Index, m.Value = append(m.Index, int32(k)), append(m.Value, float32(1/norm))
		}
	}
	labelRegions(x.index, regions, members)
	return c
}

// layoutRows returns the map of words or texts. Rows with the same dimensions are close. The place of a row is
// initialised from the places of its dimensions on the map of dimensions.
func (x *Explorer) layoutRows() rowMap {
	rows := x.chooseRows()
	codes := interpret.SelectRows(x.model.Codes, rows)
	index := interpret.NewIndex(codes).WithStopWords(x.stopWords)
	near := make([][]link, len(rows))
	for i := range near {
		for _, n := range index.Nearest(index.Code(i), links, i) {
			near[i] = append(near[i], link{n.Row, max(2-2*n.Cosine, 0)})
		}
	}
	placeOf := make(map[int32]place, len(x.strongest))
	for _, p := range x.dimensionMap().Points {
		placeOf[int32(p.Dimension)] = p.place
	}
	start := make([][2]float64, len(rows))
	for i := range start {
		sum := 0.0
		code := index.Code(i)
		for j, k := range code.Index {
			w := float64(code.Value[j]) * float64(code.Value[j])
			start[i][0] += w * float64(placeOf[k].X)
			start[i][1] += w * float64(placeOf[k].Y)
			sum += w
		}
		start[i][0], start[i][1] = start[i][0]/sum, start[i][1]/sum
	}
	at := embedPoints(near, start)
	if x.summary.Themes > 0 {
		return x.topicMap(rows, at, x.topics())
	}
	places, regions := divide(at)
	c := rowMap{Points: make([]rowPoint, len(rows)), Regions: regions, Columns: x.colourings(rows)}
	members := make([]interpret.Query, len(regions)) // the rows of each region
	for i, row := range rows {
		c.Points[i] = rowPoint{row, codes.IDs[i], places[i]}
		c.add(x, row, nil, listedText)
		m := &members[places[i].Region]
		m.Terms = append(m.Terms, interpret.Term{Row: i, Weight: 1})
	}
	sums := make([]interpret.Code, len(regions))
	for r, m := range members {
		sums[r] = index.Sum(m)
	}
	labelRegions(index, regions, sums)
	return c
}

// topicMap returns a map of rows with a region for each topic. The centre of a region is the median of the places
// of its rows.
func (x *Explorer) topicMap(rows []int, at [][2]float64, t *topicTable) rowMap {
	c := rowMap{Points: make([]rowPoint, len(rows)), Regions: make([]region, len(t.Topics)), Columns: x.colourings(rows)}
	regionOf := map[topics.ID]int{topics.None: -1}
	for r, topic := range t.Topics {
		regionOf[topic.ID] = r
		c.Regions[r].Words, c.Regions[r].Topic = []string{}, &t.Topics[r].ID
	}
	members := make([][2][]float32, len(t.Topics)) // coordinates
	for i, row := range rows {
		r := regionOf[t.table.Rows[row]]
		c.Points[i] = rowPoint{row, x.model.Codes.IDs[row], place{float32(at[i][0]), float32(at[i][1]), r}}
		c.add(x, row, nil, listedText)
		if r >= 0 {
			members[r][0], members[r][1] = append(members[r][0], c.Points[i].X), append(members[r][1], c.Points[i].Y)
		}
	}
	for r := range c.Regions {
		if n := len(members[r][0]); n > 0 {
			slices.Sort(members[r][0])
			slices.Sort(members[r][1])
			c.Regions[r] = region{X: members[r][0][n/2], Y: members[r][1][n/2], Words: t.Topics[r].Words, Topic: c.Regions[r].Topic}
			if len(c.Regions[r].Words) == 0 { // "other"
				c.Regions[r].Words = []string{t.Topics[r].Label}
			}
			c.Regions[r].Colour = chooseColour(c.Regions[:r], c.Regions[r])
		}
	}
	return c
}

// chooseRows returns up to maxRows rows with nonzeros: the first words, which are the most frequent in most files,
// or evenly spaced texts.
func (x *Explorer) chooseRows() []int {
	codes := x.model.Codes
	var rows []int
	for i := range codes.Rows {
		if codes.Ptr[i] < codes.Ptr[i+1] {
			rows = append(rows, i)
		}
	}
	n := min(maxRows, len(rows))
	if x.summary.Texts {
		for i := range n {
			rows[i] = rows[i*len(rows)/n]
		}
	}
	return rows[:n]
}

// labelRegions sets the words of each region to the words nearest to its code or, if rows are texts, to keywords
// of the nearest texts.
func labelRegions(index *interpret.Index, regions []region, codes []interpret.Code) {
	if index.Codes.Texts == nil {
		for r, c := range codes {
			for _, n := range index.Nearest(c, regionWords) {
				regions[r].Words = append(regions[r].Words, index.Codes.IDs[n.Row])
			}
		}
		return
	}
	groups := slices.Repeat([]int32{-1}, index.Codes.Rows)
	for r, c := range codes {
		for _, n := range index.Nearest(c, regionTexts) {
			groups[n.Row] = int32(r)
		}
	}
	labels, _ := index.GroupLabels(groups, nil, regionWords)
	for r, label := range labels {
		regions[r].Words = label
	}
}

// colourings returns the columns that have at least two values, and whose maxValues most frequent values cover at
// least half of the rows.
func (x *Explorer) colourings(rows []int) []colouring {
	all := []colouring{}
	for _, column := range x.textColumns() {
		counts := map[string]int{}
		for _, row := range rows {
			counts[column.Values[row]]++
		}
		c := colouring{Name: column.Name, Of: make([]int, len(rows)), column: column}
		for value := range counts {
			c.Values = append(c.Values, value)
		}
		slices.SortFunc(c.Values, func(a, b string) int {
			return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
		})
		c.Values = c.Values[:min(maxValues, len(c.Values))]
		covered := 0
		for _, value := range c.Values {
			c.counts = append(c.counts, counts[value])
			covered += counts[value]
		}
		if len(c.Values) < 2 || 2*covered < len(rows) {
			continue
		}
		for i, row := range rows {
			c.Of[i] = slices.Index(c.Values, column.Values[row])
		}
		for i, value := range c.Values {
			c.Values[i] = truncate(value, listedText)
		}
		all = append(all, c)
	}
	return all
}

// neighbours returns, for each dimension in x.strongest, the k other dimensions whose columns have the largest
// cosines with its column, nearest first. Each link holds the squared distance of two columns, scaled to norm 1.
//
// The inner products of a dimension with all others are sums over its rows. To limit the number of
// multiplications to about 10⁹ in all, neighbours takes an evenly spaced sample of the rows of large dimensions.
func (x *Explorer) neighbours(k int) [][]link {
	codes := x.model.Codes
	norms := x.columnNorms()
	maxWords := max(50, int(1e9*float64(codes.Rows)/float64(codes.Nonzeros()+1)/float64(codes.Cols)))
	near := make([][]link, len(x.strongest))
	parallel.Ranges(len(near), func(lo, hi int) {
		products := make([]float64, codes.Cols)
		for i := lo; i < hi; i++ {
			clear(products)
			rows, values := x.index.Dimension(x.strongest[i])
			n := min(maxWords, len(rows))
			for j := range n {
				j = j * len(rows) / n
				code := x.index.Code(int(rows[j]))
				v := float64(values[j])
				for l, other := range code.Index {
					products[other] += v * float64(code.Value[l])
				}
			}
			scale := float64(len(rows)) / float64(n)
			nearest := ranking.Ranking{N: k}
			for j, other := range x.strongest {
				if j != i {
					nearest.Add(ranking.Item{Index: j, Score: scale * products[other] / norms[x.strongest[i]] / norms[other]})
				}
			}
			for _, n := range nearest.Items() {
				near[i] = append(near[i], link{n.Index, max(2-2*n.Score, 0)})
			}
		}
	})
	return near
}

// columnNorms returns the norms of the columns of the codes.
func (x *Explorer) columnNorms() []float64 {
	norms := make([]float64, x.model.Codes.Cols)
	for k := range norms {
		values := x.index.Values(k)
		norms[k] = interpret.Code{Value: values}.Norm()
	}
	return norms
}

// components scales n atoms, n×dim row-major, to norm 1, and returns their first two principal components. Missing
// components are zero.
func components(atoms []float32, n, dim int) [][2]float64 {
	at := make([][2]float64, n)
	if n < 2 {
		return at
	}
	x := mat.NewDense(n, dim, nil)
	for i := range n {
		row := x.RawRowView(i)
		norm := cmp.Or(interpret.Code{Value: atoms[i*dim : (i+1)*dim]}.Norm(), 1)
		for c, v := range atoms[i*dim : (i+1)*dim] {
			row[c] = float64(v) / norm
		}
	}
	var covariance mat.SymDense
	stat.CovarianceMatrix(&covariance, x, nil)
	var eigen mat.EigenSym
	if !eigen.Factorize(&covariance, true) {
		return at
	}
	var axes, projected mat.Dense
	eigen.VectorsTo(&axes) // in increasing order of eigenvalues
	projected.Mul(x, axes.Slice(0, dim, max(dim-2, 0), dim))
	_, found := projected.Dims()
	for i := range at {
		for c := range found {
			at[i][c] = projected.At(i, found-1-c)
		}
	}
	return at
}

// divide partitions points into regions by k-means.
func divide(at [][2]float64) ([]place, []region) {
	n := len(at)
	if n == 0 {
		return []place{}, []region{}
	}
	places := make([]place, n)
	var coordinates []float32
	for i, p := range at {
		places[i] = place{X: float32(p[0]), Y: float32(p[1])}
		coordinates = append(coordinates, places[i].X, places[i].Y)
	}
	regions := make([]region, int(math.Ceil(math.Sqrt(float64(n))/2.5)))
	regionOf, _ := cluster.KMeans(context.Background(), coordinates, 2, len(regions), 1) // never cancelled
	sizes := make([]float32, len(regions))
	for i := range places {
		p, r := &places[i], &regions[regionOf[i]]
		p.Region = regionOf[i]
		sizes[p.Region]++
		r.X += (p.X - r.X) / sizes[p.Region]
		r.Y += (p.Y - r.Y) / sizes[p.Region]
	}
	for i := range regions {
		regions[i].Colour = chooseColour(regions[:i], regions[i])
	}
	return places, regions
}

// chooseColour returns the colour whose nearest region among others is farthest from r.
func chooseColour(others []region, r region) int {
	nearest := slices.Repeat([]float64{math.Inf(1)}, regionColours)
	for _, o := range others {
		nearest[o.Colour] = min(nearest[o.Colour], math.Hypot(float64(o.X-r.X), float64(o.Y-r.Y)))
	}
	return slices.Index(nearest, slices.Max(nearest))
}
