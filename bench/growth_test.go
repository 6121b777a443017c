//go:build !gpu

package main

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGrowth(t *testing.T) {
	dir := t.TempDir()
	path, figure := filepath.Join(dir, "growth.json"), filepath.Join(dir, "figure")
	var out bytes.Buffer
	err := run(strings.Fields("growth --words 40,80,160 --atoms 20,30 --dim 6 --epochs 2 --json "+path+" --plot "+figure), &out)
	if err != nil {
		t.Fatal(err)
	}
	var r GrowthReport
	readJSON(t, path, &r)
	var again bytes.Buffer
	if err := r.print(&again); err != nil || again.String() != out.String() {
		t.Errorf("the table\n%s\nof the JSON, error %v\n%s", &out, err, &again)
	}
	want := [][2]int{{40, 60}, {80, 60}, {160, 60}, {160, 20}, {160, 30}} // words, atoms
	for i, p := range append(r.Words.Points, r.Atoms.Points...) {
		if got := [2]int{p.Words, p.Atoms}; got != want[i] || len(p.Repeats) != growthRepeats || p.Seconds <= 0 {
			t.Errorf("%+v, want words and atoms %v", p, want[i])
		}
		if row := fmt.Sprintf("%.4g", p.Seconds); !strings.Contains(out.String(), row) {
			t.Errorf("no %s in\n%s", row, &out)
		}
	}
	// The runtime alone takes some megabytes.
	if m := r.Memory; m.Words != 160 || m.Atoms != 60 || m.Problem == "" && (m.Bytes < 1e6 || m.Bytes > 1e9) {
		t.Errorf("%+v", m)
	}

	svg, err := os.ReadFile(figure + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []Growth{r.Words, r.Atoms} {
		if !strings.Contains(string(svg), g.line()) {
			t.Errorf("the figure lacks %q", g.line())
		}
	}
	f, err := os.Open(figure + ".png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
}

// The line is that of Anscombe's first data set, which is published: intercept 3.00,
// slope 0.500, R² 0.67.
func TestFit(t *testing.T) {
	atoms := []int{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5}
	seconds := []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}
	g := Growth{Over: "atoms"}
	for i, k := range atoms {
		g.Points = append(g.Points, Point{Words: 1, Atoms: k, Seconds: seconds[i]})
	}
	g.fit()
	if math.Abs(g.Intercept-3) > 0.005 || math.Abs(g.Slope-0.5) > 0.0005 || math.Abs(g.R2-0.67) > 0.005 {
		t.Errorf("%+v", g)
	}
}
