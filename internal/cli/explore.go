package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"overcomplete/internal/modeldir"
	"overcomplete/interpret/explore"
)

func newExplore() *cobra.Command {
	var listen, output string
	var words []string
	var dimensions []int
	var frame bool
	cmd := &cobra.Command{
		Use:   "explore MODEL [MODEL]",
		Short: "Browse a model on a web page on this machine",
		Long: `Explore serves a web page and prints its address, until it is interrupted. The page
answers queries for a word, for several (bank river: their similarity and differences),
for a sum of words (king - man + woman), for a text, or for a dimension. It lists and maps
all dimensions, and edits their labels. Of two models, it also shows which of their
dimensions are alike, and a word in both. The page loads nothing from the network.

--export writes the page as one file instead, with the chosen words and dimensions. If
no dimensions are chosen, these are the strongest of each word; if no words are, the top
words of each dimension.`,
		Example: `  overcomplete explore model
  overcomplete explore model other
  overcomplete explore model --export bank.html --words bank,river,money`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("export") {
				for _, name := range []string{"listen", "frame"} {
					if cmd.Flags().Changed(name) {
						return usagef("give --export or --%s, not both", name)
					}
				}
				if len(args) > 1 {
					return usagef("--export writes the page of one model")
				}
				return exportPage(cmd, args[0], output, words, dimensions)
			}
			for _, name := range []string{"words", "dimensions", "force"} {
				if cmd.Flags().Changed(name) {
					return usagef("--%s is for --export", name)
				}
			}
			if _, _, err := net.SplitHostPort(listen); err != nil {
				return usagef("--listen is %.60q, want ADDRESS:PORT, such as 127.0.0.1:8420", listen)
			}
			listener, err := net.Listen("tcp", listen)
			if e, ok := errors.AsType[*os.SyscallError](err); ok {
				err = e.Err
			}
			if err != nil {
				return usagef("--listen %.60s: %w; choose another ADDRESS:PORT", listen, err)
			}
			defer listener.Close()
			options := explore.Options{Frames: frame}
			if len(args) > 1 {
				if options.Other, err = openExplorer(cmd, args[1], explore.Options{}); err != nil {
					return err
				}
			}
			x, err := openExplorer(cmd, args[0], options)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "http://%s/\n", reachable(listener.Addr().(*net.TCPAddr))); err != nil {
				return err
			}
			if at := listener.Addr().(*net.TCPAddr); !at.IP.IsLoopback() {
				warn(cmd.ErrOrStderr(), "whoever can reach this machine can reach the page at %v, too", at)
			}
			host, _, _ := net.SplitHostPort(listen) // no error: it was listened to
			return x.Serve(cmd.Context(), listener, host)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:8420", "`address` and port to serve at; port 0 is any that is free")
	flags.BoolVar(&frame, "frame", false, "let pages of this machine, such as notebooks, show it in a frame")
	flags.StringVar(&output, "export", "", "write the page into this `file` instead")
	flags.StringSliceVar(&words, "words", nil, "`words` to export; quote one that has a comma: '\",\"'")
	flags.IntSliceVar(&dimensions, "dimensions", nil, "`dimensions` to export")
	addForce(cmd, "a file that exists")
	return cmd
}

// reachable returns an address at which this machine's browsers reach a listener, which may listen at
// all addresses.
func reachable(a *net.TCPAddr) *net.TCPAddr {
	if a.IP.IsUnspecified() {
		return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: a.Port}
	}
	return a
}

// openExplorer opens the model at path. The page shows the last part of the path as its name.
func openExplorer(cmd *cobra.Command, path string, o explore.Options) (*explore.Explorer, error) {
	mark, _ := modeldir.Identify(path)
	m, err := loadModel(cmd, path)
	if err != nil {
		return nil, err
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute // "." has a name, too
	}
	o.Labels, err = modeldir.LabelsPath(path)
	o.CheckModel = mark.Check
	if isPathError(err) {
		return nil, usageError{err}
	}
	stat, err := os.Stat(path)
	if err != nil {
		return nil, usageError{err}
	}
	if stat.IsDir() {
		if o.Judge, o.Accuracy, err = readAccuracy(path, m.Codes.Cols); err != nil {
			return nil, err
		}
	}
	x, err := explore.New(m, filepath.Base(path), o)
	if err != nil {
		return nil, usageError{err}
	}
	return x, nil
}

func exportPage(cmd *cobra.Command, dir, output string, words []string, dimensions []int) error {
	switch {
	case output == "-":
		return usagef("--export writes a file, not standard output: want its name")
	case len(words)+len(dimensions) == 0:
		return usagef("--export needs --words or --dimensions")
	}
	return writeFiles(cmd, []string{output}, func(files []io.Writer) error {
		x, err := openExplorer(cmd, dir, explore.Options{})
		if err != nil {
			return err
		}
		err = x.WritePage(files[0], words, dimensions)
		if missing, ok := errors.AsType[*explore.RequestError](err); ok {
			return usageError{missing}
		}
		return err
	})
}
