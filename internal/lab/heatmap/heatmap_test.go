package heatmap

import (
	"bytes"
	"context"
	"encoding/xml"
	"image/color"
	"image/png"
	"io"
	"reflect"
	"strings"
	"testing"

	"overcomplete/interpret"
	"overcomplete/vectors"
)

// Three words in two groups; dimensions 1 and 4 are not in use.
func TestHeatMap(t *testing.T) {
	x := interpret.NewIndex(&vectors.Sparse{Words: []string{"write", "close", "co<lor"}, CSR: vectors.CSR{
		Rows: 3, Cols: 5, Ptr: []int64{0, 2, 4, 5}, Index: []int32{0, 3, 0, 2, 2}, Value: []float32{2, .5, 1, -3, 4},
	}})
	h := New(x, [][]int{{1, 0}, {2}})
	// The means over the first group are 1.5 in dimension 0, .25 in 3, -1.5 in 2.
	want := &Map{dimensions: 3, largest: 4, rows: []mapRow{
		{"close", []int{0, 2}, []float64{1, -3}},
		{"write", []int{0, 1}, []float64{2, .5}},
		{},
		{"co<lor", []int{2}, []float64{4}},
	}}
	if !reflect.DeepEqual(h, want) {
		t.Fatalf("%v, want %v", h, want)
	}

	var b bytes.Buffer
	if err := h.Write(t.Context(), &b, "png"); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	// The middle of a row and column, beside the labels and above the axis.
	bounds := picture.Bounds()
	left, bottom := 0, 0
	for x := range bounds.Max.X { // the first blue or red pixel from the left
		for y := range bounds.Max.Y {
			if r, g, b, _ := picture.At(x, y).RGBA(); left == 0 && (r != g || g != b) {
				left = x
			}
		}
	}
	for y := range bounds.Max.Y { // the last one from above
		for x := range bounds.Max.X {
			if r, g, b, _ := picture.At(x, y).RGBA(); r != g || g != b {
				bottom = y + 1
			}
		}
	}
	top := 13 // 6 points at 160 dots an inch
	at := func(row, column int) color.Color {
		return picture.At(left+(2*column+1)*(bounds.Max.X-18-left)/6, top+(2*row+1)*(bottom-top)/8)
	}
	for _, tt := range []struct {
		row, column int
		want        color.RGBA
	}{
		{0, 0, color.RGBA{191, 191, 255, 255}}, {0, 1, color.RGBA{255, 255, 255, 255}}, {0, 2, color.RGBA{255, 64, 64, 255}},
		{1, 0, color.RGBA{128, 128, 255, 255}}, {1, 1, color.RGBA{223, 223, 255, 255}}, {1, 2, color.RGBA{255, 255, 255, 255}},
		{2, 0, color.RGBA{255, 255, 255, 255}}, {3, 2, color.RGBA{0, 0, 255, 255}}, {3, 0, color.RGBA{255, 255, 255, 255}},
	} {
		if got := color.RGBAModel.Convert(at(tt.row, tt.column)); got != tt.want {
			t.Errorf("row %d, column %d is %v, want %v", tt.row, tt.column, got, tt.want)
		}
	}

	b.Reset()
	if err := h.Write(t.Context(), &b, "svg"); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); !strings.Contains(s, "co&lt;lor") {
		t.Error("a word is not escaped in SVG")
	}
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("SVG: %v", err)
		}
	}
	if err := h.Write(t.Context(), io.Discard, "bmp"); err == nil {
		t.Error("drawn as .bmp")
	}
	b.Reset()
	if err := h.Write(&doneLater{Context: t.Context(), left: 2}, &b, "png"); err != context.Canceled || b.Len() > 0 {
		t.Errorf("interrupted: %v, %d bytes", err, b.Len())
	}
}

// Words that are all zeros make an empty picture.
func TestHeatMapOfNothing(t *testing.T) {
	x := interpret.NewIndex(&vectors.Sparse{Words: []string{"a", "b"}, CSR: vectors.CSR{Rows: 2, Cols: 3, Ptr: make([]int64, 3)}})
	for _, format := range []string{"png", "svg"} {
		if err := New(x, [][]int{{0}, {1}}).Write(t.Context(), io.Discard, format); err != nil {
			t.Error(err)
		}
	}
}

// doneLater is a context that is cancelled when it has been asked a few times.
type doneLater struct {
	context.Context
	left int
}

func (c *doneLater) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}
