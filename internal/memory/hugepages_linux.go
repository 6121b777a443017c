package memory

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePages advises the system to use pages of 2 MiB for x, which must be newly allocated. Errors are ignored.
func hugePages[T float32 | uint16](x []T) {
	const page = 2 << 20
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), int(unsafe.Sizeof(T(0)))*len(x))
	before := int(-uintptr(unsafe.Pointer(unsafe.SliceData(bytes))) % page) // bytes before the first whole page
	if whole := (len(bytes) - before) / page * page; whole > 0 {
		unix.Madvise(bytes[before:before+whole], unix.MADV_HUGEPAGE)
	}
}
