package cli

import (
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
)

func TestVersion(t *testing.T) {
	for want, info := range map[string]debug.BuildInfo{
		"overcomplete v1.2.3\ncommit 320e0ec, with changes\nbuild go1.26.8, linux/amd64, with GPU support\n": {
			GoVersion: "go1.26.8",
			Main:      debug.Module{Version: "v1.2.3"},
			Settings: []debug.BuildSetting{
				{Key: "-tags", Value: "other,gpu"}, {Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"},
				{Key: "vcs.revision", Value: "320e0ec"}, {Key: "vcs.modified", Value: "true"},
			},
		},
		"overcomplete (devel)\ncommit unknown\nbuild go1.26.8, windows/amd64\n": {
			GoVersion: "go1.26.8",
			Main:      debug.Module{Version: "(devel)"},
			Settings:  []debug.BuildSetting{{Key: "GOOS", Value: "windows"}, {Key: "GOARCH", Value: "amd64"}},
		},
	} {
		if got := version(&info); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// The command and the flag say the same, and fail where it can't be written.
func TestVersionIsPrinted(t *testing.T) {
	asCommand, _ := mustRun(t, "version")
	asFlag, _ := mustRun(t, "--version")
	if asCommand != asFlag || !strings.HasPrefix(asFlag, "overcomplete ") {
		t.Errorf("version prints %q, --version %q", asCommand, asFlag)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return // only Linux has it
	} else if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, line := range []string{"version", "--version"} {
		var stderr strings.Builder
		if code := run(t.Context(), []string{line}, full, &stderr); code != exitFailed || !strings.Contains(stderr.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%s >/dev/full: exit code %d, %s", line, code, stderr.String())
		}
	}
}
