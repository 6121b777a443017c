package model

import "fmt"

// Themes describes the M themes of a dictionary, M = len(Splits) + 1, and the tree of topics. A theme is a cluster
// of rows. A topic is a range of themes. One topic has all themes; each further topic splits a range in two.
type Themes struct {
	Topics int     `json:"topics"` // default number of topics, 1 to M
	Splits []int32 `json:"splits"` // split j starts a new range at theme Splits[j]; each of 1 to M−1 occurs once
}

// Len returns the number of themes, M, or 0 if t is nil.
func (t *Themes) Len() int {
	if t == nil {
		return 0
	}
	return len(t.Splits) + 1
}

func (t *Themes) validate() error {
	if t == nil {
		return nil
	}
	if t.Topics < 1 || t.Topics > t.Len() {
		return fmt.Errorf("wrong number of topics (got %d, want 1 to %d)", t.Topics, t.Len())
	}
	seen := make([]bool, t.Len())
	for _, first := range t.Splits {
		if first < 1 || int(first) >= len(seen) || seen[first] {
			return fmt.Errorf("splits of %d themes: got %d, want 1 to %d, each once", t.Len(), first, t.Len()-1)
		}
		seen[first] = true
	}
	return nil
}
