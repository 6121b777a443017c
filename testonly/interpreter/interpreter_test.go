package interpreter

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// program returns a kernel that runs the instructions in body. %rd1 and %rd2 contain the pointers out and in, %r1 the
// thread, %r2 the block, and %rd3 4 · the thread. %rd4 and %rd5 contain the addresses of the thread's 4 bytes of
// shared memory and of out.
func program(t *testing.T, body string) *Kernel {
	t.Helper()
	kernels, err := Parse(`
.version 7.8
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 shared[];

.visible .entry kernel(
	.param .u64 kernel_param_0, // out
	.param .align 8 .b8 kernel_param_1[16]
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<10>;
	.reg .b16 	%rs<20>;
	.reg .f32 	%f<20>;
	.reg .b32 	%r<40>;
	.reg .f64 	%fd<10>;
	.reg .b64 	%rd<20>;
	.shared .align 4 .b8 fixed[64];

	ld.param.u64 %rd1, [kernel_param_0];
	ld.param.u64 %rd2, [kernel_param_1+8];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mul.wide.u32 %rd3, %r1, 4;
	mov.u64 %rd4, shared;
	add.s64 %rd4, %rd4, %rd3;
	add.s64 %rd5, %rd1, %rd3;
` + body + `
	ret;
}
`)
	testonly.Must(t, err)
	return kernels["kernel"]
}

// memories are the buffers of a launch: out and in, of 1024 bytes each.
type memories struct {
	*Machine
	out, in Pointer
}

func newMemories(t *testing.T, seed uint64) memories {
	t.Helper()
	m := memories{Machine: New(seed)}
	m.out, m.in = m.Alloc("out", 1024), m.Alloc("in", 1024)
	numbers := make([]uint32, 256)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	testonly.Must(t, m.Write(m.in, encode(numbers)))
	return m
}

func encode(x any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		panic(err)
	}
	return b
}

func (m memories) launch(k *Kernel, blocks, threads int) error {
	return m.Launch(k, Launch{
		Grid: [2]int{blocks, 1}, Threads: threads, Shared: 2048, Together: blocks > 1,
		Arguments: [][]byte{encode(uint64(m.out)), encode([2]uint64{0, uint64(m.in)})},
	})
}

// results returns n numbers of out.
func results[T any](t *testing.T, m memories, n int) []T {
	t.Helper()
	all := make([]T, n)
	data, err := m.Read(m.out, binary.Size(all))
	testonly.Must(t, err)
	_, err = binary.Decode(data, binary.LittleEndian, all)
	testonly.Must(t, err)
	return all
}

// released returns instructions with which block 0 writes out and releases it, and the other blocks acquire and read it, with
// instructions before the release and after the acquisition.
func released(before, after string) string {
	return `setp.ne.s32 %p1, %r2, 0; setp.ne.s32 %p3, %r1, 0; @%p1 bra $other;
		st.global.u32 [%rd5], %r1; ` + before + ` @%p3 bra $end; mov.u32 %r3, 1; red.release.gpu.global.add.u32 [%rd2], %r3; bra $end;
		$other: @%p3 bra $go;
		$wait: ld.acquire.gpu.global.s32 %r3, [%rd2]; setp.lt.s32 %p2, %r3, 1; @%p2 bra $wait;
		$go: ` + after + ` ld.global.u32 %r4, [%rd5]; $end:`
}

