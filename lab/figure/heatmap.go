package figure

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A Row is a named row of a heat map. Rows without values separate groups.
type Row struct {
	Name   string
	Values []float64
}

// SaveHeatMap draws rows of n values as an SVG file. Negative values are red, zeros white and positive
// values blue. Colours are stronger for larger absolute values.
func SaveHeatMap(path, xLabel string, n int, rows []Row) error {
	grid := heatMap{n, rows}
	largest := 0.0
	var ticks plot.ConstantTicks
	for r, row := range rows {
		for _, v := range row.Values {
			largest = max(largest, math.Abs(v))
		}
		ticks = append(ticks, plot.Tick{Value: grid.Y(len(rows) - 1 - r), Label: row.Name})
	}
	p := plot.New()
	if largest > 0 {
		h := plotter.NewHeatMap(grid, redWhiteBlue{})
		h.Min, h.Max = -largest, largest
		p.Add(h)
	}
	p.X.Label.Text, p.X.Tick.Marker, p.Y.Tick.Marker = xLabel, plot.ConstantTicks(nil), ticks
	p.Y.Tick.Length, p.X.LineStyle.Width, p.Y.LineStyle.Width = 0, 0, 0
	return save(path, 10*vg.Inch, vg.Length(len(rows)+2)*vg.Inch/4, p.Draw)
}

// heatMap implements [plotter.GridXYZ], which counts rows from below.
type heatMap struct {
	columns int
	rows    []Row
}

func (h heatMap) Dims() (columns, rows int) { return h.columns, len(h.rows) }
func (h heatMap) X(column int) float64      { return float64(column) }
func (h heatMap) Y(row int) float64         { return float64(row) }

// Z returns a value. Zeros are not drawn: for them it returns NaN.
func (h heatMap) Z(column, row int) float64 {
	values := h.rows[len(h.rows)-1-row].Values
	if values == nil || values[column] == 0 {
		return math.NaN()
	}
	return values[column]
}

// redWhiteBlue implements [palette.Palette].
type redWhiteBlue struct{}

func (redWhiteBlue) Colors() []color.Color {
	var colors []color.Color
	for v := -255; v <= 255; v++ {
		faded := uint8(255 - max(v, -v))
		if v < 0 {
			colors = append(colors, color.RGBA{255, faded, faded, 255})
		} else {
			colors = append(colors, color.RGBA{faded, faded, 255, 255})
		}
	}
	return colors
}
