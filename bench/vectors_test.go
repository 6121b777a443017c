package main

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"overcomplete/internal/npy"
	"overcomplete/testonly"
)

func TestGenerateIsAFunctionOfTheRow(t *testing.T) {
	const words, dim = 60, 20
	x := generate(1, words, dim)
	if fewer := generate(1, 7, dim); !reflect.DeepEqual(fewer, x.Slice(0, 7)) {
		t.Error("fewer words are not the first of more")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	if again := generate(1, words, dim); !reflect.DeepEqual(again, x) {
		t.Error("three workers generate other vectors")
	}
	if other := generate(2, words, dim); slices.Equal(other.Row(0), x.Row(0)) {
		t.Error("another seed gives the same vector")
	}
}

func TestWriteVectors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	testonly.Must(t, run([]string{"vectors", "--words", "5", "--dim", "3", path}, nil))
	f, err := os.Open(path)
	testonly.Must(t, err)
	defer f.Close()
	a, err := npy.Open(f, -1)
	testonly.Must(t, err)
	x, err := npy.Read[float32](a, 5, 3)
	if err != nil || !slices.Equal(x, generate(seed, 5, 3).Data) {
		t.Errorf("read %v, error %v", x, err)
	}
}
