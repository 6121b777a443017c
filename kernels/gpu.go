//go:build gpu

package kernels

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"overcomplete/internal/backend"
	"overcomplete/kernels/internal/driver"
)

// session is a CUDA context with its streams and compiled kernels.
type session struct {
	device          GPU
	context         cu.CUContext
	modules         map[string]cu.Module // by kernel
	functions       map[string]*function // kernels that were launched
	maxShared       int                  // limit of dynamic shared memory per block, in bytes
	multiprocessors int

	compute, load, store cu.Stream // for kernels, for copies to the device, and for copies to the host
}

// contextPool holds at most one idle session, which its users pass on to each other.
type contextPool struct {
	started sync.WaitGroup
	idle    chan *session // of capacity 1; empty while the session is in use, and after a failure
}

// take removes and returns the idle session, or returns nil.
func (p *contextPool) take() *session {
	if p == nil {
		return nil
	}
	p.started.Wait()
	select {
	case s := <-p.idle:
		return s
	default:
		return nil
	}
}

// keep stores the session for the next user, and reports whether the pool had room for it.
func (p *contextPool) keep(s *session) bool {
	select {
	case p.idle <- s:
		return true
	default:
		return false
	}
}

// gpu is a session in use by a trainer, a learner or an encoder. Call enter before the other methods, and leave after
// them. The first call that fails sets err. Later calls do nothing, so that one check after many calls is enough.
type gpu struct {
	*session
	pool      *contextPool // nil if the session isn't shared
	cache     launchCache
	maxMemory int64 // limit of device memory in bytes; 0 means no limit
	pinned    []unsafe.Pointer
	pinner    runtime.Pinner         // pins Go's memory for pending copies
	sizes     map[cu.DevicePtr]int64 // bytes of each allocation on the device
	allocated int64                  // sum of sizes
	events    []cu.Event
	err       error
}

// Start initialises the GPU in the background and compiles the kernels for online learning and encoding. It leaves
// out the search, because the search kernel depends on the length of rows.
// Learners, encoders and trainers of the returned device use this CUDA context one after the other, so that
// the GPU is initialised once. The context is released when the process ends.
func (d Device) Start() Device {
	d.pool = &contextPool{idle: make(chan *session, 1)}
	d.pool.started.Go(func() {
		if g, err := d.openNew("decode", "search_atoms", "polish", "learner", "body"); err == nil { // on failure the first use retries and returns the error
			d.pool.keep(g.session)
		}
	})
	return d
}

// open returns an idle session or a new one, with the kernels of the given files.
func (d Device) open(files ...string) (*gpu, error) {
	s := d.pool.take()
	if s == nil {
		return d.openNew(files...)
	}
	return d.newGPU(s).with(files...)
}

// with compiles the kernels of further files. On failure it destroys the context.
func (g *gpu) with(files ...string) (*gpu, error) {
	defer g.enter()()
	g.compile(files)
	return g.opened()
}

func (d Device) newGPU(s *session) *gpu {
	return &gpu{session: s, pool: d.pool, sizes: make(map[cu.DevicePtr]int64), maxMemory: d.Memory}
}

// opened returns g if opening succeeded. Otherwise it destroys the context and returns the error.
func (g *gpu) opened() (*gpu, error) {
	if g.err == nil {
		return g, nil
	}
	if g.context != (cu.CUContext{}) {
		g.context.Destroy()
	}
	if errors.Is(g.err, cu.OutOfMemory) {
		return nil, fmt.Errorf("%w on GPU %d to start it; nvidia-smi lists the processes that use it: %w", backend.ErrMemory, g.device.Index, g.err)
	}
	return nil, fmt.Errorf("%w: %w", ErrUnavailable, g.err)
}

// openNew returns a new session, with the kernels of the given files.
func (d Device) openNew(files ...string) (*gpu, error) {
	device, err := Find(d.Index)
	if err != nil {
		return nil, err
	}
	g := d.newGPU(&session{device: device, modules: make(map[string]cu.Module), functions: make(map[string]*function)})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g.start()
	if g.err == nil {
		done := func() {}
		if d.Compiling != nil {
			done = d.Compiling()
		}
		g.compile(files)
		done()
	}
	for _, s := range []*cu.Stream{&g.compute, &g.load, &g.store} {
		if g.err == nil {
			*s, err = cu.MakeStream(cu.NonBlocking)
			g.check("cuStreamCreate", err)
		}
	}
	return g.opened()
}

func (g *gpu) start() {
	device, err := cu.GetDevice(g.device.Index)
	g.check("cuDeviceGet", err)
	if g.err == nil {
		const maxSharedMemoryPerBlockOptIn cu.DeviceAttribute = 97 // cu has no name for it
		g.maxShared, err = device.Attribute(maxSharedMemoryPerBlockOptIn)
		g.check("cuDeviceGetAttribute", err)
	}
	if g.err == nil {
		g.multiprocessors, err = device.Attribute(cu.MultiprocessorCount)
		g.check("cuDeviceGetAttribute", err)
	}
	if g.err == nil {
		g.context, err = device.MakeContext(cu.SchedAuto)
		g.check("cuCtxCreate", err)
	}
}

