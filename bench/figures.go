package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/klauspost/cpuid/v2"

	"overcomplete/internal/memory"
	"overcomplete/internal/simd"
	"overcomplete/internal/table"
	"overcomplete/model"
	"overcomplete/vectors"
)

// CPUReport is what "bench cpu" measures.
type CPUReport struct {
	common
	Vectors string   `json:"vectors"` // "generated", or the file they are from
	Words   int      `json:"words"`
	Dim     int      `json:"dim"`
	Atoms   int      `json:"atoms"`
	Epochs  int      `json:"epochs"`
	Figures []Figure `json:"figures"`

	python, authors string      // peers
	sized           func() bool // whether Words or Dim were asked for
	x               *vectors.Dense
	model           *model.Model // of the last training
}

// Machine is what the figures depend on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"` // that Go uses
	Level     string `json:"level"` // of instructions: see [simd.Choose]
	Memory    uint64 `json:"memory_bytes,omitempty"`
	System    string `json:"system"`
	Go        string `json:"go"`
}

func thisMachine() (Machine, error) {
	level, _, err := simd.Choose()
	if err != nil {
		return Machine{}, err
	}
	m := Machine{
		Processor: cpuid.CPU.BrandName, Cores: runtime.GOMAXPROCS(0), Level: level.Name,
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	m.Memory, _ = memory.Total()
	return m, nil
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %.1f GB of memory, %s, %s", m.Processor, m.Cores, m.Level, float64(m.Memory)/1e9, m.System, m.Go)
}

// Figure is one measured number. It is the median of Repeats.
type Figure struct {
	Name    string    `json:"name"`
	Value   float64   `json:"value,omitempty"`
	Unit    string    `json:"unit,omitempty"`
	Repeats []float64 `json:"repeats,omitempty"`
	Against string    `json:"against,omitempty"` // the name of the figure that it is compared with, of the same unit
	Ratio   float64   `json:"ratio,omitempty"`   // of Value to that figure's
	Note    string    `json:"note,omitempty"`    // what else there is to know; why there is no value
}

// add adds to what was measured of a figure. If against is the name of another, it is compared with that.
func (r *CPUReport) add(name, unit, against, note string, value float64) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		i = len(r.Figures)
		r.Figures = append(r.Figures, Figure{Name: name, Unit: unit, Against: against})
	}
	f := &r.Figures[i]
	f.Note, f.Repeats = note, append(f.Repeats, value)
	f.Value = median(f.Repeats)
}

// value returns the value of a figure that was measured before.
func (r *CPUReport) value(name string) float64 {
	for _, f := range r.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	panic("no figure " + name)
}

// print writes the report as a table.
func (r *CPUReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s vectors, %d × %d → %d, %d epochs\n\n", r.Machine, r.Vectors, r.Words, r.Dim, r.Atoms, r.Epochs)
	var rows table.Table
	for _, f := range r.Figures {
		value, against := "–", ""
		if f.Repeats != nil {
			value = fmt.Sprintf("%.4g", f.Value)
		}
		switch {
		case f.Against == "":
		case f.Ratio < 1.1:
			against = fmt.Sprintf("%.1f %% of %s", 100*f.Ratio, f.Against)
		default:
			against = fmt.Sprintf("%.3g × %s", f.Ratio, f.Against)
		}
		rows = append(rows, []string{f.Name, value + " " + f.Unit, against, f.Note})
	}
	_, err := io.WriteString(out, rows.Text("l", nil))
	return err
}
