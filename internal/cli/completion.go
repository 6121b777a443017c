package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"overcomplete/graph"
	"overcomplete/internal/lab/eval"
	"overcomplete/vectors"
)

// flagValues lists the values of flags that take one of a few, or a list of these, by the name of the
// flag, or by the names of command and flag.
var flagValues = map[string][]string{
	"method":        {"A", "B"},
	"loss":          graph.LossNames(),
	"device":        {"auto", "cpu", "cuda"},
	"encode device": {"auto", "cpu", "cuda", allGPUs},
	"precision":     {"fp16", "tf32", "fp32"},
	"tasks":         eval.TaskNames(),
	"sort":          {byVariance, byIntrusion, byCoherence},
	"format":        formatNames(),
	"dot":           stepNames(),
	"normalize":     normalizations,
	"rows":          {string(vectors.KindWords), string(vectors.KindTexts)},
}

// valuesOf returns the values that a flag of a command takes, or nil.
func valuesOf(cmd *cobra.Command, f *pflag.Flag) []string {
	if values := flagValues[cmd.Name()+" "+f.Name]; values != nil {
		return values
	}
	return flagValues[f.Name]
}

// checkValues refuses other values, except of --device, which can have a number.
func checkValues(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values, given := valuesOf(cmd, f), f.Value.String()
		if err == nil && values != nil && f.Value.Type() == "string" && f.Name != "device" && !slices.Contains(values, given) {
			err = usagef("--%s is %.60q, want %s", f.Name, given, orNames(values))
		}
	})
	return err
}

// completeValues makes shells complete the values of the flags of a command. In a list, that is what
// follows the last comma.
func completeValues(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		values := valuesOf(cmd, f)
		if values == nil {
			return
		}
		cmd.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			before := ""
			if f.Value.Type() == "stringSlice" {
				before = typed[:strings.LastIndex(typed, ",")+1]
			}
			var all []string
			for _, v := range values {
				all = append(all, before+v)
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		})
	})
}
