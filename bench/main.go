// Bench measures the training: go run ./bench, or on a machine without Go the
// bundle that "make gpu-bundle" makes.
//
//	bench cpu       trainings on the CPU, reading and writing, against the
//	                machine's own limits and against other programs
//	bench growth    how time and memory grow with words and atoms
//	bench memory    how much memory it takes to learn from some words and encode all
//	bench vocabulary  what a whole vocabulary is good for, as it is and as sparse vectors
//	bench gpu       trainings and encoding on a GPU: against the CPU, against the
//	                device's own speed, streamed, and how trainings grow with the
//	                vocabulary; or some of these parts
//	bench vectors   write generated vectors, for other programs to train on
//	bench table     the results of "bench gpu", and of peers, as a short table
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"overcomplete/internal/atomicfile"
)

const usage = `usage: bench cpu [flags]                     measure trainings on the CPU, reading and writing
       bench growth [flags]                  measure how they grow with words and atoms
       bench memory [flags]                  measure the memory of learning from a sample and encoding all
       bench vocabulary [flags]              measure scores, time and memory of a whole vocabulary
       bench gpu [flags] [PART...]           measure trainings and encoding on a GPU, or some parts of that:
                                             peaks, train, encode, compare, profile, stream, scale
       bench vectors [flags] FILE.npy        write generated vectors
       bench table BENCH.json [TORCH.json]   print results of "bench gpu"

Flags are listed by -h after each of the first six. For example:

    go run ./bench cpu --words 2000 --json bench.json
    go run ./bench growth --words 1000,10000 --atoms 500,1000 --plot growth
`

func main() {
	os.Exit(status(run(os.Args[1:], os.Stdout), os.Stderr))
}

// status tells what went wrong and returns the program's exit status: 2 for bad
// usage and input, 1 for other failures.
func status(err error, stderr io.Writer) int {
	var bad usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprint(stderr, usage)
		return 2
	}
	fmt.Fprintf(stderr, "bench: %v\n", err)
	if errors.As(err, &bad) {
		return 2
	}
	return 1
}

// errUsage asks for the usage of all commands.
var errUsage = errors.New("bad usage")

// usageError is a mistake in a flag, or in the file that it names.
type usageError struct{ error }

func run(args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("bench "+args[0], flag.ContinueOnError)
	switch args[0] {
	case "cpu":
		return carryOut(new(CPUReport), flags, args[1:], stdout)
	case "growth":
		return carryOut(new(GrowthReport), flags, args[1:], stdout)
	case "memory":
		return carryOut(new(MemoryReport), flags, args[1:], stdout)
	case "vocabulary":
		return carryOut(new(VocabularyReport), flags, args[1:], stdout)
	case "gpu":
		return benchGPU(flags, args[1:], stdout)
	case "vectors":
		var words, dim int
		positive(flags, &words, "words", 400000, "to generate")
		positive(flags, &dim, "dim", 300, "of vectors")
		unit := flags.Bool("unit", false, "scale each to norm 1, as embeddings of texts often are")
		if err := parse(flags, args[1:], 1); err != nil {
			return err
		}
		x := generate(seed, words, dim)
		if *unit {
			toUnit(x)
		}
		return writeVectors(flags.Arg(0), x.Data, dim)
	case "table":
		if len(args) != 2 && len(args) != 3 {
			return errUsage
		}
		r, err := readReport(args[1])
		if err != nil {
			return err
		}
		if len(args) == 3 {
			peer, err := readReport(args[2])
			if err != nil {
				return err
			}
			r.Trainings, r.Products = slices.Concat(r.Trainings, peer.Trainings), peer.Products
		}
		return r.print(stdout)
	}
	return errUsage
}

// parse parses flags that so many arguments follow, or, if that is −1, any number.
func parse(flags *flag.FlagSet, args []string, following int) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	flags.SetOutput(os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.Usage()
		return err
	case err != nil:
		return usageError{err}
	case following >= 0 && flags.NArg() != following:
		return errUsage
	}
	return nil
}

// positive defines a flag of a whole number that is at least 1.
func positive(flags *flag.FlagSet, n *int, name string, value int, usage string) {
	*n = value
	flags.Var((*count)(n), name, usage)
}

// counts defines a flag of such numbers.
func counts(flags *flag.FlagSet, n *[]int, name string, value []int, usage string) {
	*n = value
	flags.Var((*countList)(n), name, usage+", with commas between")
}

// count implements [flag.Value].
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }

func (c *count) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("want a whole number from 1 to %d", 1<<31-1)
	}
	*c = count(n)
	return nil
}

// countList implements [flag.Value].
type countList []int

func (l *countList) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*l)), " ", ","), "[]")
}

func (l *countList) Set(s string) error {
	*l = nil
	for field := range strings.SplitSeq(s, ",") {
		var n count
		if err := n.Set(field); err != nil {
			return err
		}
		*l = append(*l, int(n))
	}
	return nil
}

// writeJSON writes what was measured to a file, whole or not at all.
func writeJSON(path string, report any) error {
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(context.Background(), path, true, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}
