package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"overcomplete/internal/modeldir"
	"overcomplete/vectors"
)

// rowsFile returns the name of the file with the rows of the input. Words are in words.txt, one per line, valid by
// [vectors.CheckID]. Texts are in texts.jsonl, one object per line, with the id, the text and the columns of a
// row as strings.
func (in *Input) rowsFile() string {
	if in.Texts {
		return modeldir.Texts
	}
	return modeldir.Words
}

// SetKind records the kind of rows and the names of the columns of texts. The argument is nil if rows are words.
func (e *Encoding) SetKind(texts *vectors.Texts) {
	if e.Input.Texts, e.Columns = texts != nil, nil; texts != nil {
		e.Columns = texts.Names()
	}
}

// checkRows returns an error unless words and texts have the number, kind and columns of rows that e describes.
func (e *Encoding) checkRows(ids []string, texts *vectors.Texts) error {
	switch {
	case len(ids) != e.Input.Rows:
		return fmt.Errorf("%d rows, %s says %d", len(ids), modeldir.Info, e.Input.Rows)
	case e.Input.Texts != (texts != nil):
		return fmt.Errorf("the rows and %s disagree on whether rows are texts", modeldir.Info)
	case texts != nil && !slices.Equal(texts.Names(), e.Columns):
		return fmt.Errorf("the columns are %.60q, %s says %.60q", texts.Names(), modeldir.Info, e.Columns)
	}
	return texts.Validate(e.Input.Rows)
}

// The keys of the id and the text in texts.jsonl. The other keys are the names of the columns.
const (
	idKey   = "id"
	textKey = "text"
)

// A rowReader reads words.txt or texts.jsonl.
type rowReader struct {
	of    *Encoding
	r     *bufio.Reader
	line  int
	names []string // keys of a row's values, if rows are texts
	keys  [][]byte // see rowKeys
}

func newRowReader(r io.Reader, of *Encoding) *rowReader {
	names := append([]string{idKey, textKey}, of.Columns...)
	return &rowReader{of: of, r: bufio.NewReaderSize(r, 1<<16), names: names, keys: rowKeys(names)}
}

// rowKeys returns the bytes before each value of a line in texts.jsonl.
func rowKeys(names []string) (keys [][]byte) {
	for i, name := range names {
		var b bytes.Buffer
		b.WriteByte("{,"[min(i, 1)])
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.Encode(name) // a buffer returns no error
		keys = append(keys, append(bytes.TrimSuffix(b.Bytes(), []byte("\n")), ':'))
	}
	return keys
}

// next reads the next row into words and texts. It returns io.EOF after the last row.
func (r *rowReader) next(words *[]string, texts *vectors.Texts) error {
	r.line++
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == bufio.ErrBufferFull && bytes.IndexByte(part, 0) < 0:
			continue // a valid row contains no NUL; a sparse file would read as endless NULs
		case err == io.EOF && len(line) == 0:
			return io.EOF
		case err == io.EOF:
			return errors.New("truncated: the last line has no end")
		case err != nil && err != bufio.ErrBufferFull:
			return err
		}
		break
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	id := string(line)
	if r.of.Input.Texts {
		values, ok := r.split(line)
		if !ok {
			var err error
			if values, err = r.parse(line); err != nil {
				return err
			}
		}
		id = values[0]
		texts.Add(values[1], values[2:])
	}
	*words = append(*words, id)
	return checkID(r.line, id)
}

// parse returns the values of a line that is a JSON object.
func (r *rowReader) parse(line []byte) (values []string, err error) {
	var row map[string]string
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, fmt.Errorf("line %d, %.60q: want an object of strings", r.line, line)
	}
	for _, name := range r.names {
		value, ok := row[name]
		if !ok {
			return nil, fmt.Errorf("line %d: there is no %.60q", r.line, name)
		}
		values = append(values, value)
	}
	if len(row) != len(values) {
		return nil, fmt.Errorf("line %d has %d values, %s says %d", r.line, len(row), modeldir.Info, len(values))
	}
	tokens := 0
	decoder := json.NewDecoder(bytes.NewReader(line))
	for _, err := decoder.Token(); err == nil; _, err = decoder.Token() {
		tokens++
	}
	if tokens != len("{}")+2*len(row) {
		return nil, fmt.Errorf("line %d: a key is repeated", r.line)
	}
	return values, nil
}

// split returns the values of a line in the layout of writeRows, six times as fast as parse. ok is false for other
// lines.
func (r *rowReader) split(line []byte) (values []string, ok bool) {
	values = make([]string, len(r.names))
	for i, key := range r.keys {
		if line, ok = bytes.CutPrefix(line, key); !ok || len(line) == 0 || line[0] != '"' {
			return nil, false
		}
		plain, end := true, 1
		for ; end < len(line) && line[end] != '"'; end++ {
			if c := line[end]; c < ' ' || c >= utf8.RuneSelf || c == '\\' {
				plain = false
				if c == '\\' {
					end++
				}
			}
		}
		if end >= len(line) {
			return nil, false
		}
		literal := line[:end+1]
		line = line[end+1:]
		if plain {
			values[i] = string(literal[1:end])
		} else if json.Unmarshal(literal, &values[i]) != nil {
			return nil, false
		}
	}
	return values, string(line) == "}"
}

// newTexts returns empty texts with the columns of the rows, or nil if rows are words.
func (r *rowReader) newTexts() *vectors.Texts {
	if !r.of.Input.Texts {
		return nil
	}
	t := new(vectors.Texts)
	for _, name := range r.of.Columns {
		t.Columns = append(t.Columns, vectors.Column{Name: name})
	}
	return t
}

// writeRows writes rows as lines of rowsFile. The argument n is the number of lines already written.
func writeRows(w io.Writer, ids []string, texts *vectors.Texts, n int) error {
	var columns []vectors.Column // columns of texts; nil for words
	var keys [][]byte
	if texts != nil {
		columns = append([]vectors.Column{{Name: idKey, Values: ids}, {Name: textKey, Values: texts.Text}}, texts.Columns...)
		keys = rowKeys(append([]string{idKey, textKey}, texts.Names()...))
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	for i, id := range ids {
		if err := checkID(n+i+1, id); err != nil {
			return err
		}
		line.Reset()
		for k, c := range columns {
			line.Write(keys[k])
			encoder.Encode(c.Values[i])   // a buffer returns no error
			line.Truncate(line.Len() - 1) // remove the newline
		}
		if texts == nil {
			line.WriteString(id)
		} else {
			line.WriteByte('}')
		}
		line.WriteByte('\n')
		if _, err := w.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func checkID(line int, id string) error {
	if err := vectors.CheckID(id); err != nil {
		return fmt.Errorf("line %d, %.60q: %w", line, id, err)
	}
	return nil
}
