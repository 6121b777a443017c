package testonly

import "runtime"

// CountBytes returns a function that returns how many bytes were allocated since the call of CountBytes.
func CountBytes() func() uint64 {
	before := memory().TotalAlloc
	return func() uint64 { return memory().TotalAlloc - before }
}

// BytesInUse returns how many bytes are in use after garbage collection.
func BytesInUse() uint64 {
	runtime.GC()
	runtime.GC() // pools keep their memory for one collection
	return memory().HeapAlloc
}

func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}
