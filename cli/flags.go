package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// whole is the value of a flag with a decimal whole number. Without this type, pflag would read 010 as octal.
type whole[T int | uint64] struct {
	p           *T
	least, most T
}

func within[T int | uint64](p *T, value, least, most T) pflag.Value {
	*p = value
	return whole[T]{p, least, most}
}

// count returns the value of a flag that accepts whole numbers from 1.
func count(p *int, value int) pflag.Value { return within(p, value, 1, math.MaxInt32) }

// countFrom0 returns the value of a flag that accepts whole numbers from 0.
func countFrom0(p *int, value int) pflag.Value { return within(p, value, 0, math.MaxInt32) }

func seedOf(p *uint64, value uint64) pflag.Value { return within(p, value, 0, math.MaxUint64) }

func (w whole[T]) String() string { return fmt.Sprint(*w.p) }
func (w whole[T]) Type() string   { return "int" }

func (w whole[T]) Set(s string) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
	if err != nil || n < uint64(w.least) || n > uint64(w.most) {
		return fmt.Errorf("want a whole number from %d to %d", w.least, w.most)
	}
	*w.p = T(n)
	return nil
}

// choice is the value of a flag that accepts one of several names.
type choice[T ~string] struct {
	p     *T
	names []string
}

func oneOf[T ~string](p *T, value T, names ...string) *choice[T] {
	*p = value
	return &choice[T]{p, names}
}

func (c *choice[T]) String() string { return string(*c.p) }
func (c *choice[T]) Type() string   { return "string" }
func (c *choice[T]) all() []string  { return c.names }

func (c *choice[T]) Set(s string) error {
	if !slices.Contains(c.names, s) {
		return errors.New("want " + orNames(c.names))
	}
	*c.p = T(s)
	return nil
}

// complete makes shells complete the values of a flag. In lists, the value after the last comma is completed.
func complete(cmd *cobra.Command, f *pflag.Flag, names []string) {
	cmd.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) (all []string, _ cobra.ShellCompDirective) {
		before := ""
		if f.Value.Type() == "stringSlice" {
			before = typed[:strings.LastIndex(typed, ",")+1]
		}
		for _, name := range names {
			all = append(all, before+name)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	})
}

// Annotations of flags.
const (
	needed   = "needed"   // the flags that a flag requires
	excluded = "excluded" // the flags that a flag excludes
	remedied = "remedied" // the field of [vectors.ReadOptions] that a flag sets, and the effect of the flag
)

// needs marks each flag of names as requiring the flag other.
func needs(cmd *cobra.Command, other string, names ...string) { annotate(cmd, needed, other, names) }

// excludes marks each flag of names as excluding the flag other.
func excludes(cmd *cobra.Command, other string, names ...string) {
	annotate(cmd, excluded, other, names)
}

func annotate(cmd *cobra.Command, key, other string, names []string) {
	for _, name := range names {
		cmd.Flags().SetAnnotation(name, key, append(cmd.Flags().Lookup(name).Annotations[key], other))
	}
}

// remedies records that a flag sets a field of [vectors.ReadOptions], for the advice in errors about the input.
func remedies(cmd *cobra.Command, name, option, effect string) {
	cmd.Flags().SetAnnotation(name, remedied, []string{option, effect})
}

// checkFlags returns an error for a required flag that is missing, an empty flag, or flags that don't go together.
func checkFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case err != nil:
		case f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !f.Changed:
			argument, meaning := pflag.UnquoteUsage(f)
			err = withUsage(cmd, "%s %s is missing: %s", flagName(f), argument, meaning)
		case f.Changed && f.Value.Type() == "string" && f.Value.String() == "":
			err = usagef("%s is empty", flagName(f))
		}
	})
	given := func(name string) bool {
		f := cmd.Flags().Lookup(name)
		return f.Changed && f.Value.String() != "false"
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !given(f.Name) {
			return
		}
		for _, other := range f.Annotations[needed] {
			if err == nil && !given(other) {
				err = usagef("%s requires --%s", flagName(f), other)
			}
		}
		for _, other := range f.Annotations[excluded] {
			if err == nil && given(other) {
				err = usagef("give %s or --%s, not both", flagName(f), other)
			}
		}
	})
	return err
}

// refuseFlags returns an error if one of the named flags is given. The flag would have no effect.
func refuseFlags(cmd *cobra.Command, why string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef("%s %s", flagName(cmd.Flags().Lookup(name)), why)
		}
	}
	return nil
}

// flagName returns a flag as typed, such as -o.
func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}
