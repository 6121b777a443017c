package npy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parseHeader parses the Python dictionary in the header of a .npy file:
//
//	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//
// Each of the three keys must be there once, and no other.
func parseHeader(text string) (Header, error) {
	var h Header
	p := parser{rest: text}
	p.expect("{")
	seen := map[string]bool{}
	for p.err == nil && !p.skip("}") {
		key := p.string()
		p.expect(":")
		if p.err == nil && seen[key] {
			return h, fmt.Errorf("%.40q is given twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			if p.next("[") {
				return h, errors.New("structured arrays are not supported")
			}
			h.Type = p.string()
		case "fortran_order":
			h.Fortran = p.bool()
		case "shape":
			h.Shape = p.tuple()
		default:
			p.fail("'descr', 'fortran_order' or 'shape'")
		}
		if !p.next("}") {
			p.expect(",")
		}
	}
	p.end()
	if p.err != nil {
		return h, p.err
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("%q is missing", key)
		}
	}
	return h, nil
}

// A parser takes tokens from the front of rest. After the first error it takes
// nothing.
type parser struct {
	rest string
	err  error
}

// fail records that want is not what comes next.
func (p *parser) fail(want string) {
	if p.err == nil {
		p.err = fmt.Errorf("want %s at %.20q", want, p.rest)
	}
}

// next reports whether token comes next.
func (p *parser) next(token string) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	return p.err == nil && strings.HasPrefix(p.rest, token)
}

// skip takes token if it comes next, and reports whether it did.
func (p *parser) skip(token string) bool {
	if !p.next(token) {
		return false
	}
	p.rest = p.rest[len(token):]
	return true
}

func (p *parser) expect(token string) {
	if !p.skip(token) {
		p.fail(token)
	}
}

func (p *parser) bool() bool {
	if p.skip("True") {
		return true
	}
	p.expect("False")
	return false
}

// string takes a quoted string. Type names and keys have nothing to escape.
func (p *parser) string() string {
	for _, quote := range []string{"'", `"`} {
		if p.next(quote) {
			s, rest, found := strings.Cut(p.rest[1:], quote)
			if !found || strings.ContainsAny(s, "\\\n") {
				break
			}
			p.rest = rest
			return s
		}
	}
	p.fail("a string")
	return ""
}

// tuple takes (), (3,) or (3, 4).
func (p *parser) tuple() []int {
	var dims []int
	p.expect("(")
	comma := true
	for p.err == nil && !p.next(")") {
		if !comma {
			p.fail(", or )")
		}
		dims = append(dims, p.int())
		comma = p.skip(",")
	}
	p.expect(")")
	if len(dims) == 1 && !comma {
		p.fail("a comma before it: a tuple")
	}
	return dims
}

// int takes an integer that is not negative.
func (p *parser) int() int {
	if !p.next("") {
		return 0
	}
	digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
	n, err := strconv.Atoi(digits)
	if err != nil {
		p.fail("a dimension")
	}
	p.rest = p.rest[len(digits):]
	return n
}

// end takes the padding, which only the version's newline may end.
func (p *parser) end() {
	p.skip("\n")
	if !p.next("") || p.rest != "" {
		p.fail("the end")
	}
}
