package figure

import (
	"encoding/xml"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// check returns the text of an SVG file, which must be valid XML.
func check(t *testing.T, path string) string {
	t.Helper()
	svg := testonly.ReadFile(t, path)
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := d.Token(); err == io.EOF {
			return string(svg)
		} else if err != nil {
			t.Fatalf("SVG: %v", err)
		}
	}
}

func TestSave(t *testing.T) {
	path, nan := filepath.Join(t.TempDir(), "f.svg"), math.NaN()
	line := Line{Name: "a<b", Points: []Point{{X: 1, Y: 2, Deviation: 3}, {X: 4, Y: nan, Deviation: nan}, {X: 5, Y: 8, Label: "last"}}}
	for panel, want := range map[*Panel]map[string]int{
		{}: {}, {Lines: []Line{{Name: "none", Points: []Point{{X: 1, Y: nan}}}}}: {">none<": 0},
		{Title: "title", Lines: []Line{line, line}}:                {">a&lt;b<": 2, ">last<": 2, ">title<": 1},
		{Level: 3, Lines: []Line{{Points: line.Points[:1]}, line}}: {">a&lt;b<": 1},
	} {
		testonly.Must(t, panel.Save(path))
		svg := check(t, path)
		for text, want := range want {
			if got := strings.Count(svg, text); got != want {
				t.Errorf("%q %d times, want %d", text, got, want)
			}
		}
	}
}

// Each value is drawn in its colour at its row and column.
func TestSaveHeatMap(t *testing.T) {
	name := filepath.Join(t.TempDir(), "h.svg")
	rows := []Row{{"close", []float64{1, 0, -3}}, {"write", []float64{2, .5, 0}}, {}, {"co<lor", []float64{0, 0, 4}}}
	testonly.Must(t, SaveHeatMap(name, "dimensions", 3, rows))
	svg := check(t, name)
	var fills []string
	for _, fill := range regexp.MustCompile(`<path d=[^>]*fill:(#\w{6})`).FindAllStringSubmatch(svg, -1) {
		fills = append(fills, fill[1])
	}
	// The colours of the page and the plot come first. The values follow by column, from left to right, and within a column
	// from below: blue for 2 and 1 (the maximum is 4), blue for .5, blue for 4, red for −3.
	if got, want := strings.Join(fills, " "), "#FFFFFF #FFFFFF #7F7FFF #BFBFFF #DFDFFF #0000FF #FF4040"; got != want {
		t.Errorf("colours are %s, want %s", got, want)
	}
	if !strings.Contains(svg, ">co&lt;lor<") {
		t.Error("a word is missing")
	}
	testonly.Must(t, SaveHeatMap(name, "", 0, []Row{{Name: "zeros"}}))
}
