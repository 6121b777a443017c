package input

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// makeFiles creates empty files below a new folder. A name with an arrow is a link.
func makeFiles(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		name, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		if err == nil && isLink {
			err = os.Symlink(target, path)
		} else if err == nil {
			err = os.WriteFile(path, nil, 0o666)
		}
		testonly.Must(t, err)
	}
	return dir
}

func TestFiles(t *testing.T) {
	dir := makeFiles(t, "b/2.npy", "b/10.npy", "a", "_SUCCESS", ".crc", ".git/x", "_tmp/x", "c[1]", "link -> .crc", "dataset_dict.json", "b/state.json", "b/dataset_info.json", "y=%C3%A4%2Fb/x=__HIVE_DEFAULT_PARTITION__/z=/f")
	all := []string{"a", "b/10.npy", "b/2.npy", "c[1]", "link", "y=%C3%A4%2Fb/x=__HIVE_DEFAULT_PARTITION__/z=/f"}
	for _, tt := range []struct{ paths, names []string }{
		{[]string{""}, all},
		{[]string{"*"}, all},
		{[]string{"b"}, []string{"10.npy", "2.npy"}},
		{[]string{"b/2.npy", "a"}, []string{"2.npy", "a"}},
		{[]string{"?/*.npy"}, []string{"b/10.npy", "b/2.npy"}},
		{[]string{"*/*"}, []string{"b/10.npy", "b/2.npy", all[5]}},
		{[]string{".//b/../*/*.npy"}, all[1:3]},
		{[]string{"_*/*"}, []string{"_tmp/x"}},
		{[]string{"c[1]"}, []string{"c[1]"}},
		{[]string{"_*"}, []string{"_SUCCESS", "_tmp/x"}},
		{[]string{"none"}, []string{"none"}}, // opening it returns an error
		{[]string{"y=*/x=*"}, all[5:]},
		{[]string{"b*/2.npy"}, []string{"b/2.npy"}}, // a has no files below it
		{[]string{`c\[?\]`}, []string{"c[1]"}},
	} {
		paths := slices.Clone(tt.paths)
		for i, path := range paths {
			paths[i] = filepath.Join(dir, path)
		}
		members, err := Files(paths)
		var names []string
		for _, m := range members {
			names = append(names, m.Name)
			if !strings.HasPrefix(m.Path, dir) || !strings.HasSuffix(filepath.ToSlash(m.Path), m.Name) {
				t.Errorf("%s has the path %s", m.Name, m.Path)
			}
			if want := [][2]string{{"y", "ä/b"}, {"x", ""}, {"z", ""}}; m.Name == all[5] && !reflect.DeepEqual(m.Partitions, want) {
				t.Errorf("partitions %q, want %q", m.Partitions, want)
			}
		}
		if err != nil || !slices.Equal(names, tt.names) {
			t.Errorf("%q: %q, %v, want %q", tt.paths, names, err, tt.names)
		}
	}
}

// The parent folder of a link is the parent of its target.
func TestFilesAboveLinks(t *testing.T) {
	dir := makeFiles(t, "other/sub/x", "other/a.npy", "link -> other/sub", "a.npy")
	for _, path := range []string{"/link/..", "/link/../*.npy", "/l*/../a.npy"} {
		members, err := Files([]string{dir + path})
		if path == "/l*/../a.npy" { // as in filepath.Glob
			if err == nil {
				t.Errorf("%s: %+v", path, members)
			}
			continue
		}
		if err != nil || members[0].Path != dir+"/link/../a.npy" || members[0].Name != "a.npy" {
			t.Errorf("%s: %+v, %v", path, members, err)
		}
	}
}

func TestPartitions(t *testing.T) {
	for name, want := range map[string][][2]string{
		"k=v/f":                          {{"k", "v"}},
		"f=v":                            nil,
		"=v/k/f":                         nil,
		"k=1/k=2/f":                      {{"k", "1"}, {"k", "2"}},
		"k=__HIVE_DEFAULT_PARTITION__/f": {{"k", ""}},
		"k=a%20b/f":                      {{"k", "a b"}},
		"k=%zz/f":                        {{"k", "%zz"}},
		"k=%FF/k=%FE/k=\xff/f":           {{"k", "%FF"}, {"k", "%FE"}, {"k", "%FF"}},
	} {
		if got := partitions(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestFilesRefuses(t *testing.T) {
	dir := makeFiles(t, "empty/_SUCCESS", "empty/.crc", "loop/sub/a", "loop/sub/up -> ..", "self/a -> a", "gone/a -> none", "a.txt",
		"links/a", "links/b/z -> ../a", "dead/a/x.npy", "dead/b -> none")
	testonly.Must(t, os.Link(dir+"/a.txt", dir+"/hard"))
	for _, tt := range []struct{ paths, message string }{
		{"empty", "DIR/empty: no data files in this folder (names that begin with . or _ are skipped)"},
		{"none*", "DIR/none*: the pattern matches no data files"},
		{"[", "DIR/[: is not a valid pattern: syntax error in pattern"},
		{"loop", "DIR/loop/sub/up: is a link to one of its parent folders"},
		{"self", "DIR/self/a: too many levels of symbolic links"},
		{"gone", "DIR/gone/a: no such file or directory"},
		{"dead/*/*.npy", "DIR/dead/b: no such file or directory"},
		{"none/*.npy", "DIR/none/: no such file or directory"},
		{"a.txt ./a.txt", "DIR/./a.txt: is the same file as DIR/a.txt"},
		{"a.txt *.txt", "DIR/a.txt: is named twice"},
		{"links", "DIR/links/b/z: is the same file as DIR/links/a"},
		{"a.txt hard", "DIR/hard: is the same file as DIR/a.txt"},
	} {
		var paths []string
		for path := range strings.FieldsSeq(tt.paths) {
			paths = append(paths, dir+"/"+path)
		}
		_, err := Files(paths)
		if err == nil || !strings.HasSuffix(strings.ReplaceAll(err.Error(), dir, "DIR"), " "+tt.message) {
			t.Errorf("%s: error %v, want %q", tt.paths, err, tt.message)
		}
	}
}
