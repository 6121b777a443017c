package paper

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"overcomplete/internal/printing"
	"overcomplete/lab/figure"
	"overcomplete/vectors"
)

// heatMap draws the codes of the groups of words (§4.2). Dimensions are in decreasing order of
// their mean over the first group; dimensions that are zero for all words are left out.
func (e *Experiments) heatMap(b *strings.Builder, codes *vectors.Sparse) error {
	var groups [][]int // rows
	for _, group := range e.Groups {
		var rows []int
		for word := range strings.SplitSeq(group, ",") {
			if i := slices.Index(codes.IDs, word); i >= 0 {
				rows = append(rows, i)
			}
		}
		if rows != nil {
			groups = append(groups, rows)
		}
	}
	if groups == nil {
		return nil
	}
	rows, columns := heatMapRows(codes, groups)
	b.WriteString("## Heat map\n\n![Words over dimensions: negative values red, positive blue](heatmap.svg)\n")
	label := fmt.Sprintf("%d dimensions, by their mean over the first group", columns)
	return figure.SaveHeatMap(filepath.Join(e.Dir, "heatmap.svg"), label, columns, rows)
}

// heatMapRows returns the values of groups of rows in the dimensions that they use, and the number
// of these dimensions. An empty row separates groups.
func heatMapRows(codes *vectors.Sparse, groups [][]int) (rows []figure.Row, columns int) {
	mean := map[int32]float64{} // mean over the first group, by dimension in use
	weight := 1 / float64(len(groups[0]))
	for _, group := range groups {
		for _, i := range group {
			index, value := codes.Row(i)
			for j, k := range index {
				mean[k] += weight * float64(value[j])
			}
		}
		weight = 0
	}
	order := slices.SortedFunc(maps.Keys(mean), func(a, b int32) int { return cmp.Or(cmp.Compare(mean[b], mean[a]), cmp.Compare(a, b)) })
	column := map[int32]int{}
	for c, k := range order {
		column[k] = c
	}
	for n, group := range groups {
		if n > 0 {
			rows = append(rows, figure.Row{})
		}
		for _, i := range group {
			row := figure.Row{Name: printing.Word(codes.IDs[i]), Values: make([]float64, len(order))}
			index, value := codes.Row(i)
			for j, k := range index {
				row.Values[column[k]] = float64(value[j])
			}
			rows = append(rows, row)
		}
	}
	return rows, len(order)
}
