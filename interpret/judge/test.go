// Package judge is the part of people in word intrusion tests (paper §4.1): the
// test that they are given and its key, the file that their answers go to, the page
// that they answer on, and how well they did.
//
// A test is two files. Judges see the questions, which say nothing about where
// their words come from, in random order. The key, which scoring needs, does.
package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Test is what judges see.
type Test struct {
	ID        string     `json:"test"` // hash of the questions, which ties key and answers to them
	Questions []Question `json:"questions"`
}

// Question asks for the word that does not belong with the others.
type Question struct {
	Number int      `json:"question"` // from 1
	Words  []string `json:"words"`
}

// Key is what judges don't see.
type Key struct {
	ID        string     `json:"test"` // that of the Test
	Seed      uint64     `json:"seed"` // that it was drawn from
	Questions []Solution `json:"questions"`
}

// Solution is a question with its answer and its origin.
type Solution struct {
	Question
	Intruder  string `json:"intruder"`  // one of the words
	Condition string `json:"condition"` // that is compared with others, such as X or A
	Source    string `json:"source"`    // the model, or file of vectors, of this dimension
	Dimension int    `json:"dimension"`
}

// NewKey numbers the questions in their order and ties the key to them.
func NewKey(questions []Solution, seed uint64) *Key {
	k := &Key{Seed: seed, Questions: questions}
	for i := range k.Questions {
		k.Questions[i].Number = i + 1
	}
	k.ID = k.Test().hash()
	return k
}

// Test returns what judges may see of the key.
func (k *Key) Test() *Test {
	t := &Test{ID: k.ID}
	for _, q := range k.Questions {
		t.Questions = append(t.Questions, q.Question)
	}
	return t
}

// hash returns 16 hexadecimal digits that depend on all questions.
func (t *Test) hash() string {
	text, _ := json.Marshal(t.Questions) // strings and numbers can be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// check returns an error if the test is not one that was made, in whole.
func (t *Test) check() error {
	switch {
	case t.ID == "" || len(t.Questions) == 0:
		return errors.New("holds no word intrusion test")
	case t.ID != t.hash():
		return errors.New("its questions have been changed since it was made")
	}
	for i, q := range t.Questions {
		if q.Number != i+1 || len(q.Words) != 5 {
			return fmt.Errorf("question %d has number %d and %d words, want %[1]d and 5", i+1, q.Number, len(q.Words))
		}
	}
	return nil
}

// ReadTest reads the questions of a test.
func ReadTest(path string) (*Test, error) {
	t := new(Test)
	if err := readJSON(path, t); err != nil {
		return nil, err
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// ReadKey reads the key of a test.
func ReadKey(path string) (*Key, error) {
	k := new(Key)
	if err := readJSON(path, k); err != nil {
		return nil, err
	}
	if err := k.Test().check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, q := range k.Questions {
		if q.Condition == "" || !slices.Contains(q.Words, q.Intruder) {
			return nil, fmt.Errorf("%s: question %d has no answer: is it a key?", path, q.Number)
		}
	}
	return k, nil
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: holds no word intrusion test: %w", path, err)
	}
	return nil
}
