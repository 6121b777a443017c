package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"overcomplete/testonly"
)

var (
	code         = regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$")
	link         = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
)

// Every link in a document points to a file of the project and, with a fragment, to one of its headings.
func TestLinks(t *testing.T) {
	links := 0
	for _, path := range files(t, ".md") {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, path), ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			links++
			file, fragment, _ := strings.Cut(match[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: broken link: no such file (got %s)", path, match[1])
			} else if fragment != "" && !anchors(read(t, target))[fragment] {
				t.Errorf("%s: broken link: no such heading (got %s)", path, match[1])
			}
		}
	}
	if links == 0 {
		t.Error("no links found")
	}
}

// Each guarantee names the tests that check it, which exist.
func TestGuarantees(t *testing.T) {
	const page = "docs/reference/guarantees.md"
	tests := map[string]bool{}
	for _, path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			for _, match := range testFunction.FindAllStringSubmatch(read(t, path), -1) {
				tests[match[1]] = true
			}
		}
	}
	guarantees, _, _ := strings.Cut(read(t, page), "## Not guaranteed")
	_, guarantees, _ = strings.Cut(guarantees, "\n## ")
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	for _, match := range named.FindAllStringSubmatch(guarantees, -1) {
		if !tests[match[1]] {
			t.Errorf("%s: no such test (got %s)", page, match[1])
		}
	}
	promise := regexp.MustCompile(`^(- |\w)[^|]*\.\s*$`) // no heading and no table
	guarantees, _, _ = strings.Cut(guarantees, "## How it is tested")
	paragraphs := strings.ReplaceAll(guarantees, "\n- ", "\n\n- ")
	for paragraph := range strings.SplitSeq(paragraphs, "\n\n") {
		if promise.MatchString(paragraph) && !named.MatchString(paragraph) {
			t.Errorf("%s: no test is named after: %s", page, paragraph)
		}
	}
}

// files returns the paths of the project's files with one of the given extensions. Commands that run meanwhile may create
// and remove folders.
func files(t *testing.T, extensions ...string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err == nil && d.IsDir() && (name == "build" || len(name) > 1 && name[0] == '.'):
			return fs.SkipDir
		case slices.Contains(extensions, filepath.Ext(path)):
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(testonly.ReadFile(t, path))
}

// anchors returns the fragments of a document's headings as GitHub derives them: lower case, hyphens for
// spaces, no punctuation.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, match[1])] = true
	}
	return found
}

// Programs and their output in the documents equal the examples, which tests run.
func TestPrograms(t *testing.T) {
	for page, example := range map[string]string{"docs/guides/encode.md": "encode/example_test.go", "docs/guides/go.md": "example_test.go"} {
		// Examples run in the folders of their packages.
		source := strings.ReplaceAll(read(t, example), `"../testdata`, `"testdata`)
		_, source, _ = strings.Cut(source, "\nfunc Example() {\n")
		body, output, _ := strings.Cut(source, "\t// Output:\n")
		output, _, found := strings.Cut(output, "}\n")
		if !found {
			t.Fatalf("%s: no example with output", example)
		}
		text := read(t, page)
		if body = strings.TrimPrefix(strings.ReplaceAll("\n"+body, "\n\t", "\n"), "\n"); !strings.Contains(text, "```go\n"+body+"```\n") {
			t.Errorf("%s lacks this program:\n%s", page, body)
		}
		if output = strings.ReplaceAll(output, "\t// ", ""); !strings.Contains(text, "```\n"+output+"```\n") {
			t.Errorf("%s lacks this output:\n%s", page, output)
		}
	}
}
