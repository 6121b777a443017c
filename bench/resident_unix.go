//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// maxResident returns the most bytes of memory that a process that has ended had
// resident, 0 if that is not known.
func maxResident(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // where it is in bytes
		return int64(usage.Maxrss)
	}
	return 1024 * int64(usage.Maxrss)
}
