package interpreter

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"overcomplete/testonly"
)

// Each thread makes two groups of copies of 16 bytes to shared memory, which is zero. The second group copies 4 bytes
// of in, and zeros.
const twoCopies = `
	mul.wide.u32 %rd6, %r1, 16; add.s64 %rd7, %rd2, %rd6; mov.u64 %rd8, shared; add.s64 %rd8, %rd8, %rd6;
	mov.u32 %r3, 0; st.shared.v4.u32 [%rd8], {%r3, %r3, %r3, %r3}; st.shared.v4.u32 [%rd8+1024], {%r3, %r3, %r3, %r3};
	cvt.u32.u64 %r3, %rd8; mov.u32 %r4, 16; add.s32 %r5, %r3, 1024;
	cp.async.cg.shared.global [%r3], [%rd7], 16, %r4;
	cp.async.commit_group;
	cp.async.cg.shared.global [%r5], [%rd7], 16, 4;
	cp.async.commit_group;
`

func TestCopies(t *testing.T) {
	store := func(at int) string {
		return fmt.Sprintf("ld.shared.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%rd8+%d]; add.s64 %%rd9, %%rd1, %%rd6; st.global.v4.u32 [%%rd9], {%%r10, %%r11, %%r12, %%r13};", at)
	}
	const other = "xor.b32 %r20, %r1, 33; mul.wide.u32 %rd9, %r20, 16; mov.u64 %rd10, shared; add.s64 %rd10, %rd10, %rd9; ld.shared.u32 %r21, [%rd10];"
	first := func(thread, i int) uint32 { return uint32(4*thread + i) }
	for _, test := range []struct {
		name, want, body string
		result           func(thread, i int) uint32
	}{
		{"the first group", "", "cp.async.wait_group 1;" + store(0), first},
		{"both groups", "", "cp.async.wait_group 0;" + store(0), first},
		{"bytes that are not copied", "", "cp.async.wait_group 0;" + store(1024), func(thread, i int) uint32 {
			if i > 0 {
				return 0
			}
			return first(thread, 0)
		}},
		{"no wait", `reads byte \d+ of shared memory, where thread \d+ has not waited for its copy`, store(0), nil},
		{"too short a wait", `reads byte \d+ of shared memory, where thread \d+ has not waited for its copy`, "cp.async.wait_group 1;" + store(1024), nil},
		{"a write meanwhile", `writes byte \d+ of shared memory, where thread \d+ has not`, "st.shared.u32 [%rd8], %r1;", nil},
		{"another's without a barrier", `reads byte \d+ of shared memory, (written by|where thread|which nobody)`, "cp.async.wait_group 0;" + other, nil},
		{"a barrier before the wait", `reads byte \d+ of shared memory, (written by|where thread)`, "bar.sync 0; cp.async.wait_group 0;" + other, nil},
		{"another's with a barrier", "", "cp.async.wait_group 0; bar.sync 0;" + other + store(0), first},
		{"over what is read", `cp.async.* writes byte \d+ of shared memory, read by thread|reads byte \d+ of shared memory, where`,
			"cp.async.wait_group 0; bar.sync 0;" + other + "cp.async.cg.shared.global [%r3], [%rd7], 16, %r4;", nil},
		{"not committed", `where thread \d+ has not waited`, "cp.async.wait_group 0; cp.async.cg.shared.global [%r3], [%rd7], 16, %r4; cp.async.wait_group 0;" + store(0), nil},
		{"beyond the end", "uses bytes .* of in, which has 1024", "cp.async.wait_group 0; cp.async.cg.shared.global [%r3], [%rd7+1024], 16, %r4;", nil},
		{"not aligned", "uses 16 bytes at byte 4 of in, which is not aligned", "cp.async.wait_group 0; cp.async.cg.shared.global [%r3], [%rd2+4], 16, %r4;", nil},
		{"of nothing, beyond the end", "", "cp.async.wait_group 0; cp.async.cg.shared.global [%r3], [%rd7+4096], 16, 0; cp.async.commit_group; cp.async.wait_group 0;" + store(0),
			func(int, int) uint32 { return 0 }},
		{"unset memory", "reads byte 0 of out, which nobody has written", "cp.async.wait_group 0; cp.async.cg.shared.global [%r3], [%rd1], 16, %r4;", nil},
		{"by some lanes", "commit_group.* is not reached", "setp.eq.s32 %p1, %r1, 3; @%p1 bra $skip; cp.async.commit_group; $skip:", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := program(t, twoCopies+test.body)
			for seed := range uint64(8) {
				m := newMemories(t, seed)
				err := m.launch(k, 1, 64)
				if test.want != "" {
					if err == nil || !regexp.MustCompile(test.want).MatchString(err.Error()) {
						t.Errorf("seed %d: error %v, want %q", seed, err, test.want)
					}
					continue
				}
				testonly.Must(t, err)
				var want []uint32
				for i := range 256 {
					want = append(want, test.result(i/4, i%4))
				}
				if got := results[uint32](t, m, 256); !slices.Equal(got, want) {
					t.Errorf("seed %d: copied %v", seed, got)
				}
			}
		})
	}
}

// Copies are executed early for some seeds and late for others, so that a write to their source is copied or not.
func TestCopiesEarlyAndLate(t *testing.T) {
	k := program(t, twoCopies+"mov.u32 %r10, 9999; st.global.u32 [%rd7], %r10; cp.async.wait_group 0; ld.shared.u32 %r11, [%rd8]; st.global.u32 [%rd5], %r11;")
	seen := make(map[uint32]bool)
	for seed := range uint64(20) {
		m := newMemories(t, seed)
		testonly.Must(t, m.launch(k, 1, 32))
		seen[results[uint32](t, m, 32)[5]] = true
	}
	if len(seen) != 2 || !seen[20] || !seen[9999] {
		t.Errorf("thread 5 copied %v", seen)
	}
}
