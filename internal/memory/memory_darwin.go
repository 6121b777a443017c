package memory

import "golang.org/x/sys/unix"

func total() (uint64, bool) {
	bytes, err := unix.SysctlUint64("hw.memsize")
	return bytes, err == nil
}
