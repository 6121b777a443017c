package judge

import (
	"slices"

	"overcomplete/internal/table"
)

// Score says how well the judges found the intruders of one condition.
type Score struct {
	Condition string       `json:"condition"`
	Questions int          `json:"questions"`
	Judges    []Accuracy   `json:"judges"`   // in the order of their names
	Accuracy  table.Number `json:"accuracy"` // mean of the judges' shares of right answers, NaN if there are none
	// Shared is the number of questions that two or more judges have answered.
	// Agreement and Kappa are [FleissKappa]'s, with the two categories right and wrong:
	// pairs of judges agree on these questions, and chance is by the answers to all
	// questions, also of one judge. They are NaN if Shared is 0. (The paper does not say
	// whether its figures are for these two or for the five words. With 57 % right
	// answers and 70 % agreement, its κ of about 0.40 fits two categories; five would
	// give over 0.6.)
	Shared    int          `json:"shared"`
	Agreement table.Number `json:"agreement"`
	Kappa     table.Number `json:"kappa"`
}

// Accuracy counts the answers of one judge and those of them that are right.
type Accuracy struct {
	Judge    string       `json:"judge"`
	Right    int          `json:"right"`
	Answered int          `json:"answered"`
	Share    table.Number `json:"accuracy"` // Right/Answered, NaN if nothing is answered
}

// Score scores the answers of all judges. It returns a score for each condition, in the
// order of the conditions' names. If a judge has answered a question more than once, the
// first answer counts and the others are returned as repeated.
func (k *Key) Score(answers []Answer) (scores []Score, repeated []Answer) {
	var judges, conditions []string
	right := make([]map[string]bool, len(k.Questions)) // of each question: who answered, and whether they are right
	for _, a := range answers {
		q := &right[a.Number-1]
		if _, twice := (*q)[a.Judge]; twice {
			repeated = append(repeated, a)
			continue
		}
		judges = append(judges, a.Judge)
		if *q == nil {
			*q = make(map[string]bool)
		}
		(*q)[a.Judge] = a.Word == k.Questions[a.Number-1].Intruder
	}
	for _, q := range k.Questions {
		conditions = append(conditions, q.Condition)
	}
	judges, conditions = distinct(judges), distinct(conditions)
	for _, condition := range conditions {
		scores = append(scores, k.score(condition, judges, right))
	}
	return scores, repeated
}

func (k *Key) score(condition string, judges []string, right []map[string]bool) Score {
	s := Score{Condition: condition, Judges: make([]Accuracy, len(judges))}
	var counts [][]int // of each question: judges who are wrong, and who are right
	for i, q := range k.Questions {
		if q.Condition != condition {
			continue
		}
		s.Questions++
		count := make([]int, 2)
		for j, judge := range judges {
			s.Judges[j].Judge = judge
			isRight, ok := right[i][judge]
			if !ok {
				continue
			}
			s.Judges[j].Answered++
			if isRight {
				s.Judges[j].Right++
				count[1]++
			} else {
				count[0]++
			}
		}
		counts = append(counts, count)
		if count[0]+count[1] > 1 {
			s.Shared++
		}
	}
	sum, n := 0.0, 0
	for i, a := range s.Judges {
		share := float64(a.Right) / float64(a.Answered)
		s.Judges[i].Share = table.Number(share)
		if a.Answered > 0 {
			sum += share
			n++
		}
	}
	agreement, kappa := FleissKappa(counts)
	s.Accuracy, s.Agreement, s.Kappa = table.Number(sum/float64(n)), table.Number(agreement), table.Number(kappa)
	return s
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
