package eval

import (
	"errors"
	"strings"
)

// ReadLabelled reads a task of the user's own. A file has a line "label<TAB>text" for
// each text; tokens are separated by white space. With two paths, the files are for
// training and test, and C is chosen by five-fold cross-validation on the training
// texts. With three, they are for training, development and test, and C is chosen by
// the accuracy on the development texts.
func ReadLabelled(name string, paths []string) (Task, error) {
	var l labels
	var parts []part
	for _, path := range paths {
		p, err := readLabelled(path, utf8Text, &l, func(line string) (string, string, error) {
			label, rest, tab := strings.Cut(line, "\t")
			if !tab || label == "" {
				return "", "", errors.New("want a label, a tab and a text")
			}
			return label, rest, nil
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
