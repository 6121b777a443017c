package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/csr"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
	"overcomplete/vectors/columnar"
)

// An exportFormat is one way to write a model for other tools.
type exportFormat struct {
	name, about string
	files       []exportFile
}

// An exportFile is a file of a format.
type exportFile struct {
	path  func(output string) string // from the -o flag
	write func(w io.Writer, m *model.Model) error

	// Or, with the names of dimensions:
	named func(w io.Writer, s *vectors.Sparse, names vectors.Names) error
}

var exportFormats = []exportFormat{
	{"glove", "dense text: word v v v", oneFile(codes(vectors.WriteGloVe))},
	{"word2vec", "dense text after a line \"V K\", the numbers of words and dimensions", oneFile(codes(vectors.WriteWord2Vec))},
	{"word2vec-binary", "the same in word2vec's binary form, dense float32", oneFile(codes(vectors.WriteWord2VecBinary))},
	{"authors", "what the paper's program writes: 3 digits, and the dictionary in FILE_dict", []exportFile{
		{path: samePath, write: codes(vectors.WriteAuthors)},
		{path: dictPath, write: writeAuthorsDictionary},
	}},
	{"sparse", "sparse text: word i:v i:v, dimensions from 0", oneFile(codes(vectors.WriteSparseText))},
	{"csr", "sparse matrix for scipy.sparse.load_npz", oneFile(writeCSR)},
	{"binary", "sparse matrix of ones, for models of method B", oneFile(writeBinary)},
	{"bits", "the same as packed bits, for numpy.unpackbits(numpy.load(FILE), axis=1, count=K)", oneFile(writeBits)},
	{"svmlight", "sparse text for sklearn.datasets.load_svmlight_file, dimensions from 1, the word as a comment", oneFile(codes(vectors.WriteSVMLight))},
	{"jsonl", "a line of JSON for each row: id, indices, values, names of dimensions", []exportFile{{path: samePath, named: vectors.WriteJSONLines}}},
	{"opensearch", "lines for the bulk API of OpenSearch and Elasticsearch, with rank_features", []exportFile{{path: samePath, named: vectors.WriteOpenSearch}}},
	{"safetensors", "codes, dictionary, mean and words as named tensors; a MODEL to other commands", oneFile(writeSafetensors)},
	{"arrow", "Arrow file (Feather) of word, indices and values; of texts with id, text and columns", oneFile(codes(columnar.WriteArrow))},
	{"parquet", "Parquet file of the same", oneFile(codes(columnar.WriteParquet))},
	{"projector", "for the Embedding Projector: -o x.tsv, and the words in x_metadata.tsv", []exportFile{
		{path: samePath, write: writeProjectorVectors},
		{path: metadataPath, write: writeProjectorMetadata},
	}},
}

func oneFile(write func(io.Writer, *model.Model) error) []exportFile {
	return []exportFile{{path: samePath, write: write}}
}

func samePath(output string) string { return output }

func dictPath(output string) string { return output + "_dict" }

func metadataPath(output string) string {
	ext := filepath.Ext(output)
	return strings.TrimSuffix(output, ext) + "_metadata" + ext
}

func codes(write func(io.Writer, *vectors.Sparse) error) func(io.Writer, *model.Model) error {
	return func(w io.Writer, m *model.Model) error { return write(w, m.Codes) }
}

func writeAuthorsDictionary(w io.Writer, m *model.Model) error {
	return vectors.WriteAuthorsDictionary(w, m.Dictionary.Atoms, m.Codes.Cols)
}

func writeCSR(w io.Writer, m *model.Model) error { return csr.Write(w, &m.Codes.CSR) }

func writeBinary(w io.Writer, m *model.Model) error {
	if err := checkBinary(m); err != nil {
		return err
	}
	return csr.Write(w, &m.Codes.Binary().CSR)
}

func writeBits(w io.Writer, m *model.Model) error {
	if err := checkBinary(m); err != nil {
		return err
	}
	return vectors.WritePackedBits(w, &m.Codes.CSR)
}

// checkBinary returns an error if binary vectors would lose signs.
func checkBinary(m *model.Model) error {
	if method := m.Info.Training.Recipe.Base().Method; method != model.Nonnegative {
		return usageError{fmt.Errorf("binary vectors need a model of method B, this one is of method %s", method)}
	}
	return nil
}

func writeSafetensors(w io.Writer, m *model.Model) error { return m.WriteSafetensors(w) }

func writeProjectorVectors(w io.Writer, m *model.Model) error {
	return vectors.WriteProjectorVectors(w, &m.Codes.CSR)
}

func writeProjectorMetadata(w io.Writer, m *model.Model) error {
	return vectors.WriteProjectorMetadata(w, m.Codes.Words)
}

