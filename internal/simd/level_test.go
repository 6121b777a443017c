package simd

import (
	"errors"
	"strings"
	"testing"
)

// eachLevel runs a test for every level that this processor has.
func eachLevel(t *testing.T, f func(t *testing.T, k *Kernels)) {
	for _, k := range Levels() {
		t.Run(k.Name, func(t *testing.T) { f(t, k) })
	}
}

func TestChoose(t *testing.T) {
	eachLevel(t, func(t *testing.T, want *Kernels) {
		t.Setenv(Variable, want.Name)
		if k, why, err := Choose(); k != want || !strings.Contains(why, Variable) || err != nil {
			t.Errorf("level %v, %q, error %v", k, why, err)
		}
	})
	t.Setenv(Variable, "")
	levels := Levels()
	if k, why, err := Choose(); k != levels[len(levels)-1] || why == "" || err != nil {
		t.Errorf("level %v, %q, error %v", k, why, err)
	}
	t.Setenv(Variable, "mmx")
	want := `OVERCOMPLETE_CPU is "mmx", and this processor has generic`
	if _, _, err := Choose(); !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
