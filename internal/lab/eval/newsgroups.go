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

// newsgroups is a task of telling posts of two groups of 20 Newsgroups apart.
type newsgroups struct {
	groups [2]string // names of their folders
	held   int       // training posts that are held out to choose C
}

// The paper's three pairs of groups, with its numbers of held-out posts.
var (
	sports   = newsgroups{[2]string{"rec.sport.baseball", "rec.sport.hockey"}, 239}
	computer = newsgroups{[2]string{"comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"}, 239}
	religion = newsgroups{[2]string{"alt.atheism", "soc.religion.christian"}, 209}
)

var newsgroupToken = regexp.MustCompile(`[A-Za-z0-9']+`)

// read reads posts from the folders 20news-bydate-train and 20news-bydate-test of the
// folder 20news-bydate of dir, which have a folder for each group and in it a file for
// each post. The header of a post, up to the first blank line, is dropped, because it
// names the group. The rest is read as Latin-1; tokens are the matches of
// [A-Za-z0-9']+. To choose C, the training posts are shuffled and the last g.held of
// them are held out.
func (g newsgroups) read(name, dir string) (Task, error) {
	var l labels
	var parts []part
	for _, folder := range []string{"20news-bydate-train", "20news-bydate-test"} {
		p := newPart(filepath.Join(dir, "20news-bydate", folder))
		for _, group := range g.groups {
			posts, err := readPosts(filepath.Join(p.path, group), l.of(group))
			if err != nil {
				return nil, err
			}
			for _, post := range posts {
				p.add(post, 0)
			}
		}
		parts = append(parts, p)
	}
	train := len(parts[0].texts)
	if train <= g.held {
		return nil, inputError(parts[0].path, 0, fmt.Errorf("%d posts of %s and %s, of which %d are to be held out", train, g.groups[0], g.groups[1], g.held))
	}
	return newTask(name, &l, parts, withHeldOut(train, g.held, len(parts[1].texts)))
}

func readPosts(dir string, label int) ([]text, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, unreadable(dir, err)
	}
	var posts []text
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // what file managers leave
		}
		data, err := readFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
		body, found := bytes.CutPrefix(data, []byte("\n")) // no header
		if !found {
			_, body, found = bytes.Cut(data, []byte("\n\n"))
		}
		if !found {
			return nil, inputError(filepath.Join(dir, entry.Name()), 0, errors.New("no blank line ends the header of the post"))
		}
		posts = append(posts, text{label, newsgroupToken.FindAllString(string(body), -1)})
	}
	return posts, nil
}
