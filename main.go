// Overcomplete turns dense word vectors into sparse ones that people can read.
// Run it with --help, and see README.md.
package main

import (
	"os"

	"overcomplete/internal/cli"
)

func main() { os.Exit(cli.Main()) }
