package experiment

import (
	"io"
	"strings"
	"unicode/utf8"

	"overcomplete/internal/escape"
)

// Table is rows of cells, the names of the columns first. All but the first column
// hold numbers.
type Table [][]string

// WriteText writes the table for people to read.
func (t Table) WriteText(w io.Writer) error {
	t = t.escaped(escape.Text)
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Table) escaped(escape func(string) string) Table {
	table := make(Table, len(t))
	for i, row := range t {
		for _, cell := range row {
			table[i] = append(table[i], escape(cell))
		}
	}
	return table
}

// Markdown returns the table in Markdown.
func (t Table) Markdown() string {
	var b strings.Builder
	for i, row := range t.escaped(escape.Markdown) {
		for _, cell := range row {
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString("|---" + strings.Repeat("|---:", len(row)-1) + "|\n")
		}
	}
	return b.String()
}
