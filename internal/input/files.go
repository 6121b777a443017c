package input

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Member is one of the files of an input.
type Member struct {
	Path       string
	Name       string      // path below the folder or the fixed part of the pattern, with slashes; or the base name
	Partitions [][2]string // keys and values of the folders in Name that are named key=value
}

// Files returns the files that paths name. A path is a file, "-" for standard input, a folder for all data files
// below it, or a pattern of [filepath.Match] for the files and folders that match. Files of a folder are sorted
// by name, folder by folder. In folders and matches, Files skips names that begin with "." or "_", and the
// descriptions that Hugging Face datasets writes beside its tables. It returns an error if a folder can't be read,
// or if a file occurs twice, also under the name of a link.
func Files(paths []string) ([]Member, error) {
	var all []Member
	seen := make(seenFiles)
	for _, path := range paths {
		members, err := expand(path)
		if err != nil {
			return nil, pathError(path, err)
		}
		for _, m := range members {
			if err := seen.add(m.Path); err != nil {
				return nil, pathError(m.Path, err)
			}
			m.Partitions = partitions(m.Name)
			all = append(all, m)
		}
	}
	return all, nil
}

// seenFiles maps a size and a time to the files that have both. All names of a file have the same size and time.
type seenFiles map[[2]int64][]seenFile

type seenFile struct {
	path string
	info fs.FileInfo // nil for standard input
}

// add returns an error if the file was added before. A file that doesn't exist is not added: opening it returns the error.
func (s seenFiles) add(path string) error {
	file := seenFile{path: path}
	var key [2]int64
	if path != "-" {
		info, err := os.Stat(path)
		if err != nil {
			return nil
		}
		file.info, key = info, [2]int64{info.Size(), info.ModTime().UnixNano()}
	}
	for _, f := range s[key] {
		switch {
		case f.path == path:
			return errors.New("is named twice")
		case f.info != nil && file.info != nil && os.SameFile(f.info, file.info):
			return fmt.Errorf("is the same file as %s", f.path)
		}
	}
	s[key] = append(s[key], file)
	return nil
}

// Name returns the name of an input in messages: its path, or the first of several paths and the number of the others.
func Name(paths ...string) string {
	name := paths[0]
	if name == "-" {
		name = "stdin"
	}
	if len(paths) > 1 {
		name += fmt.Sprintf(" and %d more", len(paths)-1)
	}
	return name
}

// Repeatable reports whether the inputs that paths name can be read twice, because none is a pipe. A path
// that can't be examined counts as repeatable: reading it returns the error.
func Repeatable(paths []string) bool {
	for _, path := range paths {
		info, err := os.Stat(path)
		if path == "-" || err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

func expand(path string) ([]Member, error) {
	if path == "-" {
		return []Member{{Path: path, Name: "stdin"}}, nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		members, err := find(path, "", nil, nil)
		if err == nil && len(members) == 0 {
			err = errors.New("no data files in this folder (names that begin with . or _ are skipped)")
		}
		return members, err
	case err != nil && strings.ContainsAny(path, "*?["):
		return glob(path)
	}
	return []Member{{Path: path, Name: filepath.Base(path)}}, nil // opening a missing file returns the error
}

// glob returns the files that match a pattern or are below a matching folder. Unlike [filepath.Glob], it returns an
// error if a folder can't be read.
func glob(pattern string) ([]Member, error) {
	wildcards := `*?[`
	if filepath.Separator == '/' {
		wildcards += `\` // escapes a wildcard
	}
	fixed, _ := filepath.Split(pattern[:strings.IndexAny(pattern, wildcards)])
	elements := strings.FieldsFunc(pattern[len(fixed):], func(r rune) bool { return r < utf8.RuneSelf && os.IsPathSeparator(byte(r)) })
	for _, e := range elements {
		if _, err := filepath.Match(e, ""); err != nil {
			return nil, fmt.Errorf("is not a valid pattern: %w", err)
		}
	}
	all, err := find(cmp.Or(fixed, "."), "", elements, nil)
	if err == nil && len(all) == 0 {
		err = errors.New("the pattern matches no data files")
	}
	return all, err
}

// find returns the data files at or below a path. The argument name is the name of the path itself. Paths below must
// match the patterns in elements, if any. The parent folders are in parents: a link to one of them is an error.
func find(path, name string, elements []string, parents []fs.FileInfo) (all []Member, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil, !info.IsDir() && len(elements) > 0:
		return nil, err
	case info.IsDir():
	case !info.Mode().IsRegular():
		return nil, pathError(path, errNotRegular)
	default:
		return []Member{{Path: path, Name: name}}, nil
	}
	if len(elements) == 0 {
		if slices.ContainsFunc(parents, func(f fs.FileInfo) bool { return os.SameFile(f, info) }) {
			return nil, pathError(path, errors.New("is a link to one of its parent folders"))
		}
		parents = append(parents, info)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		skipped, rest := isSkipped(e.Name()), elements
		if len(elements) > 0 {
			matches, _ := filepath.Match(elements[0], e.Name()) // glob has checked the pattern
			skipped, rest = !matches || skipped && !isSkipped(elements[0]), elements[1:]
		}
		if skipped {
			continue
		}
		members, err := find(join(path, e.Name()), strings.TrimPrefix(name+"/"+e.Name(), "/"), rest, parents)
		if err != nil {
			return nil, err
		}
		all = append(all, members...)
	}
	return all, nil
}

// join returns the path of a name in a folder. If the folder's path has "..", join keeps it: after a link, ".." isn't
// the folder that [filepath.Join] assumes.
func join(folder, name string) string {
	if strings.Contains(folder, "..") {
		return strings.TrimSuffix(folder, string(filepath.Separator)) + string(filepath.Separator) + name
	}
	return filepath.Join(folder, name)
}

// isSkipped reports whether a file or folder with this name has no data. Hugging Face datasets, for example, describes
// its tables in such files and folders.
func isSkipped(name string) bool {
	switch name {
	case "dataset_info.json", "state.json", "dataset_dict.json":
		return true
	}
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// partitions returns the keys and values of the folders key=value in the path of a file, with percent-encoding
// decoded unless the result isn't UTF-8. It returns Hive's null as "".
func partitions(name string) (all [][2]string) {
	folders := strings.Split(name, "/")
	for _, folder := range folders[:len(folders)-1] {
		key, value, ok := strings.Cut(folder, "=")
		if !ok || key == "" {
			continue
		}
		if value == "__HIVE_DEFAULT_PARTITION__" {
			value = ""
		}
		all = append(all, [2]string{unescape(key), unescape(value)})
	}
	return all
}

// unescape decodes percent-encoding. If the result isn't UTF-8, it returns the result with percent-encoding.
func unescape(s string) string {
	plain, err := url.PathUnescape(s)
	if err != nil {
		plain = s
	}
	if !utf8.ValidString(plain) {
		return url.PathEscape(plain)
	}
	return plain
}
