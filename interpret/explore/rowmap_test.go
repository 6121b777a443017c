package explore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"overcomplete/model"
	"overcomplete/vectors"
)

// grouped returns a model whose row i is in group i%groups. It uses half of the dimensions of its group, and few
// others.
func grouped(rows, groups int) *model.Model {
	rng := rand.New(rand.NewPCG(3, 4))
	m := planted(groups, 20, 0)
	c := m.Codes
	c.Rows = rows
	for i := range rows {
		c.IDs = append(c.IDs, fmt.Sprint("w", i))
		for k := range c.Cols {
			if in := k%groups == i%groups; in && rng.IntN(2) == 0 || rng.IntN(100) == 0 {
				c.Index, c.Value = append(c.Index, int32(k)), append(c.Value, rng.Float32()+.5)
			}
		}
		c.Ptr = append(c.Ptr, int64(len(c.Index)))
	}
	return m
}

func pointsOf(c rowMap) []point {
	points := make([]point, len(c.Rows))
	for i := range points {
		points[i].X, points[i].Y = float32(c.X[i])/side, float32(c.Y[i])/side
	}
	return points
}

// Rows that t-SNE doesn't place are beside rows of the same group, too.
func TestRowMapOfMany(t *testing.T) {
	const groups = 12
	m := grouped(maxAnchors+2000, groups)
	x := newExplorer(t, m, "test")
	points := pointsOf(x.rowMap())
	if share := recall(points[maxAnchors-500:maxAnchors+500], func(i, j int) bool { return i%groups == j%groups }); share < .9 { // chance: 0.08
		t.Errorf("%.3f of the twelve nearest words are of the same group, want 0.9", share)
	}
}

// Nearest neighbours on the map of words are of the same group, for any number of processors. Words of its groups
// name a region.
func TestRowMap(t *testing.T) {
	const groups = 12
	m := grouped(600, groups)
	c := newExplorer(t, m, "test").rowMap()
	points := pointsOf(c)
	majority := make([]map[int]int, len(c.Regions)) // by region: words per group
	for i, r := range c.Region {
		if c.Rows[i] != i || c.Words[i] != m.Codes.IDs[i] {
			t.Fatalf("point %d is row %d, %s", i, c.Rows[i], c.Words[i])
		}
		if majority[r] == nil {
			majority[r] = map[int]int{}
		}
		majority[r][i%groups]++
	}
	if share := recall(points, func(i, j int) bool { return i%groups == j%groups }); share < .95 {
		t.Errorf("%.3f of the twelve nearest words are of the same group, want 0.95", share)
	}
	for r, region := range c.Regions {
		if len(region.Words) != regionWords {
			t.Errorf("region %d is called %q", r, region.Words)
		}
		for _, w := range region.Words {
			var row int
			fmt.Sscanf(w, "w%d", &row)
			if 10*majority[r][row%groups] < len(c.Rows)/groups {
				t.Errorf("region %d is called %q, of whose group it has %d", r, w, majority[r][row%groups])
			}
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
	if again := newExplorer(t, m, "test").rowMap(); !reflect.DeepEqual(again, c) {
		t.Error("another map with another number of processors")
	}
}

// The map shows the first words, or texts at equal distances. It offers colours by columns whose most frequent
// values cover half of the texts.
func TestRowMapChooses(t *testing.T) {
	m := grouped(5000, 10)
	m.Codes.Ptr[1] = 0 // row 0 has a code of zeros
	x := newExplorer(t, m, "test")
	if rows := x.chooseRows(4000); len(rows) != 4000 || rows[0] != 1 || rows[3999] != 4000 || len(x.colourings(rows)) != 0 {
		t.Errorf("%d rows, from %d", len(rows), rows[0])
	}
	texts := &vectors.Texts{Columns: []vectors.Column{{Name: "kind"}, {Name: "date"}, {Name: "constant"}}}
	for i := range m.Codes.Rows {
		texts.Add("text", []string{fmt.Sprint("k", int(math.Sqrt(float64(i%100)))), fmt.Sprint(i), ""})
	}
	m.Codes.Texts = texts
	m.Info.Encoding.SetKind(texts)
	x = newExplorer(t, m, "test")
	rows := x.chooseRows(4000)
	if last := rows[len(rows)-1]; len(rows) != 4000 || last < 4990 {
		t.Errorf("%d rows, the last is %d", len(rows), last)
	}
	columns := x.colourings(rows)
	if len(columns) != 1 || columns[0].Name != "kind" {
		t.Fatalf("columns %+v", columns)
	}
	// 19 of 100 texts have the value k9, 17 have k8, …, 1 has k0.
	if got, want := columns[0].Values, strings.Fields("k9 k8 k7 k6 k5 k4 k3 k2 k1 k0"); !slices.Equal(got, want) {
		t.Errorf("values %q, want %q", got, want)
	}
	for i, row := range rows {
		if want := slices.Index(columns[0].Values, texts.Columns[0].Values[row]); columns[0].Of[i] != want {
			t.Fatalf("row %d has value %d, want %d", row, columns[0].Of[i], want)
		}
	}
}

// Rows without neighbours, equal rows, and models without nonzeros have a map. Its places differ.
func TestRowMapOdd(t *testing.T) {
	m := planted(3, 2, 0)
	c := m.Codes
	c.IDs = strings.Fields("a b c d e f")
	for i := range 6 {
		c.AppendRow([]int32{int32(i % 5)}, []float32{[]float32{1e-45, 1e30, 1, 1, 1, 1}[i]})
	}
	for _, rows := range []int{6, 2, 1, 0} {
		c.Rows, c.IDs, c.Ptr = rows, c.IDs[:rows], c.Ptr[:rows+1]
		c.Index, c.Value = c.Index[:rows], c.Value[:rows]
		x := newExplorer(t, m, "test")
		got := x.rowMap()
		if len(got.Rows) != rows || len(got.X) != rows || len(got.Y) != rows || len(got.Region) != rows {
			t.Errorf("%d rows: %+v", rows, got)
		}
		places := x.placeRows(got.Rows)
		for _, p := range x.dimensionMap().Points {
			places = append(places, [2]float64{float64(p.X), float64(p.Y)})
		}
		seen := map[[2]float64]bool{}
		for i, p := range places {
			if !(p[0] >= 0 && p[0] <= 1 && p[1] >= 0 && p[1] <= 1) || i < rows && seen[p] {
				t.Errorf("%d rows: row %d is at %v", rows, i, p)
			}
			seen[p] = true
		}
	}
}
