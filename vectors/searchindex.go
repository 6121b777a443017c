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

// ErrUnindexable reports, wrapped, a row that a search engine would refuse, or store in place of
// another.
var ErrUnindexable = errors.New("search engines can't take it")

// WriteJSONLines writes an object a line for each row: its id, the columns of its nonzeros, their
// values and the names of these dimensions, or of their negative poles; of texts also the text and
// the columns. It returns an error if the number of words is not that of the rows.
func WriteJSONLines(w io.Writer, s *Sparse, names func(dimension int, negative bool) string) error {
	if err := checkWords(s, ""); err != nil {
		return err
	}
	known, table := remember(names), s.Table("id", "indices", "values", "names", "features")
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
			b = appendJSON(appendComma(b, n), known(int(k), value[n] < 0))
		}
		return append(b, "]}\n"...)
	})
}

// mostID is the maximum length of an id of OpenSearch and Elasticsearch, in bytes.
const mostID = 512

// engineFields are field names that engines reserve.
var engineFields = []string{"", "_id", "_index", "_source", "_type", "_routing", "_ignored", "_field_names", "_version", "_seq_no", "_doc_count", "_nested_path"}

// WriteOpenSearch writes the lines of the bulk API of OpenSearch and Elasticsearch: for each row an
// action with its id, and a document whose field "features" is of the type rank_features, by the
// number of a dimension and its name. It returns an [ErrUnindexable] if a value is negative, if two
// rows have one id, of which an engine would keep the last, or if an id is longer than engines
// take; or the error of [WriteJSONLines].
func WriteOpenSearch(w io.Writer, s *Sparse, names func(dimension int, negative bool) string) error {
	if err := checkWords(s, ""); err != nil {
		return err
	}
	first := make(map[string]int, s.Rows)
	for i, id := range s.Words {
		if other, ok := first[id]; ok {
			return fmt.Errorf("row %d: %w: its id %s is that of row %d, too; leave one out", i+1, ErrUnindexable, quote(id), other+1)
		}
		if len(id) > mostID {
			return fmt.Errorf("row %d: %w: its id %s has %d bytes, want %d at most; train on texts with other ids", i+1, ErrUnindexable, quote(id), len(id), mostID)
		}
		first[id] = i
		index, value := s.Row(i)
		for n, v := range value {
			if v < 0 {
				return fmt.Errorf("row %d: %w: its value in dimension %d is negative, %v; use a model of method B", i+1, ErrUnindexable, index[n], v)
			}
		}
	}
	known, table := remember(names), s.Table("id", append(engineFields, "features", "indices", "values", "names")...)
	return writeChunks(w, s.Rows, func(b []byte, i int) []byte {
		index, value := s.Row(i)
		b = append(b, `{"index":{"_id":`...)
		b = append(appendJSON(b, s.Words[i]), "}}\n"...)
		b = append(appendDocument(b, table, i), `,"features":{`...)
		for n, k := range index {
			name := strings.ReplaceAll(strconv.Itoa(int(k))+" "+known(int(k), false), ".", " ") // a dot would be a path
			b = append(appendJSON(appendComma(b, n), name), ':')
			b = appendExact(b, value[n])
		}
		return append(b, "}}\n"...)
	})
}

// WriteSVMLight writes what svmlight, LIBSVM and scikit-learn's load_svmlight_file read: for each
// row the label 0, and dimensions, from 1, with their values. What a row is called is a comment.
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

// remember returns a function that caches names, for concurrent use.
func remember(names func(dimension int, negative bool) string) func(dimension int, negative bool) string {
	type side struct {
		dimension int
		negative  bool
	}
	var known sync.Map
	return func(dimension int, negative bool) string {
		key := side{dimension, negative}
		name, ok := known.Load(key)
		if !ok {
			name, _ = known.LoadOrStore(key, names(dimension, negative))
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

// appendDocument begins an object with row i of the table.
func appendDocument(b []byte, table []Column, i int) []byte {
	b = append(b, '{')
	for n, c := range table {
		b = appendJSON(append(appendJSON(appendComma(b, n), c.Name), ':'), c.Values[i])
	}
	return b
}

func appendJSON(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // no error of a string
	return append(b, text...)
}

// Norms returns ‖a_i‖ of each row.
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

// Over returns s with row i divided by norms[i], unless that is 0.
func (s *Sparse) Over(norms []float64) *Sparse {
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
