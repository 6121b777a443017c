package topics

import (
	"math"
	"slices"

	"overcomplete/model"
)

// A branch is a node of the tree of themes: the themes lo to hi−1.
type branch struct {
	lo, hi int32
	halves [2]int32 // ids of the branches into which it splits, if hi − lo > 1
}

// A tree lists the 2M−1 branches of M themes by [ID].
type tree struct {
	themes   int32
	branches []branch
	rows     []int32 // rows with a theme, in the order of their themes
	starts   []int32 // starts[i] is the index in rows of theme i's first row; M+1 elements
}

// newTree returns the tree of themes, without rows.
func newTree(themes *model.Themes) *tree {
	m := int32(themes.Len())
	t := &tree{themes: m, branches: make([]branch, 2*m-1), starts: make([]int32, m+1)}
	begin, end := make([]int32, m+1), make([]int32, m+1) // ids of the largest branches so far, by lo and by hi
	for theme := range m {
		t.branches[theme] = branch{lo: theme, hi: theme + 1}
		begin[theme], end[theme+1] = theme, theme
	}
	for j := m - 2; j >= 0; j-- {
		at := themes.Splits[j]
		a, b := end[at], begin[at]
		whole := branch{t.branches[a].lo, t.branches[b].hi, [2]int32{a, b}}
		t.branches[m+j] = whole
		begin[whole.lo], end[whole.hi] = m+j, m+j
	}
	return t
}

// addRows sets the rows of the tree. The theme of row i is of[i], which may be None.
func (t *tree) addRows(of []ID) {
	for _, theme := range of {
		if theme != None {
			t.starts[theme+1]++
		}
	}
	for theme := range t.themes {
		t.starts[theme+1] += t.starts[theme]
	}
	next := slices.Clone(t.starts)
	t.rows = make([]int32, t.starts[t.themes])
	for i, theme := range of {
		if theme != None {
			t.rows[next[theme]] = int32(i)
			next[theme]++
		}
	}
}

// rowsOf returns the rows of a branch, in the order of their themes.
func (t *tree) rowsOf(id int32) []int32 {
	b := t.branches[id]
	return t.rows[t.starts[b.lo]:t.starts[b.hi]]
}

// root returns the branch of all themes.
func (t *tree) root() int32 { return min(t.themes, int32(len(t.branches)-1)) }

// divide splits a branch into n branches, or into all its themes if it has fewer than n. It uses the splits nearest to
// the root first.
func (t *tree) divide(id int32, n int) []int32 {
	parts := []int32{id}
	for len(parts) < n {
		next := -1 // a split nearer to the root has a smaller id
		for i, part := range parts {
			if part >= t.themes && (next < 0 || part < parts[next]) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		halves := t.branches[parts[next]].halves
		parts = slices.Replace(parts, next, next+1, halves[:]...)
	}
	return parts
}

// smallest returns the smallest branch with the same rows as branch id, which must have rows. It returns a theme only
// if id is a theme.
func (t *tree) smallest(id int32) int32 {
	for id >= t.themes {
		a, b := t.branches[id].halves[0], t.branches[id].halves[1]
		switch {
		case len(t.rowsOf(a)) == 0 && b >= t.themes:
			id = b
		case len(t.rowsOf(b)) == 0 && a >= t.themes:
			id = a
		default:
			return id
		}
	}
	return id
}

// children divides a branch that has rows into up to maxChildren branches, and returns the branches that have rows. For
// a theme, it returns none.
func (t *tree) children(id int32) []int32 {
	if id < t.themes {
		return nil
	}
	return slices.DeleteFunc(t.divide(t.smallest(id), maxChildren), func(part int32) bool { return len(t.rowsOf(part)) == 0 })
}

// descend returns the theme of a row, given the row's themes in increasing order and the powers of their cosines.
// Without themes it returns None. From the root down, each split has two sides, and each side has two halves. descend
// sums the powers of the themes in each half, and follows the side that has the half with the largest sum. Sums of whole
// sides, or of quarters, gave themes that agree less with classes of texts.
func (t *tree) descend(themes []int32, powers []float32) ID {
	for id := t.root(); len(themes) > 1; {
		at := t.split(id, themes)
		halves := t.branches[id].halves
		if t.strongestHalf(halves[0], themes[:at], powers[:at]) >= t.strongestHalf(halves[1], themes[at:], powers[at:]) {
			id, themes, powers = halves[0], themes[:at], powers[:at]
		} else {
			id, themes, powers = halves[1], themes[at:], powers[at:]
		}
	}
	if len(themes) == 0 {
		return None
	}
	return ID(themes[0])
}

// split returns the number of the given themes that are in the first half of branch id, which must not be a theme.
func (t *tree) split(id int32, themes []int32) int {
	at, _ := slices.BinarySearch(themes, t.branches[t.branches[id].halves[1]].lo)
	return at
}

func (t *tree) strongestHalf(id int32, themes []int32, powers []float32) float32 {
	at := t.split(id, themes)
	return max(sum(powers[:at]), sum(powers[at:]))
}

func sum(powers []float32) (sum float32) {
	for _, p := range powers {
		sum += p
	}
	return sum
}

// power returns cosine^2.5. Smaller exponents favour branches of many themes, so that small topics lose their rows.
// Larger exponents agree less with classes of texts.
func power(cosine float32) float32 { return cosine * cosine * float32(math.Sqrt(float64(cosine))) }
