package memory

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePages asks for pages of 2 MiB under x, which is new. It is a hint: an error
// changes nothing.
func hugePages[T float32 | uint16](x []T) {
	const page = 2 << 20
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), int(unsafe.Sizeof(T(0)))*len(x))
	before := int(-uintptr(unsafe.Pointer(unsafe.SliceData(bytes))) % page) // the first whole page
	if whole := (len(bytes) - before) / page * page; whole > 0 {
		unix.Madvise(bytes[before:before+whole], unix.MADV_HUGEPAGE)
	}
}
