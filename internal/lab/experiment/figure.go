package experiment

import (
	"context"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"overcomplete/internal/atomicfile"
)

// Figure is panels in rows, all rows of one length, with a legend above and a note below.
type Figure struct {
	Panels        [][]Panel
	Legend        []Look
	Note          string
	Width, Height vg.Length
}

// Panel is lines over one measure, and marks.
type Panel struct {
	Title, XLabel string // Title is what Y is
	LogX, LogY    bool
	XTicks        []float64 // nil for the usual ones
	Lines         []Line
	XMark, YMark  Mark
}

// Line is a series of points joined by lines. Those with a Y that is no number are left out.
type Line struct {
	Look
	Points []FigurePoint
}

// FigurePoint is a point with the deviation of Y, 0 to draw none, and a label.
type FigurePoint struct {
	X, Y, Deviation float64
	Label           string
}

// Look is how a line is drawn, by its name in the legend.
type Look struct {
	Name   string
	Color  color.Color
	Dashed bool
}

// add adds a point to the last line, if it looks so, or to a new one.
func (p *Panel) add(look Look, q FigurePoint) {
	if n := len(p.Lines); n == 0 || p.Lines[n-1].Look != look {
		p.Lines = append(p.Lines, Line{Look: look})
	}
	l := &p.Lines[len(p.Lines)-1]
	l.Points = append(l.Points, q)
}

// Mark is a dashed line across a panel at a value, if it has a name and the value is a number.
type Mark struct {
	Name string
	At   float64
}

func (m Mark) drawn() bool { return m.Name != "" && !math.IsNaN(m.At) }

// Colours that colour-blind people can tell apart: Okabe and Ito's.
var (
	blue       = color.RGBA{0x00, 0x72, 0xB2, 0xFF}
	skyBlue    = color.RGBA{0x56, 0xB4, 0xE9, 0xFF}
	vermillion = color.RGBA{0xD5, 0x5E, 0x00, 0xFF}
	orange     = color.RGBA{0xE6, 0x9F, 0x00, 0xFF}
	faint      = color.Gray{0x60}
)

// Save writes a figure of one panel as name.png and name.svg. Its lines are in the legend.
func (p Panel) Save(name string) error {
	f := Figure{Panels: [][]Panel{{p}}, Width: 6 * vg.Inch, Height: 4 * vg.Inch}
	for i := range p.Lines {
		l := &p.Lines[i].Look
		l.Color = []color.Color{blue, vermillion}[i%2]
		f.Legend = append(f.Legend, *l)
	}
	return f.Save(name)
}