// Each faulty kernel ends with an error. A correct kernel that differs little from it doesn't.
func TestFaults(t *testing.T) {
	const pass, early = "^$", "reads byte .* of out, (written by thread|which nobody has written)"
	for _, test := range []struct{ name, want, body string }{
		{"own element", pass, `st.global.u32 [%rd5], %r1; ld.global.u32 %r3, [%rd5];`},
		{"beyond the end", `line 30, ld.global.u32 %r3, \[%rd6\+1024\], uses bytes 1024 to 1027 of in, which has 1024`,
			`mov.u64 %rd6, %rd2;
			 ld.global.u32 %r3, [%rd6+1024];`},
		{"before the start", `uses bytes .* of out, which has|where nothing is`, `ld.global.u32 %r3, [%rd2+-4];`},
		{"nowhere", "uses the address 0x0, where nothing is", `mov.u64 %rd6, 0; ld.global.u32 %r3, [%rd6];`},
		{"beyond shared memory", "shared memory, which has 2112", `st.shared.u32 [%rd4+2048], %r1;`},
		{"generic shared memory", pass, `cvta.shared.u64 %rd6, %rd4; st.u32 [%rd6], %r1; ld.u32 %r3, [%rd6]; ld.shared.u32 %r4, [%rd4];`},
		{"generic as shared", "uses bytes .* of shared memory", `cvta.shared.u64 %rd6, %rd4; st.shared.u32 [%rd6], %r1;`},
		{"not aligned", "uses 8 bytes at byte 4 of in, which is not aligned", `ld.global.v2.u32 {%r3, %r4}, [%rd2+4];`},
		{"unset register", "line 29, add.s32 %r4, %r3, 1, reads %r3, which has no value", `add.s32 %r4, %r3, 1;`},
		{"register unset in a lane", "thread 5: .* reads %r3",
			`setp.ne.s32 %p1, %r1, 5;
			 @!%p1 bra $skip;
			 mov.u32 %r3, 1;
			 $skip: add.s32 %r4, %r3, 1;`},
		{"unset predicate", "reads %p1", `@%p1 bra $skip; $skip:`},
		{"unset memory", "reads byte 0 of out, which nobody has written", `ld.global.u32 %r3, [%rd1];`},
		{"half of it unset", "reads byte 2 of out, which nobody has written",
			`setp.ne.s32 %p1, %r1, 0; @%p1 bra $skip; mov.b32 {%rs1, %rs2}, %r1; st.global.u16 [%rd1], %rs1; ld.global.u32 %r3, [%rd1]; $skip:`},
		{"unset shared memory", "reads byte (64|192) of shared memory, which nobody has written", `ld.shared.u32 %r3, [%rd4];`},
		{"all write one word", "writes byte 0 of out, written by thread", `st.global.u32 [%rd1], %r1;`},
		{"read after a lane's write", "reads byte .* of shared memory, written by thread",
			`xor.b32 %r3, %r1, 1; mul.wide.u32 %rd6, %r3, 4; mov.u64 %rd7, shared; add.s64 %rd6, %rd6, %rd7;
			 st.shared.u32 [%rd4], %r1; ld.shared.u32 %r4, [%rd6];`},
		{"with a warp's barrier", pass,
			`xor.b32 %r3, %r1, 1; mul.wide.u32 %rd6, %r3, 4; mov.u64 %rd7, shared; add.s64 %rd6, %rd6, %rd7;
			 st.shared.u32 [%rd4], %r1; bar.warp.sync -1; ld.shared.u32 %r4, [%rd6];`},
		{"another warp's with it", "reads byte .* of shared memory, written by thread",
			`xor.b32 %r3, %r1, 32; mul.wide.u32 %rd6, %r3, 4; mov.u64 %rd7, shared; add.s64 %rd6, %rd6, %rd7;
			 mov.u32 %r4, 0; $wait: add.s32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 1000;
			 st.shared.u32 [%rd4], %r1; bar.warp.sync -1; @%p1 bra $wait; ld.shared.u32 %r4, [%rd6];`},
		{"with a block's barrier", pass,
			`xor.b32 %r3, %r1, 32; mul.wide.u32 %rd6, %r3, 4; mov.u64 %rd7, shared; add.s64 %rd6, %rd6, %rd7;
			 st.shared.u32 [%rd4], %r1; bar.sync 0; ld.shared.u32 %r4, [%rd6];`},
		{"write after a read", "writes byte .* of shared memory, read by thread|reads byte .* of shared memory, written by thread",
			`xor.b32 %r3, %r1, 32; mul.wide.u32 %rd6, %r3, 4; mov.u64 %rd7, shared; add.s64 %rd6, %rd6, %rd7;
			 st.shared.u32 [%rd4], %r1; bar.sync 0; ld.shared.u32 %r4, [%rd6]; st.shared.u32 [%rd4], %r4;`},
		{"write after all read", "writes byte 64 of shared memory, read by thread",
			`st.shared.u32 [%rd4], %r1; bar.sync 0; ld.shared.u32 %r4, [shared]; setp.ne.s32 %p1, %r1, 3; @%p1 bra $skip; st.shared.u32 [shared], %r4; $skip:`},
		{"write after all read and met", pass,
			`st.shared.u32 [%rd4], %r1; bar.sync 0; ld.shared.u32 %r4, [shared]; bar.sync 0; setp.ne.s32 %p1, %r1, 3; @%p1 bra $skip; st.shared.u32 [shared], %r4; $skip:`},
		{"halves of a word", pass,
			`shr.u32 %r3, %r1, 1; mul.wide.u32 %rd6, %r1, 2; add.s64 %rd6, %rd1, %rd6; mov.b32 {%rs1, %rs2}, %r1; st.global.u16 [%rd6], %rs1; ld.global.u16 %rs3, [%rd6];`},
		{"another block's element", `writes byte 4 of out, written by thread 0 of block \([012], 0\) without`,
			`mov.u32 %r3, %r2; setp.ne.s32 %p1, %r1, 0; @%p1 bra $skip; st.global.u32 [%rd1+4], %r3; $skip:`},
		{"a released element", pass, released("bar.sync 0;", "bar.sync 0;")},
		{"released without a barrier before", early, released("", "bar.sync 0;")},
		{"acquired without a barrier after", early, released("bar.sync 0;", "")},
		{"not acquired", early, strings.ReplaceAll(released("bar.sync 0;", "bar.sync 0;"), "bra $wait", "bra $go")},
		{"warps without a barrier", "waits for warps that have ended",
			`setp.lt.u32 %p1, %r1, 32; @%p1 bra $skip; bar.sync 0; $skip:`},
		{"another barrier", "waits while other warps do at line",
			`setp.lt.u32 %p1, %r1, 32; @%p1 bra $other; bar.sync 0; bra $skip;
			 $other: bar.sync 0; $skip:`},
		{"a counted barrier at two places", pass,
			`xor.b32 %r3, %r1, 32; mul.wide.u32 %rd6, %r3, 4; mov.u64 %rd7, shared; add.s64 %rd6, %rd6, %rd7;
			 st.shared.u32 [%rd4], %r1; setp.lt.u32 %p1, %r1, 32; @%p1 bra $other; bar.sync 1, 64; bra $skip;
			 $other: bar.sync 1, 64; $skip: ld.shared.u32 %r4, [%rd6];`},
		{"a barrier for one warp", "is not for all 64 threads", `bar.sync 1, 32;`},
		{"lanes without a barrier", "thread 0: .* is not reached by this lane together with the others",
			`setp.eq.s32 %p1, %r1, 0; @%p1 bra $skip; bar.sync 0; $skip:`},
		{"a lane without a shuffle", "thread 9: .*, shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1, is not reached",
			`setp.eq.s32 %p1, %r1, 9; @%p1 bra $skip; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; $skip:`},
		{"a barrier for some lanes", "is for lanes 0xff", `bar.warp.sync 255;`},
		{"a factor that is no TF32", "has the factor 0x3f800001, more bits than TF32 has",
			`mov.u32 %r3, 1065353217; mov.f32 %f1, 0f00000000; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r3,%r3,%r3,%r3}, {%r3,%r3}, {%f1,%f1,%f1,%f1};`},
		{"no end", "no end in sight", `$loop: bra $loop;`},
		{"beyond the parameter", "reads beyond the parameter", `ld.param.u64 %rd6, [kernel_param_1+16];`},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := program(t, test.body)
			for seed := range uint64(4) {
				m := newMemories(t, seed)
				m.MostSteps = 1e5
				message := ""
				blocks := 1
				if strings.Contains(test.body, "%r2") {
					blocks = 3
				}
				if err := m.launch(k, blocks, 64); err != nil {
					message = err.Error()
				}
				if !regexp.MustCompile(test.want).MatchString(message) {
					t.Errorf("seed %d: error %q, want %q", seed, message, test.want)
				}
			}
		})
	}
}

