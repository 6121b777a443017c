//go:build gpu

package kernels

import (
	"embed"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"overcomplete/kernels/driver"
	"overcomplete/train"
)

//go:embed ptx/*.ptx
var ptx embed.FS

// gpu is a CUDA context with our kernels. Use it between enter and leave. The
// first call that fails is remembered, and those after it do nothing: one look
// at err is enough for many calls.
type gpu struct {
	device     GPU
	context    cu.CUContext
	functions  map[string]cu.Function
	shared     map[string]int // dynamic shared memory that a kernel was allowed, in bytes
	mostShared int            // that a block may have
	pinned     []unsafe.Pointer
	pinner     runtime.Pinner // of memory that copies under way read or write
	allocated  int64          // bytes on the device
	locked     int64          // bytes of the host that are page-locked
	lacksHost  bool           // no more could be
	profile    profile
	err        error

	compute, load, store cu.Stream // kernels, copies to the device, copies from it
}

// openGPU makes a context on a device.
func openGPU(index int) (*gpu, error) {
	device, err := Find(index)
	if err != nil {
		return nil, err
	}
	g := &gpu{device: device, functions: make(map[string]cu.Function), shared: make(map[string]int)}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := g.start(index); err != nil {
		return nil, err
	}
	g.loadKernels()
	for _, s := range []*cu.Stream{&g.compute, &g.load, &g.store} {
		if g.err == nil {
			*s, err = cu.MakeStream(cu.NonBlocking)
			g.check("cuStreamCreate", err)
		}
	}
	if g.err != nil {
		g.context.Destroy()
		return nil, g.err
	}
	return g, nil
}

// start makes the context. If that fails, somebody else has the GPU or all of
// its memory.
func (g *gpu) start(index int) error {
	device, err := cu.GetDevice(index)
	g.check("cuDeviceGet", err)
	if g.err == nil {
		const maxSharedMemoryPerBlockOptIn cu.DeviceAttribute = 97 // cu has no name for it
		g.mostShared, err = device.Attribute(maxSharedMemoryPerBlockOptIn)
		g.check("cuDeviceGetAttribute", err)
	}
	if g.err == nil {
		g.context, err = device.MakeContext(cu.SchedAuto)
		g.check("cuCtxCreate", err)
	}
	switch {
	case errors.Is(g.err, cu.OutOfMemory):
		return fmt.Errorf("%w on GPU %d to start it: %w", train.ErrMemory, index, g.err)
	case g.err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, g.err)
	}
	return nil
}

// module is a file of PTX.
type module struct {
	name, source string
	kernels      []string
}

