package vectors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"overcomplete/vectors/internal/tabular"
)

// ErrUnindexable is wrapped by errors about a row that a search engine would refuse, or store in
// place of another row.
var ErrUnindexable = errors.New("search engines can't index the row")

// Feature returns the name of a pole of a dimension in search engines, such as "7", or "7-" for the negative pole.
func Feature(dimension int, negative bool) string {
	if negative {
		return strconv.Itoa(dimension) + "-"
	}
	return strconv.Itoa(dimension)
}

// WriteJSONLines writes a line per row with a JSON object. "id" is the word or id, "dimensions" is K, and "indices" and
// "values" are the columns and values of the nonzeros. Texts also have "text" and their columns. In a column of
// numbers, values are JSON numbers and empty values are null; other columns contain strings. If one number of a column
// has a decimal point or an exponent, all have. WriteJSONLines returns [ErrUnindexable], wrapped, for a repeated id,
// because an engine would keep only its last row. It returns an error if words and rows differ in number.
func WriteJSONLines(w io.Writer, s *Sparse) error {
	if err := checkDistinct(s); err != nil {
		return err
	}
	table := newDocuments(s, "id", "dimensions", "indices", "values")
	dimensions := fmt.Sprintf(`,"dimensions":%d,"indices":[`, s.Cols)
	return writeChunks(w, s.Rows, func(b []byte, i int) []byte {
		index, value := s.Row(i)
		b = append(table.appendRow(b, i), dimensions...)
		for n, k := range index {
			b = strconv.AppendInt(appendComma(b, n), int64(k), 10)
		}
		b = append(b, `],"values":[`...)
		for n, v := range value {
			b = appendExact(appendComma(b, n), v)
		}
		return append(b, "]}\n"...)
	})
}

// checkDistinct returns an error unless each row has an id that isn't empty and differs from the others.
func checkDistinct(s *Sparse) error {
	if err := checkIDs(s, ""); err != nil {
		return err
	}
	first := make(map[string]int, s.Rows)
	for i, id := range s.IDs {
		if other, ok := first[id]; ok {
			return fmt.Errorf("row %d: %w: row %d has the same id, %s; remove one of them", i+1, ErrUnindexable, other+1, quote(id))
		}
		first[id] = i
	}
	return nil
}

// maxEngineID is the maximum length of an id in OpenSearch and Elasticsearch, in bytes.
const maxEngineID = 512

// engineFields are the field names that search engines reserve.
var engineFields = []string{"", "_id", "_index", "_source", "_type", "_routing", "_ignored", "_field_names", "_version", "_seq_no", "_doc_count", "_nested_path"}

// WriteOpenSearch writes lines for the bulk API of OpenSearch and Elasticsearch: for each row an action with its id,
// and a document, whose columns have the types of [WriteJSONLines]. The document's field "features" has the type
// rank_features and stores the absolute value of each nonzero under its [Feature].
//
// WriteOpenSearch returns [ErrUnindexable], wrapped, for an id of over 512 bytes, and the errors of [WriteJSONLines].
func WriteOpenSearch(w io.Writer, s *Sparse) error {
	if err := checkDistinct(s); err != nil {
		return err
	}
	for i, id := range s.IDs {
		if len(id) > maxEngineID {
			return fmt.Errorf("row %d: %w: the id %s is too long (got %d bytes, want at most %d); train on texts with shorter ids", i+1, ErrUnindexable, quote(id), len(id), maxEngineID)
		}
	}
	table := newDocuments(s, "id", append(engineFields, "features")...)
	return writeChunks(w, s.Rows, func(b []byte, i int) []byte {
		index, value := s.Row(i)
		b = append(b, `{"index":{"_id":`...)
		b = append(appendJSON(b, s.IDs[i]), "}}\n"...)
		b = append(table.appendRow(b, i), `,"features":{`...)
		for n, k := range index {
			b = append(appendJSON(appendComma(b, n), Feature(int(k), value[n] < 0)), ':')
			b = appendExact(b, max(value[n], -value[n]))
		}
		return append(b, "}}\n"...)
	})
}

func appendComma(b []byte, n int) []byte {
	if n > 0 {
		b = append(b, ',')
	}
	return b
}

// documents is a table of ids, texts and columns, with the type of each column.
type documents struct {
	columns []Column
	types   []tabular.Type
}

func newDocuments(s *Sparse, words string, taken ...string) documents {
	d := documents{columns: s.Table(words, taken...)}
	d.types = make([]tabular.Type, len(d.columns)) // ids and texts are strings
	for n := 2; n < len(d.columns); n++ {
		d.types[n] = tabular.TypeOf(d.columns[n].Values)
	}
	return d
}

// appendRow appends the beginning of an object, with the fields of row i.
func (d documents) appendRow(b []byte, i int) []byte {
	b = append(b, '{')
	for n, c := range d.columns {
		b = append(appendJSON(appendComma(b, n), c.Name), ':')
		switch v := c.Values[i]; {
		case d.types[n] == tabular.String:
			b = appendJSON(b, v)
		case v == "":
			b = append(b, "null"...)
		case d.types[n] == tabular.Float && !strings.ContainsAny(v, ".eE"):
			b = append(append(b, v...), ".0"...) // some engines type a column by its first number
		default:
			b = append(b, v...)
		}
	}
	return b
}

func appendJSON(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // marshalling a string can't fail
	return append(b, text...)
}

// DivideRows returns s with row i divided by norms[i], or unchanged if norms[i] is 0. The result shares everything with
// s except the values.
func (s *Sparse) DivideRows(norms []float64) *Sparse {
	n := *s
	n.Value = make([]float32, len(s.Value))
	for i, norm := range norms {
		if norm == 0 {
			norm = 1
		}
		for j := s.Ptr[i]; j < s.Ptr[i+1]; j++ {
			n.Value[j] = float32(float64(s.Value[j]) / norm)
		}
	}
	return &n
}
