package cli

import (
	"errors"
	"strings"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/modeldir"
	"overcomplete/train"
	"overcomplete/vectors"
)

// optionAdvice says which flag sets a field of [vectors.ReadOptions] that mends an input.
var optionAdvice = map[string]string{
	"SkipBad":      "--skip-bad drops such rows",
	"Rows":         "--rows texts keeps such rows, if they are texts",
	"WordList":     "--words names that file",
	"IDColumn":     "--id-column names another column of ids, or none to name rows by their numbers",
	"TextColumn":   "--text-column names one",
	"VectorColumn": "--vector-column names one",
}

// advice returns what follows the message of err: the flags that help.
func advice(err error) string {
	var all []string
	if input, ok := errors.AsType[*vectors.InputError](err); ok {
		for _, option := range input.Options {
			all = append(all, optionAdvice[option])
		}
	}
	if errors.Is(err, modeldir.ErrCheckpoint) {
		all = append(all, "--resume goes on with it")
	}
	if errors.Is(err, atomicfile.ErrExists) {
		all = append(all, "--force replaces it")
	}
	if errors.Is(err, train.ErrNothingActive) {
		all = append(all, "lower --lambda or --sparsity")
	}
	if errors.Is(err, train.ErrMemory) {
		all = append(all, "lower -k or --max-words, or try --overcommit; paper train also has --float16")
	}
	if len(all) == 0 {
		return ""
	}
	return "; " + strings.Join(all, ", ")
}
