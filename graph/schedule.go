package graph

import (
	"fmt"
	"slices"
)

// scheduler places values into steps. A value goes into the earliest step of
// its shape in which all that it needs is at hand.
type scheduler struct {
	steps  []*Step
	stepOf map[*Value]int
	order  []*Value // every reachable value, arguments first
	seen   map[*Value]bool
}

func schedule(name string, outputs []Result) (*Program, error) {
	s := scheduler{stepOf: make(map[*Value]int), seen: make(map[*Value]bool)}
	for _, out := range outputs {
		s.visit(out.Value)
	}
	for _, v := range s.order {
		if s.floats(v) {
			continue
		}
		s.place(v)
	}
	for _, out := range outputs {
		if _, ok := s.stepOf[out.Value]; !ok {
			return nil, fmt.Errorf("%s is %v, with nothing to compute", out.Name, out.Value)
		}
	}
	for i := range s.steps {
		s.fill(i, outputs)
	}
	p := &Program{Name: name, Steps: s.steps, Outputs: outputs}
	p.nameValues()
	return p, p.checkOverwrites()
}

func (s *scheduler) visit(v *Value) {
	if s.seen[v] {
		return
	}
	s.seen[v] = true
	for _, a := range v.Reads() {
		s.visit(a)
	}
	s.order = append(s.order, v)
}

// floats reports whether v is cheap to compute wherever it is used: an input, a
// constant, or elementwise work on these alone.
func (s *scheduler) floats(v *Value) bool {
	switch v.Op {
	case Load, Const:
		return true
	case MatMul, Sum, RowSum:
		return false
	}
	return !slices.ContainsFunc(v.Args, func(a *Value) bool { return !s.floats(a) })
}

// stepShape is the shape of the step that computes v. Row sums and the scaling
// of rows belong to the sweep over a word's dense vector.
func stepShape(v *Value) Shape {
	switch {
	case v.Op == Sum:
		return stepShape(v.Args[0])
	case v.Op == ScaleRows, v.Shape == Shape{Words, One}:
		return Shape{Words, Dims}
	}
	return v.Shape
}

func (s *scheduler) place(v *Value) {
	shape := stepShape(v)
	earliest := 0
	for _, dep := range s.needs(v) {
		i := s.stepOf[dep]
		sameSweep := v.Op != MatMul && dep.Shape != Shape{} && s.steps[i].Shape == shape
		if !sameSweep && (v.Shape != Shape{} || v.Op == Sum) {
			i++
		}
		earliest = max(earliest, i)
	}
	if v.Shape == (Shape{}) && v.Op != Sum {
		s.steps[earliest].Scalars = append(s.steps[earliest].Scalars, v)
		s.stepOf[v] = earliest
		return
	}
	i := earliest
	for i < len(s.steps) && s.steps[i].Shape != shape {
		i++
	}
	if i == len(s.steps) {
		s.steps = append(s.steps, &Step{Shape: shape})
	}
	s.stepOf[v] = i
	switch v.Op {
	case MatMul:
		s.steps[i].Products = append(s.steps[i].Products, v)
	case Sum:
		s.steps[i].Totals = append(s.steps[i].Totals, v)
	}
}

// needs lists the placed values that v is computed from, floating values in
// between or not.
func (s *scheduler) needs(v *Value) (deps []*Value) {
	for _, a := range v.Reads() {
		if _, ok := s.stepOf[a]; ok {
			deps = append(deps, a)
		} else {
			deps = append(deps, s.needs(a)...)
		}
	}
	return deps
}

// fill completes step i once every value has its step.
func (s *scheduler) fill(i int, outputs []Result) {
	step := s.steps[i]
	inBody := make(map[*Value]bool)
	var include func(v *Value)
	include = func(v *Value) { // with the floating values that it needs here
		if inBody[v] || v.Op == Load || v.Op == Const || v.Op == MatMul {
			return
		}
		if at, placed := s.stepOf[v]; placed && (at != i || v.Shape == Shape{}) {
			return
		}
		inBody[v] = true
		for _, a := range v.Args {
			include(a)
		}
		step.Body = append(step.Body, v)
	}
	for _, v := range s.order {
		at, placed := s.stepOf[v]
		switch {
		case !placed || at != i:
		case v.Op == Sum:
			include(v.Args[0])
		case v.Shape != Shape{}:
			include(v)
		}
	}
	for _, v := range append(slices.Clone(step.Products), step.Body...) {
		if at, placed := s.stepOf[v]; placed && at == i && s.leaves(v, i, outputs) {
			step.Keeps = append(step.Keeps, v)
		}
	}
}

// leaves reports whether a value of step i is read after the step.
func (s *scheduler) leaves(v *Value, i int, outputs []Result) bool {
	for _, out := range outputs {
		if out.Value == v {
			return true
		}
	}
	for _, user := range s.order {
		if !slices.Contains(user.Reads(), v) {
			continue
		}
		at, placed := s.stepOf[user]
		if !placed || at != i || user.Op == MatMul {
			return true
		}
	}
	return false
}

// nameValues gives every value that a listing shows on its own a name.
func (p *Program) nameValues() {
	uses := make(map[*Value]int)
	for _, s := range p.Steps {
		for _, group := range [][]*Value{s.Body, s.Totals, s.Scalars} {
			for _, v := range group {
				for _, a := range v.Args {
					uses[a]++
				}
			}
		}
	}
	for _, out := range p.Outputs {
		if out.Value.Name == "" {
			out.Value.Name = out.Name
			if _, ok := inputShapes[out.Name]; ok {
				out.Value.Name += "′"
			}
		}
	}
	count := make(map[string]int)
	name := func(v *Value, prefix string) {
		if v.Name == "" {
			count[prefix]++
			v.Name = fmt.Sprint(prefix, count[prefix])
		}
	}
	for _, s := range p.Steps {
		for _, v := range s.Products {
			name(v, "p")
		}
		for _, v := range s.Body {
			if uses[v] > 1 || slices.Contains(s.Keeps, v) {
				name(v, "v")
			}
		}
		for _, v := range s.Totals {
			name(v, "s")
		}
	}
}

// checkOverwrites makes sure that a result may be written over the input of
// its name: nothing reads the old value afterwards, and only elementwise work
// reads it in the step that writes.
func (p *Program) checkOverwrites() error {
	for _, out := range p.Outputs {
		written := false
		for i, s := range p.Steps {
			if slices.Contains(s.Products, out.Value) {
				written = true
			}
			after := s.Body // the body values computed once the result is there
			if at := slices.Index(s.Body, out.Value); at >= 0 {
				written, after = true, s.Body[at+1:]
			}
			if written && (loads(s.Products, out.Name) || loads(after, out.Name) || loads(s.Totals, out.Name)) {
				return fmt.Errorf("step %d reads %s after it was overwritten", i+1, out.Name)
			}
		}
	}
	return nil
}

// loads reports whether one of the values reads the input directly.
func loads(values []*Value, input string) bool {
	return slices.ContainsFunc(values, func(v *Value) bool {
		return slices.ContainsFunc(v.Reads(), func(a *Value) bool { return a.Op == Load && a.Name == input })
	})
}
