package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"overcomplete/internal/modeldir"
	"overcomplete/interpret/explore"
)

func newExplore() *cobra.Command {
	var host, output, embed string
	var port int
	var words []string
	var dimensions []int
	var frame, open bool
	cmd := &cobra.Command{
		Use:        "explore MODEL",
		SuggestFor: []string{"view", "serve", "browse", "gui", "visualize"},
		Short:      "Explore a model in the browser",
		Long: `Explore serves a web page and prints its address, until it is interrupted. The page
answers queries for a word, for several (bank river: their similarity and differences),
for a sum of words (king - man + woman), for a text, or for a dimension. It begins
with the topics of texts, lists and maps all dimensions, and edits labels of both. The
page loads nothing from the network.

--export writes the page as one file instead, with the topics, their themes and typical
texts, and with the chosen words and dimensions. If only words are chosen, the page has
the strongest dimensions of each; if only dimensions are, the top words of each.`,
		Example: `  overcomplete explore model --open
  overcomplete explore posts --export topics.html --title "Posts of April"
  overcomplete explore model --export bank.html --words bank,river,money`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" {
				return exportPage(cmd, args[0], output, words, dimensions)
			}
			listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if errors.Is(err, syscall.EADDRINUSE) {
				return usagef("port %d is in use; choose another --port, such as 0 for any that is free", port)
			} else if err != nil {
				return usagef("--host %.60s: %w", host, err)
			}
			defer listener.Close()
			options := explore.Options{Frames: frame}
			var e *embedder
			if embed != "" {
				if e, err = startEmbedder(cmd, embed); err != nil {
					return err
				}
				defer e.close()
				options.Embed = e.embed
			}
			x, err := openExplorer(cmd, args[0], options)
			if err != nil {
				return err
			}
			at := listener.Addr().(*net.TCPAddr)
			local := *at
			if at.IP.IsUnspecified() { // the server listens on all addresses
				local.IP = net.IPv4(127, 0, 0, 1)
			}
			url := fmt.Sprintf("http://%v/", &local)
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), url); err != nil {
				return err
			}
			if open {
				go openBrowser(cmd, url)
			}
			if !at.IP.IsLoopback() {
				warn(cmd.ErrOrStderr(), "the page at %v is reachable from other machines", at)
			}
			return x.Serve(cmd.Context(), listener, host)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&open, "open", false, "open the page in the browser")
	flags.Var(within(&port, 8420, 0, math.MaxUint16), "port", "`port` to serve at; 0 is any that is free")
	flags.StringVar(&host, "host", "127.0.0.1", "`address` to serve at; 0.0.0.0 is reachable from other machines")
	flags.StringVar(&embed, "embed", "", "also find texts by meaning: a `command` that reads a JSON string per line and writes its vector as a JSON array, by the embedding model of the texts")
	flags.BoolVar(&frame, "frame", false, "let pages of this machine, such as notebooks, show it in a frame")
	flags.String("title", "", "`title` of the page (default the name of the model)")
	flags.StringVar(&output, "export", "", "write the page into this `file` instead")
	flags.StringSliceVar(&words, "words", nil, "`words` to export; quote one that has a comma: '\",\"'")
	flags.IntSliceVar(&dimensions, "dimensions", nil, "`dimensions` to export")
	addForce(cmd, "a file that exists")
	excludes(cmd, "export", "host", "port", "open", "embed", "frame")
	needs(cmd, "export", "words", "dimensions", "force")
	return cmd
}

func openBrowser(cmd *cobra.Command, url string) {
	opener := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		opener = []string{"open"}
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if err := exec.Command(opener[0], append(opener[1:], url)...).Run(); err != nil {
		warn(cmd.ErrOrStderr(), "couldn't open a browser (%v); open %s", err, url)
	}
}

// openExplorer opens the model at path. The page names the model by the last element of its path.
func openExplorer(cmd *cobra.Command, path string, o explore.Options) (*explore.Explorer, error) {
	mark, _ := modeldir.Identify(path)
	m, err := loadModel(cmd, path)
	if err != nil {
		return nil, err
	}
	if o.Embed != nil && m.Codes.Texts == nil {
		return nil, usagef("--embed finds texts, and the rows of %s are words; drop it", path)
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute // resolves "." to a name
	}
	o.CheckModel = mark.Check
	if o.Labels, err = labelsPath(path); err != nil {
		return nil, err
	}
	if o.Judge, o.Accuracy, err = readAccuracy(path, m.Codes.Cols); err != nil {
		return nil, err
	}
	title, _ := cmd.Flags().GetString("title")
	x, err := explore.New(m, cmp.Or(title, filepath.Base(path)), o)
	if err != nil {
		return nil, usageError{err}
	}
	return x, nil
}

func exportPage(cmd *cobra.Command, dir, output string, words []string, dimensions []int) error {
	if output == "-" {
		return usagef("--export writes a file, not standard output: want its name")
	}
	return writeFile(cmd, output, func(w io.Writer) error {
		x, err := openExplorer(cmd, dir, explore.Options{})
		if err != nil {
			return err
		}
		err = x.WritePage(w, words, dimensions)
		if missing, ok := errors.AsType[*explore.RequestError](err); ok {
			if len(words)+len(dimensions) == 0 {
				return usagef("%w: choose some with --words or --dimensions", missing)
			}
			return usageError{missing}
		}
		return err
	})
}
