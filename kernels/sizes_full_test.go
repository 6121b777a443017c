//go:build full && !gpu

package kernels

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each kernel agrees with plain loops at sizes that reach each of its bounds. A kernel without such sizes fails.
func TestSizes(t *testing.T) {
	b := newBench(t)
	b.orders = 1
	for _, name := range slices.Sorted(maps.Keys(b.kernels)) {
		t.Run(name, func(t *testing.T) {
			all := sizesOf(name)
			if len(all) == 0 {
				t.Fatal("it has no sizes")
			}
			for _, check := range all {
				b.begin(t)
				b.rng = rand.New(rand.NewPCG(1, 2))
				check(b)
			}
		})
	}
}

// sizesOf returns quick checks of a kernel that together cover it: full and partial tiles, bounds at each element of a
// thread, reductions with more steps than stages, and all remainders of unrolled loops.
func sizesOf(kernel string) (all []func(b *bench)) {
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
	case "remember", "square":
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
