package interpreter

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kernel is a kernel of a PTX text, an .entry.
type Kernel struct {
	Name       string
	Parameters []Parameter

	code           []instruction
	mostThreads    int // per block
	sharedBytes    int // bytes of static shared memory
	parameterBytes int
	registers      int // including constants
	names          map[string]int
	constants      []constant
	specials       map[string]int // registers of special registers such as %tid.x
}

// Parameter is a parameter of a kernel. A struct by value has the size of the struct.
type Parameter struct {
	Name   string
	Size   int // in bytes
	offset int
}

// constant is a register with the same value in all lanes.
type constant struct {
	register int
	bits     uint64
}

// instruction is an instruction of a kernel.
type instruction struct {
	text string
	line int
	operation
	flow     flow
	target   int // target of a branch
	meet     int // reconvergence point of a branch
	guarded  bool
	guard    int    // predicate register
	inverted uint32 // all bits set for a negated predicate
	args     []int  // registers or values of the operands
	offsets  []int  // offsets of the operands that are addresses, in order
	sources  []int  // registers read
	results  []int  // registers written
}

// sameBarrier reports whether warps that wait at the two instructions meet. Each is nil or a bar.sync. All
// warps must reach a bar.sync at one place, unless it states a number of threads.
func (in *instruction) sameBarrier(other *instruction) bool {
	return in == other || in != nil && other != nil && len(in.args) == 2 && slices.Equal(in.args, other.args)
}

type flow int8

const (
	flowNext flow = iota
	flowBranch
	flowExit
	flowBarrier
)

var (
	entryHead      = regexp.MustCompile(`^\.visible \.entry (\w+) ?\(([^)]*)\)(.*)$`)
	parameterOf    = regexp.MustCompile(`^\.param (?:\.align (\d+) )?\.[busf](\d+) (\w+)(?:\[(\d+)\])?$`)
	sharedArray    = regexp.MustCompile(`^(?:\.extern )?\.shared \.align (\d+) \.b8 (\w+)\[(\d*)\]$`)
	registerSet    = regexp.MustCompile(`^\.reg \.\w+ (%\w+?)<(\d+)>$`)
	registerList   = regexp.MustCompile(`^\.reg \.\w+ ([\w, ]+)$`)
	labelHead      = regexp.MustCompile(`^(\$?[A-Za-z_]\w*):`)
	directiveLine  = regexp.MustCompile(`^\.(version|target|address_size)\b`)
	maxThreads     = regexp.MustCompile(`\.maxntid (\d+), ?(\d+), ?(\d+)`)
	guardHead      = regexp.MustCompile(`^@(!?)(%\w+) `)
	registerNumber = regexp.MustCompile(`^(%[a-z]+)(\d+)$`)
	addressForm    = regexp.MustCompile(`^\[([%\w]+)(?:\+(-?\d+))?\]$`)
)

// Parse returns the kernels of a PTX text that NVRTC compiled.
func Parse(text string) (kernels map[string]*Kernel, err error) {
	defer recoverFault(&err)
	p := parser{kernels: make(map[string]*Kernel), shared: make(map[string]int)}
	statement := ""
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimSpace(line)
		if directiveLine.MatchString(line) {
			continue
		}
		for line != "" {
			if statement == "" {
				p.line = i + 1
				if m := labelHead.FindStringSubmatch(line); m != nil && p.entry != nil {
					p.labels[m[1]] = len(p.code)
					line = strings.TrimSpace(line[len(m[0]):])
					continue
				}
			}
			// Braces within a statement belong to its operands, except after the head of an entry.
			ends := ";"
			if statement == "" && strings.ContainsAny(line[:1], "{}") || strings.HasPrefix(statement+line, ".visible") {
				ends = "{}"
			}
			at := strings.IndexAny(line, ends)
			if at < 0 {
				statement += line + " "
				break
			}
			statement += line[:at]
			p.statement(strings.Join(strings.Fields(statement), " "), line[at])
			statement, line = "", strings.TrimSpace(line[at+1:])
		}
	}
	if p.entry != nil || statement != "" {
		p.fail("the text ends within an entry or a statement")
	}
	return p.kernels, nil
}

// dynamic is the offset of dynamic shared memory, which follows all other arrays.
const dynamic = -1

// parser parses a text statement by statement.
type parser struct {
	kernels     map[string]*Kernel
	line        int            // line of the statement
	shared      map[string]int // offsets of arrays in shared memory, or dynamic
	sharedBytes int
	*entry
}

// entry is the kernel being parsed.
type entry struct {
	kernel   *Kernel
	code     []instruction
	declared map[string]int   // number of registers by kind, such as %rd
	labels   map[string]int   // positions in the code
	branches map[int]string   // labels of the branches' targets
	known    map[uint64]int   // registers of constants
	scopes   []map[string]int // registers declared in the open blocks

	outer      map[string]int // shared memory outside the entry
	outerBytes int
}

