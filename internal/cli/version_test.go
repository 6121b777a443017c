package cli

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"overcomplete/internal/testonly/clitest"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for want, info := range map[string]debug.BuildInfo{
		"overcomplete " + Version + "\ncommit 320e0ec, with changes\nbuild go1.26.8, linux/amd64, with GPU support\n": {
			GoVersion: "go1.26.8",
			Settings: []debug.BuildSetting{
				{Key: "-tags", Value: "other,gpu"}, {Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"},
				{Key: "vcs.revision", Value: "320e0ec"}, {Key: "vcs.modified", Value: "true"},
			},
		},
		"overcomplete " + Version + "\ncommit unknown\nbuild go1.26.8, windows/amd64\n": {
			GoVersion: "go1.26.8",
			Settings:  []debug.BuildSetting{{Key: "GOOS", Value: "windows"}, {Key: "GOARCH", Value: "amd64"}},
		},
	} {
		if got := version(&info); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// The command and the flag say the same.
func TestVersionIsPrinted(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	asCommand, _ := dir.MustRun(t, "version")
	asFlag, _ := dir.MustRun(t, "--version")
	if asCommand != asFlag || !strings.HasPrefix(asFlag, "overcomplete ") {
		t.Errorf("version prints %q, --version %q", asCommand, asFlag)
	}
}

// The version is one for all.
func TestVersionIsCited(t *testing.T) {
	t.Parallel()
	citation, err := os.ReadFile("../../CITATION.cff")
	if err != nil {
		t.Fatal(err)
	}
	if line := "\nversion: " + Version + "\n"; !strings.Contains(string(citation), line) {
		t.Errorf("CITATION.cff has no line %q", strings.TrimSpace(line))
	}
}
