package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Answer is a judge's answer to a question.
type Answer struct {
	Test   string `json:"test"` // its ID
	Judge  string `json:"judge"`
	Number int    `json:"question"`
	Word   string `json:"word"` // that does not belong
}

// Answers is a file of answers, JSON, one a line. Several judges may answer at the
// same time; a judge who comes back goes on where they stopped.
type Answers struct {
	test  *Test
	mu    sync.Mutex
	file  *os.File
	given map[string]map[int]bool // questions that each judge has answered
	err   error                   // that a write failed with, perhaps halfway
}

// OpenAnswers opens the answers to a test, or begins a file of them.
func OpenAnswers(path string, t *Test) (*Answers, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	a := &Answers{test: t, file: file, given: make(map[string]map[int]bool)}
	var answers []Answer
	text, err := io.ReadAll(file)
	if err == nil {
		answers, err = parse(path, text, t)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	for _, answer := range answers {
		a.note(answer)
	}
	return a, nil
}

func (a *Answers) note(answer Answer) {
	if a.given[answer.Judge] == nil {
		a.given[answer.Judge] = make(map[int]bool)
	}
	a.given[answer.Judge][answer.Number] = true
}

// Close closes the file.
func (a *Answers) Close() error { return a.file.Close() }

// Next returns the first question that a judge has not answered, nil if there is
// none, and how many they have answered.
func (a *Answers) Next(judge string) (q *Question, answered int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	given := a.given[judge]
	for i, q := range a.test.Questions {
		if !given[q.Number] {
			return &a.test.Questions[i], len(given)
		}
	}
	return nil, len(given)
}

// ErrAnswered is returned for a question that the judge has answered before.
var ErrAnswered = errors.New("this question has been answered before")

// Add checks an answer and has it on disk when it returns. Its Test is set.
func (a *Answers) Add(answer Answer) error {
	answer.Test = a.test.ID
	if err := answer.check(a.test); err != nil {
		return err
	}
	line, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given[answer.Judge][answer.Number] {
		return ErrAnswered
	}
	if a.err != nil {
		return a.err
	}
	if _, a.err = a.file.Write(line); a.err == nil {
		a.err = a.file.Sync()
	}
	if a.err == nil {
		a.note(answer)
	}
	return a.err
}

// check returns an error unless the answer is one to a question of t.
func (a Answer) check(t *Test) error {
	if err := CheckName(a.Judge); err != nil {
		return err
	}
	if a.Test != t.ID {
		return errors.New("is an answer to another test")
	}
	if a.Number < 1 || a.Number > len(t.Questions) {
		return fmt.Errorf("there is no question %d", a.Number)
	}
	if words := t.Questions[a.Number-1].Words; !slices.Contains(words, a.Word) {
		return fmt.Errorf("%q is none of the words of question %d", a.Word, a.Number)
	}
	return nil
}

// CheckName returns an error if a judge can't be called so.
func CheckName(judge string) error {
	switch {
	case strings.TrimSpace(judge) == "":
		return errors.New("a judge needs a name")
	case judge != strings.TrimSpace(judge) || len(judge) > 100 || strings.ContainsFunc(judge, unicode.IsControl) || !utf8.ValidString(judge):
		return fmt.Errorf("a judge can't be called %.100q: want at most 100 bytes of UTF-8, without control characters and space around", judge)
	}
	return nil
}

// ReadAnswers reads a file of answers to a test.
func ReadAnswers(path string, t *Test) ([]Answer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, text, t)
}

func parse(path string, text []byte, t *Test) ([]Answer, error) {
	var answers []Answer
	n := 0
	for line := range bytes.Lines(text) {
		n++
		var a Answer
		err := json.Unmarshal(line, &a)
		switch {
		case err != nil:
			err = errors.New("is no answer to a word intrusion test")
		case line[len(line)-1] != '\n':
			err = errors.New("the line is cut short: remove it")
		default:
			err = a.check(t)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		answers = append(answers, a)
	}
	return answers, nil
}
