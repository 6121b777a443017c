//go:build gpu

package kernels

// The linker takes the flags of a package before those of packages that it
// imports: each that imports cu needs what driver has.

// #cgo LDFLAGS: -L${SRCDIR}/driver -Wl,--as-needed
import "C"

import (
	"fmt"
	"runtime"

	"gorgonia.org/cu"

	"overcomplete/kernels/driver"
)

// Devices returns all GPUs of the machine: at least one, or an error that wraps
// [ErrUnavailable]. Some may be too old, see [Device.Usable].
func Devices() ([]Device, error) {
	count, err := Count()
	if err != nil {
		return nil, err
	}
	devices := make([]Device, count)
	for i := range devices {
		if devices[i], err = find(i); err != nil {
			return nil, err
		}
		devices[i].Free = freeMemory(cu.Device(i))
	}
	return devices, nil
}

// Count returns how many GPUs the machine has: at least one, or an error that
// wraps [ErrUnavailable]. Unlike [Devices] it starts none of them.
func Count() (int, error) {
	err := driver.Err()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	count, err := cu.NumDevices()
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: cuDeviceGetCount: %w", ErrUnavailable, err)
	case count == 0:
		return 0, fmt.Errorf("%w: the CUDA driver finds none", ErrUnavailable)
	}
	return count, nil
}

// find describes a GPU but for its free memory.
func find(index int) (Device, error) {
	d, err := identify(index)
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return d, nil
}

func identify(index int) (Device, error) {
	d := Device{Index: index, Driver: driver.Version()}
	device, err := cu.GetDevice(index)
	if err != nil {
		return d, fmt.Errorf("cuDeviceGet of GPU %d: %w", index, err)
	}
	if d.Name, err = device.Name(); err != nil {
		return d, fmt.Errorf("cuDeviceGetName of GPU %d: %w", index, err)
	}
	if d.Major, err = device.Attribute(cu.ComputeCapabilityMajor); err == nil {
		d.Minor, err = device.Attribute(cu.ComputeCapabilityMinor)
	}
	if err != nil {
		return d, fmt.Errorf("cuDeviceGetAttribute of GPU %d: %w", index, err)
	}
	total, err := device.TotalMem()
	if err != nil {
		return d, fmt.Errorf("cuDeviceTotalMem of GPU %d: %w", index, err)
	}
	d.Total = uint64(total)
	return d, nil
}

// freeMemory returns the bytes that are free, or 0 when the device refuses.
func freeMemory(device cu.Device) uint64 {
	// Only a context of the current thread can be asked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	context, err := device.MakeContext(cu.SchedAuto)
	if err != nil {
		return 0
	}
	defer context.Destroy()
	free, _, err := cu.MemInfo()
	if err != nil {
		return 0
	}
	return uint64(free)
}
