package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
		Short: "Print what dimensions are called, as a table to edit, and take it back",
		Long: `Labels prints a table of all dimensions that some word uses, one a line, with tabs
between its columns: the dimension, the label and the note that it was given, and its
top words and, after a minus, its most negative ones, to find
one by. Edit it in a spreadsheet or a text editor, or have a program make one, and take it back
with --import. It must keep its first line; of the columns, dimension and label are
needed. Dimensions that are not in the table keep their labels. An empty label and note
take them away.

Labels are kept in the model's directory, in labels.json. The commands that show
dimensions call them by these or, without one, by their most distinctive words.`,
		Example: `  overcomplete labels model > labels.tsv
  overcomplete labels model --import labels.tsv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(0, count{"--words", words}); err != nil {
				return err
			}
			mark, _ := modeldir.Identify(args[0])
			x, err := loadIndex(cmd, args[0])
			if err != nil {
				return err
			}
			if from != "" {
				return importLabels(cmd, args[0], from, x.Codes.Cols, mark)
			}
			labels, err := loadLabels(args[0], x.Codes.Cols)
			if err != nil {
				return err
			}
			return show(cmd, labels.List(), func(b *strings.Builder) { printLabels(b, labels, x, words) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "import", "", "take labels from this `file`")
	flags.IntVarP(&words, "words", "n", 8, "words of each dimension")
	addRare(cmd)
	addJSON(cmd, "print the labels that were given, as JSON")
	return cmd
}

// loadLabelled is loadIndex and loadLabels.
func loadLabelled(cmd *cobra.Command, path string) (*interpret.Index, interpret.Labels, error) {
	x, err := loadIndex(cmd, path)
	if err != nil {
		return nil, interpret.Labels{}, err
	}
	labels, err := loadLabels(path, x.Codes.Cols)
	return x, labels, err
}

// loadLabels reads the labels of the K dimensions of a model, or of a file of vectors, which
// has none.
func loadLabels(path string, dimensions int) (interpret.Labels, error) {
	file, err := modeldir.LabelsPath(path)
	if untold(err) {
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

// untold reports whether an error is that what is there can't be told.
func untold(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}

func printLabels(b *strings.Builder, labels interpret.Labels, x *interpret.Index, words int) {
	table := csv.NewWriter(b)
	table.Comma = '\t'
	table.Write([]string{"dimension", "label", "note", "words"})
	for k := range x.Codes.Cols {
		l, ok := labels[k]
		if len(x.Values(k)) == 0 && !ok {
			continue
		}
		described := wordList(x.Words(k, words, false), " ")
		if negative := x.Words(k, words, true); len(negative) > 0 {
			described = strings.TrimPrefix(described+" − "+wordList(negative, " "), " ")
		}
		table.Write([]string{strconv.Itoa(k), l.Name, l.Note, described})
	}
	table.Flush()
}

// mostTable is more bytes than a table of labels has.
const mostTable = 1 << 26

func importLabels(cmd *cobra.Command, path, from string, dimensions int, mark modeldir.Identity) error {
	file, err := modeldir.LabelsPath(path)
	if err != nil {
		return usageError{err}
	}
	text, err := input.Wait(cmd.Context(), func() ([]byte, error) { return input.Read(from, mostTable) })
	if err != nil {
		return usageError{err}
	}
	given, err := parseLabels(string(text))
	if err != nil {
		return usagef("%s: %w", from, err)
	}
	if _, err := interpret.ReadLabels(file, dimensions); err != nil {
		return usageError{err}
	}
	labels, err := interpret.ChangeLabels(cmd.Context(), file, dimensions, func(labels interpret.Labels) error {
		for _, l := range given {
			if err := labels.Set(l.Label, dimensions); err != nil {
				return usagef("%s: line %d: %w", from, l.line, err)
			}
		}
		return mark.Check()
	})
	if err != nil {
		return err
	}
	if len(labels) == 1 {
		say(cmd.ErrOrStderr(), "1 label")
	} else {
		say(cmd.ErrOrStderr(), "%d labels", len(labels))
	}
	return nil
}

type tableLabel struct {
	interpret.Label
	line int
}

// parseLabels parses a table with the columns dimension and label, and perhaps note.
func parseLabels(text string) ([]tableLabel, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("is not UTF-8: save the table as that")
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))) // which spreadsheets begin with
	r.Comma = '\t'
	head, err := r.Read()
	column := func(name string) int { return slices.Index(head, name) }
	dimension, name, note := column("dimension"), column("label"), column("note")
	if err != nil || dimension < 0 || name < 0 {
		return nil, errors.New(`the first line is not that of a table of labels: want the columns "dimension" and "label", with a tab between`)
	}
	var labels []tableLabel
	seen := map[int]int{}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return labels, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := r.FieldPos(0)
		l := tableLabel{interpret.Label{Name: row[name]}, line}
		if l.Dimension, err = strconv.Atoi(row[dimension]); err != nil {
			return nil, fmt.Errorf("line %d: %.50q is no dimension's number", line, row[dimension])
		}
		if first, ok := seen[l.Dimension]; ok {
			return nil, fmt.Errorf("line %d: dimension %d is in line %d already", line, l.Dimension, first)
		}
		seen[l.Dimension] = line
		if note >= 0 {
			l.Note = row[note]
		}
		labels = append(labels, l)
	}
}
