package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/modeldir"
	"overcomplete/train"
	"overcomplete/vectors"
)

// optionAdvice maps a field of [vectors.ReadOptions] to the flag that sets it and the effect of the flag.
var optionAdvice = map[string][2]string{
	"SkipBad":       {"skip-bad", "drops such rows"},
	"Rows":          {"rows", "texts keeps such rows, if they are texts"},
	"WordList":      {"words", "names that file"},
	"IDColumn":      {"id-column", "names another column of ids, or none to name rows by their numbers"},
	"TextColumn":    {"text-column", "names one"},
	"VectorColumns": {"vector-columns", "names one, or columns of numbers by a pattern or as first:last"},
}

// advice returns a suffix for the message of err that names flags of the command that help.
func advice(cmd *cobra.Command, err error) string {
	var all []string
	add := func(flag, before, after string) {
		f := cmd.Flags().Lookup(flag)
		if f != nil && (flag != "words" || f.Value.Type() == "string") { // elsewhere it is a number or a list
			all = append(all, strings.TrimSpace(before+" "+flagName(f)+" "+after))
		}
	}
	if input, ok := errors.AsType[*vectors.InputError](err); ok {
		for _, option := range input.Options {
			add(optionAdvice[option][0], "", optionAdvice[option][1])
		}
	}
	if left, ok := errors.AsType[*train.LeftError](err); errors.Is(err, modeldir.ErrCheckpoint) || ok && left.Resumable {
		add("resume", "", "continues it")
	}
	if errors.Is(err, atomicfile.ErrExists) {
		add("force", "", "replaces it")
	}
	if errors.Is(err, train.ErrZeroCodes) {
		add("lambda", "lower", "")
	}
	if errors.Is(err, train.ErrMemory) {
		device, paper := cmd.Flags().Lookup("device"), cmd.Flags().Lookup("authors-order") != nil
		gpu := device != nil && strings.HasPrefix(device.Value.String(), "cuda")
		add("atoms", "lower", "")
		if !gpu || paper { // only the paper's recipe needs all words on a GPU
			add("max-rows", "lower", "")
		}
		if !gpu {
			add("overcommit", "try", "")
		}
		if gpu {
			add("device", "use", "cpu")
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "; " + strings.Join(all, ", ")
}
