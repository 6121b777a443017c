package input

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// A Member is one of the files of an input.
type Member struct {
	Path       string
	Name       string      // path below the folder or the fixed part of the pattern, with slashes; or the base name
	Partitions [][2]string // keys and values of the folders in Name that are named key=value
}

// Files returns the files that paths name. A path is a file, "-" for standard input, a folder for all data files
// below it, or a pattern of [filepath.Glob] for the files and folders that match. Files of a folder are sorted
// by name, folder by folder. In folders and matches, Files skips names that begin with "." or "_", and the
// descriptions that Hugging Face datasets writes beside its tables.
func Files(paths []string) ([]Member, error) {
	var all []Member
	seen := map[string]bool{}
	for _, path := range paths {
		members, err := expand(path)
		if err != nil {
			return nil, pathError(path, err)
		}
		for _, m := range members {
			if seen[filepath.Clean(m.Path)] {
				return nil, pathError(m.Path, errors.New("is named twice"))
			}
			seen[filepath.Clean(m.Path)] = true
			m.Partitions = partitions(m.Name)
			all = append(all, m)
		}
	}
	return all, nil
}

// Name returns the name of an input in messages: its path, or the first of several and their number.
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
		members, err := walk(path, "", info, nil)
		if err == nil && len(members) == 0 {
			err = errors.New("no data files in this folder (names that begin with . or _ are skipped)")
		}
		return members, err
	case err != nil && strings.ContainsAny(path, "*?["):
		return glob(path)
	}
	return []Member{{Path: path, Name: filepath.Base(path)}}, nil // opening a missing file returns the error
}

// glob returns the files that match a pattern or are below a matching folder.
func glob(pattern string) (all []Member, err error) {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("is not a valid pattern: %w", err)
	}
	elements := splitPath(pattern)
	fixed := filepath.Dir(pattern[:strings.IndexAny(pattern, "*?[")] + "x")
	for _, path := range matches {
		skipped := false
		for i, e := range splitPath(path) {
			skipped = skipped || isSkipped(e) && !isSkipped(elements[i]) // a match has as many elements as the pattern
		}
		if skipped {
			continue
		}
		name, err := filepath.Rel(fixed, path)
		if err != nil {
			return nil, err
		}
		members, err := visit(path, filepath.ToSlash(name), nil)
		if err != nil {
			return nil, err
		}
		all = append(all, members...)
	}
	if len(all) == 0 {
		err = errors.New("the pattern matches no data files")
	}
	return all, err
}

func splitPath(path string) []string {
	return strings.Split(filepath.Clean(path), string(filepath.Separator))
}

// walk returns the data files below a folder. Its parent folders are in above.
func walk(path, name string, folder fs.FileInfo, above []fs.FileInfo) (all []Member, err error) {
	for _, f := range above {
		if os.SameFile(f, folder) {
			return nil, pathError(path, errors.New("is a link to one of its parent folders"))
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	above = append(above, folder)
	for _, e := range entries {
		if isSkipped(e.Name()) {
			continue
		}
		members, err := visit(filepath.Join(path, e.Name()), strings.TrimPrefix(name+"/"+e.Name(), "/"), above)
		if err != nil {
			return nil, err
		}
		all = append(all, members...)
	}
	return all, nil
}

// visit returns a file, or the data files below a folder.
func visit(path, name string, above []fs.FileInfo) ([]Member, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return walk(path, name, info, above)
	case !info.Mode().IsRegular():
		return nil, pathError(path, errNotRegular)
	}
	return []Member{{Path: path, Name: name}}, nil
}

// isSkipped reports whether a folder's file or folder has no data, such as those in which Hugging Face datasets describes
// the tables beside them.
func isSkipped(name string) bool {
	switch name {
	case "dataset_info.json", "state.json", "dataset_dict.json":
		return true
	}
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// partitions returns the keys and values of the folders key=value in the path of a file, with percent-encoding
// decoded. It returns Hive's null as "".
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

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
