package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/memory"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/printing"
	"overcomplete/interpret"
	"overcomplete/lab/intrusion"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Shared parts of the help of commands that show dimensions.
const (
	aboutInput = `MODEL is a model, or a file of dense vectors as train reads them.`

	aboutLabels = `The label of a dimension is its name in the model's labels (see labels), or else its most
distinctive words, which few other dimensions have. If the model was learned from the
frequent words of a vocabulary, these come first in lists if they have at least half of
the largest value.`
)

func addSkipBad(cmd *cobra.Command) {
	cmd.Flags().Bool("skip-bad", false, "drop malformed rows of dense vectors instead of stopping at the first")
	remedies(cmd, "skip-bad", "SkipBad", "drops such rows")
}

// addRare adds --rare, which clears [interpret.Index.Known].
func addRare(cmd *cobra.Command) {
	cmd.Flags().Bool("rare", false, "list rare words by their values, too, not after the frequent words that the model was learned from")
}

// loadIndex reads a model, or a file of dense vectors.
func loadIndex(cmd *cobra.Command, path string) (*interpret.Index, error) {
	if model.Is(path) {
		m, err := loadModel(cmd, path)
		if err != nil {
			return nil, err
		}
		return newIndex(cmd, path, m)
	}
	x, err := readNonmodel(cmd, path)
	if err != nil {
		return nil, err
	}
	if err := checkMemory(8*uint64(len(x.Data)), "the nonzeros of %s", path); err != nil {
		return nil, err
	}
	return indexCodes(interpret.FromDense(x))
}

// newIndex returns indexOf. Commands with --rare list known words first unless it is set.
func newIndex(cmd *cobra.Command, path string, m *model.Model) (*interpret.Index, error) {
	x, err := indexOf(path, m)
	if rare, notFlag := cmd.Flags().GetBool("rare"); err == nil && notFlag == nil && !rare {
		x.Known = m.Info.Known()
	}
	return x, err
}

// indexOf returns an index of the codes of the model at path, with its stop words, or an error if it doesn't fit into
// memory.
func indexOf(path string, m *model.Model) (*interpret.Index, error) {
	x, err := indexCodes(m.Codes)
	if err != nil {
		return nil, err
	}
	file, err := modeldir.LabelsPath(path)
	if err != nil {
		return x, nil // loadLabels reports an error of the system
	}
	words, err := interpret.ReadStopWords(file)
	if err != nil {
		return nil, usageError{err}
	}
	return x.WithStopWords(words), nil
}

// indexCodes returns an index of codes, or an error if it doesn't fit into memory.
func indexCodes(codes *vectors.Sparse) (*interpret.Index, error) {
	index, _ := interpret.Memory(codes)
	if err := checkMemory(index, "an index of %d rows", codes.Rows); err != nil {
		return nil, err
	}
	return interpret.NewIndex(codes), nil
}

// checkSearch returns an error if a search for words of texts doesn't fit into memory.
func checkSearch(x *interpret.Index) error {
	_, search := interpret.Memory(x.Codes)
	return checkMemory(search, "the words of %d texts", x.Codes.Rows)
}

// checkMemory is [memory.Check] with the purpose of the bytes.
func checkMemory(bytes uint64, format string, args ...any) error {
	if err := memory.Check(bytes); err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return nil
}

// resuming returns the command line that resumes the training of m.
func resuming(m *model.Model) string {
	if m.Info.Training.Recipe.String() == "paper" {
		return "paper train --resume"
	}
	return "train --resume"
}

// loadModel opens a model that has codes, and warns if it is a checkpoint.
func loadModel(cmd *cobra.Command, path string) (*model.Model, error) {
	m, err := input.Wait(cmd.Context(), func() (*model.Model, error) { return model.Open(path) })
	switch {
	case err != nil:
		return nil, usageError{err}
	case m.Codes == nil && modeldir.IsCheckpoint(path):
		return nil, usagef("%s is a checkpoint with a dictionary and no codes: %s resumes its training, and encode makes codes with the dictionary so far", path, resuming(m))
	case m.Codes == nil:
		return nil, usagef("%s has a dictionary and no codes: encode makes them", path)
	case modeldir.IsCheckpoint(path):
		warn(cmd.ErrOrStderr(), "%s is a checkpoint: its training isn't finished; %s resumes it", path, resuming(m))
	}
	return m, nil
}

