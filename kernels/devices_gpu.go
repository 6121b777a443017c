//go:build gpu

package kernels

// The linker takes the flags of a package before those of packages that it
// imports: each that imports cu needs what driver has.

// #cgo LDFLAGS: -L${SRCDIR}/internal/driver -Wl,--as-needed
import "C"

import (
	"fmt"
	"strings"

	"gorgonia.org/cu"

	"overcomplete/kernels/internal/driver"
)

// GPUs returns all GPUs of the machine: at least one, or an error that wraps
// [ErrUnavailable]. It starts none of them, so that others may have them for themselves; some
// may be too old, see [GPU.Usable].
func GPUs() ([]GPU, error) {
	count, err := Count()
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

// Count returns how many GPUs the machine has: at least one, or an error that
// wraps [ErrUnavailable].
func Count() (int, error) {
	err := driver.Err()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	count, err := cu.NumDevices()
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: cuDeviceGetCount: %w", ErrUnavailable, driver.Named(err))
	case count == 0:
		return 0, fmt.Errorf("%w: the CUDA driver finds none", ErrUnavailable)
	}
	return count, nil
}

// Find returns the GPU with an index, if the kernels can run on it, without starting it.
func Find(index int) (GPU, error) {
	count, err := Count()
	if err != nil {
		return GPU{}, err
	}
	if index < 0 || index >= count {
		return GPU{}, fmt.Errorf("%w: there is no GPU %d, only 0 to %d", ErrUnavailable, index, count-1)
	}
	d, err := identify(index)
	if err == nil {
		err = d.Usable()
	}
	return d, err
}

func identify(index int) (GPU, error) {
	d := GPU{Index: index, Driver: driver.Version()}
	call := "cuDeviceGet"
	device, err := cu.GetDevice(index)
	if err == nil {
		call = "cuDeviceGetName"
		d.Name, err = device.Name()
	}
	if err == nil {
		call = "cuDeviceGetAttribute"
		if d.Major, err = device.Attribute(cu.ComputeCapabilityMajor); err == nil {
			d.Minor, err = device.Attribute(cu.ComputeCapabilityMinor)
		}
	}
	if err == nil {
		var total int64
		call = "cuDeviceTotalMem"
		total, err = device.TotalMem()
		d.Total = uint64(total)
	}
	if uuid, unknown := driver.UUID(device); err == nil && unknown == nil {
		kind := "GPU"
		if strings.Contains(d.Name, " MIG ") {
			kind = "MIG"
		}
		d.UUID = fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	}
	if err != nil {
		return d, fmt.Errorf("%w: %s of GPU %d: %w", ErrUnavailable, call, index, driver.Named(err))
	}
	return d, nil
}
