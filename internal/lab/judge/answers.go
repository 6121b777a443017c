package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
)

// Answer is the answer of one judge to one question.
type Answer struct {
	Test   string `json:"test"` // its ID
	Judge  string `json:"judge"`
	Number int    `json:"question"`
	Word   string `json:"word"` // that does not belong
}

// Answers is a file of answers as JSON, one a line. Its methods may be called at the
// same time, so that several judges can answer. A judge who comes back goes on where
// they stopped.
type Answers struct {
	test  *Test
	mu    sync.Mutex
	file  *os.File
	given map[string]map[int]bool // questions that each judge has answered
	err   error                   // of half an answer that could not be removed
}

// OpenAnswers opens the file of answers to the test t at path, and creates it if there
// is none. If the last line was cut short, as by a loss of power, it is removed and torn
// is true. It is an error if the file holds anything but answers to t.
func OpenAnswers(path string, t *Test) (a *Answers, torn bool, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, false, err
	}
	info, err := file.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("is not a regular file")
	case err == nil && info.Size() > mostBytes:
		err = fmt.Errorf("has more than %d bytes, which no file of answers has", mostBytes)
	}
	if err != nil {
		file.Close()
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	a = &Answers{test: t, file: file, given: make(map[string]map[int]bool)}
	if torn, err = a.load(path); err == nil {
		if err = atomicfile.SyncDir(filepath.Dir(path)); err != nil { // which may have a new name
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		file.Close()
		return nil, false, err
	}
	return a, torn, nil
}

func (a *Answers) load(path string) (torn bool, err error) {
	text, err := io.ReadAll(a.file)
	if err != nil {
		return false, err
	}
	answers, whole, err := parse(path, text, a.test)
	if err != nil {
		return false, err
	}
	for _, answer := range answers {
		a.note(answer)
	}
	switch {
	case whole < len(text):
		return true, a.file.Truncate(int64(whole))
	case whole > 0 && text[whole-1] != '\n':
		_, err = a.file.WriteString("\n")
	}
	return false, err
}

func (a *Answers) note(answer Answer) {
	if a.given[answer.Judge] == nil {
		a.given[answer.Judge] = make(map[int]bool)
	}
	a.given[answer.Judge][answer.Number] = true
}

// Close closes the file.
func (a *Answers) Close() error { return a.file.Close() }

// Next returns the first question that a judge has not answered yet, or nil if there is
// none, and the number of questions that they have answered.
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

// ErrAnswered is the error of [Answers.Add] for a question that the judge has answered
// before.
var ErrAnswered = errors.New("this question has been answered before")

// Add adds an answer to the file. When it returns nil, the answer is on disk. The field
// Test need not be set. It is an error if the judge's name cannot be used
// ([CheckName]), if the test has no such question or the question no such word, or if
// the file cannot be written; [ErrAnswered] if the judge has answered the question.
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
	info, err := a.file.Stat()
	if err != nil {
		return err
	}
	n, err := a.file.Write(line)
	if err == nil {
		err = a.file.Sync()
	}
	if err != nil {
		if n > 0 { // what comes next is to begin a line
			a.err = a.file.Truncate(info.Size())
		}
		return err
	}
	a.note(answer)
	return nil
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

// CheckName returns nil if a judge can have this name, or else an error that says what
// is wanted: 1 to 100 characters of UTF-8, no control characters, and no white space at
// the ends.
func CheckName(judge string) error {
	switch {
	case strings.TrimSpace(judge) == "":
		return errors.New("a judge needs a name")
	case judge != strings.TrimSpace(judge) || utf8.RuneCountInString(judge) > 100 || strings.ContainsFunc(judge, unicode.IsControl) || !utf8.ValidString(judge):
		return fmt.Errorf("a judge can't be called %.100q: want at most 100 characters of UTF-8, without control characters and space around", judge)
	}
	return nil
}

// ReadAnswers reads the file of answers to the test t at path. If the last line was cut
// short, it is left out and torn is true. It is an error if the file holds anything but
// answers to t.
func ReadAnswers(path string, t *Test) (answers []Answer, torn bool, err error) {
	text, err := input.Read(path, mostBytes)
	if err != nil {
		return nil, false, err
	}
	answers, whole, err := parse(path, text, t)
	return answers, whole < len(text), err
}

// parse returns the answers and how much of the text they are: all, or all but a
// last line that is the beginning of an answer to t and no more.
func parse(path string, text []byte, t *Test) (answers []Answer, whole int, err error) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		var a Answer
		err := json.Unmarshal(line, &a)
		switch {
		case err == nil:
			err = a.check(t)
		case t.begins(line):
			return answers, whole, nil
		default:
			err = errors.New("is no answer to a word intrusion test")
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		answers = append(answers, a)
		whole += len(line)
	}
	return answers, whole, nil
}

// begins reports whether a line, without its end, is the beginning of an answer to
// the test. No other line is ever removed.
func (t *Test) begins(line []byte) bool {
	start := fmt.Appendf(nil, `{"test":%q,"judge":"`, t.ID)
	n := min(len(line), len(start))
	return bytes.Equal(line[:n], start[:n]) && line[len(line)-1] != '\n'
}