// loadLabelled is loadIndex and loadLabels. It refuses flags that are not for the kind of the file.
func loadLabelled(cmd *cobra.Command, path string) (*interpret.Index, interpret.Labels, error) {
	flag, why := "rare", "is for models, and this is none: "
	if model.Is(path) {
		flag, why = "skip-bad", "is for dense vectors, and this is a model: "
	}
	if err := refuseFlags(cmd, why+path, flag); err != nil {
		return nil, nil, err
	}
	x, err := loadIndex(cmd, path)
	if err != nil {
		return nil, nil, err
	}
	labels, err := loadLabels(path, x.Codes.Cols)
	return x, labels, err
}

// readAccuracy returns the word intrusion accuracy of each pole of a model with K dimensions, with matched
// intruders, and the name of the reference vectors. The map is nil if the accuracy wasn't measured.
func readAccuracy(path string, dimensions int) (judge string, accuracy map[interpret.Pole]float64, err error) {
	judge, accuracy, err = intrusion.Matched(filepath.Join(path, modeldir.Intrusion), dimensions)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, usageError{err}
	}
	return judge, accuracy, nil
}

// readDense reads vectors, without malformed rows if the command has --skip-bad.
func readDense(cmd *cobra.Command, path string) (*vectors.Dense, *vectors.Source, error) {
	skip, _ := cmd.Flags().GetBool("skip-bad")
	return readVectors(cmd, path, vectors.ReadOptions{SkipBad: skip})
}

// readNonmodel is readDense for a path that isn't a model; for a folder, its errors mention this.
func readNonmodel(cmd *cobra.Command, path string) (*vectors.Dense, error) {
	x, _, err := readDense(cmd, path)
	if stat, e := os.Stat(path); err != nil && e == nil && stat.IsDir() {
		err = fmt.Errorf("%w (%s: not a model: it has no %s)", err, path, modeldir.Info)
	}
	return x, err
}

// readVectors reads vectors and prints warnings about them.
func readVectors(cmd *cobra.Command, path string, o vectors.ReadOptions) (*vectors.Dense, *vectors.Source, error) {
	x, source, err := vectors.Read(cmd.Context(), []string{path}, o)
	if err != nil {
		return nil, nil, err
	}
	for _, warning := range source.Warnings {
		warn(cmd.ErrOrStderr(), "%s: %s", source.Name, warning)
	}
	return x, source, nil
}

// findWord returns the row of a word, or of the only text that contains it.
func findRow(x *interpret.Index, word string) (int, error) {
	if row, ok := x.Row(word); ok {
		return row, nil
	}
	if err := checkSearch(x); err != nil {
		return 0, err
	}
	row, err := x.Find(word)
	if unknown, ok := errors.AsType[*interpret.UnknownIDError](err); ok {
		return 0, unknownRow(x, unknown)
	}
	return row, err
}

// unknownWord returns the error for an unknown word, with similar words.
func unknownRow(x *interpret.Index, err *interpret.UnknownIDError) error {
	closest := wordList(err.Closest[:min(5, len(err.Closest))], ", ")
	switch {
	case err.Texts > 0:
		return usagef("%d texts match %.100q; name one by its id, such as %s", err.Texts, err.ID, closest)
	case x.Codes.Texts != nil:
		return usagef("%.100q is no id, and no text has all of its words", err.ID)
	case closest == "":
		return usagef("%.100q is not among the %d words, and none is spelled like it", err.ID, x.Codes.Rows)
	}
	return usagef("%.100q is not among the %d words; similar ones are %s", err.ID, x.Codes.Rows, closest)
}

// An item is a row in a list: a word, or the id of a text and the text.
type item struct {
	Word string  `json:"word"`
	Text *string `json:"text,omitempty"` // nil for a word; a text may be empty

	excerpt func() string // printed in place of the text
}

// newItem returns the item of a row. Its excerpt prefers the given words.
func newItem(x *interpret.Index, row int, words ...string) item {
	i := item{Word: x.Codes.IDs[row]}
	if x.Codes.Texts != nil {
		i.Text = &x.Codes.Texts.Text[row]
		i.excerpt = func() string {
			text, _ := x.Excerpt(row, words, shownText)
			return text
		}
	}
	return i
}

// String returns the printed form of the item.
func (i item) String() string {
	word := wordList([]string{i.Word}, "")
	if i.Text == nil || *i.Text == "" {
		return word
	}
	return word + "  " + shortText(i.excerpt(), shownText)
}

// shownText is the number of characters of a text in a list.
const shownText = 100

// shortText returns the first n characters of a text, made safe to print.
func shortText(text string, n int) string {
	runes := []rune(printing.Text(text))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}

// wordList joins words on one line. Words with white space are quoted.
func wordList(words []string, separator string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = printing.Word(word)
		if word == "" || word[0] == '"' || strings.ContainsRune(word, ' ') {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, separator)
}
