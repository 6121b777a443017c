package graph

import (
	"fmt"
	"slices"
	"strings"
)

// draft is a step before it has a type and its operands have places: all values
// of one shape that can be computed in one sweep over their rows.
type draft struct {
	shape    Shape
	products []*value // opMatMul: one, or an accumulate step's and that of the squares
	body     []*value // elementwise values and row sums, each after its arguments
	totals   []*value // opSum, of values of this step
	scalars  []*value // of totals, computed when these are complete
	keeps    []*value // products and body values that later steps or the caller read
}

// output is a result of a program. One with an input's name replaces it.
type output struct {
	name  string
	value *value
}

// scheduler places values into drafts. A value goes into the earliest one of
// its shape in which all that it needs is at hand.
type scheduler struct {
	drafts  []*draft
	draftOf map[*value]int
	order   []*value // every reachable value, arguments first
	seen    map[*value]bool
}

func schedule(outputs []output) ([]*draft, error) {
	s := scheduler{draftOf: make(map[*value]int), seen: make(map[*value]bool)}
	for _, out := range outputs {
		s.visit(out.value)
	}
	for _, v := range s.order {
		isOutput := func(out output) bool { return out.value == v }
		if !v.given() || v.shape != (Shape{}) && slices.ContainsFunc(outputs, isOutput) {
			s.place(v)
		}
	}
	for _, out := range outputs {
		if _, ok := s.draftOf[out.value]; !ok {
			return nil, fmt.Errorf("%s is %v, with nothing to compute", out.name, out.value)
		}
	}
	for i := range s.drafts {
		s.fill(i, outputs)
	}
	nameValues(s.drafts, outputs)
	return s.drafts, nil
}

func (s *scheduler) visit(v *value) {
	if s.seen[v] {
		return
	}
	s.seen[v] = true
	for _, a := range v.reads() {
		s.visit(a)
	}
	s.order = append(s.order, v)
}

// draftShape is the shape of the draft that computes v. Numbers of a word, and codes
// that they scale, belong to the sweep over what these numbers are sums of.
func draftShape(v *value) Shape {
	if v.op == opSum || v.op == opRowSum {
		return draftShape(v.args[0])
	}
	if v.op == opScaleRows || v.shape == (Shape{Words, One}) {
		for _, a := range v.args {
			if a.shape == (Shape{Words, One}) {
				return draftShape(a)
			}
		}
	}
	return v.shape
}

func (s *scheduler) place(v *value) {
	shape := draftShape(v)
	earliest := 0
	for _, dep := range s.needs(v) {
		i := s.draftOf[dep]
		sameSweep := v.op != opMatMul && dep.shape != Shape{} && s.drafts[i].shape == shape
		if !sameSweep && (v.shape != Shape{} || v.op == opSum) {
			i++
		}
		earliest = max(earliest, i)
	}
	if v.shape == (Shape{}) && v.op != opSum {
		s.drafts[earliest].scalars = append(s.drafts[earliest].scalars, v)
		s.draftOf[v] = earliest
		return
	}
	i := earliest
	for i < len(s.drafts) && (s.drafts[i].shape != shape || v.op == opMatMul && !s.drafts[i].takes(v)) {
		i++
	}
	if i == len(s.drafts) {
		s.drafts = append(s.drafts, &draft{shape: shape})
	}
	s.draftOf[v] = i
	switch v.op {
	case opMatMul:
		s.drafts[i].products = append(s.drafts[i].products, v)
	case opSum:
		s.drafts[i].totals = append(s.drafts[i].totals, v)
	}
}

// takes reports whether v may be a product of the draft: its only one, or one of
// the pair AᵀB and (A∘A)ᵀ(B∘B).
func (d *draft) takes(v *value) bool {
	if len(d.products) != 1 {
		return len(d.products) == 0
	}
	left, right := v.factors()
	otherLeft, otherRight := d.products[0].factors()
	left.squared, right.squared = !left.squared, !right.squared
	return d.shape == Shape{Atoms, Dims} && left == otherLeft && right == otherRight
}

