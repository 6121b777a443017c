package main

import "testing"

// The parts of the memory are the whole, however many there are, and an update
// leaves it as it was.
func TestLimitsParts(t *testing.T) {
	const words, atoms = 7, 13
	l, err := newLimits(words, atoms)
	if err != nil {
		t.Fatal(err)
	}
	for i := range l.memory {
		l.memory[i] = float32(i)
	}
	for n := 1; n < 20; n++ {
		var read, updated float64
		for i := range n {
			read += l.read(i, n)
			updated += l.update(i, n)
		}
		if bytes := float64(8 * words * atoms); read != bytes || updated != 2*bytes {
			t.Errorf("%d parts: %v bytes read, %v updated", n, read, updated)
		}
	}
	for i, x := range l.memory {
		if x != float32(i) {
			t.Fatalf("memory[%d] is %v", i, x)
		}
	}
}
