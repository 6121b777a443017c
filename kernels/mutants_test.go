//go:build full && !gpu

package kernels

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/interpreter"
)

// TestMutants breaks one instruction of the PTX at a time. The interpreter, or the comparison with plain loops,
// must detect it. A kernel without trials fails.
func TestMutants(t *testing.T) {
	const most = 8 // mutants per mutation and kernel, drawn at random
	total := 0
	texts := entries(t)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		t.Run(name, func(t *testing.T) {
			if len(trials(name)) == 0 {
				t.Fatal("it has no trials")
			}
			verdict, steps := try(t, name, text, 0)
			if verdict != "" {
				t.Fatalf("as it is: %s", verdict)
			}
			for _, m := range mutations {
				mutants := m.of(text)
				rng := rand.New(rand.NewPCG(1, 1))
				rng.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
				mutants = mutants[:min(most, len(mutants))]
				unseen := make([]bool, len(mutants))
				inParallel(len(mutants), func(i int) {
					verdict, _ := try(t, name, mutants[i].text, 5*steps) // the limit ends mutants that never end
					unseen[i] = verdict == ""
				})
				left := allowance(name, m.name)
				for i, mutant := range mutants {
					if unseen[i] {
						if left--; left < 0 {
							t.Errorf("nothing sees line %d, %s, as %s", mutant.line, mutant.from, mutant.to)
						}
					}
				}
				if total += len(mutants); len(mutants) > 0 {
					t.Logf("%-22s %3d mutants, %d not seen", m.name, len(mutants), allowance(name, m.name)-left)
				}
			}
		})
	}
	t.Logf("%d mutants", total)
}

// harmless lists mutations that at most slow a kernel down, with the number of mutants that may stay undetected.
var harmless = []struct {
	kernels, mutation string
	most              int
	why               string
}{
	{"accumulate_|decode_", bounds, 1, "a step too many is loaded, of zeros, and not used"},
	{"remember", bounds, 2, "the same, and the columns of a mirrored tile are all inside"},
	{"correlate_", bounds, 3, "the same, and the depth is a multiple of 4, so there is at least one step"},
	{"(finish|pack)_codes$", "parameter", 1, "the scale, which codes in float32 do without"},
	{"jacobi", "sum for product", 2, "the size of u, once per row of a block, which is scaled to the norm afterwards"},
	{"search_[0-9]", "copied beyond the end", 8, "tiles of atoms are copied whole"},
	{"search_[0-9]", "shorter wait", 1, "the copy of a tile after the last one, which nobody reads"},
	{"search", "copied beyond the end", 2, "atoms, and rows of residuals and codes, are copied whole"},
	{"search", "address", 1, "a part of a sum of squares: only the sum's power of two counts"},
	{"search", bounds, 3, "a warp without columns multiplies zeros, or takes a maximum with them"},
	{"update_codes", bounds, 4, "elements of x beyond the end are multiplied with zeros, except for the loss"},
	{"round_atoms|search", "parameter", 1, "the pitch for the length: padding is zeros"},
	{"scale_atoms", "address", 2, "search kernels that read c_k and v_k from the padding of D8 ignore the arrays of them"},
	{"polish", "parameter", 1, "whether the state of a row is in shared memory, which is only faster"},
}

func allowance(kernel, mutation string) int {
	for _, h := range harmless {
		if h.mutation == mutation && regexp.MustCompile("^("+h.kernels+")").MatchString(kernel) {
			return h.most
		}
	}
	return 0
}

// entries returns the text of each kernel of the embedded PTX, by name.
func entries(t *testing.T) map[string]string {
	files, err := ptx.ReadDir("ptx")
	testonly.Must(t, err)
	all := make(map[string]string)
	for _, file := range files {
		text, err := ptx.ReadFile("ptx/" + file.Name())
		testonly.Must(t, err)
		const begins = ".visible .entry "
		parts := strings.Split(string(text), begins)
		for _, entry := range parts[1:] {
			name, _, _ := strings.Cut(entry, "(")
			all[name] = parts[0] + begins + entry
		}
	}
	return all
}

