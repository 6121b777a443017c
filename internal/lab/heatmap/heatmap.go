// Package heatmap draws the codes of words as a picture, as the paper's figure (§4.2). It is
// apart from package interpret, whose programs need no library that draws.
package heatmap

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"overcomplete/internal/escape"
	"overcomplete/internal/memory"
	"overcomplete/interpret"
)

// Map is a picture of the codes of groups of words, as the paper's figure (§4.2):
// a row for each word and a column for each dimension. Negative values are red, zeros
// white and positive values blue; the larger a value, the stronger its colour.
type Map struct {
	rows       []mapRow // from above
	dimensions int
	largest    float64 // |value|
}

type mapRow struct {
	word    string
	columns []int // of the values
	values  []float64
}

// New returns a heat map of groups of words, given by their rows in x.
// Dimensions are in decreasing order of their mean over the first group; those that no
// word uses are left out.
func New(x *interpret.Index, groups [][]int) *Map {
	mean := make(map[int]float64) // over the first group, of each dimension in use
	for n, group := range groups {
		for _, i := range group {
			index, value := x.Codes.Row(i)
			for j, k := range index {
				first := 0.0
				if n == 0 {
					first = float64(value[j]) / float64(len(group))
				}
				mean[int(k)] += first
			}
		}
	}
	var order []int
	for k := range mean {
		order = append(order, k)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(mean[b], mean[a]), cmp.Compare(a, b)) })
	column := make(map[int]int)
	for c, k := range order {
		column[k] = c
	}
	h := &Map{dimensions: len(order)}
	for n, group := range groups {
		if n > 0 {
			h.rows = append(h.rows, mapRow{}) // between groups
		}
		for _, i := range group {
			row := mapRow{word: x.Codes.Words[i]}
			index, value := x.Codes.Row(i)
			for j, k := range index {
				row.columns = append(row.columns, column[int(k)])
				row.values = append(row.values, float64(value[j]))
				h.largest = max(h.largest, math.Abs(float64(value[j])))
			}
			h.rows = append(h.rows, row)
		}
	}
	return h
}

// Write draws the heat map in the given format, "png" or "svg"; it is an error to ask
// for another, and to ask for a "png" that is larger than memory. If ctx is cancelled
// before all is drawn, Write returns its error.
func (h *Map) Write(ctx context.Context, w io.Writer, format string) error {
	p := plot.New()
	p.Add(plotter{h, ctx})
	p.X.Label.Text = fmt.Sprintf("%d dimensions, by their mean over the first group", h.dimensions)
	p.X.Tick.Marker = plot.ConstantTicks(nil)
	var ticks []plot.Tick
	for r, row := range h.rows {
		if row.word != "" {
			ticks = append(ticks, plot.Tick{Value: h.y(r), Label: escape.Word(row.word)})
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Length, p.Y.LineStyle.Width, p.X.LineStyle.Width = 0, 0, 0
	p.Y.Tick.Label.Font.Variant, p.X.Label.TextStyle.Font.Variant = "Sans", "Sans"

	width, height := 10*vg.Inch, vg.Length(len(h.rows)+2)*vg.Inch/4
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case "png":
		const dpi = 160
		// Four bytes a point, and as much again for drawing.
		if err := memory.Check(8 * uint64(width.Dots(dpi)) * uint64(height.Dots(dpi))); err != nil {
			return fmt.Errorf("a picture of %d words: %w; there can be more of them in .svg", len(ticks), err)
		}
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	case "svg":
		canvas = vgsvg.New(width, height)
	default:
		return fmt.Errorf("heatmap: a picture can't be drawn as %q, only as png or svg", format)
	}
	p.Draw(draw.Crop(draw.New(canvas), 8, -8, 6, -6))
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := canvas.WriteTo(w)
	return err
}

// y is the height of a row's middle.
func (h *Map) y(row int) float64 { return float64(len(h.rows)-row) - .5 }

// plotter draws a heat map until ctx is done.
type plotter struct {
	*Map
	ctx context.Context
}

// DataRange implements [plot.DataRanger].
func (h plotter) DataRange() (xmin, xmax, ymin, ymax float64) {
	return 0, float64(max(h.dimensions, 1)), 0, float64(max(len(h.rows), 1))
}

// Plot implements [plot.Plotter]. It fills a rectangle for each value.
func (h plotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for r, row := range h.rows {
		if h.ctx.Err() != nil {
			return
		}
		bottom, top := y(h.y(r)-.5), y(h.y(r)+.5)
		for j, column := range row.columns {
			left, right := x(float64(column)), x(float64(column+1))
			c.FillPolygon(redWhiteBlue(row.values[j]/h.largest), []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
		}
	}
}

// redWhiteBlue returns the colour of a value from -1 to 1.
func redWhiteBlue(v float64) color.Color {
	faded := uint8(math.Round(255 * (1 - math.Abs(v))))
	if v < 0 {
		return color.RGBA{255, faded, faded, 255}
	}
	return color.RGBA{faded, faded, 255, 255}
}
