// Overcomplete turns embeddings of words or texts into sparse codes whose dimensions people can read:
//
//	overcomplete train posts.parquet -o model
//	overcomplete explore model --open
//
// Run it with --help for the other commands. README.md is the introduction.
package main

import (
	"os"

	"overcomplete/cli"
)

func main() { os.Exit(cli.Main()) }