// needs lists the placed values that v is computed from, directly or through floating
// values: those of no draft, which are computed wherever they are used.
func (s *scheduler) needs(v *value) (deps []*value) {
	for _, a := range v.reads() {
		if _, ok := s.draftOf[a]; ok {
			deps = append(deps, a)
		} else {
			deps = append(deps, s.needs(a)...)
		}
	}
	return deps
}

// fill completes draft i once every value has its draft.
func (s *scheduler) fill(i int, outputs []output) {
	d := s.drafts[i]
	inBody := make(map[*value]bool)
	var include func(v *value)
	include = func(v *value) { // with the floating values that it needs here
		if inBody[v] || v.op == opLoad || v.op == opConst || v.op == opMatMul {
			return
		}
		if at, placed := s.draftOf[v]; placed && (at != i || v.shape == Shape{}) {
			return
		}
		inBody[v] = true
		for _, a := range v.args {
			include(a)
		}
		d.body = append(d.body, v)
	}
	for _, v := range s.order {
		at, placed := s.draftOf[v]
		switch {
		case !placed || at != i:
		case v.op == opSum:
			include(v.args[0])
		case v.shape != Shape{}:
			include(v)
		}
	}
	for _, v := range slices.Concat(d.products, d.body) {
		if at, placed := s.draftOf[v]; placed && at == i && s.leaves(v, i, outputs) {
			d.keeps = append(d.keeps, v)
		}
	}
}

// leaves reports whether a value of draft i is read after the step.
func (s *scheduler) leaves(v *value, i int, outputs []output) bool {
	if slices.ContainsFunc(outputs, func(out output) bool { return out.value == v }) {
		return true
	}
	return slices.ContainsFunc(s.order, func(user *value) bool {
		at, placed := s.draftOf[user]
		return slices.Contains(user.reads(), v) && (!placed || at != i || user.op == opMatMul)
	})
}

// users lists the values of the draft that are computed from v, elementwise.
func (d *draft) users(v *value) (users []*value) {
	for _, user := range slices.Concat(d.body, d.totals) {
		if slices.Contains(user.args, v) {
			users = append(users, user)
		}
	}
	return users
}

// nameValues gives every value that a listing shows on its own a name.
func nameValues(drafts []*draft, outputs []output) {
	for _, out := range outputs {
		switch _, input := inputShapes[out.name]; {
		case out.value.name == "" && input:
			out.value.name = out.name + "′"
		case out.value.name == "":
			out.value.name = out.name
		}
	}
	count := make(map[string]int)
	name := func(v *value, prefix string) {
		if v.name == "" {
			count[prefix]++
			v.name = fmt.Sprint(prefix, count[prefix])
		}
	}
	for _, d := range drafts {
		for _, v := range d.products {
			name(v, "p")
		}
		for _, v := range d.body {
			if len(d.users(v)) > 1 || slices.Contains(d.keeps, v) {
				name(v, "v")
			}
		}
		for _, v := range d.totals {
			name(v, "s")
		}
	}
}

// kind names what the draft's products do.
func (d *draft) kind() string {
	switch {
	case len(d.products) == 0:
		return "elementwise"
	case d.shape == Shape{Words, Atoms}:
		return "correlate"
	case d.shape[0] == Words:
		return "decode"
	}
	return "accumulate"
}

// listing says what the draft is, and then how its named values are made.
func (d *draft) listing(outputs []output) []string {
	lines := []string{fmt.Sprint(d.kind(), " ", d.shape)}
	for _, v := range slices.Concat(d.products, d.body, d.totals, d.scalars) {
		if v.name != "" {
			lines = append(lines, v.name+" = "+v.formula(true))
		}
		for _, out := range outputs { // a result that is the same as another
			if out.value == v && v.shape == (Shape{}) && out.name != v.name {
				lines = append(lines, out.name+" = "+v.name)
			}
		}
	}
	if len(d.keeps) > 0 {
		names := make([]string, len(d.keeps))
		for i, v := range d.keeps {
			names[i] = v.String()
		}
		lines = append(lines, "keep "+strings.Join(names, ", "))
	}
	return lines
}
