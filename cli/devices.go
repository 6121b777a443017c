package cli

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/memory"
	"overcomplete/internal/simd"
	"overcomplete/kernels"
)

func newDevices() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "devices",
		SuggestFor: []string{"gpu", "gpus", "cuda"},
		Short:      "List the devices for training and encoding",
		Long: `Devices lists the CPU and all NVIDIA GPUs. The number of a GPU is the i of --device cuda:i in
train and encode. If no GPU can be used, it prints the reason and exits with code 0.
It does not initialise GPUs, so it cannot report their free memory.`,
		Example: "  overcomplete devices",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := findDevices(kernels.GPUs())
			if err != nil {
				return err
			}
			return show(cmd, found, found.print)
		},
	}
	addJSON(cmd, "print the list as JSON")
	return cmd
}

// devices describes the CPU and the GPUs. Memory is in bytes, and omitted if unknown.
type devices struct {
	CPU struct {
		Processors int    `json:"processors"`
		Memory     uint64 `json:"memory,omitempty"`
		Kernels    string `json:"kernels"` // a level of package simd
		Why        string `json:"why"`     // reason for this choice of kernels
	} `json:"cpu"`
	GPUs        []gpuDevice `json:"gpus"`
	Unavailable string      `json:"gpus_unavailable,omitempty"` // reason why no GPU is available
}

type gpuDevice struct {
	Index             int    `json:"index"`
	Name              string `json:"name"`
	UUID              string `json:"uuid,omitempty"` // a value for CUDA_VISIBLE_DEVICES
	ComputeCapability string `json:"compute_capability"`
	MemoryTotal       uint64 `json:"memory_total"`
	Driver            string `json:"driver"` // newest version of CUDA that the driver supports
	Unavailable       string `json:"unavailable,omitempty"`
}

func findDevices(gpus []kernels.GPU, err error) (*devices, error) {
	d := &devices{GPUs: []gpuDevice{}}
	level, why, chooseErr := simd.Choose()
	if chooseErr != nil {
		return nil, chooseErr
	}
	d.CPU.Kernels, d.CPU.Why = level.Name, why
	d.CPU.Processors = runtime.GOMAXPROCS(0)
	d.CPU.Memory, _ = memory.Total()
	if err != nil {
		d.Unavailable = err.Error()
	}
	for _, gpu := range gpus {
		g := gpuDevice{
			Index: gpu.Index, Name: gpu.Name, UUID: gpu.UUID, ComputeCapability: fmt.Sprintf("%d.%d", gpu.Major, gpu.Minor),
			MemoryTotal: gpu.Total, Driver: gpu.Driver,
		}
		if err := gpu.Usable(); err != nil {
			g.Unavailable = err.Error()
		}
		d.GPUs = append(d.GPUs, g)
	}
	return d, nil
}

// print writes a line for each device, followed by the reason if it is unavailable.
func (d *devices) print(b *strings.Builder) {
	fmt.Fprintf(b, "CPU: %d processors", d.CPU.Processors)
	if d.CPU.Memory > 0 {
		fmt.Fprintf(b, ", %s memory", gib(d.CPU.Memory))
	}
	fmt.Fprintf(b, ", %s kernels: %s\n", d.CPU.Kernels, d.CPU.Why)
	for _, g := range d.GPUs {
		fmt.Fprintf(b, "GPU %d: %s, compute capability %s, %s memory, driver for CUDA %s",
			g.Index, g.Name, g.ComputeCapability, gib(g.MemoryTotal), g.Driver)
		if g.UUID != "" {
			fmt.Fprintf(b, ", %s", g.UUID)
		}
		fmt.Fprintln(b)
		if g.Unavailable != "" {
			fmt.Fprintln(b, g.Unavailable)
		}
	}
	if d.Unavailable != "" {
		fmt.Fprintln(b, d.Unavailable)
	}
}

func gib(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
