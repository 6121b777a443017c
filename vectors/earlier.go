package vectors

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"overcomplete/internal/input"
)

// A reading records the files and the repeated names of a [Source], so that a second reading need not hash the files
// and compare their names.
type reading struct {
	last     *storedFile          // the last file, until it is hashed
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

// findEarlier sets r.earlier if the earlier reading read the same files, and none has changed since.
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

// sum returns the SHA-256 of a file, and records the file in the source.
func (s *Source) sum(f *storedFile) (string, error) {
	sum, err := f.sum()
	if s.reading.files == nil {
		s.reading.files = map[string]fileState{}
	}
	s.reading.files[f.path] = fileState{f.info, sum}
	return sum, err
}

// Hash waits until the last file is hashed, which takes a second per GB or two, and completes SHA256 and Files. It returns
// an error if the file has changed since it was opened. [Read] calls Hash, unless [ReadOptions].Keep leaves out rows.
// The caller of [Stream] must call it.
func (s *Source) Hash() error {
	if s.reading.last == nil {
		return nil
	}
	sum, err := s.hashLast()
	if err != nil {
		return err
	}
	if n := len(s.Files); n > 0 {
		s.Files[n-1].SHA256 = sum
	}
	if s.SHA256 = sum; len(s.Files) > 1 {
		all := sha256.New()
		for _, f := range s.Files {
			fmt.Fprintln(all, f.SHA256)
		}
		s.SHA256 = hex.EncodeToString(all.Sum(nil))
	}
	return nil
}

// hashLast waits until the last file is hashed, and closes it.
func (s *Source) hashLast() (sum string, err error) {
	last := s.reading.last
	defer last.Close()
	if sum, err = s.sum(last); err != nil {
		return "", cmp.Or(last.ctx.Err(), inputError(last.path, err))
	}
	s.reading.last = nil
	return sum, nil
}
