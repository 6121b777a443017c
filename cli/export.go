package cli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/csr"
	"overcomplete/internal/input"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
	"overcomplete/vectors"
	"overcomplete/vectors/columnar"
)

// An exportFormat is a format for other tools.
type exportFormat struct {
	name, about string
	write       func(context.Context, io.Writer, exported) error
}

// An exported is a model to export. The field path is the model's directory, which may contain labels.
type exported struct {
	*model.Model
	path string
}

var exportFormats = []exportFormat{
	{"glove", "dense text: word v v v", codes(vectors.WriteGloVe)},
	{"word2vec", "dense text after a line \"V K\", the numbers of words and dimensions", codes(vectors.WriteWord2Vec)},
	{"word2vec-binary", "the same in word2vec's binary form, dense float32", codes(vectors.WriteWord2VecBinary)},
	{"csr", "sparse matrix for scipy.sparse.load_npz", codes(writeCSR)},
	{"binary", "sparse matrix of ones, for models of method B", writeBinary},
	{"jsonl", "a line of JSON for each row: id, indices, values; of texts also text and columns", codes(vectors.WriteJSONLines)},
	{"opensearch", "lines for the bulk API of OpenSearch and Elasticsearch, with rank_features", codes(vectors.WriteOpenSearch)},
	{"labels", "JSON object with the label of each dimension and, after \"-\", of its negative pole", writeLabels},
	{"safetensors", "codes, dictionary, mean and words as named tensors", func(_ context.Context, w io.Writer, m exported) error { return m.WriteSafetensors(w) }},
	{"parquet", "Parquet file of word, indices and values; of texts with id, text and columns", codes(columnar.WriteParquet)},
	{"topics", "CSV table of id, topic, label and theme for each row, for models with topics", writeTopics},
}

func codes(write func(io.Writer, *vectors.Sparse) error) func(context.Context, io.Writer, exported) error {
	return func(_ context.Context, w io.Writer, m exported) error { return write(w, m.Codes) }
}

func writeCSR(w io.Writer, s *vectors.Sparse) error { return csr.Write(w, &s.CSR) }

// writeTopics writes each row's topic, the topic's label and the row's theme. Rows without a topic have empty fields.
func writeTopics(ctx context.Context, w io.Writer, m exported) error {
	x, err := indexOf(m.path, m.Model)
	if err != nil {
		return err
	}
	t, err := newTopicTable(ctx, m.path, m.Model, x, 0)
	if err != nil {
		return err
	}
	label := map[topics.ID]string{}
	for _, topic := range t.Topics {
		label[topic.ID] = topic.Label
	}
	c := csv.NewWriter(w)
	c.Write([]string{"id", "topic", "label", "theme"})
	for i, id := range t.Rows {
		row := []string{m.Codes.IDs[i], "", "", ""}
		if id != topics.None {
			row = append(row[:1], fmt.Sprint(id), label[id], fmt.Sprint(t.ThemeOf[i]))
		}
		c.Write(row)
	}
	c.Flush()
	return c.Error()
}

// checkBinary returns an error if binary codes would lose signs.
func checkBinary(m *model.Model) error {
	if method := m.Info.Training.Recipe.Base().Method; method != model.Nonnegative {
		return usagef("binary vectors require a model of method B (got method %s)", method)
	}
	return nil
}

func writeBinary(_ context.Context, w io.Writer, m exported) error {
	if err := checkBinary(m.Model); err != nil {
		return err
	}
	return writeCSR(w, m.Codes.Binary())
}

// writeLabels writes a JSON object that maps features to their labels, in the order of dimensions.
func writeLabels(_ context.Context, w io.Writer, m exported) error {
	x, err := indexOf(m.path, m.Model)
	if err != nil {
		return err
	}
	x.Known = m.Info.Known()
	labels, err := loadLabels(m.path, x.Codes.Cols)
	if err != nil {
		return err
	}
	var lines []string
	for k := range x.Codes.Cols {
		poles := x.Poles(k)
		if len(poles) == 0 {
			poles = []interpret.Pole{{Dimension: k}}
		}
		for _, pole := range poles {
			if name := labels.Name(x, pole); name != "" {
				text, _ := json.Marshal(name) // strings can't fail
				lines = append(lines, fmt.Sprintf("%q: %s", vectors.Feature(k, pole.Negative), text))
			}
		}
	}
	_, err = fmt.Fprintf(w, "{\n%s\n}\n", strings.Join(lines, ",\n"))
	return err
}

