package figure

import (
	"encoding/xml"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// check checks that a figure was written as PNG and SVG, and returns the text of the SVG.
func check(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(name + ".png")
	testonly.Must(t, err)
	defer file.Close()
	if _, err := png.Decode(file); err != nil {
		t.Error(err)
	}
	svg, err := os.ReadFile(name + ".svg")
	testonly.Must(t, err)
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := d.Token(); err == io.EOF {
			return string(svg)
		} else if err != nil {
			t.Fatalf("SVG: %v", err)
		}
	}
}

func TestSave(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	nan := math.NaN()
	line := Line{Name: "a<b", Color: color.Black, Points: []Point{{X: 1, Y: 2, Deviation: 3}, {X: 4, Y: nan, Deviation: nan}, {X: 5, Y: 8, Label: "last"}}}
	err := Save(name, 2, Panel{}, Panel{Lines: []Line{{Name: "none", Points: []Point{{X: 1, Y: nan}}}}},
		Panel{Title: "title", LogX: true, LogY: true, Lines: []Line{line, line}}, Panel{Level: 3, Lines: []Line{{Color: color.Black, Points: line.Points[:1]}}},
		Panel{LogY: true, Lines: []Line{{Points: []Point{{X: 1}}}}})
	testonly.Must(t, err)
	svg := check(t, name)
	for text, want := range map[string]int{">a&lt;b<": 1, ">last<": 2, ">title<": 1} {
		if got := strings.Count(svg, text); got < want {
			t.Errorf("%q %d times, want %d", text, got, want)
		}
	}
}

// Each value is drawn in its colour at its row and column.
func TestSaveHeatMap(t *testing.T) {
	name := filepath.Join(t.TempDir(), "h")
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
	if err := SaveHeatMap(name, "", 0, []Row{{Name: "zeros"}}); err != nil {
		t.Error(err)
	}
}