// normalizations are the norms that codes are divided by.
var normalizations = []string{"codes", "vectors"}

func newExport() *cobra.Command {
	var format, output string
	var normalize string
	var escape bool
	cmd := &cobra.Command{
		Use:   "export MODEL --format F -o FILE",
		Short: "Write a model's vectors for other tools",
		Long: `Export writes the sparse vectors of a model in a format that other tools read:

` + describeFormats() + `
V is the number of words, K that of sparse dimensions. The rows of csr, binary and
bits are those of the model's words.txt or texts.jsonl, in that order, and texts are called by
their ids but in jsonl, opensearch, arrow and parquet. A word with white space
would be ambiguous in text and in word2vec's binary form, so it stops the export; with
--escape, white space and % in words are written as in a URL, "New York" as "New%20York".`,
		Example: `  overcomplete export model --format word2vec -o vectors.txt
  overcomplete export model --format sparse -o - | head
  overcomplete export model --format safetensors -o model.safetensors`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if normalize != "" && format == "safetensors" {
				return usagef("--normalize is for codes alone: a model in safetensors would be another one")
			}
			open := func() (*model.Model, error) { return openForExport(cmd, args[0], escape, normalize) }
			return writeFormat(cmd, format, output, args[0], open)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&format, "format", "f", "", "`format`, one of "+strings.Join(formatNames(), ", "))
	addOutput(cmd, &output, "`file` to write, or - for standard output", "files that exist")
	flags.BoolVar(&escape, "escape", false, "encode white space and % in words")
	flags.StringVar(&normalize, "normalize", "", "for search: divide each code by its own norm (`codes`), where questions are codes, or by that of the vector that it stands for, ‖μ + aD‖ (vectors), where they are products with atoms")
	cmd.MarkFlagRequired("format")
	return cmd
}

// writeFormat writes what open returns of the model at path to a file, or to standard output for -.
func writeFormat(cmd *cobra.Command, format, output, path string, open func() (*model.Model, error)) error {
	f := export{exportFormats[slices.Index(formatNames(), format)], path}
	var err error
	switch output {
	case "":
		err = usagef("-o is empty, want the name of a file")
	case "-":
		err = f.writeTo(cmd.Context(), raw(cmd.OutOrStdout()), open)
	default:
		err = f.writeFiles(cmd, output, open)
	}
	if _, ok := errors.AsType[*vectors.WordError](err); ok {
		return usageError{fmt.Errorf("%w; --escape encodes it", err)}
	}
	if errors.Is(err, vectors.ErrUnindexable) {
		return usageError{err}
	}
	return err
}

func openForExport(cmd *cobra.Command, dir string, escape bool, normalize string) (*model.Model, error) {
	m, err := loadModel(cmd, dir)
	if err != nil {
		return nil, err
	}
	if escape {
		m.Codes.Words = vectors.Escape(m.Codes.Words)
	}
	switch normalize {
	case "codes":
		m.Codes = m.Codes.Over(m.Codes.Norms())
	case "vectors":
		norms, err := m.Norms(cmd.Context())
		if err != nil {
			return nil, err
		}
		m.Codes = m.Codes.Over(norms)
	}
	return m, nil
}

// An export is a format, and the model that is written, whose dimensions have labels.
type export struct {
	exportFormat
	model string
}

// write writes a file of the format.
func (f export) write(file exportFile, w io.Writer, m *model.Model) error {
	if file.named == nil {
		return file.write(w, m)
	}
	x := interpret.NewIndex(m.Codes)
	x.Known = m.Info.Known()
	labels, err := loadLabels(f.model, x.Codes.Cols)
	if err != nil {
		return err
	}
	return file.named(w, m.Codes, func(k int, negative bool) string {
		return labels.Name(x, interpret.Pole{Dimension: k, Negative: negative})
	})
}

// writeTo writes a format of one file to w.
func (f export) writeTo(ctx context.Context, w io.Writer, open func() (*model.Model, error)) error {
	if len(f.files) > 1 {
		return usageError{fmt.Errorf("format %s is %d files: it needs a name, not -o -", f.name, len(f.files))}
	}
	m, err := open()
	if err != nil {
		return err
	}
	return f.write(f.files[0], atomicfile.Writer{Context: ctx, Writer: w}, m)
}

// writeFiles writes the files of the format. What forbids that is found before the model
// is opened.
func (f export) writeFiles(cmd *cobra.Command, output string, open func() (*model.Model, error)) error {
	var paths []string
	for _, file := range f.files {
		paths = append(paths, file.path(output))
	}
	return writeFiles(cmd, paths, func(files []io.Writer) error {
		m, err := open()
		if err != nil {
			return err
		}
		for i, file := range f.files {
			if err := f.write(file, files[i], m); err != nil {
				return err
			}
		}
		return nil
	})
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
