// Bench measures the training: go run ./bench, or on a machine without Go the
// bundle that "make gpu-bundle" makes.
//
//	bench gpu       trainings on a GPU: against the CPU, against the device's
//	                own speed, and how they grow with the vocabulary
//	bench vectors   write generated vectors, for other programs to train on
//	bench table     the results of "bench gpu", and of peers, as a short table
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

const usage = `usage: bench gpu [flags]                     measure trainings on a GPU
       bench vectors [flags] FILE.npy        write generated vectors
       bench table BENCH.json [TORCH.json]   print results

"bench gpu -h" and "bench vectors -h" list the flags.
`

func main() {
	switch err := run(os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("bad usage")

func run(args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "gpu":
		return benchGPU(args[1:], stdout)
	case "vectors":
		flags := flag.NewFlagSet("bench vectors", flag.ContinueOnError)
		words := flags.Int("words", 400000, "")
		dim := flags.Int("dim", 300, "")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if flags.NArg() != 1 {
			return errUsage
		}
		return writeVectors(flags.Arg(0), generate(seed, *words, *dim), *dim)
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
			r.Trainings = slices.Concat(r.Trainings, peer.Trainings)
		}
		return r.print(stdout)
	}
	return errUsage
}
