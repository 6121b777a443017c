package explore

import (
	"cmp"
	"slices"

	"overcomplete/interpret"
)

const (
	mappedRows = 4000              // that the map of rows has at most
	mostValues = regionColours - 1 // of a column, that have a colour: the last one is of all others
)

// rowChart is what the map of words or texts shows.
type rowChart struct {
	Points  []rowPoint `json:"points"` // by their rows
	Regions []region   `json:"regions"`
	Columns []coloured `json:"columns"` // those that a few values have half of the texts in
	said
}

// rowPoint is a row's place on the map.
type rowPoint struct {
	Row    int     `json:"row"`
	Word   string  `json:"word"`
	X      float32 `json:"x"` // 0 to 1
	Y      float32 `json:"y"`
	Region int     `json:"region"`
}

// coloured is a column by which texts have colours.
type coloured struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // its most frequent ones first
	Of     []int    `json:"of"`     // for each point, the index of its value in Values, or −1
}

// layoutRows makes the map of words or texts: those that have the same dimensions are close.
// Of many words it has the first, which in most files are the most frequent; of many texts some
// from everywhere. They begin where their dimensions are on the other map.
func (x *Explorer) layoutRows() rowChart {
	codes := x.model.Codes
	chosen := x.chooseRows()
	part := interpret.SelectRows(codes, chosen)
	index := interpret.NewIndex(part)
	near := make([][]link, len(chosen))
	for i := range near {
		for _, n := range index.Nearest(i, links) {
			near[i] = append(near[i], link{n.Row, max(2-2*n.Cosine, 0)})
		}
	}
	at := make(map[int]point, len(x.strongest))
	for _, p := range x.mapped().Points {
		at[p.Dimension] = p
	}
	start := make([][2]float64, len(chosen))
	for i := range start {
		sum := 0.0
		columns, values := part.Row(i)
		for j, k := range columns {
			w := float64(values[j]) * float64(values[j])
			p := at[int(k)]
			start[i][0] += w * float64(p.X)
			start[i][1] += w * float64(p.Y)
			sum += w
		}
		start[i][0], start[i][1] = start[i][0]/sum, start[i][1]/sum
	}

	c := rowChart{Points: make([]rowPoint, len(chosen)), Columns: x.columns(chosen)}
	places := make([][2]float32, len(chosen))
	for i, p := range place(near, start) {
		places[i] = [2]float32{float32(p[0]), float32(p[1])}
	}
	var of []int
	c.Regions, of = cluster(places)
	members := make([][]int, len(c.Regions))
	for i, row := range chosen {
		c.Points[i] = rowPoint{row, codes.Words[row], places[i][0], places[i][1], of[i]}
		c.add(x, row, false)
		members[of[i]] = append(members[of[i]], i)
	}
	for r := range c.Regions {
		c.Regions[r].Words = append(c.Regions[r].Words, x.typical(index, chosen, members[r])...)
	}
	return c
}

// chooseRows returns the rows that the map shows, all of which have some dimension.
func (x *Explorer) chooseRows() (rows []int) {
	codes := x.model.Codes
	for i := range codes.Rows {
		if codes.Ptr[i] < codes.Ptr[i+1] {
			rows = append(rows, i)
		}
	}
	if len(rows) <= mappedRows {
		return rows
	}
	if !x.about.Texts {
		return rows[:mappedRows]
	}
	for i := range mappedRows {
		rows[i] = rows[i*len(rows)/mappedRows]
	}
	return rows[:mappedRows]
}

// typical returns what members of a region are called by: keywords of texts, or the words that are
// nearest to all of them together.
func (x *Explorer) typical(index *interpret.Index, chosen, members []int) (words []string) {
	if x.about.Texts {
		rows := make([]int, len(members))
		for i, m := range members {
			rows[i] = chosen[m]
		}
		return x.index.Keywords(rows, regionWords)
	}
	var all interpret.Question
	for _, m := range members {
		all.Terms = append(all.Terms, interpret.Term{Row: m, Weight: 1})
	}
	columns, values := index.Combine(all)
	for _, n := range index.NearestTo(columns, values, regionWords) {
		words = append(words, index.Codes.Words[n.Row])
	}
	return words
}

// columns returns the columns of the texts by which rows can have colours: those of more than one
// value, whose few most frequent ones are those of half of the rows.
func (x *Explorer) columns(rows []int) []coloured {
	all := []coloured{}
	if !x.about.Texts {
		return all
	}
	for _, column := range x.model.Codes.Texts.Columns {
		if column.Name == "" { // what is chosen by its name
			continue
		}
		counts := map[string]int{}
		for _, row := range rows {
			counts[column.Values[row]]++
		}
		c := coloured{Name: column.Name, Of: make([]int, len(rows))}
		for value := range counts {
			c.Values = append(c.Values, value)
		}
		slices.SortFunc(c.Values, func(a, b string) int {
			return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
		})
		c.Values = c.Values[:min(mostValues, len(c.Values))]
		some := 0
		for i, row := range rows {
			if c.Of[i] = slices.Index(c.Values, column.Values[row]); c.Of[i] >= 0 {
				some++
			}
		}
		for i, value := range c.Values {
			c.Values[i] = cut(value, listedText)
		}
		if len(c.Values) > 1 && 2*some >= len(rows) {
			all = append(all, c)
		}
	}
	return all
}
