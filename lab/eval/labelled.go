package eval

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// A part holds the texts of one file or folder.
type part struct {
	path  string
	texts []text
	first map[string]int // by label: line number of its first text; 0 in folders
}

func newPart(path string) *part { return &part{path: path, first: map[string]int{}} }

func (p *part) add(label string, tokens []string, line int) {
	if _, seen := p.first[label]; !seen {
		p.first[label] = line
	}
	p.texts = append(p.texts, text{label, tokens})
}

// newTask returns a task of parts in the order training, development, test. All parts must have the same labels.
func newTask(name string, split func(seed uint64) split, parts ...*part) (*classification, error) {
	t := &classification{name: name, path: parts[0].path, classes: map[string]int{}, split: split}
	for _, p := range parts {
		if len(p.texts) == 0 {
			return nil, inputError(p.path, 0, errors.New("no texts"))
		}
		for _, text := range p.texts {
			for _, other := range parts {
				if _, ok := other.first[text.label]; !ok {
					return nil, inputError(p.path, p.first[text.label], fmt.Errorf("label %q is missing in %s; all parts of %s need the same labels", text.label, other.path, name))
				}
			}
			if _, seen := t.classes[text.label]; !seen {
				t.classes[text.label] = len(t.classes)
			}
		}
		t.texts = append(t.texts, p.texts...)
	}
	if len(t.classes) < 2 {
		return nil, inputError(t.path, 0, fmt.Errorf("all texts have the label %q, want two labels or more", t.texts[0].label))
	}
	return t, nil
}

// A lineParser splits a line into its label and its text, whose tokens are separated by white space.
type lineParser func(line string) (label, text string, err error)

// readSentiment reads the binary Stanford Sentiment Treebank, in lines "0 tokens" or "1 tokens".
func readSentiment(name, dir string) (Task, error) {
	file := filepath.Join(dir, "sst2", "stsa.binary.")
	return readLabelled(name, []string{file + "train", file + "dev", file + "test"}, utf8Text, func(line string) (string, string, error) {
		label, text, _ := strings.Cut(line, " ")
		if label != "0" && label != "1" {
			return "", "", fmt.Errorf("label is %q, want 0 or 1", label)
		}
		return label, text, nil
	})
}

// readTREC reads the TREC questions, in lines "CLASS:kind tokens" in Latin-1. The six classes are
// the labels.
func readTREC(name, dir string) (Task, error) {
	file := filepath.Join(dir, "trec", "raw.TREC.")
	return readLabelled(name, []string{file + "train", file + "test"}, latin1Text, func(line string) (string, string, error) {
		class, rest, colon := strings.Cut(line, ":")
		if !colon || class == "" || strings.ContainsAny(class, " \t") {
			return "", "", errors.New("want a line that begins with CLASS:kind")
		}
		if i := strings.IndexAny(rest, " \t"); i >= 0 {
			return class, rest[i:], nil
		}
		return class, "", nil
	})
}

// readLabelled reads a classification task from two files (training, test) or from three (training, development, test).
// C is chosen on the development texts. Without them, it is chosen by five-fold cross-validation on the training texts.
func readLabelled(name string, paths []string, decode encoding, parse lineParser) (Task, error) {
	var parts []*part
	for _, path := range paths {
		p := newPart(path)
		err := readLines(path, decode, func(number int, line string) error {
			label, text, err := parse(line)
			if err == nil {
				p.add(label, strings.Fields(text), number)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	train, test := len(parts[0].texts), len(parts[len(parts)-1].texts)
	if len(parts) == 3 {
		return newTask(name, withDevelopment(train, len(parts[1].texts), test), parts...)
	}
	return newTask(name, withCrossValidation(train, test), parts...)
}
