package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/interpret"
)

func newLabels() *cobra.Command {
	var from string
	var words int
	cmd := &cobra.Command{
		Use:   "labels MODEL",
		Short: "Export and import dimension labels",
		Long: `Labels prints a table of all dimensions that some word uses, one per line, with tabs
between its columns: dimension, label, note, and top words, with the most negative ones
after a minus. Edit it and import it with --import. The first line and the columns
dimension and label are required. Dimensions that the table lacks keep their labels. An
empty label and note delete them.

Labels are stored in the model's directory, in labels.json. The commands that show
dimensions name them by their labels or, without one, by their most distinctive words.`,
		Example: `  overcomplete labels model > labels.tsv
  overcomplete labels model --import labels.tsv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from != "" {
				if err := refuseFlags(cmd, "is for printing; drop it, or --import", "words", "rare", "json"); err != nil {
					return err
				}
			}
			mark, _ := modeldir.Identify(args[0])
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			if from != "" {
				return importLabels(cmd, args[0], from, x.Codes.Cols, mark)
			}
			return show(cmd, labels, func(b *strings.Builder) { printLabels(b, labels, x, words) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "import", "", "take labels from this `file`, or - for standard input")
	flags.IntVarP(&words, "words", "n", 8, "words of each dimension")
	addRare(cmd)
	addJSON(cmd, "print the labels as JSON, without words")
	return cmd
}

// loadLabels reads the labels of a model with K dimensions. Files of vectors have none.
func loadLabels(path string, dimensions int) (interpret.Labels, error) {
	file, err := modeldir.LabelsPath(path)
	if isPathError(err) {
		return nil, usageError{err}
	}
	if err != nil {
		return interpret.Labels{}, nil
	}
	labels, err := interpret.ReadLabels(file, dimensions)
	if err != nil {
		return nil, usageError{err}
	}
	return labels, nil
}

// isPathError reports whether the file system failed.
func isPathError(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}

func printLabels(b *strings.Builder, labels interpret.Labels, x *interpret.Index, words int) {
	table := csv.NewWriter(b)
	table.Comma = '\t'
	table.Write([]string{"dimension", "label", "note", "words"})
	given := map[int]interpret.Label{}
	for _, l := range labels {
		given[l.Dimension] = l
	}
	for k := range x.Codes.Cols {
		l := given[k]
		if l.Name == "" && l.Note == "" && len(x.Poles(k)) == 0 {
			continue
		}
		described := wordList(x.Words(interpret.Pole{Dimension: k}, words), " ")
		if negative := x.Words(interpret.Pole{Dimension: k, Negative: true}, words); len(negative) > 0 {
			described = strings.TrimPrefix(described+" − "+wordList(negative, " "), " ")
		}
		table.Write([]string{strconv.Itoa(k), l.Name, l.Note, described})
	}
	table.Flush()
}

func importLabels(cmd *cobra.Command, path, from string, dimensions int, mark modeldir.Identity) error {
	file, err := modeldir.LabelsPath(path)
	if err != nil {
		return usageError{err}
	}
	text, err := input.Wait(cmd.Context(), func() ([]byte, error) { return input.Read(from, 1<<26) })
	if err != nil {
		return usageError{err}
	}
	changes, err := parseLabels(string(text), dimensions)
	if err != nil {
		return usagef("%s: %w", from, err)
	}
	labels, err := interpret.ChangeLabels(cmd.Context(), file, dimensions, changes, mark.Check)
	if err != nil {
		return err
	}
	say(cmd.ErrOrStderr(), "%d labels", len(labels))
	return nil
}

// parseLabels parses a table with the columns dimension and label, and optionally note.
func parseLabels(text string, dimensions int) ([]interpret.Label, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))) // the byte order mark of spreadsheets
	r.Comma = '\t'
	header, err := r.Read()
	dimension, name, note := slices.Index(header, "dimension"), slices.Index(header, "label"), slices.Index(header, "note")
	if err != nil || dimension < 0 || name < 0 {
		return nil, errors.New(`the first line lacks the columns "dimension" and "label", with a tab between`)
	}
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	labels := make([]interpret.Label, len(rows))
	seen := map[int]bool{}
	for i, row := range rows {
		l := &labels[i]
		l.Name = row[name]
		if note >= 0 {
			l.Note = row[note]
		}
		if l.Dimension, err = strconv.Atoi(row[dimension]); err != nil {
			return nil, fmt.Errorf("row %d: %.50q is no number of a dimension", i+1, row[dimension])
		}
		if err := l.Check(dimensions); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		if seen[l.Dimension] {
			return nil, fmt.Errorf("row %d: dimension %d has two labels", i+1, l.Dimension)
		}
		seen[l.Dimension] = true
	}
	return labels, nil
}
