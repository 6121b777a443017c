package main

import (
	"cmp"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// readComments returns the prose in the comments of the Go files in fsys: the
// words of each paragraph, in order. All comments count, not only doc comments:
// that doubles the text, and the vectors are far better.
//
// What is repeated many times would be learned best, so licence headers,
// generated files and repeated paragraphs are left out. Vendored code is left
// out because it has other authors and licences, and testdata because its
// comments are input for tests.
func readComments(fsys fs.FS) ([][]string, error) {
	var text [][]string
	seen := make(map[string]bool)
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "vendor" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		found, err := paragraphs(name, src)
		if err != nil {
			return err
		}
		for _, p := range found {
			if seen[p] {
				continue
			}
			seen[p] = true
			text = append(text, words(p))
		}
		return nil
	})
	return text, err
}

// paragraphs returns the paragraphs, headings and list items of the comments of
// a Go file, without code blocks and bare URLs.
func paragraphs(name string, src []byte) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var found []string
	var p comment.Parser
	for _, group := range file.Comments {
		if group.Pos() < file.Package && group != file.Doc {
			continue // licence, build constraints
		}
		found = appendText(found, p.Parse(proseLines(group).Text()).Content)
	}
	return found, nil
}

var directive = regexp.MustCompile(`^//\S`)

// proseLines returns group without the lines that no space sets off from their
// slashes, which are directives or code that was commented out. Left in, the
// //sys lines of the system calls make timeval a neighbour of error.
func proseLines(group *ast.CommentGroup) *ast.CommentGroup {
	lines := slices.DeleteFunc(slices.Clone(group.List), func(c *ast.Comment) bool {
		return directive.MatchString(c.Text)
	})
	return &ast.CommentGroup{List: lines}
}

func appendText(found []string, blocks []comment.Block) []string {
	for _, block := range blocks {
		switch b := block.(type) {
		case *comment.Heading:
			found = append(found, plain(b.Text))
		case *comment.Paragraph:
			found = append(found, plain(b.Text))
		case *comment.List:
			for _, item := range b.Items {
				found = appendText(found, item.Content)
			}
		}
	}
	return found
}

// plain returns text without its markup.
func plain(text []comment.Text) string {
	var b strings.Builder
	for _, t := range text {
		switch t := t.(type) {
		case comment.Plain:
			b.WriteString(string(t))
		case comment.Italic:
			b.WriteString(string(t))
		case *comment.DocLink:
			b.WriteString(plain(t.Text))
		case *comment.Link:
			if !t.Auto { // an automatic link's text is the URL
				b.WriteString(plain(t.Text))
			}
		}
	}
	return b.String()
}

var word = regexp.MustCompile(`^([A-Za-z][a-z']*|[A-Z]+)$`)

// words returns the words of a paragraph in lower case. Numbers, and identifiers
// that are recognisable as such (maxLen, io.Reader, x86), are no words.
func words(paragraph string) []string {
	var found []string
	for f := range strings.FieldsFuncSeq(paragraph, separatesWords) {
		f = strings.TrimSuffix(strings.TrimFunc(f, isPunctuation), "'s")
		if word.MatchString(f) {
			found = append(found, strings.ToLower(f))
		}
	}
	return found
}

func separatesWords(r rune) bool { return unicode.IsSpace(r) || r == '-' || r == '/' }

// isPunctuation takes the underscore for part of an identifier.
func isPunctuation(r rune) bool {
	return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// vocabulary returns the n most frequent words of text, most frequent first and
// alphabetically where they are equally frequent.
func vocabulary(text [][]string, n int) []string {
	frequency := make(map[string]int)
	for _, paragraph := range text {
		for _, w := range paragraph {
			frequency[w]++
		}
	}
	words := slices.SortedFunc(maps.Keys(frequency), func(a, b string) int {
		return cmp.Or(cmp.Compare(frequency[b], frequency[a]), cmp.Compare(a, b))
	})
	return words[:min(n, len(words))]
}
