//go:build gpu

package kernels

// Every package that imports cu repeats the linker flags of package driver, because the linker puts a package's flags
// before the flags of its imports.

// #cgo LDFLAGS: -L${SRCDIR}/internal/driver -Wl,--as-needed
import "C"

import (
	"fmt"
	"strings"

	"gorgonia.org/cu"

	"overcomplete/kernels/internal/driver"
)

// GPUs returns the GPUs of the machine, without creating CUDA contexts on them. If there are none or the driver
// fails, it returns an error that wraps [ErrUnavailable]. [GPU.Usable] reports whether a GPU is too old.
func GPUs() ([]GPU, error) {
	count, err := countGPUs()
	if err != nil {
		return nil, err
	}
	devices := make([]GPU, count)
	for i := range devices {
		if devices[i], err = identify(i); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

// countGPUs returns the number of GPUs. If there are none, it returns an error that wraps [ErrUnavailable].
func countGPUs() (int, error) {
	err := driver.Err()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	count, err := cu.NumDevices()
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: cuDeviceGetCount: %w", ErrUnavailable, driver.Describe(err))
	case count == 0:
		return 0, fmt.Errorf("%w: the CUDA driver finds no GPU", ErrUnavailable)
	}
	return count, nil
}

// Find returns the GPU with the given index, without creating a CUDA context on it. If no such GPU exists or it is
// too old, Find returns an error that wraps [ErrUnavailable].
func Find(index int) (GPU, error) {
	count, err := countGPUs()
	if err != nil {
		return GPU{}, err
	}
	if index < 0 || index >= count {
		return GPU{}, fmt.Errorf("%w: no such GPU (got %d, want 0 to %d)", ErrUnavailable, index, count-1)
	}
	d, err := identify(index)
	if err == nil {
		err = d.Usable()
	}
	return d, err
}

func identify(index int) (GPU, error) {
	d := GPU{Index: index, Driver: driver.Version()}
	var failed error
	check := func(call string, err error) {
		if err != nil && failed == nil {
			failed = fmt.Errorf("%w: %s of GPU %d: %w", ErrUnavailable, call, index, driver.Describe(err))
		}
	}
	device, err := cu.GetDevice(index)
	check("cuDeviceGet", err)
	if failed != nil {
		return d, failed
	}
	d.Name, err = device.Name()
	check("cuDeviceGetName", err)
	d.Major, err = device.Attribute(cu.ComputeCapabilityMajor)
	check("cuDeviceGetAttribute", err)
	d.Minor, err = device.Attribute(cu.ComputeCapabilityMinor)
	check("cuDeviceGetAttribute", err)
	total, err := device.TotalMem()
	check("cuDeviceTotalMem", err)
	d.Total = uint64(total)
	if uuid, err := driver.UUID(device); err == nil { // some drivers lack the function
		kind := "GPU"
		if strings.Contains(d.Name, " MIG ") {
			kind = "MIG"
		}
		d.UUID = fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	}
	return d, failed
}