// modules reads the embedded PTX.
var modules = sync.OnceValues(func() (all []module, err error) {
	files, err := ptx.ReadDir("ptx")
	for _, file := range files {
		source, err := ptx.ReadFile("ptx/" + file.Name())
		if err != nil {
			return nil, err
		}
		m := module{name: file.Name(), source: string(source)}
		for _, entry := range regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`).FindAllStringSubmatch(m.source, -1) {
			m.kernels = append(m.kernels, entry[1])
		}
		all = append(all, m)
	}
	return all, err
})

// loadKernels has the driver compile all kernels for its device.
func (g *gpu) loadKernels() {
	all, err := modules()
	g.check("reading the embedded PTX", err)
	for _, m := range all {
		if g.err != nil {
			return
		}
		loaded, err := cu.LoadData(m.source)
		g.check("cuModuleLoadData of "+m.name, err)
		for _, kernel := range m.kernels {
			if g.err == nil {
				g.functions[kernel], err = loaded.Function(kernel)
				g.check("cuModuleGetFunction of "+kernel, err)
			}
		}
	}
}

// name is what [train.Trainer] and [overcomplete/encode.Encoder] say of the GPU. What
// tensor cores round depends on their generation.
func (g *gpu) name(p Precision) string {
	return fmt.Sprintf("cuda %d.%d %s", g.device.Major, g.device.Minor, p)
}

// enter makes the context the current one of the goroutine's thread, until leave.
func (g *gpu) enter() {
	runtime.LockOSThread()
	if g.err == nil {
		g.check("cuCtxSetCurrent", cu.SetCurrentContext(g.context))
	}
}

func (g *gpu) leave() { runtime.UnlockOSThread() }

var errClosed = errors.New("kernels: the backend is closed")

// close releases all that the context holds. It returns what made it of no use,
// if that is not close itself.
func (g *gpu) close() error {
	if g.err == errClosed {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	failed := g.err
	cu.SetCurrentContext(g.context)
	for _, p := range g.pinned {
		driver.HostFree(p)
	}
	g.pinned = nil
	g.check("cuCtxDestroy", g.context.Destroy())
	if failed == nil {
		failed = g.err
	}
	g.pinner.Unpin()
	g.err = errClosed
	return failed
}

// check remembers an error, with the name of the call or kernel and the place
// that it was made from.
func (g *gpu) check(call string, err error) {
	if err == nil || g.err != nil {
		return
	}
	place := ""
	for skip := 1; ; skip++ { // the first caller outside this file
		_, file, line, ok := runtime.Caller(skip)
		if !ok {
			break
		}
		place = fmt.Sprintf(" (%s:%d)", filepath.Base(file), line)
		if filepath.Base(file) != "gpu.go" {
			break
		}
	}
	g.err = fmt.Errorf("kernels: %s%s: %w", call, place, driver.Named(err))
}

// alloc returns zeroed device memory of a number of bytes.
func (g *gpu) alloc(bytes int64) cu.DevicePtr {
	if g.err != nil {
		return 0
	}
	bytes = max(bytes, 16)
	p, err := cu.MemAlloc(bytes)
	g.check(fmt.Sprintf("cuMemAlloc of %d bytes", bytes), err)
	if err == nil {
		g.allocated += bytes
	}
	g.zero(p, bytes, g.compute)
	return p
}

func (g *gpu) free(p cu.DevicePtr) {
	if g.err == nil && p != 0 {
		g.check("cuMemFree", cu.MemFree(p))
	}
}

func (g *gpu) zero(p cu.DevicePtr, bytes int64, s cu.Stream) {
	if g.err == nil {
		g.check("cuMemsetD8Async", cu.MemsetD8Async(p, 0, bytes, s))
	}
}

// allocHost returns host memory that the device reads and writes on its own,
// until close.
func (g *gpu) allocHost(elements int64) []float32 {
	if g.err != nil {
		return nil
	}
	p, err := driver.HostAlloc(4 * elements)
	g.check(fmt.Sprintf("cuMemAllocHost of %d bytes", 4*elements), err)
	if g.lacksHost = err != nil; g.lacksHost {
		return nil
	}
	g.pinned = append(g.pinned, p)
	g.locked += 4 * elements
	return unsafe.Slice((*float32)(p), elements)
}

// toDevice copies src to the device when the stream comes to it. Until the stream
// is synchronized src must stay as it is.
func toDevice[T any](g *gpu, dst cu.DevicePtr, src []T, s cu.Stream) {
	if g.err == nil && len(src) > 0 {
		g.pinner.Pin(&src[0])
		g.check("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(dst, unsafe.Pointer(&src[0]), bytesOf(src), s))
	}
}

// toHost copies to dst when the stream comes to it. Until the stream is
// synchronized dst must not be looked at.
func toHost[T any](g *gpu, dst []T, src cu.DevicePtr, s cu.Stream) {
	if g.err == nil && len(dst) > 0 {
		g.pinner.Pin(&dst[0])
		g.check("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), src, bytesOf(dst), s))
	}
}

func bytesOf[T any](s []T) int64 { return int64(len(s)) * int64(unsafe.Sizeof(s[0])) }

// latent is what the failure of a waiting call means.
const latent = " (a kernel or copy before it failed)"

// synchronize waits for a stream. Here the failures of kernels show.
func (g *gpu) synchronize(s cu.Stream) {
	if g.err == nil {
		g.check("cuStreamSynchronize"+latent, s.Synchronize())
	}
	if g.err == nil && s == g.compute { // Go's memory is copied on no other stream
		g.pinner.Unpin()
	}
}

func (g *gpu) event() (e cu.Event) {
	if g.err == nil {
		var err error
		e, err = cu.MakeEvent(cu.DisableTiming)
		g.check("cuEventCreate", err)
	}
	return e
}

// record marks the stream's place, wait holds a stream back until that is reached.
func (g *gpu) record(e cu.Event, s cu.Stream) {
	if g.err == nil {
		g.check("cuEventRecord", e.Record(s))
	}
}

func (g *gpu) wait(s cu.Stream, e cu.Event) {
	if g.err == nil {
		g.check("cuStreamWaitEvent", s.Wait(e, 0))
	}
}

// finished waits on the host for an event.
func (g *gpu) finished(e cu.Event) {
	if g.err == nil {
		g.check("cuEventSynchronize"+latent, e.Synchronize())
	}
}

// launch starts a kernel. Arguments are int, float64, uint64, bool, which
// kernels take as an int, and cu.DevicePtr.
func (g *gpu) launch(kernel string, shape grid, s cu.Stream, args ...any) {
	if g.err != nil {
		return
	}
	f := g.functions[kernel]
	const always = 48 << 10 // more has to be asked for
	if shape.shared > max(always, g.shared[kernel]) {
		g.check("cuFuncSetAttribute of "+kernel, driver.SetDynamicShared(f, shape.shared))
		g.shared[kernel] = shape.shared
	}
	cells := make([]uint64, len(args))
	params := make([]unsafe.Pointer, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case int:
			cells[i] = uint64(v)
		case uint64:
			cells[i] = v
		case bool:
			if v {
				cells[i] = 1
			}
		case float64:
			cells[i] = math.Float64bits(v)
		case cu.DevicePtr:
			cells[i] = uint64(v)
		default:
			panic(fmt.Sprintf("kernels: argument %d of %s is a %T", i, kernel, arg))
		}
		params[i] = unsafe.Pointer(&cells[i])
	}
	if g.err == nil {
		defer g.timed(kernel, s, args)()
		g.check("launch of "+kernel, f.Launch(shape.x, shape.y, 1, shape.threads, 1, 1, shape.shared, s, params))
	}
}
