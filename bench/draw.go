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
