package eval

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"unicode/utf8"

	"overcomplete/internal/input"
	"overcomplete/vectors"
)

type encoding func(b []byte) (string, error)

func utf8Text(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", errors.New("not valid UTF-8")
	}
	return string(b), nil
}

func latin1Text(b []byte) (string, error) {
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes), nil
}

// readLines calls f with the number and the text of each line that isn't blank. An error of f is reported with the
// number of the line. If the file has a byte order mark, it is read as UTF-8, whatever decode is.
func readLines(path string, decode encoding, f func(number int, line string) error) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	if rest, marked := bytes.CutPrefix(data, []byte("\ufeff")); marked {
		data, decode = rest, utf8Text
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text, err := decode(bytes.TrimRight(line, "\r\n"))
		if err == nil && strings.TrimSpace(text) != "" {
			err = f(number, text)
		}
		if err != nil {
			return inputError(path, number, err)
		}
	}
	return nil
}

const maxBytes = 1 << 30

func readFile(path string) ([]byte, error) {
	data, err := input.Read(path, maxBytes)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return data, nil
}

// unreadable wraps a read error such that the message names the file once.
func unreadable(path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return inputError(path, 0, err)
}

// inputError returns an error about a line of a file, or about the file if line is 0.
func inputError(file string, line int, err error) error {
	return &vectors.InputError{File: file, Line: line, Err: err}
}
