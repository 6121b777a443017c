package eval

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"overcomplete/internal/escape"
	"overcomplete/internal/table"
)

// Average is the name of the last column.
const Average = "Average"

// A Table holds the results of several representations in the same tasks, as the
// paper's table of results: a row for each representation, a column for each task and
// a last column for their average.
type Table struct {
	Tasks   []string
	Rows    []Row
	Options Options
}

// A Row holds the results of one representation.
type Row struct {
	Name    string
	Results []Result // one for each of the table's tasks, in their order
}

// Averaged returns the names of the tasks whose scores are averaged: the paper's tasks
// that every row has a score in. WS-353 is never one of them, because the paper
// chooses hyperparameters by it.
func (t *Table) Averaged() []string {
	var tasks []string
	for i, name := range t.Tasks {
		if name != TuningTask && slices.Contains(TaskNames(), name) &&
			!slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Results[i].Note != "" }) {
			tasks = append(tasks, name)
		}
	}
	return tasks
}

// Average returns the mean of a row's scores in the tasks of [Table.Averaged], with its
// standard error under the assumption that the tasks' test items are independent. Both
// are NaN if no task is averaged.
func (t *Table) Average(r Row) Result {
	averaged := t.Averaged()
	n := float64(len(averaged))
	var sum, variances float64
	for i, name := range t.Tasks {
		if slices.Contains(averaged, name) {
			sum += r.Results[i].Score
			variances += r.Results[i].Stderr * r.Results[i].Stderr
		}
	}
	return Result{Score: sum / n, Stderr: math.Sqrt(variances) / n}
}

// cells returns the table's results with the average in the last column, if there
// is one, and the names of the columns.
func (t *Table) cells() (columns []string, rows [][]Result) {
	columns = slices.Clone(t.Tasks)
	average := len(t.Averaged()) > 0
	if average {
		columns = append(columns, Average)
	}
	for _, r := range t.Rows {
		cells := slices.Clone(r.Results)
		if average {
			cells = append(cells, t.Average(r))
		}
		rows = append(rows, cells)
	}
	return columns, rows
}

