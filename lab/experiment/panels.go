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
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"overcomplete/internal/atomicfile"
	"overcomplete/lab/eval"
	"overcomplete/lab/intrusion"
)

// The look of a frontier's lines: a colour for each dictionary (Okabe and Ito's, which
// colour-blind people can tell apart), and a dash and a mark for each method.
var looks = []struct {
	kind string // a suffix of [Point.Kind]
	name string // in the legend
	color.Color
}{
	{"best", "best", color.RGBA{0x00, 0x72, 0xB2, 0xFF}},
	{"best, no anchor", "best, no anchor", color.RGBA{0x56, 0xB4, 0xE9, 0xFF}},
	{"paper", "paper", color.RGBA{0xD5, 0x5E, 0x00, 0xFF}},
	{"paper, words", "paper, from words", color.RGBA{0xE6, 0x9F, 0x00, 0xFF}},
	{string(intrusion.RandomDictionary), "random dictionary (control)", color.Gray{0x80}},
	{string(intrusion.WordRows), "word rows (control)", color.Gray{0x00}},
}

var faint = color.Gray{0x60}

// Draw draws the frontier as name.png and name.svg: measures over the number of nonzeros,
// with standard deviations over seeds.
func (m *Measured) Draw(name string) error {
	name = filepath.Clean(name)
	const width, height = 9.2 * vg.Inch, 5.9 * vg.Inch
	return atomicfile.WriteFiles(context.Background(), []string{name + ".png", name + ".svg"}, true, func(files []io.Writer) error {
		for i, canvas := range []vg.CanvasWriterTo{
			vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(192))},
			vgsvg.New(width, height),
		} {
			if err := m.draw(draw.NewCanvas(canvas, width, height)); err != nil {
				return err
			}
			if _, err := canvas.WriteTo(files[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// A panel is a measure of a frontier.
type panel struct {
	title string
	measure
	log    bool
	mark   string // of a dashed line, "" for none
	markAt float64
}

func (m *Measured) panels() [][]panel {
	x := func(v measure) float64 { return v.of(m.dense) }
	averaged := m.scores.Averaged()
	similarity := score(eval.TuningTask)
	const guessing = 20
	return [][]panel{{
		{"reconstruction error, mean ‖x − aD‖²", residual, true, "", 0},
		{"average score in " + plural(len(averaged), "task") + ", %", m.average(), false, "dense X", x(m.average())},
		{"word similarity, " + eval.TuningTask + ", ρ × 100", similarity, false, "dense X", x(similarity)},
	}, {
		{"intruders found among top words, %", intruders, false, "dense X", x(intruders)},
		{"… in the strongest quarter of values, %", quarter(0), false, "guessing", guessing},
		{"cosine of atoms with those of seed 1, × 100", stability, false, "", 0},
	}}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// draw draws the legend above the panels.
func (m *Measured) draw(c draw.Canvas) error {
	c.SetColor(color.White) // readers' pages may be dark
	c.Fill(c.Rectangle.Path())
	panels := m.panels()
	plots := make([][]*plot.Plot, len(panels))
	for i, row := range panels {
		for _, p := range row {
			drawn, err := m.plot(p)
			if err != nil {
				return err
			}
			if i+1 == len(panels) {
				drawn.X.Label.Text = "nonzeros a word"
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
			c.FillText(textStyle(9.5), vg.Point{X: axis - 8, Y: above + 7}, panels[i][j].title)
		}
	}
	drawLegend(draw.Crop(c, 10, -12, c.Max.Y-c.Min.Y-legend, 0))
	note := textStyle(8)
	note.Color, note.XAlign = faint, draw.XRight
	c.FillText(note, vg.Point{X: c.Max.X - 12, Y: c.Min.Y + 5}, "means over seeds, bars of a standard deviation")
	return nil
}

// style returns how the line of a kind of point is drawn.
func style(kind string) (draw.LineStyle, draw.GlyphStyle) {
	dictionary := strings.TrimPrefix(strings.TrimPrefix(kind, "A, "), "B, ")
	var of color.Color = color.Black
	for _, l := range looks {
		if l.kind == dictionary {
			of = l.Color
		}
	}
	line := draw.LineStyle{Color: of, Width: 1.4}
	glyph := draw.GlyphStyle{Color: of, Radius: 2.6, Shape: draw.CircleGlyph{}}
	if strings.HasPrefix(kind, "B, ") {
		line.Dashes, glyph.Shape, glyph.Radius = []vg.Length{4, 2.5}, draw.PyramidGlyph{}, 3.2
	}
	return line, glyph
}

func textStyle(size vg.Length) draw.TextStyle {
	f := font.From(plot.DefaultFont, size)
	f.Variant = "Sans"
	return draw.TextStyle{Color: color.Black, Font: f, Handler: plot.DefaultTextHandler}
}

// drawLegend draws a line of text, a sample before each name.
func drawLegend(c draw.Canvas) {
	text := textStyle(8)
	text.YAlign = draw.YCenter
	const sample, gap = 20, 4
	type entry struct{ name, kind string }
	var entries []entry
	for _, l := range looks {
		entries = append(entries, entry{l.name, l.kind})
	}
	entries = append(entries, entry{"A", "A, "}, entry{"B (binary in tasks)", "B, "})
	width := vg.Length(0)
	for _, e := range entries {
		width += sample + gap + text.Width(e.name)
	}
	space := (c.Max.X - c.Min.X - width) / vg.Length(len(entries)-1)
	x, y := c.Min.X, (c.Min.Y+c.Max.Y)/2
	for _, e := range entries {
		line, glyph := style(e.kind)
		c.StrokeLine2(line, x, y, x+sample, y)
		if strings.HasSuffix(e.kind, ", ") {
			c.DrawGlyph(glyph, vg.Point{X: x + sample/2, Y: y})
		}
		c.FillText(text, vg.Point{X: x + sample + gap, Y: y}, e.name)
		x += sample + gap + text.Width(e.name) + space
	}
}

// plot draws a panel.
func (m *Measured) plot(of panel) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.TextStyle = textStyle(9)
	p.X.Label.TextStyle.XAlign, p.X.Label.TextStyle.YAlign = draw.XCenter, draw.YBottom
	p.X.Tick.Label.Font, p.Y.Tick.Label.Font = textStyle(8.5).Font, textStyle(8.5).Font
	p.X.Scale, p.X.Padding, p.Y.Padding = plot.LogScale{}, 2, 2

	type line struct {
		kind   string
		points errorBars
	}
	var lines []line
	xs, ys := newSpan(true), newSpan(of.log)
	for _, records := range m.overSeeds() {
		x, _ := nonzeros.estimate(records)
		y, deviation := of.estimate(records)
		xs.add(x)
		if math.IsNaN(y) || of.log && y <= 0 {
			continue
		}
		if math.IsNaN(deviation) || of.log && deviation >= y {
			deviation = 0
		}
		ys.add(y - deviation)
		ys.add(y + deviation)
		kind := records[0].point().Kind()
		if len(lines) == 0 || lines[len(lines)-1].kind != kind {
			lines = append(lines, line{kind: kind})
		}
		l := &lines[len(lines)-1].points
		l.XYs = append(l.XYs, plotter.XY{X: x, Y: y})
		l.YErrors = append(l.YErrors, struct{ Low, High float64 }{deviation, deviation})
	}
	if of.mark != "" && !math.IsNaN(of.markAt) {
		ys.add(of.markAt)
	}
	p.X.Min, p.X.Max = xs.padded(0.05)
	p.Y.Min, p.Y.Max = ys.padded(0.06)
	p.X.Tick.Marker, p.Y.Tick.Marker = logTicks(p.X.Min, p.X.Max), ticks(p.Y.Min, p.Y.Max)
	if of.log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logTicks(p.Y.Min, p.Y.Max)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{0xE4}
	p.Add(grid)
	if err := addMark(p, of); err != nil {
		return nil, err
	}
	for _, l := range slices.Backward(lines) { // what comes first lies on top
		joined, dots, err := plotter.NewLinePoints(l.points.XYs)
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(l.points)
		if err != nil {
			return nil, err
		}
		joined.LineStyle, dots.GlyphStyle = style(l.kind)
		bars.LineStyle, bars.CapWidth = draw.LineStyle{Color: joined.Color, Width: 1}, 5
		p.Add(joined, bars, dots)
	}
	return p, nil
}

// addMark adds a panel's mark: a dashed line with its name at the left end.
func addMark(p *plot.Plot, of panel) error {
	if of.mark == "" || math.IsNaN(of.markAt) {
		return nil
	}
	line, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: of.markAt}, {X: p.X.Max, Y: of.markAt}})
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: faint, Width: 0.8, Dashes: []vg.Length{1.5, 2}}
	label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: p.X.Min, Y: of.markAt}}, Labels: []string{of.mark}})
	if err != nil {
		return err
	}
	label.TextStyle[0] = textStyle(8)
	label.TextStyle[0].Color = faint
	label.Offset = vg.Point{Y: 2}
	p.Add(line, label)
	return nil
}

// A span is the range of some numbers.
type span struct {
	log       bool
	low, high float64
}

func newSpan(log bool) *span { return &span{log, math.Inf(1), math.Inf(-1)} }

func (s *span) add(x float64) { s.low, s.high = min(s.low, x), max(s.high, x) }

// padded returns the range with a share of its length more at both ends.
func (s *span) padded(share float64) (low, high float64) {
	low, high = s.low, s.high
	if low > high {
		low, high = 1, 10
	}
	if s.log {
		f := math.Pow(high/low, share) * 1.01
		return low / f, high * f
	}
	pad := share*(high-low) + 0.5
	return low - pad, high + pad
}

// ticks returns two to seven ticks at multiples of 1, 2 or 5 times a power of ten.
func ticks(low, high float64) (ticks plot.ConstantTicks) {
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
func logTicks(low, high float64) (ticks plot.ConstantTicks) {
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
