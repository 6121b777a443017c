package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/memory"
	"overcomplete/internal/modeldir"
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

// addRare adds the flag --rare, which clears [interpret.Index.Known].
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

// newIndex is indexOf for commands with the flag --rare. Unless that flag is set, the index lists known words first.
func newIndex(cmd *cobra.Command, path string, m *model.Model) (*interpret.Index, error) {
	x, err := indexOf(path, m)
	if err == nil && cmd.Flags().Lookup("rare") != nil && !isSet(cmd, "rare") {
		x.Known = m.Info.Known()
	}
	return x, err
}

// indexOf returns an index of the codes of m, with the stop words of the model at path. It returns an error if the
// index doesn't fit into memory.
func indexOf(path string, m *model.Model) (*interpret.Index, error) {
	x, err := indexCodes(m.Codes)
	if err != nil {
		return nil, err
	}
	file, err := labelsPath(path)
	if file == "" {
		return x, err
	}
	words, err := interpret.ReadStopWords(file)
	if err != nil {
		return nil, usageError{err}
	}
	return x.WithStopWords(words), nil
}

// indexCodes returns an index of codes, or an error if the index doesn't fit into memory.
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

// checkMemory is [memory.Check] with an error that states the purpose of the bytes.
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
		return nil, err
	case m.Codes == nil && modeldir.IsCheckpoint(path):
		return nil, usagef("%s is a checkpoint with a dictionary and no codes: %s resumes its training, and encode makes codes with the dictionary so far", path, resuming(m))
	case m.Codes == nil:
		return nil, usagef("%s has a dictionary and no codes: encode makes them", path)
	case modeldir.IsCheckpoint(path):
		warn(cmd.ErrOrStderr(), "%s is a checkpoint: its training isn't finished; %s resumes it", path, resuming(m))
	}
	return m, nil
}

func loadNamed(cmd *cobra.Command, path string) (m *model.Model, x *interpret.Index, labels interpret.Labels, err error) {
	if m, err = loadModel(cmd, path); err != nil {
		return nil, nil, nil, err
	}
	if x, err = newIndex(cmd, path, m); err != nil {
		return nil, nil, nil, err
	}
	labels, err = loadLabels(path, m.Codes.Cols)
	return m, x, labels, err
}

// loadLabelled combines loadIndex and loadLabels. It refuses flags that don't apply to the kind of the file.
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

// readAccuracy returns the name of the reference vectors and the word intrusion accuracy of each pole of a model with K
// dimensions, with matched intruders. The map is nil if the accuracy wasn't measured.
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

// readDense reads vectors. With --skip-bad it drops malformed rows.
func readDense(cmd *cobra.Command, path string) (*vectors.Dense, *vectors.Source, error) {
	return readVectors(cmd, path, vectors.ReadOptions{SkipBad: isSet(cmd, "skip-bad")})
}

// readNonmodel is readDense for a path that isn't a model. If the path is a folder, errors say that it isn't a model.
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
	warnOf(cmd.ErrOrStderr(), source)
	return x, source, nil
}