// kernelEntry matches the head of a kernel in PTX.
var kernelEntry = regexp.MustCompile(`\.visible \.entry (\w+)`)

// compile compiles the kernels of the given files, unless they are compiled already.
func (g *gpu) compile(files []string) {
	for _, file := range files {
		if g.err != nil {
			return
		}
		source, _ := ptx.ReadFile("ptx/" + file + ".ptx") // reading an embedded file can't fail
		entries := kernelEntry.FindAllSubmatch(source, -1)
		if _, compiled := g.modules[string(entries[0][1])]; compiled {
			continue
		}
		log := &cu.JITErrorLogBuffer{Buffer: make([]byte, 8<<10)}
		m, err := cu.LoadDataEx(string(source), log)
		if text, _, _ := bytes.Cut(log.Buffer, []byte{0}); err != nil && len(text) > 0 {
			err = fmt.Errorf("%w: %s", driver.Describe(err), bytes.Join(bytes.Fields(text), []byte{' '}))
		}
		g.check("cuModuleLoadDataEx of "+file+".ptx", err)
		for _, entry := range entries {
			g.modules[string(entry[1])] = m
		}
	}
}

// function is a kernel and its limit of dynamic shared memory in bytes.
type function struct {
	cu.Function
	shared int
}

func (g *gpu) function(kernel string) *function {
	if g.functions[kernel] == nil {
		f, err := g.modules[kernel].Function(kernel)
		g.check("cuModuleGetFunction of "+kernel, err)
		g.functions[kernel] = &function{f, 48 << 10} // CUDA's default limit
	}
	return g.functions[kernel]
}

// name identifies the GPU in results. Tensor cores of different generations round floats differently.
func (g *gpu) name() string {
	return fmt.Sprintf("cuda %d.%d", g.device.Major, g.device.Minor)
}

// enter makes the context current on the goroutine's thread until leave is called.
func (g *gpu) enter() (leave func()) {
	runtime.LockOSThread()
	if g.err == nil {
		g.check("cuCtxSetCurrent", cu.SetCurrentContext(g.context))
	}
	return runtime.UnlockOSThread
}

var errClosed = errors.New("kernels: closed")

