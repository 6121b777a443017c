package printing

import (
	"encoding/json"
	"math"
	"testing"
)

// Columns are aligned by characters, and cells are escaped. A remark doesn't widen its column.
func TestTable(t *testing.T) {
	rows := Table{{"", "λ", "error"}, {"a_b\n", "0.5", "10"}, {"c|", "é", "–"}, {"short"}}
	sides := Table{{"dimension", "n", "label", "words"}, {"7", "10", "é", "x y "}, {"8", "and 3 others"}, {"", "1", "long label", "z"}}
	bold := func(row, column int) bool { return row == 2 && column == 1 }
	for _, tt := range []struct{ name, got, want string }{
		{"text", rows.Text("lr"), "         λ  error\na_b\\n  0.5     10\nc|       é      –\nshort\n"},
		{"left and right, and a remark", sides.Text("rrl"), "dimension   n  label       words\n        7  10  é           x y\n        8  and 3 others\n            1  long label  z\n"},
		{"Markdown", rows.Markdown(bold), "|  | λ | error |\n|---|---:|---:|\n| a\\_b\\\\n | 0.5 | 10 |\n| c\\| | **é** | – |\n| short |\n"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\n%q\nwant\n%q", tt.name, tt.got, tt.want)
		}
	}
}

// NaN is a dash in text and null in JSON, which decodes to NaN.
func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		x          Number
		text, json string
	}{{0.125, "0.1", "0.125"}, {Number(math.NaN()), "–", "null"}} {
		var back Number
		text, err := json.Marshal(tt.x)
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if got := tt.x.Text("%.1f"); err != nil || got != tt.text || string(text) != tt.json || back.Text("%g") != tt.x.Text("%g") {
			t.Errorf("%v is %s and %s, read back as %v: %v", tt.x, got, text, back, err)
		}
	}
}
