package eval

import (
	"errors"
	"path/filepath"
	"strings"
)

// readTREC reads the TREC questions from the files raw.TREC.train and raw.TREC.test of
// a directory. They are in Latin-1 and have a line "CLASS:kind tokens" for each
// question. The six coarse classes are the labels. As there are no development
// questions, C is chosen by five-fold cross-validation on the training questions.
func readTREC(name, dir string) (Task, error) {
	var l labels
	var parts []part
	for _, file := range []string{"train", "test"} {
		p, err := readLabelled(filepath.Join(dir, "raw.TREC."+file), latin1Text, &l, func(line string) (string, string, error) {
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
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return newTask(name, &l, parts, withCrossValidation(len(parts[0].texts), len(parts[1].texts)))
}
