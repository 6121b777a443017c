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

// readComments returns the paragraphs of all comments of the Go files in fsys, as words in order.
// Vendored code is left out because it has other authors and licences, testdata because its comments
// are input of tests, and repeated paragraphs because they would be learned best.
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
		for _, p := range found {
			if !seen[p] {
				seen[p] = true
				text = append(text, words(p))
			}
		}
		return err
	})
	return text, err
}

// directive matches a directive, such as //sys of the system calls, or code that was commented out.
var directive = regexp.MustCompile(`^//\S`)

// paragraphs returns the paragraphs, headings and list items of a Go file's comments, without code,
// directives, licences and bare URLs.
func paragraphs(name string, src []byte) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	var found []string
	var p comment.Parser
	for _, group := range file.Comments {
		if group.Pos() < file.Package && group != file.Doc {
			continue // licence, build constraints
		}
		group.List = slices.DeleteFunc(group.List, func(c *ast.Comment) bool { return directive.MatchString(c.Text) })
		found = appendText(found, p.Parse(group.Text()).Content)
	}
	return found, nil
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

// plain returns text without markup and without automatic links, whose text is the URL.
func plain(text []comment.Text) (s string) {
	for _, t := range text {
		switch t := t.(type) {
		case comment.Plain:
			s += string(t)
		case comment.Italic:
			s += string(t)
		case *comment.DocLink:
			s += plain(t.Text)
		case *comment.Link:
			if !t.Auto {
				s += plain(t.Text)
			}
		}
	}
	return s
}

var word = regexp.MustCompile(`^([A-Za-z][a-z']*|[A-Z]+)$`)

// words returns the words of a paragraph in lower case, without numbers and recognisable identifiers
// (maxLen, io.Reader, x86, _test).
func words(paragraph string) (found []string) {
	separates := func(r rune) bool { return unicode.IsSpace(r) || r == '-' || r == '/' }
	isPunctuation := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for f := range strings.FieldsFuncSeq(paragraph, separates) {
		f = strings.TrimSuffix(strings.TrimFunc(f, isPunctuation), "'s")
		if word.MatchString(f) {
			found = append(found, strings.ToLower(f))
		}
	}
	return found
}

// vocabulary returns the n most frequent words of text, most frequent first, ties in alphabetical order.
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