// AllowSameValue permits races in which all threads write the same value.
func TestSameValue(t *testing.T) {
	for value, want := range map[string]string{"7": "", "%r2": "writes another value to byte 0 of out than thread"} {
		k := program(t, `ld.global.u32 %r3, [%rd1]; mov.u32 %r4, `+value+`; st.global.u32 [%rd1], %r4;`)
		m := newMemories(t, 1)
		m.AllowSameValue(m.out)
		testonly.Must(t, m.Write(m.out, make([]byte, 1024)))
		if err := m.launch(k, 4, 64); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Equal detects that a result depends on the order of warps, here by an allowed race.
func TestEqual(t *testing.T) {
	k := program(t, `ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd5+4], %r3; mov.u32 %r4, 1; st.global.u32 [%rd1], %r4;`)
	differ := false
	for seed := range uint64(20) {
		m := newMemories(t, 1)
		m.AllowSameValue(m.out)
		testonly.Must(t, m.Write(m.out, make([]byte, 1024)))
		other := memories{m.Clone(seed), m.out, m.in}
		testonly.Must(t, m.Equal(other.Machine))
		for _, m := range []memories{m, other} {
			testonly.Must(t, m.launch(k, 1, 64))
		}
		err := m.Equal(other.Machine)
		differ = differ || err != nil && strings.Contains(err.Error(), "of out is 0x0")
	}
	if !differ {
		t.Error("the order never mattered")
	}
}

// fma agrees with the exact sum, rounded once.
func TestFMA(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100000 {
		// few returns a number of few bits, some of them far apart, so that ties are frequent.
		few := func() float32 {
			return float32(rng.IntN(7)-3)*float32(math.Ldexp(1, -rng.IntN(40))) + float32(rng.IntN(3)-1)
		}
		a, b, c := few(), few(), few()
		exact := new(big.Float).SetPrec(300)
		exact.Mul(exact.SetFloat64(float64(a)), new(big.Float).SetFloat64(float64(b)))
		exact.Add(exact, new(big.Float).SetFloat64(float64(c)))
		if want, _ := exact.Float32(); fma(a, b, c) != want {
			t.Fatalf("%v·%v + %v is %v, want %v", a, b, c, fma(a, b, c), want)
		}
	}
}
