package eval

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// newsgroups is a task that classifies posts of two groups of 20 Newsgroups.
type newsgroups struct {
	groups  [2]string // folder names
	heldOut int       // number of training posts on which C is chosen
}

// The paper's pairs of groups, with its numbers of held-out posts.
var (
	sports   = newsgroups{[2]string{"rec.sport.baseball", "rec.sport.hockey"}, 239}
	computer = newsgroups{[2]string{"comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"}, 239}
	religion = newsgroups{[2]string{"alt.atheism", "soc.religion.christian"}, 209}
)

var newsgroupToken = regexp.MustCompile(`[A-Za-z0-9']+`)

// read reads posts, one per file, from the folders 20news-bydate/20news-bydate-train/GROUP and
// 20news-bydate/20news-bydate-test/GROUP in dir.
func (g newsgroups) read(name, dir string) (Task, error) {
	var parts []*part
	for _, folder := range []string{"20news-bydate-train", "20news-bydate-test"} {
		p := newPart(filepath.Join(dir, "20news-bydate", folder))
		for _, group := range g.groups {
			if err := p.readPosts(group); err != nil {
				return nil, err
			}
		}
		parts = append(parts, p)
	}
	train := len(parts[0].texts)
	if train <= g.heldOut {
		return nil, inputError(parts[0].path, 0, fmt.Errorf("%d posts of %s and %s, want more than the %d held out", train, g.groups[0], g.groups[1], g.heldOut))
	}
	return newTask(name, withHeldOut(train, g.heldOut, len(parts[1].texts)), parts...)
}

// readPosts adds the posts of a group, read as Latin-1. It drops the header, which names the group and ends at the
// first blank line.
func (p *part) readPosts(group string) error {
	dir := filepath.Join(p.path, group)
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return unreadable(dir, err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") { // file managers write such files
			continue
		}
		path := filepath.Join(dir, entry.Name())
		data, err := readFile(path)
		if err != nil {
			return err
		}
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
		body, found := bytes.CutPrefix(data, []byte("\n")) // an empty header
		if !found {
			_, body, found = bytes.Cut(data, []byte("\n\n"))
		}
		if !found {
			return inputError(path, 0, errors.New("no blank line after the header of the post"))
		}
		p.add(group, newsgroupToken.FindAllString(string(body), -1), 0)
	}
	return nil
}
