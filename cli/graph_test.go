package cli

import (
	"strings"
	"testing"

	"overcomplete/testonly/clitest"
)

func TestGraph(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	stdout, stderr := dir.MustRun(t, "graph --method B --loss huber --huber-delta 0.3")
	for _, step := range steps {
		if step.program != nil && !strings.Contains(stdout, step.name+"\n") {
			t.Errorf("no %s in\n%s", step.name, stdout)
		}
		dot, _ := dir.MustRun(t, "graph --dot "+step.name)
		if !strings.HasPrefix(dot, "digraph ") || !strings.HasSuffix(strings.TrimSpace(dot), "}") {
			t.Errorf("--dot %s prints\n%s", step.name, dot)
		}
	}
	if stderr != "" {
		t.Errorf("standard error %q", stderr)
	}
	if other, _ := dir.MustRun(t, "graph"); other == stdout {
		t.Error("the programs of method A and of method B with another loss are the same")
	}
}
