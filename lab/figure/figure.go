// Package figure draws measurements as SVG files:
//
//	line := figure.Line{Name: "ours", Points: []figure.Point{{X: 90, Y: 57.6}, {X: 95, Y: 58.4}}}
//	err := figure.Panel{Title: "WS-353", XLabel: "sparsity, %", Lines: []figure.Line{line}}.Save("wordsim.svg")
package figure

import (
	"cmp"
	"context"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"overcomplete/internal/atomicfile"
)

// A Panel is a plot of lines.
type Panel struct {
	Title, XLabel string
	Lines         []Line
	Level         float64 // Y of a horizontal line, such as the score of the dense vectors; 0 for no line
}

// A Line is a series of points, joined in their order. Unnamed lines have no entry in the legend.
type Line struct {
	Name   string
	Points []Point
}

// A Point is a measurement with a label. Deviation is its standard deviation, or 0 if unknown. A point whose Y is NaN
// is left out.
type Point struct {
	X, Y, Deviation float64
	Label           string
}

// colors are six colours of Okabe and Ito's palette, which colour-blind people can distinguish.
var colors = []color.Color{
	color.RGBA{0x00, 0x72, 0xB2, 0xFF}, color.RGBA{0xD5, 0x5E, 0x00, 0xFF}, color.RGBA{0x56, 0xB4, 0xE9, 0xFF},
	color.RGBA{0xE6, 0x9F, 0x00, 0xFF}, color.RGBA{0x00, 0x9E, 0x73, 0xFF}, color.RGBA{0x80, 0x80, 0x80, 0xFF},
}

// Save draws a panel, with a legend on the right.
func (panel Panel) Save(path string) error {
	const panelWidth, panelHeight = 4 * vg.Inch, 3 * vg.Inch
	p, legend := plot.New(), plot.NewLegend()
	legend.Top, legend.Left, legend.Padding = true, true, 3
	legendWidth := vg.Length(0)
	for i, l := range panel.Lines {
		shown, err := l.add(p, colors[i%len(colors)])
		if err != nil {
			return err
		}
		if l.Name != "" && shown != nil {
			legend.Add(l.Name, shown...)
			legendWidth = max(legendWidth, legend.TextStyle.Width(l.Name)+legend.ThumbnailWidth+24)
		}
	}
	panel.style(p)
	return save(path, panelWidth+legendWidth, panelHeight, func(c draw.Canvas) {
		legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-legendWidth+12, 0, 0, 0))
		p.Draw(draw.Crop(c, 0, -legendWidth, 0, 0))
	})
}

// add draws a line with its points, error bars and labels, and returns its thumbnails for the legend.
func (l Line) add(p *plot.Plot, c color.Color) ([]plot.Thumbnailer, error) {
	var points struct {
		plotter.XYs
		plotter.YErrors
	}
	var labels []string
	for _, q := range l.Points {
		if math.IsNaN(q.Y) {
			continue
		}
		if math.IsNaN(q.Deviation) {
			q.Deviation = 0
		}
		points.XYs = append(points.XYs, plotter.XY{X: q.X, Y: q.Y})
		points.YErrors = append(points.YErrors, struct{ Low, High float64 }{q.Deviation, q.Deviation})
		labels = append(labels, q.Label)
	}
	if len(labels) == 0 {
		return nil, nil
	}
	line, dots, lineErr := plotter.NewLinePoints(points.XYs)
	bars, barsErr := plotter.NewYErrorBars(points)
	texts, textsErr := plotter.NewLabels(plotter.XYLabels{XYs: points.XYs, Labels: labels})
	if err := cmp.Or(lineErr, barsErr, textsErr); err != nil {
		return nil, err
	}
	texts.Offset = vg.Point{X: 4, Y: 4}
	line.LineStyle = draw.LineStyle{Color: c, Width: 1.4}
	bars.LineStyle = draw.LineStyle{Color: c, Width: 1}
	dots.GlyphStyle = draw.GlyphStyle{Color: c, Radius: 2.6, Shape: draw.CircleGlyph{}}
	p.Add(line, bars, dots, texts)
	return []plot.Thumbnailer{line, dots}, nil
}

func (panel Panel) style(p *plot.Plot) {
	p.Title.Text, p.X.Label.Text = panel.Title, panel.XLabel
	if p.X.Min > p.X.Max { // nothing is drawn
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1, 10, 1, 10
	}
	if level := panel.Level; level != 0 && !math.IsNaN(level) {
		line, _ := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: level}, {X: p.X.Max, Y: level}})
		line.LineStyle = draw.LineStyle{Color: color.Gray{0x60}, Width: 0.8, Dashes: []vg.Length{1.5, 2}}
		p.Add(line)
	}
}

func save(path string, width, height vg.Length, paint func(c draw.Canvas)) error {
	canvas := vgsvg.New(width, height)
	c := draw.NewCanvas(canvas, width, height)
	c.SetColor(color.White) // the page around an SVG may be dark
	c.Fill(c.Rectangle.Path())
	paint(draw.Crop(c, 8, -8, 8, -8))
	return atomicfile.WriteFile(context.Background(), path, true, func(w io.Writer) error {
		_, err := canvas.WriteTo(w)
		return err
	})
}

func init() {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
}
