package eval

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"unicode/utf8"

	"overcomplete/internal/input"
)

// An encoding turns bytes into a string, or says that they are not of it.
type encoding func(b []byte) (string, error)

func utf8Text(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", errors.New("is not UTF-8")
	}
	return string(b), nil
}

// latin1Text never fails: every byte is a character.
func latin1Text(b []byte) (string, error) {
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes), nil
}

// readLines calls f for each line of a file that is not blank, without the newline
// and what Windows puts before it, and with its number. An error of f gets the file
// and line. A file that begins with a byte order mark is UTF-8.
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

// mostData is how many bytes of data are read from a file: more than any data set has
// whose texts are to be classified.
const mostData = 1 << 30

func readFile(path string) ([]byte, error) {
	data, err := input.Read(path, mostData)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return data, nil
}

// unreadable says which data can't be read.
func unreadable(path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the file is named once
	}
	return inputError(path, 0, err)
}
