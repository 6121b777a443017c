//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"overcomplete/testonly"
)

// No answer is assigned to another text, and an answer that isn't JSON doesn't affect later ones.
func TestEmbedderAnswers(t *testing.T) {
	t.Parallel()
	cmd := new(cobra.Command)
	cmd.SetContext(t.Context())
	e, err := startEmbedder(cmd, `n=0; while read text; do n=$((n+1)); [ $n = 2 ] && printf '[NaN]\n' || { [ $n = 3 ] && printf '[3]\n[0]\n' || echo "[$n]"; }; done`)
	testonly.Must(t, err)
	defer e.close()
	for i, want := range []string{"[1]", "[NaN]", "[3]", "", "[4]", "[5]"} {
		for want == "" && len(e.lines) == 0 {
			time.Sleep(time.Millisecond) // until the line that nobody asked for has come
		}
		line, err := e.ask("text")
		if string(line) != want || want == "" && (err == nil || !strings.Contains(err.Error(), `more than a line for each text (got "[0]")`)) {
			t.Errorf("answer %d: %s, %v, want %s", i, line, err, want)
		}
	}
}

// A late answer is not assigned to another text, and the command answers again after it.
func TestEmbedderLate(t *testing.T) {
	t.Parallel()
	cmd := new(cobra.Command)
	cmd.SetContext(t.Context())
	fifo := filepath.Join(t.TempDir(), "fifo")
	testonly.Must(t, syscall.Mkfifo(fifo, 0o600))
	e, err := startEmbedder(cmd, "read start < "+fifo+"; while read text; do echo $text; done")
	testonly.Must(t, err)
	defer e.close()
	e.limit = time.Millisecond
	_, err = e.ask("a")
	testonly.ErrorSays(t, "a slow start", err, "has not answered within 1ms: ask again later")
	e.limit = time.Hour
	_, err = e.ask("b")
	testonly.ErrorSays(t, "before the start", err, "still computes the vector of an earlier text")
	testonly.Must(t, os.WriteFile(fifo, []byte("\n"), 0o600))
	line, err := e.ask("c")
	for err != nil && e.late {
		line, err = e.ask("c")
	}
	if string(line) != `"c"` {
		t.Errorf("the answer after a late one is %s, %v", line, err)
	}
	if line, err = e.ask("d"); string(line) != `"d"` {
		t.Errorf("the next answer is %s, %v", line, err)
	}
}

// The processes that a command starts end with it.
func TestEmbedderEnds(t *testing.T) {
	t.Parallel()
	cmd := new(cobra.Command)
	cmd.SetContext(t.Context())
	e, err := startEmbedder(cmd, "sleep 1000 & echo $!; wait")
	testonly.Must(t, err)
	pid, err := strconv.Atoi(string(<-e.lines))
	testonly.Must(t, err)
	e.close()
	for range 1000 { // the process that adopts sleep must collect it first
		if syscall.Kill(pid, 0) != nil {
			return
		}
		if state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("process %d runs on", pid)
}