// Close releases the GPU, or returns its context to the pool. The first Close returns the error that made the
// GPU unusable, if there was one.
func (g *gpu) Close() error {
	if g.err == errClosed {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	failed := g.err
	cu.SetCurrentContext(g.context)
	for _, s := range []cu.Stream{g.compute, g.load, g.store} {
		s.Synchronize() // abandoned work may be pending
	}
	for _, p := range g.pinned {
		driver.HostFree(p)
	}
	g.pinned = nil
	g.cache.forget()
	if !g.release() {
		g.check("cuCtxDestroy", g.context.Destroy())
	}
	if failed == nil {
		failed = g.err
	}
	g.pinner.Unpin()
	g.err = errClosed
	return failed
}

// release frees the session's memory and gives the session back to the pool. It returns false if the session
// can't be reused.
func (g *gpu) release() bool {
	if g.pool == nil || g.err != nil {
		return false
	}
	for p := range g.sizes {
		g.check("cuMemFree", cu.MemFree(p))
	}
	for i := range g.events {
		g.check("cuEventDestroy", cu.DestroyEvent(&g.events[i]))
	}
	return g.err == nil && g.pool.keep(g.session)
}

// check sets g.err if err is the first error. The argument call names the failed call or kernel.
func (g *gpu) check(call string, err error) {
	if err != nil && g.err == nil {
		g.err = fmt.Errorf("kernels: %s: %w", call, driver.Describe(err))
	}
}

// availableMemory returns the bytes of device memory that may still be allocated.
func (g *gpu) availableMemory() int64 {
	free, _, err := cu.MemInfo()
	g.check("cuMemGetInfo", err)
	if g.maxMemory != 0 {
		free = min(free, g.maxMemory-g.allocated)
	}
	return free
}

// memoryError returns the error for work that needs more bytes than are free. It wraps [backend.ErrMemory].
func (g *gpu) memoryError(work string, need, free int64) error {
	total := int64(g.device.Total)
	if g.maxMemory != 0 {
		total = g.maxMemory
	}
	advice := ""
	if free < total/4*3 {
		advice = "; nvidia-smi lists the processes that use the rest"
	}
	return fmt.Errorf("%w on GPU %d for %s: needs %s, and %s of %s are free%s",
		backend.ErrMemory, g.device.Index, work, inBytes(need), inBytes(free), inBytes(total), advice)
}

func inBytes(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// alloc returns device memory for n elements. The compute stream clears it.
func alloc[T any](g *gpu, n int) pointer[T] {
	if g.err != nil {
		return 0
	}
	bytes := max(bytesOf[T](n), 16)
	p, err := cu.MemAlloc(bytes)
	g.check(fmt.Sprintf("cuMemAlloc of %d bytes", bytes), err)
	if err == nil {
		g.sizes[p] = bytes
		g.allocated += bytes
	}
	zero(g, pointer[byte](p), int(bytes), g.compute)
	return pointer[T](p)
}

func free[T any](g *gpu, p pointer[T]) {
	if g.err == nil && p != 0 {
		g.check("cuMemFree", cu.MemFree(cu.DevicePtr(p)))
		g.allocated -= g.sizes[cu.DevicePtr(p)]
		delete(g.sizes, cu.DevicePtr(p))
	}
}

func zero[T any](g *gpu, p pointer[T], n int, s cu.Stream) {
	if g.err == nil {
		g.check("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(p), 0, bytesOf[T](n), s))
	}
}

// allocHost returns page-locked host memory for n elements, which Close frees.
func allocHost[T any](g *gpu, n int) []T {
	if g.err != nil {
		return nil
	}
	bytes := bytesOf[T](n)
	p, err := driver.HostAlloc(bytes)
	g.check(fmt.Sprintf("cuMemAllocHost of %d bytes", bytes), err)
	if err != nil {
		return nil
	}
	g.pinned = append(g.pinned, p)
	return unsafe.Slice((*T)(p), n)
}

// toDevice queues a copy to the device. The caller must not change src until the stream is synchronized.
func toDevice[T any](g *gpu, dst pointer[T], src []T, s cu.Stream) {
	if g.err == nil && len(src) > 0 {
		g.pinner.Pin(&src[0])
		g.check("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(&src[0]), bytesOf[T](len(src)), s))
	}
}

// toHost queues a copy to the host. dst is undefined until the stream is synchronized.
func toHost[T any](g *gpu, dst []T, src pointer[T], s cu.Stream) {
	if g.err == nil && len(dst) > 0 {
		g.pinner.Pin(&dst[0])
		g.check("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), cu.DevicePtr(src), bytesOf[T](len(dst)), s))
	}
}

// unpadded copies a matrix to the host and returns its rows without padding.
func (g *gpu) unpadded(p pointer[float32], rows, width, pitch int) ([]float32, error) {
	padded := make([]float32, rows*pitch)
	toHost(g, padded, p, g.compute)
	g.synchronize(g.compute)
	if pitch == width {
		return padded, g.err
	}
	out := make([]float32, rows*width)
	copyRows(out, width, padded, pitch)
	return out, g.err
}

// latent follows the name of a waiting call in error messages, because the call also reports failures of earlier work.
const latent = " (a kernel or copy before it failed)"

// synchronize waits for the work of a stream, and reports its failures.
func (g *gpu) synchronize(s cu.Stream) {
	if g.err == nil {
		g.check("cuStreamSynchronize"+latent, s.Synchronize())
	}
	if g.err == nil && s == g.compute { // only this stream copies Go's memory
		g.pinner.Unpin()
	}
}

// event creates an event without timing, which Close destroys.
func (g *gpu) event() (e cu.Event) {
	if g.err != nil {
		return e
	}
	e, err := cu.MakeEvent(cu.DisableTiming)
	g.check("cuEventCreate", err)
	if g.err == nil {
		g.events = append(g.events, e)
	}
	return e
}

// record queues an event in a stream. The method wait makes a stream wait for the event.
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

func (g *gpu) waitHost(e cu.Event) {
	if g.err == nil {
		g.check("cuEventSynchronize"+latent, e.Synchronize())
	}
}

func (g *gpu) queue(l launch, s cu.Stream) {
	if g.err != nil {
		return
	}
	f := g.function(l.kernel)
	if l.shared > f.shared {
		f.shared = l.shared
		g.check("cuFuncSetAttribute of "+l.kernel, driver.SetDynamicShared(f.Function, l.shared))
	}
	if g.err == nil {
		g.check("launch of "+l.kernel, driver.Launch(f.Function, l.x, l.y, l.threads, l.shared, l.kernel == cooperative, s, l.arguments))
	}
}

// launchCache is the state of the method repeat.
type launchCache struct {
	key   int
	times int           // calls with this key
	graph *driver.Graph // nil before the second call, and if the capture failed
}

func (r *launchCache) forget() {
	if r.graph != nil {
		r.graph.Destroy()
	}
	*r = launchCache{}
}

// repeat runs the launches that f queues. It calls f, or launches a CUDA graph, which shortens the gaps between
// kernels. For equal keys, f must queue the same launches. f must queue no copies of Go's memory. The first call
// of repeat with a key calls f; the second captures the graph. If the capture fails, because of too little memory
// or a profiler, every call of repeat calls f.
func (g *gpu) repeat(key int, f func()) {
	if g.err != nil {
		return
	}
	r := &g.cache
	if r.key != key {
		r.forget()
		r.key = key
	}
	if r.times++; r.times == 2 {
		r.graph, _ = driver.Capture(g.compute, f)
		if g.err != nil { // the capture launched nothing; if f itself fails, it will fail again below
			g.err = nil
			if r.graph != nil { // incomplete
				r.graph.Destroy()
				r.graph = nil
			}
		}
	}
	if r.graph == nil || r.graph.Launch(g.compute) != nil {
		f()
	}
}
