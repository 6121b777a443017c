//go:build !gpu

package main

import (
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // draws .png
	_ "gonum.org/v1/plot/vg/vgsvg" // draws .svg
)

// draw draws the trainings and their lines, side by side, into name.svg and
// name.png.
func (r *GrowthReport) draw(name string) error {
	var plots []*plot.Plot
	for _, g := range []*Growth{&r.Words, &r.Atoms} {
		p, err := g.plot()
		if err != nil {
			return err
		}
		plots = append(plots, p)
	}
	return drawFiles(name, plots)
}

// draw draws the most memory over words into name.svg and name.png.
func (r *MemoryReport) draw(name string) error {
	plot.DefaultFont.Variant = "Sans"
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "words", "most memory resident, MB"
	for _, command := range []string{"train", "encode"} {
		var points plotter.XYs
		for _, m := range r.Runs {
			if m.Command == command {
				points = append(points, plotter.XY{X: float64(m.Words), Y: float64(m.Bytes) / 1e6})
			}
		}
		line, scatter, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, scatter.Radius = color.Gray{Y: 0x80}, 2.5
		scatter.Color = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
		scatter.Shape = draw.CircleGlyph{}
		if command == "encode" {
			scatter.Shape = draw.RingGlyph{}
		}
		p.Add(line, scatter)
		p.Legend.Add(command, scatter)
	}
	p.X.Min, p.Y.Min = 0, 0
	p.Y.Max *= 1.3 // room for the legend
	p.Legend.Top = true
	return drawFiles(name, []*plot.Plot{p})
}

// draw draws both scores over the seconds that trainings took, into name.svg and name.png.
// Those of dense vectors, which take none, are lines.
func (r *VocabularyReport) draw(name string) error {
	plot.DefaultFont.Variant = "Sans"
	var plots []*plot.Plot
	for _, score := range []struct {
		label string
		of    func(v VocabularyRow) float64
	}{{"WS-353", func(v VocabularyRow) float64 { return v.Similarity }}, {"average of the other tasks", func(v VocabularyRow) float64 { return v.Average }}} {
		p := plot.New()
		p.X.Label.Text, p.Y.Label.Text = "seconds to train", score.label
		for _, v := range r.Rows {
			y := score.of(v)
			name, at := plotter.XYLabels{XYs: plotter.XYs{{X: v.Seconds, Y: y}}, Labels: []string{v.Name}}, vg.Point{X: 5, Y: -3}
			if v.Seconds == 0 {
				line := plotter.NewFunction(func(float64) float64 { return y })
				line.Color, line.Dashes = color.Gray{Y: 0x80}, []vg.Length{2, 2}
				p.Add(line)
				at = vg.Point{X: 2, Y: 2}
			} else {
				dot, err := plotter.NewScatter(name.XYs)
				if err != nil {
					return err
				}
				dot.Shape, dot.Radius, dot.Color = draw.CircleGlyph{}, 3, color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
				p.Add(dot)
			}
			labels, err := plotter.NewLabels(name)
			if err != nil {
				return err
			}
			labels.Offset = at
			p.Add(labels)
			p.X.Max, p.Y.Min, p.Y.Max = max(p.X.Max, 1.35*v.Seconds), min(p.Y.Min, y-1), max(p.Y.Max, y+1)
		}
		p.X.Min = 0
		plots = append(plots, p)
	}
	return drawFiles(name, plots)
}

// drawFiles draws plots side by side into name.svg and name.png.
func drawFiles(name string, plots []*plot.Plot) error {
	for _, format := range []string{"svg", "png"} {
		canvas, err := draw.NewFormattedCanvas(vg.Length(10*len(plots))*vg.Centimeter, 7*vg.Centimeter, format)
		if err != nil {
			return err
		}
		// The readers' pages may be dark.
		area := draw.New(canvas)
		area.SetColor(color.White)
		area.Fill(area.Rectangle.Path())
		tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: vg.Centimeter, PadTop: 4, PadBottom: 4, PadLeft: 4, PadRight: 12}
		for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, area)[0] {
			plots[i].Draw(c)
		}
		f, err := os.Create(name + "." + format)
		if err != nil {
			return err
		}
		if _, err := canvas.WriteTo(f); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// plot returns the trainings as points, over what they vary, and their line.
func (g *Growth) plot() (*plot.Plot, error) {
	var points plotter.XYs
	for _, p := range g.Points {
		points = append(points, plotter.XY{X: g.size(p), Y: p.Seconds})
	}
	scatter, err := plotter.NewScatter(points)
	if err != nil {
		return nil, err
	}
	scatter.Shape, scatter.Radius = draw.CircleGlyph{}, 2.5
	scatter.Color = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	line := plotter.NewFunction(func(x float64) float64 { return g.Intercept + g.Slope*x })
	line.Color = color.Gray{Y: 0x80}

	plot.DefaultFont.Variant = "Sans"
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = g.Over, "seconds an epoch"
	p.Title.Text = g.line()
	p.Title.TextStyle.Font.Size = 10
	p.Add(line, scatter)
	p.X.Min, p.Y.Min = 0, 0
	return p, nil
}
