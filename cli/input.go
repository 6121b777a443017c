package cli

import (
	"github.com/spf13/cobra"

	"overcomplete/vectors"
)

// registerInput adds the flags for reading vectors.
func registerInput(cmd *cobra.Command, read *vectors.ReadOptions) {
	flags := cmd.Flags()
	flags.Var(count(&read.MaxRows, 0), "max-rows", "read only the first `n` rows (default all)")
	flags.BoolVar(&read.SkipBad, "skip-bad", false, "drop malformed rows instead of stopping at the first")
	remedies(cmd, "skip-bad", "SkipBad", "drops such rows")
	flags.StringVar(&read.WordList, "words", "", "`file` with one word per line, or a table with words or texts, for vectors without words, or instead of words in tables")
	flags.Var(oneOf(&read.Rows, "", string(vectors.KindWords), string(vectors.KindTexts)), "rows", "kind of rows: `words`, which are distinct, or texts, such as sentences, which may repeat (default by the name of their column, or by their content)")
	flags.StringVar(&read.TextColumn, "text-column", "", "`name` of the column of a table with the texts, or words (default word, words, token, text, sentence, document, content or passage, else the only column of strings)")
	flags.StringVar(&read.IDColumn, "id-column", "", "`name` of the column with the ids of texts, or \"none\" to number them (default id, _id or doc_id, if there is one)")
	flags.StringVar(&read.VectorColumns, "vector-columns", "", "`name` of the column with the vectors, or of their array in .npz or .safetensors, or a pattern such as \"e*\" or first:last for columns of numbers (default vector, vectors, embedding, embeddings or features, else the only column of lists, else columns of numbers that count upwards, such as e0, e1, …)")
	remedies(cmd, "words", "WordList", "names that file")
	remedies(cmd, "rows", "Rows", "texts keeps such rows, if they are texts")
	remedies(cmd, "text-column", "TextColumn", "names one")
	remedies(cmd, "id-column", "IDColumn", "names another column of ids, or none to name rows by their numbers")
	remedies(cmd, "vector-columns", "VectorColumns", "names one, or columns of numbers by a pattern or as first:last")
}
