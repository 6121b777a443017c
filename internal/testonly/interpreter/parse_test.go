package interpreter

import (
	"regexp"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	const head = ".version 7.8\n.target sm_80\n.address_size 64\n"
	kernels, err := Parse(head + `
.global .align 4 .u32 WARP = 32;
.extern .shared .align 16 .b8 shared[];
	// .globl	first
.visible .entry first()
{


	ret;

}
.visible .entry second(
	.param .u32 second_param_0,
	.param .align 8 .b8 second_param_1[20],
	.param .f64 second_param_2
)
.maxntid 16, 4, 1
.minnctapersm 2
{
	.reg .b32 %r<2>;
	.pragma "nounroll";
	ld.param.u32 %r1, [second_param_0]; // a word
	ret;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	first, second := kernels["first"], kernels["second"]
	if len(kernels) != 2 || first == nil || second == nil {
		t.Fatalf("kernels %v", kernels)
	}
	want := []Parameter{{"second_param_0", 4, 0}, {"second_param_1", 20, 8}, {"second_param_2", 8, 32}}
	if !slices.Equal(second.Parameters, want) || len(first.Parameters) != 0 {
		t.Errorf("parameters %v, want %v", second.Parameters, want)
	}
	if first.mostThreads != 1024 || second.mostThreads != 64 {
		t.Errorf("at most %d and %d threads", first.mostThreads, second.mostThreads)
	}
}

func TestParseErrors(t *testing.T) {
	entry := func(body string) string {
		return ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<5>;\n" + body + "\nret;\n}\n"
	}
	for text, want := range map[string]string{
		entry("add.s32 %r1, %r2;"):                "^line 4: add.s32 with 2 operands$",
		entry("frobnicate.u32 %r1, %r2;"):         "^line 4: the interpreter has no frobnicate.u32$",
		entry("mov.u32 %r1, %r5;"):                "^line 4: %r5 is not declared$",
		entry("mov.u32 %r1, %q1;"):                "^line 4: %q1 is not declared$",
		entry("mov.u32 %r1, nothing;"):            `^line 4: operand "nothing"$`,
		entry("mov.u32 3, %r1;"):                  "^line 4: a result in 3$",
		entry("ld.param.u64 %r1, [q];"):           "^line 4: there is no parameter q$",
		entry("ld.global.v2.u32 %r1, [%r2];"):     "^line 4: 1 registers of 2$",
		entry("bra $nowhere;"):                    "^line 6: k: there is no label .nowhere$",
		entry("bar.sync 1;"):                      "^line 4: barrier 1; only 0 is known$",
		entry(".reg .b32 x;"):                     "^line 4: registers \".reg .b32 x\"$",
		entry("{ .reg .b32 x; } mov.u32 %r1, x;"): "^line 4: operand \"x\"$",
		entry("{ mov.u32 %r1, 1;"):                "ends within an entry",
		".visible .entry k()\n{\nret":             "ends within an entry",
		".visible .entry k()\n{\n}":               "^line 3: k goes on beyond its end$",
		".visible .func k()\n{\nret;\n}":          "^line 1: no kernel",
		".visible .entry k(.param .u64 p.q)\n{\n": "^line 1: parameter",
	} {
		if _, err := Parse(text); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// Lanes that part meet where all ways come together, also when code lies in another
// order than it runs in.
func TestMeet(t *testing.T) {
	branch := func(target int, guarded bool) instruction {
		return instruction{flow: flowBranch, target: target, guarded: guarded}
	}
	exit := instruction{flow: flowExit}
	for name, test := range map[string]struct {
		code []instruction
		want map[int]int // where lanes that part at a branch meet
	}{
		"if":                {[]instruction{branch(2, true), {}, {}, exit}, map[int]int{0: 2}},
		"if and else":       {[]instruction{branch(3, true), {}, branch(4, false), {}, {}, exit}, map[int]int{0: 4}},
		"loop":              {[]instruction{{}, branch(0, true), {}, exit}, map[int]int{1: 2}},
		"loop with break":   {[]instruction{{}, branch(4, true), {}, branch(0, true), {}, exit}, map[int]int{1: 4, 3: 4}},
		"a side further up": {[]instruction{branch(3, false), {}, branch(5, false), branch(1, true), {}, {}, exit}, map[int]int{3: 5}},
		"return":            {[]instruction{branch(2, true), exit, {}, exit}, map[int]int{0: 4}},
		"returning lanes":   {[]instruction{{flow: flowExit, guarded: true}, branch(2, true), {}, exit}, map[int]int{0: 4, 1: 2}},
		"no way out":        {[]instruction{branch(0, true), branch(1, false)}, map[int]int{0: 2}},
	} {
		meet(test.code)
		for at, want := range test.want {
			if got := test.code[at].meet; got != want {
				t.Errorf("%s: lanes that part at %d meet at %d, want %d", name, at, got, want)
			}
		}
	}
}
