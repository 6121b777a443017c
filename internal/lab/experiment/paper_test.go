package experiment

import "testing"

func TestUpperFirst(t *testing.T) {
	for given, want := range map[string]string{"no point": "No point", "λ = 1": "λ = 1"} {
		if got := upperFirst(given); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}
