//go:build !gpu

package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGrowth(t *testing.T) {
	figure := filepath.Join(t.TempDir(), "growth")
	var out bytes.Buffer
	if err := run(strings.Fields("growth --words 40,80,160 --atoms 20,30 --dim 6 --epochs 2 --plot "+figure), &out); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"\n40        60 ", "\n160       60 ", "\n160       20 ", "\n160       30 "} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("no row %q in\n%s", row, &out)
		}
	}
	if svg, err := os.ReadFile(figure + ".svg"); err != nil || strings.Count(string(svg), "ms per epoch: ") != 2 {
		t.Errorf("error %v, %d bytes", err, len(svg))
	}
	for _, args := range []string{"growth --words 5", "growth --words 5,5", "growth --atoms 5,x"} {
		if err := run(strings.Fields(args), &out); status(err, &out) != 2 {
			t.Errorf("%s: error %v", args, err)
		}
	}
}

// Anscombe's first data set has, as published, intercept 3.00, slope 0.500 and R² 0.67.
func TestFit(t *testing.T) {
	var g growth
	seconds := []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}
	for i, size := range []float64{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5} {
		g.points = append(g.points, point{size: size, repeats: seconds[i : i+1]})
	}
	g.fit()
	if math.Abs(g.intercept-3) > 0.005 || math.Abs(g.slope-0.5) > 0.0005 || math.Abs(g.r2-0.67) > 0.005 {
		t.Errorf("%+v", g)
	}
}