// trials returns quick checks of a kernel that together cover it: full and partial tiles,
// bounds at each element of a thread, reductions with more steps than stages, and all
// remainders of unrolled loops.
func trials(kernel string) (all []func(b *bench)) {
	add := func(check func(b *bench)) { all = append(all, check) }
	name, precision := kernel[:max(0, strings.LastIndex(kernel, "_"))], kernel[strings.LastIndex(kernel, "_")+1:]
	if p := Precision(precision); p == fp16 || p == tf32 || p == fp32 {
		type size struct{ rows, columns, depth int } // size of the product
		sizes := []size{
			{128, 128, 131}, {133, 133, 37},
			{20, 4, 76}, {44, 44, 84}, {84, 84, 92}, {124, 124, 99}, {124, 20, 1}, {20, 52, 33}, {116, 108, 52},
			{100, 12, 20}, {76, 28, 44}, {92, 36, 60}, {4, 68, 12}, {52, 100, 28}, {52, 60, 93},
		}
		if p == fp16 { // larger tiles
			sizes = append(sizes, size{70, 80, 180}, size{12, 93, 250}, size{36, 117, 165}, size{108, 144, 150}, size{60, 150, 20},
				size{28, 160, 245}, size{20, 168, 199}, size{12, 20, 119}, size{20, 250, 60}, size{97, 320, 170})
		}
		for _, s := range sizes {
			switch name {
			case "decode":
				add(func(b *bench) { checkDecode(b, p, s.rows, s.depth, s.columns) })
			case "accumulate":
				add(func(b *bench) { checkAccumulate(b, p, s.depth, s.rows, s.columns) })
			case "update":
				add(func(b *bench) { checkUpdate(b, p, s.depth, s.rows, s.columns) })
			case "correlate":
				add(func(b *bench) { checkCorrelate(b, p, s.rows, s.columns, s.depth) })
			}
		}
	}
	stored := fp32
	if strings.HasSuffix(kernel, "_fp16") {
		stored = fp16
	}
	forSizes := func(check func(b *bench, p Precision, _, _, _ int), sizes ...[3]int) {
		for _, s := range sizes {
			add(func(b *bench) { check(b, stored, s[0], s[1], s[2]) })
		}
	}
	switch kernel {
	case "body":
		for _, width := range []int{396, 28, 60, 92, 124, 156, 188, 220, 252} {
			forSizes(checkBody, [3]int{5, width})
			forSizes(checkBodyNumbers, [3]int{5, width, width / 2})
			forSizes(checkBodyHalves, [3]int{5, width})
		}
	case "totals":
		forSizes(checkTotals, [][3]int{{5000}, {31}, {1024}, {2048}, {3072}, {4096}, {10000}, {15365}, {40000}}...)
	case "finish_codes", "pack_codes", "finish_codes_fp16", "pack_codes_fp16":
		for _, atoms := range []int{515, 2, 20, 129, 148, 262, 404, 532} {
			forSizes(checkFinishAndPackCodes, [3]int{3 + atoms%19, atoms})
		}
	case "random_codes", "random_codes_fp16":
		for atoms := 128; atoms < 134; atoms++ {
			forSizes(checkRandomCodes, [3]int{atoms - 120, atoms})
		}
	case "remember":
		for _, s := range [][3]int{
			{131, 128, 128}, {37, 133, 133}, {76, 20, 4}, {84, 44, 44}, {92, 84, 84}, {99, 124, 124}, {1, 124, 20}, {33, 20, 52}, {52, 116, 108},
			{20, 100, 12}, {44, 76, 28}, {60, 92, 36}, {12, 4, 68}, {28, 52, 100}, {93, 52, 60},
			{20, 256, 4}, // a full mirrored tile, then partial ones: each row of a thread is the first outside in some tile
			{4, 132, 4}, {4, 140, 4}, {20, 148, 4}, {4, 156, 4}, {4, 164, 4}, {4, 172, 4}, {4, 180, 4}, {4, 188, 4},
		} {
			add(func(b *bench) { checkRemember(b, tf32, s[0], s[1], s[2]) })
		}
	case "round_atoms", "scale_atoms":
		forSizes(checkSearch("search_any"), [][3]int{{3, 31, 3}, {2, 10, 133}, {1, 1030, 5}}...)
		forSizes(checkSearch("search_320"), [][3]int{{3, 31, 3}, {2, 10, 133}, {1, 1030, 5}}...)
	case "search_any":
		forSizes(checkSearch(kernel), [][3]int{{33, 300, 70}, {3, 31, 3}, {32, 66, 300}, {32, 300, 260}, {28, 20, 28}, {9, 64, 64}}...)
	case "search_128", "search_320", "search_384", "search_768", "search_1024":
		length, _ := strconv.Atoi(strings.TrimPrefix(kernel, "search_"))
		forSizes(checkSearch(kernel), [][3]int{{33, 133, length}, {3, 31, 3}, {9, 256, length - 67}, {20, 64, length/2 + 1}}...)
		for dim := 16; dim <= 128; dim += 16 { // each piece of a row is the first outside the row in some case
			forSizes(checkSearch(kernel), [3]int{32, 5, dim})
		}
	case "update_codes":
		forSizes(checkUpdateCodes, [][3]int{{66, 140, 300}, {3, 5, 2}, {64, 64, 320}, {25, 192, 100}, {1, 76, 20}}...)
		for _, dim := range []int{29, 48, 67, 133, 156, 196, 250} { // each piece of a row is the first outside the row in some case
			forSizes(checkUpdateCodes, [3]int{2, 5, dim})
		}
	case "polish":
		forSizes(checkPolish, [][3]int{{4, 259, 133}, {5, 40, 3}, {2, 70, 1100}, {1, 20, 300}, {3, 800, 5}, {1, 4500, 5}, {1, 1, 1}}...)
	case "jacobi":
		forSizes(checkJacobi, [][3]int{{38, 133}, {21, 5}, {3, 60}, {9, 300}, {2, 1100}}...)
	case "gather":
		forSizes(checkGather, [][3]int{{17, 133}, {5, 2}, {3, 300}, {2, 1300}}...)
	case "power":
		forSizes(checkPower, [][3]int{{36}, {68}, {100}, {2}, {270}, {1030}}...) // for 1030, some threads have two elements
	}
	return all
}

