package eval

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// readNPBracketing reads noun phrases of three words, which bracket to the left,
// "(blood pressure) medicine", or to the right, "local (phone company)". The file has
// a header line whose first field is Fold_id, then a line for each phrase:
//
//	fold<TAB>lemma-POS_lemma-POS_lemma-POS<TAB>L or R
//
// The features are the vectors of the three lemmas side by side. C is chosen by
// training on all folds but 0 and testing on fold 0. The score is the accuracy of
// cross-validation over the folds other than 0.
func readNPBracketing(name, path string) (Task, error) {
	var l labels
	p := newPart(path)
	folds := map[int][]int{} // texts
	header := true
	err := readLines(path, utf8Text, func(number int, line string) error {
		fields := strings.Split(line, "\t")
		if header {
			header = false
			if fields[0] != npHeader {
				return fmt.Errorf("begins with %q, want a header line that begins with %s", fields[0], npHeader)
			}
			return nil
		}
		if len(fields) != 3 {
			return fmt.Errorf("%d fields separated by tabs, want a fold, a phrase and L or R", len(fields))
		}
		fold, err := strconv.Atoi(strings.TrimSpace(fields[0]))
		if err != nil || fold < 0 {
			return fmt.Errorf("fold is %q, want a number from 0", fields[0])
		}
		words := strings.Split(strings.TrimSpace(fields[1]), "_")
		if len(words) != 3 {
			return fmt.Errorf("phrase %q has %d words, want three joined by _", fields[1], len(words))
		}
		for i, w := range words {
			if at := strings.LastIndexByte(w, '-'); at > 0 {
				words[i] = w[:at]
			}
		}
		bracketing := strings.TrimSpace(fields[2])
		if bracketing != "L" && bracketing != "R" {
			return fmt.Errorf("bracketing is %q, want L or R", bracketing)
		}
		folds[fold] = append(folds[fold], len(p.texts))
		p.add(text{l.of(bracketing), words}, number)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(folds) < 3 || folds[0] == nil {
		return nil, inputError(path, 0, errors.New("want fold 0 and two or more others"))
	}
	t, err := newTask(name, &l, []part{p}, func(*evaluation) split { return withFolds(folds) })
	if err != nil {
		return nil, err
	}
	t.layout = appended
	return t, nil
}

const npHeader = "Fold_id"

// withFolds chooses C on fold 0 and cross-validates over the others.
func withFolds(texts map[int][]int) split {
	var rest []int
	numbers := slices.Sorted(maps.Keys(texts))
	for _, n := range numbers[1:] {
		rest = append(rest, texts[n]...)
	}
	s := split{tune: []fold{{rest, texts[0]}}}
	for _, n := range numbers[1:] {
		train := slices.DeleteFunc(slices.Clone(rest), func(i int) bool { return slices.Contains(texts[n], i) })
		s.test = append(s.test, fold{train, texts[n]})
	}
	return s
}
