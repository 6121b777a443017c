package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/modeldir"
	"overcomplete/train"
	"overcomplete/vectors"
)

// advice returns a suffix for the message of err: the flags of the command that would help.
func advice(cmd *cobra.Command, err error) string {
	var all []string
	add := func(flag, before, after string) {
		if f := cmd.Flags().Lookup(flag); f != nil {
			all = append(all, strings.TrimSpace(before+" "+flagName(f)+" "+after))
		}
	}
	if input, ok := errors.AsType[*vectors.InputError](err); ok {
		for _, option := range input.Options {
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if remedy := f.Annotations[remedied]; remedy != nil && remedy[0] == option {
					add(f.Name, "", remedy[1])
				}
			})
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
