package explore

import (
	"testing"

	"overcomplete/model"
)

func newExplorer(t testing.TB, m *model.Model, name string) *Explorer {
	t.Helper()
	return newWith(t, m, name, Options{})
}

func newWith(t testing.TB, m *model.Model, name string, o Options) *Explorer {
	t.Helper()
	x, err := New(m, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