// Save writes the figure as name.png and name.svg.
func (f Figure) Save(name string) error {
	name = filepath.Clean(name)
	return atomicfile.WriteFiles(context.Background(), []string{name + ".png", name + ".svg"}, true, func(files []io.Writer) error {
		for i, canvas := range []vg.CanvasWriterTo{
			vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(f.Width, f.Height), vgimg.UseDPI(192))},
			vgsvg.New(f.Width, f.Height),
		} {
			if err := f.draw(draw.NewCanvas(canvas, f.Width, f.Height)); err != nil {
				return err
			}
			if _, err := canvas.WriteTo(files[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f Figure) draw(c draw.Canvas) error {
	c.SetColor(color.White) // readers' pages may be dark
	c.Fill(c.Rectangle.Path())
	plots := make([][]*plot.Plot, len(f.Panels))
	for i, row := range f.Panels {
		for _, p := range row {
			drawn, err := p.plot()
			if err != nil {
				return err
			}
			plots[i] = append(plots[i], drawn)
		}
	}
	const legend, title = 28, 20
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: 16, PadY: title + 8, PadTop: title, PadBottom: 14, PadLeft: 8, PadRight: 12}
	for i, row := range plot.Align(plots, tiles, draw.Crop(c, 0, 0, 0, -legend)) {
		above := vg.Length(0)
		for j, at := range row {
			plots[i][j].Draw(at)
			above = max(above, at.Max.Y)
		}
		for j, at := range row {
			axis := plots[i][j].DataCanvas(at).Min.X
			c.FillText(textStyle(9.5), vg.Point{X: axis - 8, Y: above + 7}, f.Panels[i][j].Title)
		}
	}
	f.drawLegend(draw.Crop(c, 10, -12, c.Max.Y-c.Min.Y-legend, 0))
	note := textStyle(8)
	note.Color, note.XAlign = faint, draw.XRight
	c.FillText(note, vg.Point{X: c.Max.X - 12, Y: c.Min.Y + 5}, f.Note)
	return nil
}

// drawLegend draws a line of text, a sample before each name, over the whole width unless that
// is too much for what there is.
func (f Figure) drawLegend(c draw.Canvas) {
	text := textStyle(8)
	text.YAlign = draw.YCenter
	const sample, gap, most = 20, 4, 40
	width := vg.Length(0)
	for _, l := range f.Legend {
		width += sample + gap + text.Width(l.Name)
	}
	space := min((c.Max.X-c.Min.X-width)/vg.Length(max(len(f.Legend)-1, 1)), most)
	x, y := c.Min.X, (c.Min.Y+c.Max.Y)/2
	for _, l := range f.Legend {
		if l.Name == "" {
			continue
		}
		line, glyph := l.style()
		c.StrokeLine2(line, x, y, x+sample, y)
		c.DrawGlyph(glyph, vg.Point{X: x + sample/2, Y: y})
		c.FillText(text, vg.Point{X: x + sample + gap, Y: y}, l.Name)
		x += sample + gap + text.Width(l.Name) + space
	}
}

func (l Look) style() (draw.LineStyle, draw.GlyphStyle) {
	line := draw.LineStyle{Color: l.Color, Width: 1.4}
	glyph := draw.GlyphStyle{Color: l.Color, Radius: 2.6, Shape: draw.CircleGlyph{}}
	if l.Dashed {
		line.Dashes, glyph.Shape, glyph.Radius = []vg.Length{4, 2.5}, draw.PyramidGlyph{}, 3.2
	}
	return line, glyph
}

func textStyle(size vg.Length) draw.TextStyle {
	f := font.From(plot.DefaultFont, size)
	f.Variant = "Sans"
	return draw.TextStyle{Color: color.Black, Font: f, Handler: plot.DefaultTextHandler}
}

type errorBars struct {
	plotter.XYs
	plotter.YErrors
}

func (of Panel) plot() (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.X.Label.TextStyle = of.XLabel, textStyle(9)
	p.X.Label.TextStyle.XAlign, p.X.Label.TextStyle.YAlign = draw.XCenter, draw.YBottom
	p.X.Tick.Label.Font, p.Y.Tick.Label.Font = textStyle(8.5).Font, textStyle(8.5).Font
	p.X.Padding, p.Y.Padding = 2, 2
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{0xE4}
	p.Add(grid)

	room := 0.05                                  // at the ends of X
	for _, l := range slices.Backward(of.Lines) { // what comes first lies on top
		points, labels := errorBars{}, plotter.XYLabels{}
		for _, q := range l.Points {
			p.X.Min, p.X.Max = min(p.X.Min, q.X), max(p.X.Max, q.X)
			if math.IsNaN(q.Y) || of.LogY && q.Y <= 0 {
				continue
			}
			if math.IsNaN(q.Deviation) || of.LogY && q.Deviation >= q.Y {
				q.Deviation = 0
			}
			points.XYs = append(points.XYs, plotter.XY{X: q.X, Y: q.Y})
			points.YErrors = append(points.YErrors, struct{ Low, High float64 }{q.Deviation, q.Deviation})
			labels.Labels = append(labels.Labels, q.Label)
			if q.Label != "" {
				room = 0.15
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		joined, dots, err := plotter.NewLinePoints(points.XYs)
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(points)
		if err != nil {
			return nil, err
		}
		labels.XYs = points.XYs
		names, err := plotter.NewLabels(labels)
		if err != nil {
			return nil, err
		}
		names.Offset = vg.Point{X: 4, Y: 4}
		for i := range names.TextStyle {
			names.TextStyle[i] = textStyle(8)
		}
		joined.LineStyle, dots.GlyphStyle = l.style()
		bars.LineStyle, bars.CapWidth = draw.LineStyle{Color: joined.Color, Width: 1}, 5
		p.Add(joined, bars, dots, names)
	}
	if m := of.XMark; m.drawn() {
		p.X.Min, p.X.Max = min(p.X.Min, m.At), max(p.X.Max, m.At)
	}
	if m := of.YMark; m.drawn() {
		p.Y.Min, p.Y.Max = min(p.Y.Min, m.At), max(p.Y.Max, m.At)
	}
	pad(&p.X, of.LogX, room)
	pad(&p.Y, of.LogY, 0.06)
	if of.XTicks != nil {
		var ticks plot.ConstantTicks
		for _, x := range of.XTicks {
			ticks = append(ticks, plot.Tick{Value: x, Label: number(x)})
		}
		p.X.Tick.Marker = ticks
	}
	for _, m := range []struct {
		Mark
		x, y float64 // where it ends; it begins at the left, or below
	}{{of.XMark, of.XMark.At, p.Y.Max}, {of.YMark, p.X.Max, of.YMark.At}} {
		if !m.drawn() {
			continue
		}
		from := plotter.XY{X: min(p.X.Min, m.x), Y: m.y}
		if m.Mark == of.XMark {
			from = plotter.XY{X: m.x, Y: p.Y.Min}
		}
		line, err := plotter.NewLine(plotter.XYs{from, {X: m.x, Y: m.y}})
		if err != nil {
			return nil, err
		}
		line.LineStyle = draw.LineStyle{Color: faint, Width: 0.8, Dashes: []vg.Length{1.5, 2}}
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{from}, Labels: []string{m.Name}})
		if err != nil {
			return nil, err
		}
		label.TextStyle[0] = textStyle(8)
		label.TextStyle[0].Color = faint
		label.Offset = vg.Point{X: 2, Y: 2}
		p.Add(line, label)
	}
	return p, nil
}

// pad makes an axis longer by a share of its length at both ends, and puts ticks on it.
func pad(a *plot.Axis, log bool, share float64) {
	if a.Min > a.Max { // nothing is drawn
		a.Min, a.Max = 1, 10
	}
	if log {
		f := math.Pow(a.Max/a.Min, share) * 1.01
		a.Min, a.Max, a.Scale, a.Tick.Marker = a.Min/f, a.Max*f, plot.LogScale{}, plot.TickerFunc(logTicks)
		return
	}
	by := share*(a.Max-a.Min) + 0.5
	a.Min, a.Max, a.Tick.Marker = a.Min-by, a.Max+by, plot.TickerFunc(ticks)
}

// ticks returns two to seven ticks at multiples of 1, 2 or 5 times a power of ten.
func ticks(low, high float64) (ticks []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10(high-low)))
	for _, factor := range []float64{0.2, 0.5, 1, 2} {
		if (high-low)/(factor*step) <= 7 {
			step *= factor
			break
		}
	}
	for n := math.Ceil(low / step); n*step <= high; n++ {
		x := n * step
		ticks = append(ticks, plot.Tick{Value: x, Label: strconv.FormatFloat(x+0, 'f', -1, 32)})
	}
	return ticks
}

// logTicks returns ticks at 1 and 3 times powers of ten or, if these are fewer than two, at
// more multiples, or in the middle.
func logTicks(low, high float64) (ticks []plot.Tick) {
	for _, digits := range [][]float64{{1, 3}, {1, 2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		ticks = nil
		for exponent := math.Floor(math.Log10(low)); exponent <= math.Log10(high); exponent++ {
			for _, digit := range digits {
				if x, _ := strconv.ParseFloat(fmt.Sprintf("%ge%g", digit, exponent), 64); low <= x && x <= high {
					ticks = append(ticks, plot.Tick{Value: x, Label: number(x)})
				}
			}
		}
		if len(ticks) > 1 {
			return ticks
		}
	}
	if len(ticks) == 0 {
		middle, _ := strconv.ParseFloat(fmt.Sprintf("%.2g", math.Sqrt(low*high)), 64)
		ticks = append(ticks, plot.Tick{Value: middle, Label: number(middle)})
	}
	return ticks
}
