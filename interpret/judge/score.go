package judge

import (
	"math"
	"slices"
)

// Score is how well judges found the intruders of one condition.
type Score struct {
	Condition string
	Questions int
	Judges    []Accuracy // in the order of their names
	// Shared is the number of questions that two judges or more have answered,
	// whose answers Agreement compares: see [FleissKappa]. It and Kappa are about who
	// is right, not which word was chosen. (The paper's figures seem to be of this
	// kind: with 57 % right answers, 70 % agreement makes its κ of about 0.40 with two
	// categories; with five, for the words, it would be above 0.6.) Both are NaN
	// where nothing is shared.
	Shared           int
	Agreement, Kappa float64
}

// Accuracy is the share of a judge's answers that are right, Right/Answered.
type Accuracy struct {
	Judge           string
	Right, Answered int
}

// Share returns Right/Answered, NaN if nothing is answered.
func (a Accuracy) Share() float64 {
	if a.Answered == 0 {
		return math.NaN()
	}
	return float64(a.Right) / float64(a.Answered)
}

// Accuracy returns the mean of the judges' shares of right answers, NaN for
// nobody's.
func (s *Score) Accuracy() float64 {
	sum, n := 0.0, 0
	for _, a := range s.Judges {
		if a.Answered > 0 {
			sum += a.Share()
			n++
		}
	}
	return sum / float64(n)
}

// Score scores the answers of all judges, condition by condition in the order
// of their names. Of a judge's answers to the same question the first counts; the
// others are repeated.
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
	s.Agreement, s.Kappa = FleissKappa(counts)
	return s
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
