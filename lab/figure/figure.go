// Package figure draws measurements as PNG and SVG files:
//
//	line := figure.Line{Name: "ours", Color: figure.Colors[0], Points: []figure.Point{{X: 90, Y: 57.6}, {X: 95, Y: 58.4}}}
//	err := figure.Save("wordsim", 1, figure.Panel{Title: "WS-353", XLabel: "sparsity, %", Lines: []figure.Line{line}})
package figure

import (
	"context"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"overcomplete/internal/atomicfile"
)

// A Panel is a plot of lines.
type Panel struct {
	Title, XLabel string
	LogX, LogY    bool
	Lines         []Line
	Level         float64 // Y of a horizontal line, such as the score of the dense vectors; 0 for no line
}

// A Line is a series of points, joined in their order. Lines with the same name share an entry of
// the legend; unnamed lines have no entry.
type Line struct {
	Name   string
	Color  color.Color
	Dashed bool
	Points []Point
}

// A Point is a measurement with a label and its standard deviation, which is 0 if unknown. A point is left out if its Y
// is NaN or if a logarithmic axis can't show it.
type Point struct {
	X, Y, Deviation float64
	Label           string
}

// Colors are six colours of Okabe and Ito's palette, which colour-blind people can distinguish.
var Colors = []color.Color{
	color.RGBA{0x00, 0x72, 0xB2, 0xFF}, color.RGBA{0xD5, 0x5E, 0x00, 0xFF}, color.RGBA{0x56, 0xB4, 0xE9, 0xFF},
	color.RGBA{0xE6, 0x9F, 0x00, 0xFF}, color.RGBA{0x00, 0x9E, 0x73, 0xFF}, color.RGBA{0x80, 0x80, 0x80, 0xFF},
}

// Save draws panels in a grid of the given number of columns, with a legend on the right, as name.png
// and name.svg.
func Save(name string, columns int, panels ...Panel) error {
	const panelWidth, panelHeight = 4 * vg.Inch, 3 * vg.Inch
	tiles := draw.Tiles{Rows: (len(panels) + columns - 1) / columns, Cols: columns, PadX: 16, PadY: 12}
	plots := make([][]*plot.Plot, tiles.Rows)
	legend := plot.NewLegend()
	legend.Top, legend.Left, legend.Padding = true, true, 3
	var named []string
	legendWidth := vg.Length(0)
	for i, panel := range panels {
		p := plot.New()
		if i%columns == 0 {
			plots[i/columns] = make([]*plot.Plot, columns)
		}
		plots[i/columns][i%columns] = p
		for _, l := range panel.Lines {
			shown, err := panel.add(p, l)
			if err != nil {
				return err
			}
			if l.Name != "" && shown != nil && !slices.Contains(named, l.Name) {
				legend.Add(l.Name, shown...)
				named = append(named, l.Name)
				legendWidth = max(legendWidth, legend.TextStyle.Width(l.Name)+legend.ThumbnailWidth+24)
			}
		}
		panel.style(p)
	}
	width, height := vg.Length(columns)*panelWidth+legendWidth, vg.Length(tiles.Rows)*panelHeight
	return save(name, width, height, func(c draw.Canvas) {
		legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-legendWidth+12, 0, 0, 0))
		c = draw.Crop(c, 0, -legendWidth, 0, 0)
		for i, row := range plot.Align(plots, tiles, c) {
			for j, at := range row {
				if plots[i][j] != nil {
					plots[i][j].Draw(at)
				}
			}
		}
	})
}

// add draws a line with its points, error bars and labels, and returns its thumbnails for the legend.
func (panel *Panel) add(p *plot.Plot, l Line) ([]plot.Thumbnailer, error) {
	var points struct {
		plotter.XYs
		plotter.YErrors
	}
	var labels []string
	for _, q := range l.Points {
		if math.IsNaN(q.Y) || panel.LogX && q.X <= 0 || panel.LogY && q.Y <= 0 {
			continue
		}
		if math.IsNaN(q.Deviation) || panel.LogY && q.Deviation >= q.Y {
			q.Deviation = 0
		}
		points.XYs = append(points.XYs, plotter.XY{X: q.X, Y: q.Y})
		points.YErrors = append(points.YErrors, struct{ Low, High float64 }{q.Deviation, q.Deviation})
		labels = append(labels, q.Label)
	}
	if len(labels) == 0 {
		return nil, nil
	}
	line, dots, err := plotter.NewLinePoints(points.XYs)
	if err != nil {
		return nil, err
	}
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return nil, err
	}
	texts, err := plotter.NewLabels(plotter.XYLabels{XYs: points.XYs, Labels: labels})
	if err != nil {
		return nil, err
	}
	texts.Offset = vg.Point{X: 4, Y: 4}
	line.LineStyle = draw.LineStyle{Color: l.Color, Width: 1.4}
	bars.LineStyle = draw.LineStyle{Color: l.Color, Width: 1}
	dots.GlyphStyle = draw.GlyphStyle{Color: l.Color, Radius: 2.6, Shape: draw.CircleGlyph{}}
	if l.Dashed {
		line.Dashes, dots.Shape = []vg.Length{4, 2.5}, draw.PyramidGlyph{}
	}
	p.Add(line, bars, dots, texts)
	return []plot.Thumbnailer{line, dots}, nil
}

// style sets the panel's title, axes and level.
func (panel *Panel) style(p *plot.Plot) {
	p.Title.Text, p.X.Label.Text = panel.Title, panel.XLabel
	if p.X.Min > p.X.Max { // nothing is drawn
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1, 10, 1, 10
	}
	if level := panel.Level; level != 0 && !math.IsNaN(level) {
		line, _ := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: level}, {X: p.X.Max, Y: level}})
		line.LineStyle = draw.LineStyle{Color: color.Gray{0x60}, Width: 0.8, Dashes: []vg.Length{1.5, 2}}
		p.Add(line)
	}
	if panel.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if panel.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
}

// save draws a picture of the given size as name.png and name.svg.
func save(name string, width, height vg.Length, paint func(c draw.Canvas)) error {
	for i, canvas := range []vg.CanvasWriterTo{
		vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(160))},
		vgsvg.New(width, height),
	} {
		path := name + []string{".png", ".svg"}[i]
		c := draw.NewCanvas(canvas, width, height)
		c.SetColor(color.White) // the page around an SVG may be dark
		c.Fill(c.Rectangle.Path())
		paint(draw.Crop(c, 8, -8, 8, -8))
		err := atomicfile.WriteFile(context.Background(), path, true, func(w io.Writer) error {
			_, err := canvas.WriteTo(w)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func init() {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
}
