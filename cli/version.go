package cli

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/simd"
)

// Version is the version of the program, of its packages in other languages and of its citation.
const Version = "0.1.0"

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version and build",
		Example: "  overcomplete version",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return printVersion(cmd) },
	}
	addJSON(cmd, "print the same as JSON")
	return cmd
}

func printVersion(cmd *cobra.Command) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	v := newVersionInfo(info)
	if k, why, err := simd.Choose(); err != nil {
		v.Kernels = "unknown: " + err.Error()
	} else {
		v.Kernels = fmt.Sprintf("%s: %s", k.Name, why)
	}
	return show(cmd, v, func(b *strings.Builder) {
		fmt.Fprintf(b, "overcomplete %s\ncommit %s\nbuild %s\nkernels %s\n", v.Version, v.Commit, v.Build, v.Kernels)
	})
}

// versionInfo describes this program. Values that the go command didn't record are "unknown".
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Build   string `json:"build"`
	Kernels string `json:"kernels"`
}

func newVersionInfo(info *debug.BuildInfo) versionInfo {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	known := func(s string) string { return cmp.Or(s, "unknown") }
	v := versionInfo{
		Version: Version, Commit: known(settings["vcs.revision"]),
		Build: fmt.Sprintf("%s, %s/%s", known(info.GoVersion), known(settings["GOOS"]), known(settings["GOARCH"])),
	}
	if settings["vcs.modified"] == "true" {
		v.Commit += ", with changes"
	}
	if slices.Contains(strings.Split(settings["-tags"], ","), "gpu") {
		v.Build += ", with GPU support"
	}
	return v
}
