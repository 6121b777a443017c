package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What is done soon is not talked of. The clock is synctest's.
func TestSayAfter(t *testing.T) {
	const long = time.Second
	for took, want := range map[time.Duration]string{0: "", long - 1: "", long + 1: "at work …\n", 3 * long: "at work …\n"} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			done := sayAfter(long, &log, "at work …")
			time.Sleep(took)
			done()
			if log.String() != want {
				t.Errorf("after %v: %q, want %q", took, log.String(), want)
			}
			time.Sleep(long)
			if log.String() != want {
				t.Errorf("when it was done after %v: %q, want %q", took, log.String(), want)
			}
		})
	}
}
