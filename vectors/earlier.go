package vectors

import (
	"os"

	"overcomplete/internal/input"
)

// A reading records the files and the repeated names of a [Source], so that a second reading need not hash the files
// and compare their names.
type reading struct {
	files    map[string]fileState // files of vectors and the word list, by path
	repeated []int                // numbers, from 1, of the rows that repeat a word or id
}

// A fileState identifies the content of a file.
type fileState struct {
	info   os.FileInfo
	sha256 string
}

// sameFile reports whether two descriptions of a file have the same inode, size and time.
func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// findEarlier sets r.earlier if the earlier reading read the same files, and no file has changed since.
func (r *reader) findEarlier(members []input.Member) {
	if r.options.Earlier == nil {
		return
	}
	paths := []string{r.options.WordList}
	for _, m := range members {
		paths = append(paths, m.Path)
	}
	if paths[0] == "" {
		paths = paths[1:]
	}
	e := r.options.Earlier.reading
	for _, path := range paths {
		info, err := os.Stat(path)
		was, ok := e.files[path]
		if err != nil || !ok || !info.Mode().IsRegular() || !sameFile(was.info, info) {
			return
		}
	}
	if len(paths) == len(e.files) {
		r.earlier, r.source.reading.repeated = e, e.repeated
	}
}

// sum returns the SHA-256 of a file, and records the file in r.source.
func (r *reader) sum(f *storedFile) (string, error) {
	sum, err := f.sum()
	if r.source.reading.files == nil {
		r.source.reading.files = map[string]fileState{}
	}
	r.source.reading.files[f.file.Name()] = fileState{f.info, sum}
	return sum, err
}