// fail ends Parse with an error.
func (p *parser) fail(format string, args ...any) {
	panic(fault{fmt.Sprintf("line %d: %s", p.line, fmt.Sprintf(format, args...))})
}

// statement parses a statement, which ends with ; or { or }.
func (p *parser) statement(s string, end byte) {
	switch {
	case end == '{' && p.entry == nil:
		p.open(s)
	case end == '{' && s == "":
		p.scopes = append(p.scopes, make(map[string]int))
	case end == '}' && p.entry != nil && len(p.scopes) > 0:
		p.scopes = p.scopes[:len(p.scopes)-1]
	case end == '}' && p.entry != nil:
		p.close()
	case end != ';':
		p.fail("a brace after %q", s)
	case sharedArray.MatchString(s):
		m := sharedArray.FindStringSubmatch(s)
		if p.entry != nil && len(p.code) > 0 {
			p.fail("shared memory after an instruction")
		}
		p.shared[m[2]] = dynamic
		if m[3] != "" {
			align, _ := strconv.Atoi(m[1])
			size, _ := strconv.Atoi(m[3])
			p.shared[m[2]] = roundUp(p.sharedBytes, align)
			p.sharedBytes = p.shared[m[2]] + size
		}
	case strings.HasPrefix(s, ".reg ") && p.entry != nil:
		p.declare(s)
	case strings.HasPrefix(s, ".pragma "), strings.HasPrefix(s, ".global ") && p.entry == nil:
	case p.entry == nil:
		p.fail("%q outside an entry", s)
	default:
		p.code = append(p.code, p.instruction(s))
	}
}

