package eval

import (
	"errors"
	"fmt"
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

// A part is the texts of one file or folder, and where in it each label is met
// first: a line, or 0 for the folder.
type part struct {
	path  string
	texts []text
	first map[int]int
}

func newPart(path string) part { return part{path: path, first: map[int]int{}} }

func (p *part) add(t text, line int) {
	if _, met := p.first[t.label]; !met {
		p.first[t.label] = line
	}
	p.texts = append(p.texts, t)
}

// newTask makes a task of its parts, training first and test last: only labels
// that both of them have can be learned and tested.
func newTask(name string, l *labels, parts []part, split func(*evaluation) split) (*classification, error) {
	t := &classification{name: name, path: parts[0].path, labels: l.names, split: split}
	for _, p := range parts {
		if len(p.texts) == 0 {
			return nil, inputError(p.path, 0, errors.New("holds no texts"))
		}
		t.texts = append(t.texts, p.texts...)
	}
	for n, label := range l.names {
		for _, p := range parts {
			for _, other := range parts {
				line, here := p.first[n]
				if _, there := other.first[n]; here && !there {
					return nil, inputError(p.path, line, fmt.Errorf("label %q is here, but not in %s; all parts of %s need the same labels", label, other.path, name))
				}
			}
		}
	}
	if len(l.names) < 2 {
		return nil, inputError(t.path, 0, fmt.Errorf("all texts have the label %q, want two or more", l.names[0]))
	}
	return t, nil
}