// mutation is a way to break an instruction: to returns its replacement, from the groups of the pattern.
type mutation struct {
	name    string
	pattern *regexp.Regexp
	to      func(groups []string) string
}

// bounds is the mutation of comparisons, only for kernels with tiles: in other kernels the compiler repeats each bound
// several times.
const bounds = "bound"

var mutations = []mutation{
	{"barrier removed", regexp.MustCompile(`bar\.sync.*;`), nothing},
	{"warp's barrier removed", regexp.MustCompile(`bar\.warp\.sync.*;`), nothing},
	{"shorter wait", regexp.MustCompile(`(cp\.async\.wait_group )(\d+);`), func(g []string) string { return g[1] + plus(g[2], 1) + ";" }},
	{"group not committed", regexp.MustCompile(`cp\.async\.commit_group;`), nothing},
	{"copied beyond the end", regexp.MustCompile(`(cp\.async\.cg.*, 16), %r\d+;`), func(g []string) string { return g[1] + ", 16;" }},
	{"not copied", regexp.MustCompile(`(cp\.async\.cg.*, 16), %r\d+;`), func(g []string) string { return g[1] + ", 0;" }},
	{"left factors swapped", regexp.MustCompile(`(mma.*\}, \{%r\d+, )(%r\d+), (%r\d+)(, .*;)`), swapped},
	{"right factors swapped", regexp.MustCompile(`(mma.*\{)(%r\d+), (%r\d+)(\}.*;)`), swapped},
	{"sums swapped", regexp.MustCompile(`(mma.*?\{)(%f\d+), (%f\d+)(.*;)`), swapped},
	{"rounding left out", regexp.MustCompile(`cvt\.rna\.tf32\.f32`), func([]string) string { return "mov.b32" }},
	{"address", regexp.MustCompile(`((?:ld|st)(?:\.global|\.shared)?(?:\.v(\d))?\.[busf](\d+).*\[%\w+)(?:\+(-?\d+))?(\].*;)`), nextElement},
	{"parameter", regexp.MustCompile(`(ld\.param(?:\.v(\d))?\.[busf](\d+).*\[\w+)(?:\+(\d+))?(\].*;)`), nextElement},
	{"place", regexp.MustCompile(`((?:add|shl|mul\.lo)\.[bs]64.*, *)(-?\d+)(;|,.*;)`), func(g []string) string { return g[1] + plus(g[2], 1) + g[3] }},
	{"predicate inverted", regexp.MustCompile(`@(!?)%p`), func(g []string) string { return map[string]string{"": "@!%p", "!": "@%p"}[g[1]] }},
	{"selection", regexp.MustCompile(`(selp.*?, )(\S+), (\S+)(, %p\d+;)`), swapped},
	{"difference for sum", regexp.MustCompile(`add(\.f\d+.*, (?:%fd?\d+|0[fd]\w*[1-9A-F]\w*);)`), func(g []string) string { return "sub" + g[1] }}, // except sums with 0
	{"sum for difference", regexp.MustCompile(`sub(\.f\d+)`), func(g []string) string { return "add" + g[1] }},
	{bounds, regexp.MustCompile(`setp\.(lt|le|gt|ge)\.s32`), func(g []string) string {
		return "setp." + map[string]string{"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}[g[1]] + ".s32"
	}},
	{"sum for product", regexp.MustCompile(`mul(\.f\d+)`), func(g []string) string { return "add" + g[1] }},
}

func nothing([]string) string        { return "" }
func swapped(groups []string) string { return groups[1] + groups[3] + ", " + groups[2] + groups[4] }

// plus returns the decimal number s + n; an empty s means 0.
func plus(s string, n int) string {
	i, _ := strconv.Atoi(s)
	return strconv.Itoa(i + n)
}

// nextElement moves an access by its own size.
func nextElement(groups []string) string {
	count, _ := strconv.Atoi(groups[2])
	bits, _ := strconv.Atoi(groups[3])
	return groups[1] + "+" + plus(groups[4], max(1, count)*bits/8) + groups[5]
}

// mutant is a kernel's text with one broken line.
type mutant struct {
	line           int
	from, to, text string
}

// of returns all mutants of a kernel's text by the mutation.
func (m mutation) of(text string) (all []mutant) {
	if m.name == bounds && !strings.Contains(text, "cp.async") {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i := slices.Index(lines, "{"); i < len(lines); i++ {
		at := m.pattern.FindStringIndex(lines[i])
		if at == nil {
			continue
		}
		from := lines[i]
		lines[i] = from[:at[0]] + m.to(m.pattern.FindStringSubmatch(from)) + from[at[1]:]
		all = append(all, mutant{i + 1, strings.TrimSpace(from), strings.TrimSpace(lines[i]), strings.Join(lines, "\n")})
		lines[i] = from
	}
	return all
}

// try runs the trials of a kernel with another text until one fails. It returns the failure, or "", and the
// maximum number of steps of a trial.
func try(t testing.TB, kernel, text string, mostSteps int) (verdict string, steps int) {
	parsed, err := interpreter.Parse(text)
	if err != nil {
		return err.Error(), 0
	}
	b := newBench(t)
	b.kernels, b.orders = maps.Clone(b.kernels), 1
	b.kernels[kernel] = parsed[kernel]
	for _, check := range trials(kernel) {
		j := &judge{TB: t}
		b.begin(j)
		b.MostSteps = mostSteps
		b.rng = rand.New(rand.NewPCG(1, 2))
		j.judge(func() { check(b) })
		if steps = max(steps, b.Steps); j.verdict != "" {
			return j.verdict, steps
		}
	}
	return "", steps
}

// judge records a failure without failing the real test.
type judge struct {
	testing.TB
	verdict string
}

// failed is the panic that ends the judged function.
type failed struct{}

func (j *judge) judge(f func()) {
	defer func() {
		if r := recover(); r != nil && r != (failed{}) {
			panic(r)
		}
	}()
	f()
}

func (j *judge) Helper() {}

func (j *judge) Fatal(args ...any) {
	j.verdict = fmt.Sprint(args...)
	panic(failed{})
}

func (j *judge) Error(args ...any)                 { j.Fatal(args...) }
func (j *judge) Fatalf(format string, args ...any) { j.Fatal(fmt.Sprintf(format, args...)) }
func (j *judge) Errorf(format string, args ...any) { j.Fatal(fmt.Sprintf(format, args...)) }

// inParallel calls f with all numbers below n, on all processors.
func inParallel(n int, f func(i int)) {
	var wait sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wait.Wait()
}
