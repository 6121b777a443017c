package vectors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/vectors/internal/tabular"
)

// A File is one of several files of an input.
type File struct {
	Name   string `json:"name"`   // base name of a named file; otherwise the path, with slashes, below the named folder or the fixed part of the pattern
	SHA256 string `json:"sha256"` // of the file's bytes as stored, in hexadecimal
	Rows   int    `json:"rows"`   // number of valid rows
}

func findFiles(paths []string) ([]input.Member, error) {
	if len(paths) == 0 {
		return nil, &InputError{Err: errors.New("no file of vectors is named")}
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() && modeldir.Contains(filepath.Join(path, modeldir.Info)) {
			return nil, inputError(path, errors.New("is a model, not dense vectors; export its codes in a dense format first"))
		}
	}
	members, err := input.Files(paths)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, inputError(at.Path, err)
	}
	return members, err
}

// A schema describes a file for messages: its format, vector length and columns. All files of an input must have
// the same schema.
type schema struct {
	file  string
	parts []string
}

// checkSchema returns an error unless the file with heading h has the schema of the first file. Each folder named
// key=value adds a column named key. If another column, the ids or the texts have that name, underscores are appended.
func (r *reader) checkSchema(h heading) error {
	s := schema{input.Name(r.Path), []string{"format " + h.format}}
	var columns []string
	if r.table == nil {
		s.parts = append(s.parts, vectorsOf(r.dim))
	} else {
		s.parts = append(s.parts, r.table.Schema()...)
		columns = r.table.Others()
	}
	if r.list != nil {
		columns = nil
		if r.list.table != nil {
			columns = r.list.table.Others()
		}
	}
	for _, p := range r.Partitions {
		s.parts = append(s.parts, fmt.Sprintf("folder %.60q", p[0]+"=…"))
		columns, r.values = append(columns, tabular.FreeName(p[0], columns)), append(r.values, p[1])
	}
	if r.schema.parts == nil {
		r.schema, r.columns, r.source.Format = s, columns, h.format
		switch {
		case r.table != nil:
			r.describe = r.table.Describe
		case r.list != nil && r.list.table != nil:
			r.describe = r.list.describe
		}
		return nil
	}
	return s.compare(r.schema)
}

// checkLength returns an error unless n is the vector length of the previous files.
func (r *reader) checkLength(n int) error {
	s := schema{input.Name(r.Path), []string{vectorsOf(n)}}
	return s.compare(schema{r.schema.file, []string{vectorsOf(r.dim)}})
}

func vectorsOf(n int) string { return fmt.Sprintf("vectors of %d numbers", n) }

// compare returns an error unless s and first have the same parts in the same order.
func (s schema) compare(first schema) error {
	if slices.Equal(s.parts, first.parts) {
		return nil
	}
	lacks := func(parts []string) func(part string) bool {
		return func(part string) bool { return !slices.Contains(parts, part) }
	}
	more, less := slices.IndexFunc(s.parts, lacks(first.parts)), slices.IndexFunc(first.parts, lacks(s.parts))
	difference := "its columns are not in the order of " + first.file
	switch {
	case more >= 0 && less >= 0:
		difference = fmt.Sprintf("has %s, but %s has %s", s.parts[more], first.file, first.parts[less])
	case more >= 0:
		difference = fmt.Sprintf("has %s, which %s lacks", s.parts[more], first.file)
	case less >= 0:
		difference = fmt.Sprintf("lacks %s, which %s has", first.parts[less], first.file)
	}
	return fmt.Errorf("%s: all files of an input must have the same schema", difference)
}
