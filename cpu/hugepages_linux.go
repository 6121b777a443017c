package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePages asks for pages of 2 MiB under x, which is new. The first pass over S
// and Q otherwise spends more time on faults, of 4 KiB each, than on its work. It
// is a hint.
func hugePages[T float32 | uint16](x []T) {
	const page = 2 << 20
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), int(unsafe.Sizeof(T(0)))*len(x))
	before := int(-uintptr(unsafe.Pointer(unsafe.SliceData(bytes))) % page) // the first whole page
	if whole := (len(bytes) - before) / page * page; whole > 0 {
		unix.Madvise(bytes[before:before+whole], unix.MADV_HUGEPAGE)
	}
}
