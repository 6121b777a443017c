package explore

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/cluster"
	"overcomplete/internal/dates"
	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/internal/text"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/vectors"
)

const (
	links         = 24 // nearest neighbours that determine the position of a point
	regionColours = 12
	grey          = regionColours - 1 // colour of the topic "other", and of the rarer values of a column
	regionWords   = 3
	regionTexts   = 20 // number of a region's nearest texts that its keywords describe

	maxRows    = 100_000 // rows on the map of rows
	maxAnchors = 4000    // rows that t-SNE places; the others are placed beside them
	near       = 4       // number of anchors beside which a row is placed
	side       = math.MaxUint16
)

// A region is a part of a map.
type region struct {
	X      float32  `json:"x"` // centre
	Y      float32  `json:"y"`
	Words  []string `json:"words"`  // keywords
	Colour int      `json:"colour"` // 0 to regionColours−1; neighbours have different colours

	// If the model has topics, a region is a topic, and has the colour of its broad topic.
	Topic  *topics.ID `json:"topic,omitempty"`
	Parent int        `json:"parent"` // index of the topic above, or −1
	Radius float32    `json:"radius"` // larger of the median distances of its rows from the centre along x and along y
}

// A dimensionMap is the map of live dimensions.
type dimensionMap struct {
	Points  []point  `json:"points"` // the live dimensions, strongest first
	Regions []region `json:"regions"`
}

type point struct {
	Dimension int     `json:"dimension"`
	X         float32 `json:"x"` // 0 to 1
	Y         float32 `json:"y"`
	Region    int     `json:"region"`
}

// A rowMap is the map of words or texts. Its first five lists have an element for each point, in row order.
type rowMap struct {
	Rows    []int       `json:"rows"`
	Words   []string    `json:"words"` // words, or ids of texts
	X       []uint16    `json:"x"`     // 0 to side
	Y       []uint16    `json:"y"`
	Region  []int       `json:"region"` // index of the narrowest region, or −1
	Regions []region    `json:"regions"`
	Columns []colouring `json:"columns"`
	Dates   []datesOf   `json:"dates"`
}

// A datesOf is a column of dates.
type datesOf struct {
	Name string   `json:"name"`
	Days []*int32 `json:"days"` // for each point, the number of days since 1970-01-01, or null
}

// A colouring is a column whose values colour the texts.
type colouring struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // most frequent values, in decreasing order of frequency
	Of     []int    `json:"of"`     // for each point, the index of its value in Values, or −1

	column   vectors.Column
	frequent []topics.Value // Values with their counts
}

