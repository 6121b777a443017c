// Bench measures training and encoding. For example, on the CPU:
//
//	go run ./bench cpu
//
// On a machine with a GPU and without Go, use the bundle of "make gpu-bundle".
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"

	"github.com/klauspost/cpuid/v2"

	"overcomplete/internal/memory"
	"overcomplete/internal/simd"
)

// command is a subcommand. It defines its flags, parses args with [parse], and writes to out.
type command struct {
	summary string
	run     func(flags *flag.FlagSet, args []string, out io.Writer) error
}

// commands are the subcommands of this build. Builds with -tags gpu include "gpu".
var commands = make(map[string]command)

func main() {
	os.Exit(status(run(os.Args[1:], os.Stdout), os.Stderr))
}

// status prints err and returns the exit status: 2 for bad usage and input, 1 for other failures.
func status(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(stderr, "bench: %v\n", err)
	if _, bad := errors.AsType[usageError](err); bad {
		return 2
	}
	return 1
}

// usageError reports a wrong flag, or a fault of the file that a flag names.
type usageError struct{ error }

func run(args []string, stdout io.Writer) error {
	if len(args) > 0 {
		if c, ok := commands[args[0]]; ok {
			return c.run(flag.NewFlagSet("bench "+args[0], flag.ContinueOnError), args[1:], stdout)
		}
	}
	usage := "want one of these commands, each with -h for its flags:\n"
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		usage += fmt.Sprintf("  %-8s %s\n", name, commands[name].summary)
	}
	return usageError{errors.New(usage)}
}

// parse parses flags followed by n arguments, or by any number if n is −1.
func parse(flags *flag.FlagSet, args []string, n int) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	flags.SetOutput(os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.Usage()
		return err
	case err != nil:
		return usageError{err}
	case n >= 0 && flags.NArg() != n:
		return usageError{fmt.Errorf("%d arguments after the flags, want %d", flags.NArg(), n)}
	}
	return nil
}

// positive defines a flag for an integer of at least 1.
func positive(flags *flag.FlagSet, n *int, name string, value int, usage string) {
	*n = value
	flags.Func(name, fmt.Sprintf("%s (default %d)", usage, value), func(s string) error {
		given, err := strconv.ParseInt(s, 10, 32)
		if err != nil || given < 1 {
			return fmt.Errorf("want an integer from 1 to %d", math.MaxInt32)
		}
		*n = int(given)
		return nil
	})
}

// printMachine prints the machine and the build as configuration lines of Go's benchmark format.
func printMachine(out io.Writer) error {
	level, _, err := simd.Choose()
	if err != nil {
		return usageError{err} // the processor lacks the level of OVERCOMPLETE_CPU
	}
	total, _ := memory.Total()
	_, err = fmt.Fprintf(out, "goos: %s\ngoarch: %s\npkg: overcomplete/bench\ncpu: %s\nlevel: %s\nmemory: %.1f GB\ngo: %s\n",
		runtime.GOOS, runtime.GOARCH, cpuid.CPU.BrandName, level.Name, float64(total)/1e9, runtime.Version())
	return err
}
