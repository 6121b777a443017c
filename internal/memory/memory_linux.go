package memory

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

func total() (uint64, bool) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, false
	}
	return min(uint64(info.Totalram)*uint64(info.Unit), groups(), ownLimit()), true
}

// groups returns the limit of the program's control groups. It reads them only once, because reading a few files takes
// longer than decoding a page of Parquet.
var groups = sync.OnceValue(func() uint64 { return groupLimit("/") })

// threads is the address space of the threads that a program may start later. A thread of a program with cgo reserves
// 64 MiB for its malloc and 8 MiB for its stack.
const threads = 256 << 20

// ownLimit returns the bytes that the limit of the address space leaves to the heap, or MaxUint64 if there is no limit.
func ownLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return math.MaxUint64
	}
	statm, _ := os.ReadFile("/proc/self/statm") // the first number is the number of pages of the address space
	first, _, _ := strings.Cut(string(statm), " ")
	pages, _ := strconv.ParseUint(first, 10, 64)
	addresses := pages * uint64(os.Getpagesize())
	others := addresses - min(addresses, read("/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes",
		"/memory/classes/heap/free:bytes", "/memory/classes/heap/released:bytes"))
	return limit.Cur - min(limit.Cur, others+threads)
}

// groupLimit returns the least limit of the program's control groups (see cgroups(7)), or MaxUint64 if there is none.
// memory.high is a limit, too: above it, the system slows a program down until it seems to hang.
func groupLimit(root string) uint64 {
	limit := uint64(math.MaxUint64)
	// Lines are hierarchy:controllers:group. Version 2 has no controllers.
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) < 3 {
			continue
		}
		var mount string
		var files []string
		switch controllers := strings.Split(fields[1], ","); {
		case fields[1] == "":
			mount, files = "sys/fs/cgroup", []string{"memory.max", "memory.high"}
		case slices.Contains(controllers, "memory"):
			mount, files = "sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}
		default:
			continue
		}
		// The limits of ancestors apply, too. In a container, the group may be mounted as the root,
		// although the line has the group's path on the host.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			for _, file := range files {
				limit = min(limit, readLimit(filepath.Join(root, mount, group, file)))
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}

func readLimit(file string) uint64 {
	text, _ := os.ReadFile(file)
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil { // "max", or no such file
		return math.MaxUint64
	}
	return limit
}

// hugePages advises the system to use pages of 2 MiB for x, which must be newly allocated. Errors are ignored.
func hugePages[T float32 | uint16](x []T) {
	const page = 2 << 20
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), int(unsafe.Sizeof(T(0)))*len(x))
	before := int(-uintptr(unsafe.Pointer(unsafe.SliceData(bytes))) % page) // bytes before the first whole page
	if whole := (len(bytes) - before) / page * page; whole > 0 {
		unix.Madvise(bytes[before:before+whole], unix.MADV_HUGEPAGE)
	}
}
