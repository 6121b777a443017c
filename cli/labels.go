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

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
)

func newLabels() *cobra.Command {
	var from, stopWords, propose string
	var words, number int
	cmd := &cobra.Command{
		Use:   "labels MODEL",
		Short: "Export and import labels of dimensions and topics",
		Long: `Labels prints a table of all dimensions that some word uses, one per line, with tabs
between its columns: dimension, label, note, and top words, with the most negative ones
after a minus. Edit it and import it with --import. The first line and the columns
dimension and label are required. Dimensions that the table lacks keep their labels. An
empty label and note delete them.

With --topics the table is of that number of broad topics and all their subtopics, with a
column topic in place of dimension. A topic keeps its label for any number of broad topics.

--propose runs a command, such as a script that asks a language model, to label these
topics. The command reads a line of JSON for each topic without a label,
{"topic": 136, "keywords": ["card", …], "examples": ["…", …]}, and writes a line such as
{"topic": 136, "label": "Graphics cards"}. Its labels are marked as proposed, until
somebody edits them, and another run replaces them. Nothing is sent anywhere by itself.

Labels are stored in the model's directory, in labels.json. The commands that show
dimensions and topics name them by their labels or, without one, by their most
distinctive words. --stop-words stores words, in stop_words.txt, that all commands and
the page leave out of these words if rows are texts.`,
		Example: `  overcomplete labels model > labels.tsv
  overcomplete labels model --import labels.tsv
  overcomplete labels model --topics 16 > topics.tsv
  overcomplete labels model --propose "python3 propose.py"
  overcomplete labels model --stop-words words.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mark, _ := modeldir.Identify(args[0])
			m, err := loadModel(cmd, args[0])
			if err != nil {
				return err
			}
			labels, err := loadLabels(args[0], m.Codes.Cols)
			if err != nil {
				return err
			}
			if from != "" || stopWords != "" {
				return importLabels(cmd, args[0], from, stopWords, m, mark)
			}
			x, err := newIndex(cmd, args[0], m)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("topics") || propose != "" {
				t, err := newTopicTable(cmd.Context(), args[0], m, x, number)
				if err != nil {
					return err
				}
				if propose != "" {
					return proposeLabels(cmd, args[0], propose, m, t, labels, mark)
				}
				return printTable(cmd, topicLabelRows(labels, t))
			}
			if isSet(cmd, "json") {
				return printJSON(cmd.OutOrStdout(), labels)
			}
			return printTable(cmd, labelRows(labels, x, words))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "import", "", "import labels from this `file`, or - for standard input")
	flags.StringVar(&stopWords, "stop-words", "", "leave the words of this `file` out of labels of texts, one on each line, or - for standard input; an empty file ends that")
	flags.StringVar(&propose, "propose", "", "label topics by this `command`, which reads topics and writes labels as JSON lines")
	flags.VarP(countFrom0(&words, 8), "words", "n", "words of each dimension, without --topics")
	flags.Var(count(&number, 0), "topics", "print the topics instead, given the `number` of broad ones")
	addRare(cmd)
	addJSON(cmd, "print the labels as JSON, without words")
	for _, other := range []string{"import", "stop-words"} {
		excludes(cmd, other, "words", "rare", "json", "topics")
	}
	excludes(cmd, "propose", "import", "stop-words", "words", "rare", "json")
	excludes(cmd, "json", "words", "rare", "topics")
	excludes(cmd, "topics", "words")
	return cmd
}

// loadLabels reads the labels of a model with K dimensions. Files of vectors have none.
func loadLabels(path string, dimensions int) (interpret.Labels, error) {
	file, err := labelsPath(path)
	if file == "" {
		return interpret.Labels{}, err
	}
	labels, err := interpret.ReadLabels(file, dimensions)
	if err != nil {
		return nil, usageError{err}
	}
	return labels, nil
}

// labelsPath returns the path of the labels of a model, or "" for files of vectors and checkpoints, which have none.
func labelsPath(path string) (string, error) {
	file, err := modeldir.LabelsPath(path)
	if _, failed := errors.AsType[*fs.PathError](err); failed {
		return "", usageError{err}
	}
	return file, nil
}

// printTable prints rows with tabs between their cells, for import.
func printTable(cmd *cobra.Command, rows [][]string) error {
	var b strings.Builder
	table := csv.NewWriter(&b)
	table.Comma = '\t'
	table.WriteAll(rows)
	_, err := io.WriteString(tableWriter(cmd), b.String())
	return err
}

// labelRows returns a header and a row for each dimension that has a label, a note or words.
func labelRows(labels interpret.Labels, x *interpret.Index, words int) [][]string {
	rows := [][]string{{"dimension", "label", "note", "words"}}
	given := labelsByID(labels, false)
	for k := range x.Codes.Cols {
		l := given[k]
		if l.Name == "" && l.Note == "" && len(x.Poles(k)) == 0 {
			continue
		}
		described := wordList(x.Words(interpret.Pole{Dimension: k}, words), " ")
		if negative := x.Words(interpret.Pole{Dimension: k, Negative: true}, words); len(negative) > 0 {
			described = strings.TrimPrefix(described+" − "+wordList(negative, " "), " ")
		}
		rows = append(rows, []string{strconv.Itoa(k), l.Name, l.Note, described})
	}
	return rows
}

func topicLabelRows(labels interpret.Labels, t *topics.Table) [][]string {
	rows := [][]string{{"topic", "label", "note", "proposed", "words"}}
	given := labelsByID(labels, true)
	for _, topic := range slices.Concat(t.Topics, t.Subtopics) {
		if len(topic.Words) == 0 { // "other"
			continue
		}
		l := given[int(topic.ID)]
		proposed := ""
		if l.Proposed {
			proposed = "yes"
		}
		rows = append(rows, []string{strconv.Itoa(int(topic.ID)), l.Name, l.Note, proposed, wordList(topic.Words, " ")})
	}
	return rows
}

// labelsByID returns the labels of topics if ofTopics is true, and otherwise the labels of dimensions.
func labelsByID(labels interpret.Labels, ofTopics bool) map[int]interpret.Label {
	given := map[int]interpret.Label{}
	for _, l := range labels {
		if l.Topic == ofTopics {
			given[l.ID] = l
		}
	}
	return given
}

// importLabels stores labels and stop words from files; "" means no file. It reads both files before it
// changes anything.
func importLabels(cmd *cobra.Command, path, from, stopWords string, m *model.Model, mark modeldir.Identity) error {
	if stopWords != "" && m.Codes.Texts == nil {
		return usagef("--stop-words is for labels of texts, and the rows of %s are words", path)
	}
	file, err := modeldir.LabelsPath(path)
	if err != nil {
		return usageError{err}
	}
	words, err := readAndParse(cmd, stopWords, interpret.ParseStopWords)
	if err != nil {
		return err
	}
	changes, err := readAndParse(cmd, from, func(text string) ([]interpret.Label, error) {
		return parseLabels(text, m.Codes.Cols, m.Info.Training.Themes.Len())
	})
	if err != nil {
		return err
	}
	if stopWords != "" {
		if err := interpret.ChangeStopWords(cmd.Context(), file, words, mark.Check); err != nil {
			return err
		}
		say(cmd.ErrOrStderr(), "%d stop words", len(words))
	}
	if from != "" {
		labels, err := interpret.ChangeLabels(cmd.Context(), file, m.Codes.Cols, changes, mark.Check)
		if err != nil {
			return err
		}
		say(cmd.ErrOrStderr(), "%d labels", len(labels))
	}
	return nil
}

// readAndParse parses the text of a file, or returns nil if path is "".
func readAndParse[T any](cmd *cobra.Command, path string, parse func(text string) ([]T, error)) ([]T, error) {
	if path == "" {
		return nil, nil
	}
	text, err := input.Wait(cmd.Context(), func() ([]byte, error) { return input.Read(path, 1<<26) })
	if err != nil {
		return nil, usageError{err}
	}
	parsed, err := parse(string(text))
	if err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	return parsed, nil
}

// parseLabels parses a table. Its columns are "dimension" or "topic", "label" and, optionally, "note" and "proposed".
func parseLabels(text string, dimensions, themes int) ([]interpret.Label, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))) // the byte order mark of spreadsheets
	r.Comma = '\t'
	header, err := r.Read()
	id, name, note, proposed := slices.Index(header, "dimension"), slices.Index(header, "label"), slices.Index(header, "note"), slices.Index(header, "proposed")
	kind := "dimension"
	if id < 0 {
		kind, id = "topic", slices.Index(header, "topic")
	}
	if err != nil || id < 0 || name < 0 {
		return nil, errors.New(`the first line lacks the columns "dimension" or "topic", and "label", with a tab between`)
	}
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	labels := make([]interpret.Label, len(rows))
	seen := map[int]bool{}
	for i, row := range rows {
		l := &labels[i]
		l.Name, l.Topic = row[name], kind == "topic"
		if note >= 0 {
			l.Note = row[note]
		}
		l.Proposed = proposed >= 0 && row[proposed] != ""
		if l.ID, err = strconv.Atoi(row[id]); err != nil {
			return nil, fmt.Errorf("row %d: %.50q is no number of a %s", i+1, row[id], kind)
		}
		if err := l.Check(dimensions, themes); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		if seen[l.ID] {
			return nil, fmt.Errorf("row %d: %s %d has two labels", i+1, kind, l.ID)
		}
		seen[l.ID] = true
	}
	return labels, nil
}
