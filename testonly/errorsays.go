package testonly

import (
	"strings"
	"testing"
)

// ErrorSays checks that err isn't nil and that its message contains want. The case names what has failed.
func ErrorSays(t testing.TB, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want one that says %q", name, err, want)
	}
}