// WriteText writes the table as aligned text, with notes below it. With bold, the best
// score of each column is marked by the escape sequences of a terminal.
func (t *Table) WriteText(w io.Writer, bold bool) error {
	var best table.Bold
	if bold {
		best = t.best()
	}
	text := t.grid().Text("lr", best)
	for _, note := range t.notes() {
		text += "\n" + escape.Text(note)
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

// WriteMarkdown writes the table in Markdown, with notes below it and the best score of
// each column in bold.
func (t *Table) WriteMarkdown(w io.Writer) error {
	text := t.grid().Markdown(t.best())
	for _, note := range t.notes() {
		text += "\n" + escape.Markdown(note) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// WriteLaTeX writes the table as a LaTeX tabular, with the notes as comments before it
// and the best score of each column in bold.
func (t *Table) WriteLaTeX(w io.Writer) error {
	text := ""
	for _, note := range t.notes() {
		text += "% " + escape.Text(note) + "\n"
	}
	_, err := io.WriteString(w, text+t.grid().LaTeX(t.best()))
	return err
}

// grid returns the table's cells as text, with a row and a column of names.
func (t *Table) grid() table.Table {
	columns, rows := t.cells()
	grid := table.Table{append([]string{""}, columns...)}
	for n, cells := range rows {
		line := []string{t.Rows[n].Name}
		for _, r := range cells {
			line = append(line, r.String())
		}
		grid = append(grid, line)
	}
	return grid
}

// String returns a score with its standard error, for people.
func (r Result) String() string {
	if math.IsNaN(r.Score) {
		return "–"
	}
	return fmt.Sprintf("%.1f ±%.1f", r.Score, r.Stderr)
}

// best says which cells of the grid are the best of their column, as printed.
func (t *Table) best() table.Bold {
	_, rows := t.cells()
	printed := func(r Result) float64 { return math.Round(10 * r.Score) }
	return func(row, column int) bool {
		if row == 0 || column == 0 || len(rows) == 1 || math.IsNaN(rows[row-1][column-1].Score) {
			return false
		}
		return !slices.ContainsFunc(rows, func(other []Result) bool {
			return printed(other[column-1]) > printed(rows[row-1][column-1])
		})
	}
}

// notes are the lines below a table: what is averaged, how much was covered, what
// is missing, what was chosen.
func (t *Table) notes() []string {
	notes := []string{"Spearman's ρ and accuracies × 100, ± standard error (bootstrap over test items)."}
	if averaged := t.Averaged(); len(averaged) > 0 {
		notes = append(notes, "Average over "+strings.Join(averaged, ", ")+".")
	}
	// Rows of the same words have the same coverage.
	var coverages, chosen []string
	names := map[string][]string{}
	for _, r := range t.Rows {
		var parts, regressions []string
		for i, result := range r.Results {
			if result.C > 0 {
				regressions = append(regressions, fmt.Sprintf("%s %g", t.Tasks[i], result.C))
			}
			parts = append(parts, fmt.Sprintf("%s %d of %d %s", t.Tasks[i], result.Covered, result.Total, result.Unit))
			if result.Note != "" {
				notes = append(notes, fmt.Sprintf("%s has no score in %s: %s.", r.Name, t.Tasks[i], result.Note))
			}
			if c := result.Unconverged; len(c) > 0 {
				notes = append(notes, fmt.Sprintf("%s, %s: regressions with C of %s were ended before their optimum, after %d steps.", r.Name, t.Tasks[i], list(c), mostProducts))
			}
		}
		if len(regressions) > 0 {
			chosen = append(chosen, r.Name+" "+strings.Join(regressions, ", "))
		}
		coverage := strings.Join(parts, ", ")
		if names[coverage] == nil {
			coverages = append(coverages, coverage)
		}
		names[coverage] = append(names[coverage], r.Name)
	}
	for _, c := range coverages {
		notes = append(notes, "With vectors: "+c+" ("+strings.Join(names[c], ", ")+").")
	}
	if len(chosen) > 0 {
		notes = append(notes, "C: "+strings.Join(chosen, "; ")+".")
	}
	return append(notes, "Protocol: "+t.Options.Describe()+".")
}

func list(numbers []float64) string {
	var texts []string
	for _, n := range numbers {
		texts = append(texts, fmt.Sprint(n))
	}
	return strings.Join(texts, ", ")
}

// WriteJSON writes the table as one JSON object:
//
//	{"average_over": [TASK, …],
//	 "protocol": "…",
//	 "rows": [{"name": "…",
//	           "tasks": {TASK: RESULT, …},
//	           "average": {"score": …, "stderr": …}}, …]}
//
// A RESULT has the fields of [Result] in lower case; those that are 0 or empty may be
// missing. Score and stderr are null where there is no score.
func (t *Table) WriteJSON(w io.Writer) error {
	type average struct {
		Score  float64 `json:"score"`
		Stderr float64 `json:"stderr"`
	}
	type row struct {
		Name    string            `json:"name"`
		Tasks   map[string]Result `json:"tasks"`
		Average *average          `json:"average,omitempty"`
	}
	out := struct {
		AverageOver []string `json:"average_over"`
		Protocol    string   `json:"protocol"`
		Rows        []row    `json:"rows"`
	}{AverageOver: append([]string{}, t.Averaged()...), Protocol: t.Options.Describe(), Rows: []row{}}
	for _, r := range t.Rows {
		line := row{Name: r.Name, Tasks: map[string]Result{}}
		for i, result := range r.Results {
			line.Tasks[t.Tasks[i]] = result
		}
		if len(out.AverageOver) > 0 {
			a := t.Average(r)
			line.Average = &average{a.Score, a.Stderr}
		}
		out.Rows = append(out.Rows, line)
	}
	return escape.JSON(w, out)
}
