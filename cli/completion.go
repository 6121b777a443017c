package cli

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"overcomplete/graph"
	"overcomplete/lab/eval"
	"overcomplete/vectors"
)

// flagValues lists the values of enumerated flags, or of flags with lists of such values. Keys are flags, or
// a command and a flag.
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
	"rows":          {string(vectors.KindWords), string(vectors.KindTexts)},
}

// valuesOf returns the values of an enumerated flag, or nil.
func valuesOf(cmd *cobra.Command, f *pflag.Flag) []string {
	if values := flagValues[cmd.Name()+" "+f.Name]; values != nil {
		return values
	}
	return flagValues[f.Name]
}

// mayBeZero lists integer flags that accept 0, as a command and a flag.
var mayBeZero = []string{"compare dimensions", "explain dimensions", "explain neighbours", "explain words", "explore port", "labels words", "nearest dimensions", "top words", "train topics"}

// checkValues refuses given flags that are empty or contradict each other, whole numbers out of range, and values
// that aren't in [flagValues], except for --device, which can have a number.
func checkValues(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values, given := valuesOf(cmd, f), f.Value.String()
		least := 1
		if slices.Contains(mayBeZero, cmd.Name()+" "+f.Name) {
			least = 0
		}
		n, _ := strconv.Atoi(given)
		switch typ := f.Value.Type(); {
		case err != nil:
		case typ == "string" && given == "":
			err = usagef("%s is empty", flagName(f))
		case typ == "string" && f.Name != "device" && values != nil && !slices.Contains(values, given):
			err = usagef("%s is %.60q, want %s", flagName(f), given, orNames(values))
		case typ == "int" && (n < least || n > math.MaxInt32):
			err = usagef("%s is %d, want %d to %d", flagName(f), n, least, math.MaxInt32)
		}
	})
	if err == nil && cmd.Flags().Changed("quiet") && cmd.Flags().Changed("progress") {
		err = usagef("give --quiet or --progress, not both")
	}
	return err
}

// completeValues registers shell completion for the values of enumerated flags. In lists, the value after the
// last comma is completed.
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
