//go:build !gpu

package main

import (
	"image/color"

	"gonum.org/v1/plot/vg"

	"overcomplete/internal/lab/experiment"
)

var (
	measured = experiment.Look{Name: "measured", Color: color.RGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}}
	fitted   = experiment.Look{Name: "least squares", Color: color.Gray{Y: 0x80}, Dashed: true}
)

// draw draws what was measured into name.svg and name.png.
func draw(b benchmark, name string) error {
	return b.(interface{ figure() experiment.Figure }).figure().Save(name)
}

// sideBySide is a figure of panels with the same kinds of lines.
func sideBySide(panels []experiment.Panel, legend ...experiment.Look) experiment.Figure {
	return experiment.Figure{Panels: [][]experiment.Panel{panels}, Legend: legend, Width: vg.Length(len(panels)) * 11 * vg.Centimeter, Height: 8 * vg.Centimeter}
}

// figure has trainings and their lines over words and over atoms.
func (r *GrowthReport) figure() experiment.Figure {
	var panels []experiment.Panel
	for _, g := range []Growth{r.Words, r.Atoms} {
		points, most := []experiment.FigurePoint{}, 0.0
		for _, p := range g.Points {
			points = append(points, experiment.FigurePoint{X: g.size(p), Y: 1e3 * p.Seconds})
			most = max(most, g.size(p))
		}
		line := []experiment.FigurePoint{{X: 0, Y: 1e3 * g.Intercept}, {X: most, Y: 1e3 * (g.Intercept + g.Slope*most)}}
		panels = append(panels, experiment.Panel{Title: "ms an epoch: " + g.line(), XLabel: g.Over,
			Lines: []experiment.Line{{Look: measured, Points: points}, {Look: fitted, Points: line}}})
	}
	return sideBySide(panels, measured, fitted)
}

// figure has the most memory over words.
func (r *MemoryReport) figure() experiment.Figure {
	looks := []experiment.Look{measured, fitted}
	panel := experiment.Panel{Title: "most memory resident, MB", XLabel: "words", YMark: experiment.Mark{Name: "none"}}
	for i, command := range []string{"train", "encode"} {
		looks[i].Name = command
		line := experiment.Line{Look: looks[i]}
		for _, m := range r.Runs {
			if m.Command == command {
				line.Points = append(line.Points, experiment.FigurePoint{X: float64(m.Words), Y: float64(m.Bytes) / 1e6})
			}
		}
		panel.Lines = append(panel.Lines, line)
	}
	return sideBySide([]experiment.Panel{panel}, looks...)
}

// figure has both scores over the seconds that trainings took. Those of dense vectors, which
// take none, are lines.
func (r *VocabularyReport) figure() experiment.Figure {
	panels := []experiment.Panel{{Title: "WS-353"}, {Title: "average of the other tasks"}}
	trained, dense := measured, fitted
	trained.Name, dense.Name = "trained", "dense"
	longest := 0.0
	for _, v := range r.Rows {
		longest = max(longest, v.Seconds)
	}
	for _, v := range r.Rows {
		for i, score := range []float64{v.Similarity, v.Average} {
			line := experiment.Line{Look: trained, Points: []experiment.FigurePoint{{X: v.Seconds, Y: score, Label: v.Name}}}
			if v.Seconds == 0 {
				line.Look, line.Points = dense, append(line.Points, experiment.FigurePoint{X: longest, Y: score})
			}
			panels[i].XLabel, panels[i].Lines = "seconds to train", append(panels[i].Lines, line)
		}
	}
	return sideBySide(panels, trained, dense)
}
