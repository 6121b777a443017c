package eval

import (
	"fmt"
	"strings"
)

// labels numbers the classes of a task in the order in which they are met.
type labels struct {
	names  []string
	number map[string]int
}

func (l *labels) of(name string) int {
	n, ok := l.number[name]
	if !ok {
		if l.number == nil {
			l.number = map[string]int{}
		}
		n = len(l.names)
		l.number[name] = n
		l.names = append(l.names, name)
	}
	return n
}

// A part is the texts of one file or folder.
type part struct {
	path  string
	texts []text
}

// newTask makes a task of its parts, training first and test last: only labels
// that both of them have can be learned and tested.
func newTask(name string, l *labels, parts []part, split func(*evaluation) split) (*classification, error) {
	t := &classification{name: name, labels: l.names, split: split}
	in := make([][]bool, len(parts))
	for i, p := range parts {
		if len(p.texts) == 0 {
			return nil, inputError(p.path, 0, fmt.Errorf("holds no texts"))
		}
		in[i] = make([]bool, len(l.names))
		for _, text := range p.texts {
			in[i][text.label] = true
		}
		t.texts = append(t.texts, p.texts...)
	}
	for n, label := range l.names {
		for i, p := range parts {
			if !in[i][n] {
				return nil, inputError(p.path, 0, fmt.Errorf("has no text with the label %q, which other parts of %s have", label, name))
			}
		}
	}
	if len(l.names) < 2 {
		return nil, inputError(parts[0].path, 0, fmt.Errorf("all texts have the label %q, want two or more", l.names[0]))
	}
	return t, nil
}

// readLabelled reads a file of a text a line after its label, which cut takes off.
func readLabelled(path string, decode encoding, l *labels, cut func(line string) (label, rest string, err error)) (part, error) {
	p := part{path: path}
	err := readLines(path, decode, func(line string) error {
		if strings.TrimSpace(line) == "" {
			return nil
		}
		label, rest, err := cut(line)
		if err != nil {
			return err
		}
		p.texts = append(p.texts, text{l.of(label), strings.Fields(rest)})
		return nil
	})
	return p, err
}
