package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"overcomplete/internal/table"
)

// A benchmark on the CPU is what its flags ask for and what it measures of that, as JSON has
// both.
type benchmark interface {
	declare(flags *flag.FlagSet)
	run() error
	print(out io.Writer) error
	shared() *common
}

// common is what all benchmarks on the CPU have.
type common struct {
	Machine Machine `json:"machine"`

	dir        string // for files, until the benchmark ends
	program    string // overcomplete, once it is there
	json, plot string // files to write
}

func (c *common) shared() *common { return c }

// declareProgram declares the flags of benchmarks that run the program itself and draw.
func (c *common) declareProgram(flags *flag.FlagSet) {
	flags.StringVar(&c.program, "program", "", "the program overcomplete, to measure (default built with go)")
	flags.StringVar(&c.plot, "plot", "", "`file` to draw, without its endings .svg and .png")
}

// carryOut runs a benchmark, and leaves what it measured where it was asked to.
func carryOut(b benchmark, flags *flag.FlagSet, args []string, stdout io.Writer) (err error) {
	c := b.shared()
	b.declare(flags)
	flags.StringVar(&c.json, "json", "", "`file` to write all results to")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	if c.program != "" {
		if _, err := exec.LookPath(c.program); err != nil {
			return usageError{fmt.Errorf("--program: %w", err)}
		}
	}
	if c.Machine, err = thisMachine(); err != nil {
		return usageError{err} // the environment asks for a level that there is not
	}
	if c.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	if err := b.run(); err != nil {
		return err
	}
	if c.json != "" {
		if err := writeJSON(c.json, b); err != nil {
			return err
		}
	}
	if c.plot != "" {
		if err := draw(b, c.plot); err != nil {
			return err
		}
	}
	return b.print(stdout)
}

// file returns where a file of this name can be.
func (c *common) file(name string) string { return filepath.Join(c.dir, name) }

// build makes the program, unless it is there.
func (c *common) build() error {
	if c.program != "" {
		return nil
	}
	program := c.file("overcomplete")
	if out, err := exec.Command("go", "build", "-o", program, "overcomplete").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w %s", errNotHere, err, strings.TrimSpace(string(out)))
	}
	c.program = program
	return nil
}

// overcomplete runs the program, and reads the JSON that it prints into result unless that is
// nil. It returns how long that took and the most bytes that were resident, 0 if the system
// does not tell.
func (c *common) overcomplete(result any, args ...string) (seconds float64, resident int64, err error) {
	cmd := exec.Command(c.program, append(args, "--quiet")...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	text, err := cmd.Output()
	seconds = time.Since(start).Seconds()
	if err == nil && result != nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return seconds, maxResident(cmd.ProcessState), nil
}

// section prints a table of all, if there are any, below a title. Columns have commas between;
// numbers that are not whole have four digits.
func section[T any](out io.Writer, all []T, title, columns string, row func(T) []any) {
	if len(all) == 0 {
		return
	}
	rows := table.Table{strings.Split(columns, ",")}
	for _, x := range all {
		var cells []string
		for _, c := range row(x) {
			if f, ok := c.(float64); ok {
				c = fmt.Sprintf("%.4g", f)
			}
			cells = append(cells, fmt.Sprint(c))
		}
		rows = append(rows, cells)
	}
	fmt.Fprintf(out, "\n%s\n\n%s", title, rows.Text("lr", nil))
}