func newExport() *cobra.Command {
	var format, output, vocabulary string
	var normalize, escape bool
	cmd := &cobra.Command{
		Use:        "export MODEL --format F -o FILE",
		SuggestFor: []string{"convert", "dump", "save"},
		Short:      "Export codes, dictionary or topics to other formats",
		Long: `Export writes the sparse vectors of a model in a format that other tools read:

` + describeFormats() + `
V is the number of words, K the number of sparse dimensions. The rows of csr and binary are
in the order of the model's words.txt or texts.jsonl, and texts are called by their ids but
in jsonl, opensearch and parquet. A word with white space would be ambiguous in text
and in word2vec's binary form, so it stops the export; with --escape, white space and % in
words are written as in a URL, "New York" as "New%20York".

With --normalize, the values of a search engine's index are ready for the weights of
"overcomplete query": scores are then close to cosines. To add rows to an index, encode them
with its model and export them with --vocabulary, which refuses codes of another dictionary.`,
		Example: `  overcomplete export model --format word2vec -o vectors.txt
  overcomplete export model --format jsonl --normalize -o - | head
  overcomplete export new.model --vocabulary model -f jsonl --normalize -o new.jsonl
  overcomplete export model --format safetensors -o model.safetensors`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch stored := map[string]string{"safetensors": "the model as it is", "binary": "ones", "labels": "no codes", "topics": "no codes"}[format]; {
			case normalize && stored != "":
				return usagef("--normalize has no effect on format %s, which stores %s; drop it", format, stored)
			case escape && slices.Contains([]string{"csr", "binary", "labels"}, format):
				return usagef("--escape has no effect on format %s, whose words are never escaped; drop it", format)
			case vocabulary != "" && format == "labels":
				return usagef("--vocabulary has no effect on format labels, which describes the codes of %s; export the labels of %s instead", args[0], vocabulary)
			}
			write := func(w io.Writer) error {
				m, err := openForExport(cmd, args[0], escape, normalize)
				if err != nil {
					return err
				}
				if vocabulary != "" {
					v, err := input.Wait(cmd.Context(), func() (*model.Model, error) { return model.OpenDictionary(vocabulary) })
					if err != nil {
						return err
					}
					if err := checkVocabulary(args[0], m, vocabulary, v); err != nil {
						return err
					}
				}
				f := exportFormats[slices.Index(formatNames(), format)]
				return f.write(cmd.Context(), w, exported{m, args[0]})
			}
			var err error
			if output == "-" {
				err = write(atomicfile.Writer{Context: cmd.Context(), Writer: raw(cmd.OutOrStdout())})
			} else { // the output is checked before the model is read
				err = writeFile(cmd, output, write)
			}
			if _, ok := errors.AsType[*vectors.IDError](err); ok {
				return usagef("%w; --escape encodes it", err)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.VarP(oneOf(&format, "", formatNames()...), "format", "f", "`format`, one of "+strings.Join(formatNames(), ", "))
	addOutput(cmd, &output, "`file` to write, or - for standard output", "a file that exists")
	flags.BoolVar(&escape, "escape", false, "encode white space and % in words")
	flags.BoolVar(&normalize, "normalize", false, "for search, divide each code a by the norm of its reconstruction, ‖μ + aD‖")
	flags.StringVar(&vocabulary, "vocabulary", "", "refuse codes unless this `model`, of an index to extend, has the same dictionary")
	cmd.MarkFlagRequired("format")
	return cmd
}

func openForExport(cmd *cobra.Command, dir string, escape, normalize bool) (*model.Model, error) {
	m, err := loadModel(cmd, dir)
	if err != nil {
		return nil, err
	}
	if escape {
		m.Codes.IDs = vectors.Escape(m.Codes.IDs)
	}
	if normalize {
		norms, err := m.Norms(cmd.Context())
		if err != nil {
			return nil, err
		}
		m.Codes = m.Codes.DivideRows(norms)
	}
	return m, nil
}

func formatNames() []string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.name)
	}
	return names
}

func describeFormats() string {
	var b strings.Builder
	for _, f := range exportFormats {
		fmt.Fprintf(&b, "  %-16s %s\n", f.name, f.about)
	}
	return b.String()
}
