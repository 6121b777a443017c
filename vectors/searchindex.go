package vectors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
)

// ErrUnindexable is wrapped by errors about a row that a search engine would refuse, or store in
// place of another row.
var ErrUnindexable = errors.New("search engines can't index the row")

// WriteJSONLines writes a line per row with a JSON object. "id" is the word or id; "indices" and "values" are
// the columns and values of the nonzeros; "names" are names(dimension, negative) for each of them, where
// negative means a value below 0; names must be safe for concurrent use. Texts also have "text" and their
// columns. WriteJSONLines returns an error if words and rows differ in number.
func WriteJSONLines(w io.Writer, s *Sparse, names func(dimension int, negative bool) string) error {
	if err := checkWords(s, ""); err != nil {
		return err
	}
	cached, table := cacheNames(names), s.Table("id", "indices", "values", "names", "features")
	return writeChunks(w, s.Rows, func(b []byte, i int) []byte {
		index, value := s.Row(i)
		b = appendDocument(b, table, i)
		b = append(b, `,"indices":[`...)
		for n, k := range index {
			b = strconv.AppendInt(appendComma(b, n), int64(k), 10)
		}
		b = append(b, `],"values":[`...)
		for n, v := range value {
			b = appendExact(appendComma(b, n), v)
		}
		b = append(b, `],"names":[`...)
		for n, k := range index {
			b = appendJSON(appendComma(b, n), cached(int(k), value[n] < 0))
		}
		return append(b, "]}\n"...)
	})
}

// maxEngineID is the maximum length of an id in OpenSearch and Elasticsearch, in bytes.
const maxEngineID = 512

// engineFields are the field names that search engines reserve.
var engineFields = []string{"", "_id", "_index", "_source", "_type", "_routing", "_ignored", "_field_names", "_version", "_seq_no", "_doc_count", "_nested_path"}

// WriteOpenSearch writes lines for the bulk API of OpenSearch and Elasticsearch: for each row an
// action with its id, and a document. The document's field "features" has the type rank_features and a
// value per nonzero, keyed by the dimension's number and name, with spaces for the dots of a name.
//
// WriteOpenSearch returns [ErrUnindexable], wrapped, for a negative value, a repeated id or an id of over
// 512 bytes. An engine would keep only the last row of a repeated id. It also returns the error of
// [WriteJSONLines].
func WriteOpenSearch(w io.Writer, s *Sparse, names func(dimension int, negative bool) string) error {
	if err := checkWords(s, ""); err != nil {
		return err
	}
	first := make(map[string]int, s.Rows)
	for i, id := range s.Words {
		if other, ok := first[id]; ok {
			return fmt.Errorf("row %d: %w: row %d has the same id, %s; remove one of them", i+1, ErrUnindexable, other+1, quote(id))
		}
		if len(id) > maxEngineID {
			return fmt.Errorf("row %d: %w: the id %s is too long (got %d bytes, want at most %d); train on texts with shorter ids", i+1, ErrUnindexable, quote(id), len(id), maxEngineID)
		}
		first[id] = i
		index, value := s.Row(i)
		for n, v := range value {
			if v < 0 {
				return fmt.Errorf("row %d: %w: the value in dimension %d is negative (got %v); use a model of method B", i+1, ErrUnindexable, index[n], v)
			}
		}
	}
	cached, table := cacheNames(names), s.Table("id", append(engineFields, "features", "indices", "values", "names")...)
	return writeChunks(w, s.Rows, func(b []byte, i int) []byte {
		index, value := s.Row(i)
		b = append(b, `{"index":{"_id":`...)
		b = append(appendJSON(b, s.Words[i]), "}}\n"...)
		b = append(appendDocument(b, table, i), `,"features":{`...)
		for n, k := range index {
			name := strings.ReplaceAll(strconv.Itoa(int(k))+" "+cached(int(k), false), ".", " ") // dots separate nested fields
			b = append(appendJSON(appendComma(b, n), name), ':')
			b = appendExact(b, value[n])
		}
		return append(b, "}}\n"...)
	})
}

// WriteSVMLight writes the format of SVMlight, LIBSVM and scikit-learn's load_svmlight_file: a line
// per row with the label 0, " column:value" for each nonzero, and the word as a comment. Columns
// count from 1. It returns an error if a word contains a line break.
func WriteSVMLight(w io.Writer, s *Sparse) error {
	if err := checkWords(s, "\r\n"); err != nil {
		return err
	}
	return writeChunks(w, s.Rows, func(b []byte, i int) []byte {
		index, value := s.Row(i)
		b = append(b, '0')
		for n, k := range index {
			b = append(strconv.AppendInt(append(b, ' '), int64(k)+1, 10), ':')
			b = appendExact(b, value[n])
		}
		return append(append(append(b, " # "...), s.Words[i]...), '\n')
	})
}

// cacheNames returns names with a cache, for concurrent use.
func cacheNames(names func(dimension int, negative bool) string) func(dimension int, negative bool) string {
	type pole struct {
		dimension int
		negative  bool
	}
	var cache sync.Map
	return func(dimension int, negative bool) string {
		key := pole{dimension, negative}
		name, ok := cache.Load(key)
		if !ok {
			name, _ = cache.LoadOrStore(key, names(dimension, negative))
		}
		return name.(string)
	}
}

func appendComma(b []byte, n int) []byte {
	if n > 0 {
		b = append(b, ',')
	}
	return b
}

// appendDocument appends the beginning of an object, with the fields of row i of the table.
func appendDocument(b []byte, table []Column, i int) []byte {
	b = append(b, '{')
	for n, c := range table {
		b = appendJSON(append(appendJSON(appendComma(b, n), c.Name), ':'), c.Values[i])
	}
	return b
}

func appendJSON(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // strings can't fail
	return append(b, text...)
}

// Norms returns the Euclidean norm of each row.
func (s *CSR) Norms() []float64 {
	norms := make([]float64, s.Rows)
	for i := range norms {
		_, value := s.Row(i)
		for _, v := range value {
			norms[i] += float64(v) * float64(v)
		}
		norms[i] = math.Sqrt(norms[i])
	}
	return norms
}

// DivideRows returns s with row i divided by norms[i], or unchanged if norms[i] is 0. The
// result shares all but the values with s.
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