// layoutDimensions returns the map of live dimensions. Dimensions with nonzeros in the same rows are close.
func (x *Explorer) layoutDimensions() dimensionMap {
	n, dim := len(x.summary.Strongest), x.model.Dictionary.Dim
	atoms := make([]float32, 0, n*dim)
	for _, k := range x.summary.Strongest {
		atoms = append(atoms, x.model.Dictionary.Atoms[k*dim:(k+1)*dim]...)
	}
	at := embedPoints(x.neighbours(min(links, n-1)), components(atoms, n, dim))
	regionOfPoint, regions := divide(at)
	c := dimensionMap{Points: make([]point, n), Regions: regions}
	regionOf := make([]int, x.model.Codes.Cols)
	for i, k := range x.summary.Strongest {
		c.Points[i] = point{k, float32(at[i][0]), float32(at[i][1]), regionOfPoint[i]}
		regionOf[k] = regionOfPoint[i]
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

// layoutRows returns the map of words or texts. Rows with the same dimensions are close.
func (x *Explorer) layoutRows() rowMap {
	rows := x.chooseRows(maxRows)
	at := x.placeRows(rows)
	c := rowMap{Rows: rows, Words: make([]string, len(rows)), X: make([]uint16, len(rows)), Y: make([]uint16, len(rows)), Columns: x.colourings(rows), Dates: []datesOf{}}
	for i, row := range rows {
		c.Words[i] = x.model.Codes.IDs[row]
		c.X[i], c.Y[i] = uint16(math.Round(side*at[i][0])), uint16(math.Round(side*at[i][1]))
	}
	for _, column := range x.textColumns() {
		if days, err := dates.Parse(column.Values); err == nil {
			d := datesOf{column.Name, make([]*int32, len(rows))}
			for i, row := range rows {
				if days[row] != dates.None {
					d.Days[i] = &days[row]
				}
			}
			c.Dates = append(c.Dates, d)
		}
	}
	if x.summary.Themes > 0 {
		c.Region, c.Regions = topicRegions(rows, at, x.topics().table)
		return c
	}
	c.Region, c.Regions = divide(at)
	members := make([]interpret.Query, len(c.Regions)) // the rows of each region
	for i, r := range c.Region {
		members[r].Terms = append(members[r].Terms, interpret.Term{Row: rows[i], Weight: 1})
	}
	sums := make([]interpret.Code, len(c.Regions))
	for r, m := range members {
		sums[r] = x.index.Sum(m)
	}
	labelRegions(x.index, c.Regions, sums)
	return c
}

// placeRows returns the places of rows in the unit square. t-SNE places up to maxAnchors rows, which it initialises from
// the places of their dimensions on the map of dimensions. Each other row is placed at the mean of its nearest anchors,
// weighted by cosine⁴, plus a random distance so that equal rows are apart.
func (x *Explorer) placeRows(rows []int) [][2]float64 {
	n := min(maxAnchors, len(rows))
	anchors, anchorOf := slices.Clone(rows[:n]), make(map[int]int, n) // the most frequent words, or evenly spaced texts
	for a := range n {
		if x.summary.Texts {
			anchors[a] = rows[a*len(rows)/n]
		}
		anchorOf[anchors[a]] = a
	}
	index := interpret.NewIndex(interpret.SelectRows(x.model.Codes, anchors))
	linked := make([][]link, n)
	parallel.Each(context.Background(), n, func(a int) {
		for _, other := range index.Nearest(index.Code(a), links, a) {
			linked[a] = append(linked[a], link{other.Row, max(2-2*other.Cosine, 0)})
		}
	})
	placeOf := make(map[int32]point, len(x.summary.Strongest))
	for _, p := range x.dimensionMap().Points {
		placeOf[int32(p.Dimension)] = p
	}
	meanOf := func(code interpret.Code) (mean [2]float64) {
		sum := 0.0
		for j, k := range code.Index {
			w := float64(code.Value[j]) * float64(code.Value[j])
			mean[0] += w * float64(placeOf[k].X)
			mean[1] += w * float64(placeOf[k].Y)
			sum += w
		}
		return [2]float64{mean[0] / sum, mean[1] / sum}
	}
	start := make([][2]float64, n)
	for a := range start {
		start[a] = meanOf(index.Code(a))
	}
	placed := embedPoints(linked, start)
	if n == len(rows) {
		return placed
	}
	at := make([][2]float64, len(rows))
	spread := 0.25 / math.Sqrt(float64(n)) // about a quarter of the distance between anchors
	parallel.Each(context.Background(), len(rows), func(i int) {
		if a, ok := anchorOf[rows[i]]; ok {
			at[i] = placed[a]
			return
		}
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		sum, mean := 0.0, [2]float64{}
		for _, a := range index.Nearest(x.index.Code(rows[i]), near) {
			w := math.Pow(a.Cosine, 4)
			mean[0], mean[1], sum = mean[0]+w*placed[a.Row][0], mean[1]+w*placed[a.Row][1], sum+w
		}
		if sum == 0 { // no anchor shares a dimension with the row
			mean, sum = meanOf(x.index.Code(rows[i])), 1
		}
		for c := range mean {
			at[i][c] = min(max(mean[c]/sum+spread*rng.NormFloat64(), 0), 1)
		}
	})
	return at
}

// narrowest returns the narrowest topic of a row.
func narrowest(t *topics.Table, row int) topics.ID {
	if theme := t.ThemeOf[row]; theme != topics.None {
		return theme
	}
	return t.Rows[row]
}

// topicRegions returns a region for each topic of the table, and the index of the narrowest region of each row, or −1.
// The centre of a region is the median of the places of its rows.
func topicRegions(rows []int, at [][2]float64, t *topics.Table) (regionOf []int, regions []region) {
	all := slices.Concat(t.Topics, t.Subtopics)
	indexOf := map[topics.ID]int{topics.None: -1}
	regions = make([]region, len(all))
	for r, topic := range all {
		indexOf[topic.ID] = r
		regions[r] = region{Words: topic.Words, Topic: &topic.ID, Parent: indexOf[topic.Parent], Colour: r % grey}
		if len(topic.Words) == 0 { // "other"
			regions[r].Words, regions[r].Colour = []string{topic.Label}, grey
		}
		if p := regions[r].Parent; p >= 0 { // a topic precedes its subtopics
			regions[r].Colour = regions[p].Colour
		}
	}
	members := make([][2][]float64, len(all)) // coordinates of the rows of each region
	regionOf = make([]int, len(rows))
	for i, row := range rows {
		regionOf[i] = indexOf[narrowest(t, row)]
		for r := regionOf[i]; r >= 0; r = regions[r].Parent {
			for c := range at[i] {
				members[r][c] = append(members[r][c], at[i][c])
			}
		}
	}
	median := func(list []float64) float64 {
		slices.Sort(list)
		return list[len(list)/2]
	}
	for r := range regions {
		if n := len(members[r][0]); n > 0 {
			centre, radius := [2]float64{}, 0.0
			for c, list := range members[r] {
				centre[c] = median(list)
				for i := range list {
					list[i] = math.Abs(list[i] - centre[c])
				}
				radius = max(radius, median(list))
			}
			regions[r].X, regions[r].Y, regions[r].Radius = float32(centre[0]), float32(centre[1]), float32(radius)
		} else {
			regions[r].Words = []string{}
		}
	}
	return regionOf, regions
}

// chooseRows returns up to n rows with nonzeros: the first words, which in most files are the most frequent words, or
// evenly spaced texts.
func (x *Explorer) chooseRows(n int) []int {
	codes := x.model.Codes
	var rows []int
	for i := range codes.Rows {
		if codes.Ptr[i] < codes.Ptr[i+1] {
			rows = append(rows, i)
		}
	}
	n = min(n, len(rows))
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
	regionOf := map[int]int{} // by text; the last region counts
	for r, c := range codes {
		for _, n := range index.Nearest(c, regionTexts) {
			regionOf[n.Row] = r
		}
	}
	groups := make([][]int32, len(regions))
	for _, row := range slices.Sorted(maps.Keys(regionOf)) {
		groups[regionOf[row]] = append(groups[regionOf[row]], int32(row))
	}
	labels, _ := index.GroupLabels(groups, nil, regionWords)
	for r, label := range labels {
		regions[r].Words = label
	}
}

// colourings returns the columns that can colour the rows. Such a column has at least two values. Its most frequent
// values, one for each colour except grey, cover at least half of the rows.
func (x *Explorer) colourings(rows []int) []colouring {
	all := []colouring{}
	for _, column := range x.textColumns() {
		c := colouring{Name: column.Name, Of: make([]int, len(rows)), column: column, frequent: topics.MostFrequent(column.Values, rows, grey)}
		covered := 0
		for _, v := range c.frequent {
			c.Values = append(c.Values, v.Value)
			covered += v.Count
		}
		if len(c.Values) < 2 || 2*covered < len(rows) {
			continue
		}
		for i, row := range rows {
			c.Of[i] = slices.Index(c.Values, column.Values[row])
		}
		for i, value := range c.Values {
			c.Values[i] = text.Truncate(value, listedText)
			c.frequent[i].Value = c.Values[i]
		}
		all = append(all, c)
	}
	return all
}

// neighbours returns, for each dimension in x.summary.Strongest, the k other dimensions whose columns have the largest
// cosines with its column, nearest first. Each link holds the squared distance of two columns, scaled to norm 1.
//
// The inner products of a dimension with all others are sums over its rows. To limit the number of
// multiplications to about 10⁹ in all, neighbours takes an evenly spaced sample of the rows of large dimensions.
func (x *Explorer) neighbours(k int) [][]link {
	codes := x.model.Codes
	norms := x.columnNorms()
	maxWords := max(50, int(1e9*float64(codes.Rows)/float64(codes.Nonzeros()+1)/float64(codes.Cols)))
	near := make([][]link, len(x.summary.Strongest))
	parallel.Ranges(len(near), func(lo, hi int) {
		products := make([]float64, codes.Cols)
		for i := lo; i < hi; i++ {
			clear(products)
			rows, values := x.index.Dimension(x.summary.Strongest[i])
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
			for j, other := range x.summary.Strongest {
				if j != i {
					nearest.Add(ranking.Item{Index: j, Score: scale * products[other] / norms[x.summary.Strongest[i]] / norms[other]})
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
		norms[k] = interpret.Code{Value: x.index.Values(k)}.Norm()
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

// divide partitions points by k-means. It returns the index of each point's region, and the regions.
func divide(at [][2]float64) (regionOf []int, regions []region) {
	if len(at) == 0 {
		return []int{}, []region{}
	}
	var coordinates []float32
	for _, p := range at {
		coordinates = append(coordinates, float32(p[0]), float32(p[1]))
	}
	regions = make([]region, int(math.Ceil(math.Sqrt(float64(min(len(at), maxAnchors)))/2.5)))
	regionOf, _ = cluster.KMeans(context.Background(), coordinates, 2, len(regions), 1) // never cancelled
	sizes := make([]float32, len(regions))
	for i, of := range regionOf {
		r := &regions[of]
		sizes[of]++
		r.X += (coordinates[2*i] - r.X) / sizes[of]
		r.Y += (coordinates[2*i+1] - r.Y) / sizes[of]
	}
	for i := range regions {
		regions[i].Parent, regions[i].Colour = -1, chooseColour(regions[:i], regions[i])
	}
	return regionOf, regions
}

// chooseColour returns a colour for r: the colour whose nearest region in the slice others is farthest from r.
func chooseColour(others []region, r region) int {
	nearest := slices.Repeat([]float64{math.Inf(1)}, regionColours)
	for _, o := range others {
		nearest[o.Colour] = min(nearest[o.Colour], math.Hypot(float64(o.X-r.X), float64(o.Y-r.Y)))
	}
	return slices.Index(nearest, slices.Max(nearest))
}
