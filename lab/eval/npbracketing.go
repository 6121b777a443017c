package eval

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// readNPBracketing reads noun phrases of three words, which bracket to the left, "(blood pressure)
// medicine", or to the right, "local (phone company)". After a header line, which begins with
// Fold_id, the file has lines
//
//	fold<TAB>lemma-POS_lemma-POS_lemma-POS<TAB>L or R
//
// The features are the concatenated vectors of the lemmas.
func readNPBracketing(name, dir string) (Task, error) {
	p := newPart(filepath.Join(dir, "np-bracketing", "dataset.txt"))
	folds := map[int][]int{} // indices of texts, by fold
	header := true
	err := readLines(p.path, utf8Text, func(number int, line string) error {
		fields := strings.Split(line, "\t")
		if header {
			header = false
			if fields[0] != "Fold_id" {
				return fmt.Errorf("first field is %q, want a header line that begins with Fold_id", fields[0])
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
			if hyphen := strings.LastIndexByte(w, '-'); hyphen > 0 {
				words[i] = w[:hyphen]
			}
		}
		bracketing := strings.TrimSpace(fields[2])
		if bracketing != "L" && bracketing != "R" {
			return fmt.Errorf("bracketing is %q, want L or R", bracketing)
		}
		folds[fold] = append(folds[fold], len(p.texts))
		p.add(bracketing, words, number)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(folds) < 3 || folds[0] == nil {
		return nil, inputError(p.path, 0, errors.New("want fold 0 and two or more others"))
	}
	t, err := newTask(name, func(uint64) split { return withFolds(folds) }, p)
	if err != nil {
		return nil, err
	}
	t.concatenate = true
	return t, nil
}

// withFolds chooses C on fold 0 and tests by cross-validation on the other folds.
func withFolds(folds map[int][]int) split {
	numbers := slices.Sorted(maps.Keys(folds))[1:]
	var others []int
	for _, n := range numbers {
		others = append(others, folds[n]...)
	}
	s := split{tune: []fold{{others, folds[0]}}}
	for _, n := range numbers {
		train := slices.DeleteFunc(slices.Clone(others), func(i int) bool { return slices.Contains(folds[n], i) })
		s.test = append(s.test, fold{train, folds[n]})
	}
	return s
}
