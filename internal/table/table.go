// Package table formats tables: aligned text, Markdown and LaTeX.
package table

import (
	"strings"
	"unicode/utf8"

	"overcomplete/internal/escape"
)

// Table is rows of cells, the names of the columns first. In Markdown and LaTeX all columns but the first
// are numbers. Cells are escaped.
type Table [][]string

// Bold reports whether a cell is bold. A nil Bold means none.
type Bold func(row, column int) bool

// Text returns aligned columns. sides has an l or r for the alignment of each column; its last letter holds for
// the rest. The last cell of a shorter row is a remark, which may extend beyond its column. Bold cells have
// the escape sequences of a terminal.
func (t Table) Text(sides string, bold Bold) string {
	t = t.cells(escape.Text, nil, "", "")
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			if i+1 < len(row) || len(row) == len(t[0]) {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	marked := t.cells(func(s string) string { return s }, bold, "\x1b[1m", "\x1b[0m")
	var b strings.Builder
	for n, row := range t {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if sides[min(i, len(sides)-1)] == 'l' {
				line += marked[n][i] + pad + "  "
			} else {
				line += pad + marked[n][i] + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Markdown returns the table in Markdown.
func (t Table) Markdown(bold Bold) string {
	var b strings.Builder
	for n, row := range t.cells(escape.Markdown, bold, "**", "**") {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if n == 0 {
			b.WriteString("|---" + strings.Repeat("|---:", len(row)-1) + "|\n")
		}
	}
	return b.String()
}

// LaTeX returns the table as a LaTeX tabular.
func (t Table) LaTeX(bold Bold) string {
	var b strings.Builder
	b.WriteString("\\begin{tabular}{l" + strings.Repeat("r", len(t[0])-1) + "}\n\\hline\n")
	for n, row := range t.cells(escape.LaTeX, bold, `\textbf{`, "}") {
		b.WriteString(strings.Join(row, " & ") + " \\\\\n")
		if n == 0 {
			b.WriteString("\\hline\n")
		}
	}
	b.WriteString("\\hline\n\\end{tabular}\n")
	return b.String()
}

// cells returns the table with all cells escaped, and bold ones between two marks.
func (t Table) cells(escape func(string) string, bold Bold, before, after string) Table {
	cells := make(Table, len(t))
	for n, row := range t {
		for i, cell := range row {
			cell = escape(cell)
			if bold != nil && bold(n, i) {
				cell = before + cell + after
			}
			cells[n] = append(cells[n], cell)
		}
	}
	return cells
}
