// Package judge lets people take word intrusion tests (paper §4.1). It has the files of
// a test, its key and the answers, a web page to answer on, and the scores.
//
// A test is two files. Judges get the questions, in random order and without a hint of
// where their words are from. The key says where they are from and which answers are
// right; only scoring needs it.
package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"overcomplete/internal/input"
)

// Test is the part of a test that judges see.
type Test struct {
	ID        string     `json:"test"` // a hash of the questions, by which key and answers refer to them
	Questions []Question `json:"questions"`
}

// Question asks for the word that does not belong with the others.
type Question struct {
	Number int      `json:"question"` // from 1
	Words  []string `json:"words"`
}

// Key is the part of a test that judges do not see.
type Key struct {
	ID        string     `json:"test"` // the Test's
	Seed      uint64     `json:"seed"` // of the random numbers that the questions were drawn with
	Questions []Solution `json:"questions"`
}

// Solution is a question with its answer and where it is from.
type Solution struct {
	Question
	Intruder  string `json:"intruder"`  // one of the words
	Condition string `json:"condition"` // the name of the vectors, such as X or A, in comparisons
	Source    string `json:"source"`    // the model or file that these vectors are from
	Dimension int    `json:"dimension"`
}

// NewKey returns the key of a test with these questions, which it numbers from 1 in the
// order given.
func NewKey(questions []Solution, seed uint64) *Key {
	k := &Key{Seed: seed, Questions: questions}
	for i := range k.Questions {
		k.Questions[i].Number = i + 1
	}
	k.ID = k.Test().hash()
	return k
}

// Test returns the part of the test that judges may see.
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

// ReadTest reads a [Test] from a JSON file. It is an error if the file holds none, or
// one that was changed.
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

// ReadKey reads a [Key] from a JSON file. It is an error if the file holds none, or one
// that was changed.
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

// mostBytes is more than a test, a key or a file of answers has, with thousands of
// questions and of judges.
const mostBytes = 1 << 26

func readJSON(path string, v any) error {
	text, err := input.Read(path, mostBytes)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: holds no word intrusion test: %.200v", path, err)
	}
	return nil
}
