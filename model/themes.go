package model

import "fmt"

// Themes describes the M themes of a dictionary, M = len(Splits) + 1, and their tree, whose cuts are topics: a
// topic is a range of themes. One topic has all themes, and each further topic splits a range in two.
type Themes struct {
	Topics int     `json:"topics"` // default number of topics, 1 to M
	Splits []int32 `json:"splits"` // first theme of the range that is split off for the second topic, the third, …: 1 to M−1, each once
}

// Len returns the number of themes, M; 0 of nil.
func (t *Themes) Len() int {
	if t == nil {
		return 0
	}
	return len(t.Splits) + 1
}

// Cut returns the id of the topic of each theme, where there are this number of topics, 1 to M. The topics of a
// larger number are parts of those of a smaller number, and a topic that both have has the same id: its theme,
// or M + j if it is split at Splits[j].
func (t *Themes) Cut(topics int) []int32 {
	of := make([]int32, t.Len())
	for _, first := range t.Splits[:topics-1] {
		of[first] = 1
	}
	for theme := 1; theme < len(of); theme++ {
		of[theme] += of[theme-1]
	}
	ids := make([]int32, topics)
	for theme, topic := range of {
		ids[topic] = int32(theme)
	}
	for j := len(t.Splits) - 1; j >= topics-1; j-- {
		ids[of[t.Splits[j]]] = int32(t.Len() + j)
	}
	for theme, topic := range of {
		of[theme] = ids[topic]
	}
	return of
}

func (t *Themes) validate() error {
	if t == nil {
		return nil
	}
	if t.Topics < 1 || t.Topics > t.Len() {
		return fmt.Errorf("no %d themes have %d topics", t.Len(), t.Topics)
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
