package experiment

import (
	"context"
	"io"
	"math"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // png
	_ "gonum.org/v1/plot/vg/vgsvg" // svg

	"overcomplete/internal/atomicfile"
)

// Figure is a plot of points with error bars, joined by lines.
type Figure struct {
	XLabel, YLabel string
	LogX           bool
	XTicks         []float64 // nil for the usual ones
	Lines          []Line
	XMark, YMark   Mark
}

// Line is a series of points.
type Line struct {
	Name   string // in the legend, "" for none
	Points []FigurePoint
}

// FigurePoint is a point with the standard error of Y, 0 to draw none, and a label.
type FigurePoint struct {
	X, Y, Stderr float64
	Label        string
}

// Mark is a dashed line across the figure at a value, if it has a name.
type Mark struct {
	Name string
	At   float64
}

// Save writes the figure as name.png and name.svg.
func (f Figure) Save(name string) error {
	name = filepath.Clean(name)
	return atomicfile.WriteFiles(context.Background(), []string{name + ".png", name + ".svg"}, true, func(files []io.Writer) error {
		for i, format := range []string{"png", "svg"} {
			p, err := f.plot()
			if err != nil {
				return err
			}
			canvas, err := p.WriterTo(6*vg.Inch, 4*vg.Inch, format)
			if err != nil {
				return err
			}
			if _, err := canvas.WriteTo(files[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f Figure) plot() (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = f.XLabel, f.YLabel
	for _, style := range []*draw.TextStyle{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	if f.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if f.XTicks != nil {
		var ticks plot.ConstantTicks
		for _, x := range f.XTicks {
			ticks = append(ticks, plot.Tick{Value: x, Label: number(x)})
		}
		p.X.Tick.Marker = ticks
	}
	xmin, xmax, ymin, ymax := f.XMark.extend(math.Inf(1), math.Inf(-1), f.YMark)
	for i, l := range f.Lines {
		points := errorBars{}
		labels := plotter.XYLabels{}
		for _, q := range l.Points {
			if math.IsNaN(q.Y) {
				continue
			}
			points.XYs = append(points.XYs, plotter.XY{X: q.X, Y: q.Y})
			points.YErrors = append(points.YErrors, struct{ Low, High float64 }{q.Stderr, q.Stderr})
			labels.XYs, labels.Labels = points.XYs, append(labels.Labels, q.Label)
			xmin, xmax = min(xmin, q.X), max(xmax, q.X)
			ymin, ymax = min(ymin, q.Y-q.Stderr), max(ymax, q.Y+q.Stderr)
		}
		if len(points.XYs) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points.XYs)
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(points)
		if err != nil {
			return nil, err
		}
		names, err := plotter.NewLabels(labels)
		if err != nil {
			return nil, err
		}
		for j := range names.TextStyle {
			names.TextStyle[j].Font.Variant = "Sans"
		}
		names.Offset = vg.Point{X: 4, Y: 4}
		line.Color, dots.Color, bars.Color = plotutil.Color(i), plotutil.Color(i), plotutil.Color(i)
		dots.Shape = draw.CircleGlyph{}
		p.Add(line, dots, bars, names)
		if l.Name != "" {
			p.Legend.Add(l.Name, line, dots)
		}
	}
	if xmin > xmax || ymin > ymax { // nothing to draw
		xmin, xmax, ymin, ymax = 1, 1, 0, 0
	}
	if xmin == xmax {
		xmin, xmax = xmin*0.9, xmax*1.1
	}
	if ymin == ymax {
		ymin, ymax = ymin-1, ymax+1
	}
	for _, m := range []struct {
		Mark
		from, to plotter.XY
	}{
		{f.XMark, plotter.XY{X: f.XMark.At, Y: ymin}, plotter.XY{X: f.XMark.At, Y: ymax}},
		{f.YMark, plotter.XY{X: xmin, Y: f.YMark.At}, plotter.XY{X: xmax, Y: f.YMark.At}},
	} {
		if m.Name == "" {
			continue
		}
		line, err := plotter.NewLine(plotter.XYs{m.from, m.to})
		if err != nil {
			return nil, err
		}
		line.Dashes = plotutil.Dashes(1)
		p.Add(line)
		p.Legend.Add(m.Name, line)
	}
	// Room for labels on the right, and for the legend above.
	if f.LogX {
		xmax *= math.Pow(xmax/xmin, 0.1)
	} else {
		xmax += (xmax - xmin) / 10
	}
	pad := (ymax - ymin) / 12
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xmin, xmax, ymin-pad, ymax+4*pad
	p.Legend.Top = true
	return p, nil
}

// extend returns the ranges that hold the marks.
func (x Mark) extend(low, high float64, y Mark) (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = low, high, low, high
	if x.Name != "" {
		xmin, xmax = x.At, x.At
	}
	if y.Name != "" {
		ymin, ymax = y.At, y.At
	}
	return xmin, xmax, ymin, ymax
}

type errorBars struct {
	plotter.XYs
	plotter.YErrors
}
