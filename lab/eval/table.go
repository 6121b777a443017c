package eval

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"overcomplete/internal/printing"
)

// Average is the name of the last column.
const Average = "Average"

// A Table compares representations like the paper's table of results. It has a row per representation, a column per
// task, and a last column with the average.
type Table struct {
	Tasks []string
	Rows  []Row
	Seed  uint64
}

// A Row holds the results of one representation, in the order of the table's tasks.
type Row struct {
	Name    string
	Results []Result
}

// Averaged returns the names of the averaged tasks: the tasks of the paper's average in which every
// row has a score.
func (t *Table) Averaged() []string {
	var tasks []string
	for i, name := range t.Tasks {
		if name != TuningTask && slices.Contains(TaskNames(), name) && !slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Results[i].Note != "" }) {
			tasks = append(tasks, name)
		}
	}
	return tasks
}

// Average returns the mean score of a row in the tasks of [Table.Averaged]. Its standard error
// assumes that test items of different tasks are independent. Both are NaN if no task is averaged.
func (t *Table) Average(r Row) Result {
	averaged := t.Averaged()
	n := float64(len(averaged))
	var sum, variances float64
	for i, name := range t.Tasks {
		if slices.Contains(averaged, name) {
			sum += float64(r.Results[i].Score)
			variances += float64(r.Results[i].Stderr * r.Results[i].Stderr)
		}
	}
	return Result{Score: printing.Number(sum / n), Stderr: printing.Number(math.Sqrt(variances) / n)}
}

// Text returns the table as aligned text, with notes below it.
func (t *Table) Text() string {
	grid, _ := t.grid()
	text := grid.Text("lr")
	for _, note := range t.notes() {
		text += "\n" + printing.Text(note)
	}
	return text + "\n"
}

// Markdown returns the table in Markdown, with notes below it and the best score of each column in
// bold.
func (t *Table) Markdown() string {
	text := printing.Table.Markdown(t.grid())
	for _, note := range t.notes() {
		text += "\n" + printing.Markdown(note) + "\n"
	}
	return text
}

// grid returns the cells of the table, with the average if there is one. The function best reports whether a cell's
// printed score is the highest of its column.
func (t *Table) grid() (grid printing.Table, best func(row, column int) bool) {
	average := len(t.Averaged()) > 0
	header := append([]string{""}, t.Tasks...)
	if average {
		header = append(header, Average)
	}
	grid = printing.Table{header}
	highest := make([]float64, len(header))
	var printed [][]float64
	for _, r := range t.Rows {
		results := slices.Clone(r.Results)
		if average {
			results = append(results, t.Average(r))
		}
		line, scores := []string{r.Name}, []float64{0}
		for i, result := range results {
			score := math.Round(10 * float64(result.Score))
			line, scores = append(line, result.String()), append(scores, score)
			if score > highest[i+1] {
				highest[i+1] = score
			}
		}
		grid, printed = append(grid, line), append(printed, scores)
	}
	return grid, func(row, column int) bool {
		return row > 0 && column > 0 && len(t.Rows) > 1 && printed[row-1][column] == highest[column]
	}
}

// notes returns the lines below a table: averaged tasks, missing scores, coverage, choices of C.
func (t *Table) notes() []string {
	notes := []string{"Spearman's ρ and accuracies × 100, ± standard error (bootstrap over test items)."}
	if averaged := t.Averaged(); len(averaged) > 0 {
		notes = append(notes, "Average over "+strings.Join(averaged, ", ")+".")
	}
	for _, r := range t.Rows {
		var parts []string
		for i, result := range r.Results {
			part := fmt.Sprintf("%s %d of %d %s", t.Tasks[i], result.Covered, result.Total, result.Unit)
			if result.C > 0 {
				part += fmt.Sprintf(" (C = %g)", result.C)
			}
			parts = append(parts, part)
			if result.Note != "" {
				notes = append(notes, fmt.Sprintf("%s has no score in %s: %s.", r.Name, t.Tasks[i], result.Note))
			}
		}
		notes = append(notes, fmt.Sprintf("%s has vectors of: %s.", r.Name, strings.Join(parts, ", ")))
	}
	return append(notes, fmt.Sprintf("Protocol: %s; seed %d.", Protocol, t.Seed))
}

// MarshalJSON returns the table as
//
//	{"average_over": [TASK, …], "protocol": "…", "seed": …,
//	 "rows": [{"name": "…", "tasks": {TASK: RESULT, …}, "average": RESULT}, …]}
//
// where RESULT is a [Result]. Scores and standard errors are null where there is no score.
func (t *Table) MarshalJSON() ([]byte, error) {
	type row struct {
		Name    string            `json:"name"`
		Tasks   map[string]Result `json:"tasks"`
		Average average           `json:"average"`
	}
	rows := []row{}
	for _, r := range t.Rows {
		tasks := map[string]Result{}
		for i, result := range r.Results {
			tasks[t.Tasks[i]] = result
		}
		a := t.Average(r)
		rows = append(rows, row{r.Name, tasks, average{a.Score, a.Stderr}})
	}
	return json.Marshal(map[string]any{
		"average_over": append([]string{}, t.Averaged()...), "protocol": Protocol, "seed": t.Seed, "rows": rows,
	})
}

type average struct {
	Score  printing.Number `json:"score"`
	Stderr printing.Number `json:"stderr"`
}
