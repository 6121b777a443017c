package npy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// headerPattern matches the Python dictionary in the header of a .npy file, with its keys in NumPy's
// order:
//
//	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
var headerPattern = regexp.MustCompile(`^ *\{ *['"]descr['"] *: *['"]([^'"\\\n]*)['"] *, *['"]fortran_order['"] *: *(True|False) *, *` +
	`['"]shape['"] *: *\( *((?:\d+ *, *)*)(\d*) *\) *,? *\} *\n?$`)

func parseHeader(text string) (h Header, err error) {
	if strings.Contains(text, "'descr': [") {
		return h, errors.New("structured arrays are not supported")
	}
	m := headerPattern.FindStringSubmatch(text)
	if m == nil || m[3] == "" && m[4] != "" { // (3) is not a tuple
		return h, fmt.Errorf("want descr, fortran_order and shape, as NumPy writes them, at %.60q", text)
	}
	h.Type, h.Fortran = m[1], m[2] == "True"
	for _, d := range strings.FieldsFunc(m[3]+m[4], func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(d)
		if err != nil {
			return h, fmt.Errorf("shape: %.40q is too large", d)
		}
		h.Shape = append(h.Shape, n)
	}
	return h, nil
}
