package eval

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// A cut takes the label off a line. The rest is a text, with white space between its tokens.
type cut func(line string) (label, rest string, err error)

// ReadLabelled reads a task of the user's own. A file has a line "label<TAB>text" for
// each text; tokens are separated by white space. With two paths, the files are for
// training and test, and C is chosen by five-fold cross-validation on the training
// texts. With three, they are for training, development and test, and C is chosen by
// the accuracy on the development texts.
func ReadLabelled(name string, paths []string) (Task, error) {
	return readLabelled(name, paths, utf8Text, func(line string) (string, string, error) {
		label, rest, tab := strings.Cut(line, "\t")
		if !tab || label == "" {
			return "", "", errors.New("want a label, a tab and a text")
		}
		return label, rest, nil
	})
}

// readSentiment reads the binary Stanford Sentiment Treebank from the files
// stsa.binary.train, .dev and .test of a directory. They have a line "0 tokens" or
// "1 tokens" for each sentence. C is chosen by the accuracy on .dev, which is never
// trained on.
func readSentiment(name, dir string) (Task, error) {
	file := filepath.Join(dir, "stsa.binary.")
	return readLabelled(name, []string{file + "train", file + "dev", file + "test"}, utf8Text, func(line string) (string, string, error) {
		label, rest, _ := strings.Cut(line, " ")
		if label != "0" && label != "1" {
			return "", "", fmt.Errorf("label is %q, want 0 or 1", label)
		}
		return label, rest, nil
	})
}

// readTREC reads the TREC questions from the files raw.TREC.train and raw.TREC.test of
// a directory. They are in Latin-1 and have a line "CLASS:kind tokens" for each
// question. The six coarse classes are the labels. As there are no development
// questions, C is chosen by five-fold cross-validation on the training questions.
func readTREC(name, dir string) (Task, error) {
	file := filepath.Join(dir, "raw.TREC.")
	return readLabelled(name, []string{file + "train", file + "test"}, latin1Text, func(line string) (string, string, error) {
		first, rest := line, ""
		if i := strings.IndexAny(line, " \t"); i >= 0 {
			first, rest = line[:i], line[i:]
		}
		class, _, fine := strings.Cut(first, ":")
		if !fine || class == "" {
			return "", "", errors.New("does not begin with CLASS:kind")
		}
		return class, rest, nil
	})
}

// readLabelled reads a task from files of a text a line: for training and test, or for training,
// development and test.
func readLabelled(name string, paths []string, decode encoding, cut cut) (Task, error) {
	var l labels
	var parts []part
	for _, path := range paths {
		p := newPart(path)
		err := readLines(path, decode, func(number int, line string) error {
			label, rest, err := cut(line)
			if err == nil {
				p.add(text{l.of(label), strings.Fields(rest)}, number)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if len(parts) == 3 {
		return newTask(name, &l, parts, withDevelopment(len(parts[0].texts), len(parts[1].texts), len(parts[2].texts)))
	}
	return newTask(name, &l, parts, withCrossValidation(len(parts[0].texts), len(parts[1].texts)))
}
