package printing

import (
	"strings"
	"unicode/utf8"
)

// A Table is rows of cells; the first row is the header. In Markdown, all columns except the first are aligned as
// numbers. Cells are escaped.
type Table [][]string

// Text returns the table as aligned text. The argument sides has a letter per column, l (left) or r (right). The last
// letter applies to the remaining columns. In a row that is shorter than the header, the last cell is a remark, which
// may extend beyond its column.
func (t Table) Text(sides string) string {
	t = t.escaped(Text)
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			if i+1 < len(row) || len(row) == len(t[0]) {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	var b strings.Builder
	for _, row := range t {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if sides[min(i, len(sides)-1)] == 'l' {
				line += cell + pad + "  "
			} else {
				line += pad + cell + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Markdown returns the table in Markdown. bold reports which cells are bold; nil means none.
func (t Table) Markdown(bold func(row, column int) bool) string {
	var b strings.Builder
	for n, row := range t.escaped(Markdown) {
		for i, cell := range row {
			if bold != nil && bold(n, i) {
				row[i] = "**" + cell + "**"
			}
		}
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if n == 0 {
			b.WriteString("|---" + strings.Repeat("|---:", len(row)-1) + "|\n")
		}
	}
	return b.String()
}

func (t Table) escaped(escape func(string) string) Table {
	cells := make(Table, len(t))
	for n, row := range t {
		for _, cell := range row {
			cells[n] = append(cells[n], escape(cell))
		}
	}
	return cells
}
