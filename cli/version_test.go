package cli

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for want, info := range map[versionInfo]debug.BuildInfo{
		{Version, "320e0ec, with changes", "go1.26.8, linux/amd64, with GPU support", ""}: {
			GoVersion: "go1.26.8",
			Settings: []debug.BuildSetting{
				{Key: "-tags", Value: "other,gpu"}, {Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"},
				{Key: "vcs.revision", Value: "320e0ec"}, {Key: "vcs.modified", Value: "true"},
			},
		},
		{Version, "unknown", "go1.26.8, windows/amd64", ""}: {
			GoVersion: "go1.26.8",
			Settings:  []debug.BuildSetting{{Key: "GOOS", Value: "windows"}, {Key: "GOARCH", Value: "amd64"}},
		},
	} {
		if got := newVersionInfo(&info); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	dir := clitest.New(t)
	asCommand, _ := dir.MustRun(t, "version")
	checkParts(t, "version", asCommand, "overcomplete "+Version+"\ncommit ")
	checkOutput(t, dir, "--version", asCommand)
	var v versionInfo
	if asJSON, _ := dir.MustRun(t, "version --json"); json.Unmarshal([]byte(asJSON), &v) != nil || v.Version != Version || v.Kernels == "" {
		t.Errorf("version --json prints %s", asJSON)
	}
	citation := testonly.ReadFile(t, "../CITATION.cff")
	if line := "\nversion: " + Version + "\n"; !strings.Contains(string(citation), line) {
		t.Errorf("CITATION.cff has no line %q", strings.TrimSpace(line))
	}
}
