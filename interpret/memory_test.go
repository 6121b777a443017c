package interpret

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// The estimates are upper limits of the peaks, and at most three times as large. Labels use the words of a sample of texts, or
// of all. Words follow Zipf's law, like the words of a language. More processors don't need more memory.
func TestMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, rows := range []int{maxSample, 60_000} {
		rng := rand.New(rand.NewPCG(1, 1))
		words := rand.NewZipf(rng, 1.1, 1, 50_000)
		codes := &vectors.Sparse{Texts: &vectors.Texts{}, CSR: vectors.CSR{Cols: 16}}
		for i := range rows {
			var text []byte
			for range 1 + rng.IntN(60) {
				text = fmt.Appendf(text, "word%d ", words.Uint64())
			}
			codes.IDs = append(codes.IDs, fmt.Sprint(i))
			codes.Texts.Text = append(codes.Texts.Text, string(text))
			codes.AppendRow([]int32{int32(i % 4), int32(4 + i%5), int32(9 + i%7)}, []float32{1, 2, 3})
		}
		index, search := Memory(codes)
		var x *Index
		indexPeak := peak(index, func() { x = NewIndex(codes); x.Label(Pole{}) })
		searchPeak := peak(search, func() { x.Search("word1", 1) })
		for what, sizes := range map[string][2]uint64{"index": {index, indexPeak}, "search": {search, searchPeak}} {
			if estimate, used := sizes[0], sizes[1]; used > estimate || estimate > 3*used {
				t.Errorf("%s of %d texts: %d bytes, estimated %d", what, rows, used, estimate)
			}
		}
		runtime.KeepAlive(x)

		few, many := allocated(8, func() { NewIndex(codes).Label(Pole{}) }), allocated(256, func() { NewIndex(codes).Label(Pole{}) })
		if many > few+few/4 {
			t.Errorf("%d bytes allocated for the index of %d texts on 256 processors, %d on 8", many, rows, few)
		}
	}
}

// allocated returns the number of bytes that f allocates on several processors.
func allocated(processors int, f func()) uint64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	bytes := testonly.CountBytes()
	f()
	return bytes()
}

// peak returns the largest number of bytes in use during f, above those before. On a busy machine, a collection may also
// count what is allocated while it runs. If more than estimate is in use, f is therefore run up to twice more, and the
// least peak counts.
func peak(estimate uint64, f func()) uint64 {
	least := peakOnce(f)
	for i := 0; i < 2 && least > estimate; i++ {
		least = min(least, peakOnce(f))
	}
	return least
}

func peakOnce(f func()) (most uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // live is measured at each collection
	live := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before, done := live(), make(chan bool)
	go func() {
		defer close(done)
		f()
	}()
	for {
		select {
		case <-done:
			return max(most, before) - before
		case <-time.After(time.Millisecond):
			most = max(most, live())
		}
	}
}