// declare parses a declaration of registers: a number of them in an entry, single names in a block.
func (p *parser) declare(s string) {
	if m := registerSet.FindStringSubmatch(s); m != nil {
		p.declared[m[1]], _ = strconv.Atoi(m[2])
		return
	}
	m := registerList.FindStringSubmatch(s)
	if m == nil || len(p.scopes) == 0 {
		p.fail("registers %q", s)
	}
	for name := range strings.SplitSeq(m[1], ",") {
		p.scopes[len(p.scopes)-1][strings.TrimSpace(name)] = p.kernel.registers
		p.kernel.registers++
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

func (p *parser) staticBytes() int { return roundUp(p.sharedBytes, 16) }

func (p *parser) open(head string) {
	m := entryHead.FindStringSubmatch(head)
	if m == nil {
		p.fail("no kernel: %q", head)
	}
	k := &Kernel{Name: m[1], mostThreads: 1024, names: make(map[string]int), specials: make(map[string]int)}
	if m := maxThreads.FindStringSubmatch(m[3]); m != nil {
		k.mostThreads = 1
		for _, n := range m[1:] {
			n, _ := strconv.Atoi(n)
			k.mostThreads *= n
		}
	}
	for declaration := range strings.SplitSeq(m[2], ",") {
		declaration = strings.TrimSpace(declaration)
		if declaration == "" {
			continue
		}
		m := parameterOf.FindStringSubmatch(declaration)
		if m == nil {
			p.fail("parameter %q", declaration)
		}
		bits, _ := strconv.Atoi(m[2])
		size, align, count := bits/8, bits/8, 1
		if m[1] != "" {
			align, _ = strconv.Atoi(m[1])
		}
		if m[4] != "" {
			count, _ = strconv.Atoi(m[4])
		}
		q := Parameter{m[3], size * count, roundUp(k.parameterBytes, align)}
		k.Parameters, k.parameterBytes = append(k.Parameters, q), q.offset+q.Size
	}
	p.entry = &entry{
		kernel: k, declared: make(map[string]int), labels: make(map[string]int), branches: make(map[int]string),
		known: make(map[uint64]int), outer: maps.Clone(p.shared), outerBytes: p.sharedBytes,
	}
}

func (p *parser) close() {
	k := p.kernel
	for at, label := range p.branches {
		target, ok := p.labels[label]
		if !ok {
			p.fail("%s: there is no label %s", k.Name, label)
		}
		p.code[at].target = target
	}
	if n := len(p.code); n == 0 || p.code[n-1].guarded || p.code[n-1].flow != flowExit && p.code[n-1].flow != flowBranch {
		p.fail("%s goes on beyond its end", k.Name)
	}
	k.code, k.sharedBytes = p.code, p.staticBytes()
	meet(k.code)
	p.kernels[k.Name] = k
	p.shared, p.sharedBytes, p.entry = p.outer, p.outerBytes, nil
}

func (p *parser) instruction(s string) instruction {
	in := instruction{text: s, line: p.line}
	if m := guardHead.FindStringSubmatch(s); m != nil {
		in.guarded = true
		if m[1] != "" {
			in.inverted = allLanes
		}
		in.guard = p.value(m[2])
		s = s[len(m[0]):]
	}
	name, rest, _ := strings.Cut(s, " ")
	operands := split(rest)
	switch name {
	case "bra", "bra.uni":
		in.flow = flowBranch
		p.branches[len(p.code)] = rest
		return in
	case "ret":
		in.flow = flowExit
		return in
	case "bar.sync":
		in.flow = flowBarrier
		if len(operands) == 2 {
			name += ", counted"
		} else if rest != "0" {
			p.fail("barrier %s; only 0 needs no number of threads", rest)
		}
	}
	op, ok := find(name, operands)
	forms := strings.Fields(op.operands)
	if !ok || len(forms) != len(operands) {
		p.fail("the interpreter has no %s of %d operands", name, len(operands))
	}
	in.operation = op
	for i, form := range forms {
		p.operand(&in, form, operands[i])
	}
	return in
}

func split(s string) (operands []string) {
	if s == "" {
		return nil
	}
	depth, from := 0, 0
	for i, c := range s + "," {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				operands = append(operands, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	return operands
}

// operand parses an operand of a form:
//
//	R, r    a register that is written; a register or constant that is read
//	R4, r4  a list of four of them
//	S       a register that is written, and optionally a predicate
//	A       an address in memory, or of a parameter
//	n       a constant
func (p *parser) operand(in *instruction, form, s string) {
	switch form[0] {
	case 'A':
		m := addressForm.FindStringSubmatch(s)
		if m == nil {
			p.fail("address %q", s)
		}
		offset, _ := strconv.Atoi(m[2])
		in.offsets = append(in.offsets, offset)
		p.operand(in, "r", m[1])
		return
	case 'n':
		n, err := strconv.Atoi(s)
		if err != nil {
			p.fail("operand %q", s)
		}
		in.args = append(in.args, n)
		return
	case 'S':
		s, predicate, ok := strings.Cut(s, "|")
		if !ok {
			predicate = s
		}
		p.operand(in, "R2", "{"+s+","+predicate+"}")
		return
	}
	names := []string{s}
	if len(form) > 1 { // a list in braces
		names = split(strings.Trim(s, "{}"))
		if form[1:] != strconv.Itoa(len(names)) {
			p.fail("%d registers of %s", len(names), form[1:])
		}
	}
	for _, name := range names {
		r := p.value(name)
		in.args = append(in.args, r)
		if form[0] == 'r' {
			in.sources = append(in.sources, r)
			continue
		}
		if slices.ContainsFunc(p.kernel.constants, func(c constant) bool { return c.register == r }) {
			p.fail("a result in %s", name)
		}
		in.results = append(in.results, r)
	}
}

// value returns the number of a register, or of the register that holds a constant.
func (p *parser) value(s string) int {
	k := p.kernel
	for _, scope := range slices.Backward(p.scopes) {
		if r, ok := scope[s]; ok {
			return r
		}
	}
	if m := registerNumber.FindStringSubmatch(s); m != nil {
		if n, _ := strconv.Atoi(m[2]); n >= p.declared[m[1]] {
			p.fail("%s is not declared", s)
		}
		return k.register(k.names, s)
	}
	switch s {
	case "%tid.x", "%laneid", "%ctaid.x", "%ctaid.y", "%ntid.x", "%nctaid.x", "%nctaid.y":
		return k.register(k.specials, s)
	}
	var bits uint64
	var err error
	if i := slices.IndexFunc(k.Parameters, func(q Parameter) bool { return q.Name == s }); i >= 0 {
		bits = uint64(k.Parameters[i].offset)
	} else if at, ok := p.shared[s]; ok {
		if at == dynamic {
			at = p.staticBytes()
		}
		bits = uint64(sharedBase + at)
	} else if digits, ok := strings.CutPrefix(s, "0f"); ok {
		bits, err = strconv.ParseUint(digits, 16, 32)
	} else if digits, ok := strings.CutPrefix(s, "0d"); ok {
		bits, err = strconv.ParseUint(digits, 16, 64)
	} else {
		var n int64
		n, err = strconv.ParseInt(s, 0, 64)
		bits = uint64(n)
	}
	if err != nil {
		p.fail("operand %q", s)
	}
	r, ok := p.known[bits]
	if !ok {
		r = k.registers
		k.registers++
		p.known[bits] = r
		k.constants = append(k.constants, constant{r, bits})
	}
	return r
}

func (k *Kernel) register(names map[string]int, name string) int {
	r, ok := names[name]
	if !ok {
		r = k.registers
		names[name] = r
		k.registers++
	}
	return r
}

func (k *Kernel) registerName(r int) string {
	for name, number := range k.names {
		if number == r {
			return name
		}
	}
	return "a register of a block"
}
