package cli

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/simd"
)

// Version is that of the program, of its packages in other languages and of what cites it.
const Version = "0.1.0"

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and how it was built",
		Example: "  overcomplete version",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return printVersion(cmd.OutOrStdout()) },
	}
}

func printVersion(w io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	kernels := "unknown"
	if k, why, err := simd.Choose(); err != nil {
		kernels += ": " + err.Error()
	} else {
		kernels = fmt.Sprintf("%s: %s", k.Name, why)
	}
	_, err := fmt.Fprintf(w, "%skernels %s\n", version(info), kernels)
	return err
}

// version tells in three lines which version of the program this is, the commit that it
// was built from, and the build. What the go command did not record is "unknown".
func version(info *debug.BuildInfo) string {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	known := func(s string) string {
		if s == "" {
			return "unknown"
		}
		return s
	}
	commit := known(settings["vcs.revision"])
	if settings["vcs.modified"] == "true" {
		commit += ", with changes"
	}
	build := fmt.Sprintf("%s, %s/%s", known(info.GoVersion), known(settings["GOOS"]), known(settings["GOARCH"]))
	if slices.Contains(strings.Split(settings["-tags"], ","), "gpu") {
		build += ", with GPU support"
	}
	return fmt.Sprintf("overcomplete %s\ncommit %s\nbuild %s\n", Version, commit, build)
}
