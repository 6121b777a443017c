package intrusion

import (
	"math"
	"slices"

	"overcomplete/internal/table"
)

// A Score says how well judges found the intruders of one condition. Accuracies are shares of
// answers, NaN without answers.
type Score struct {
	Condition string         `json:"condition"`
	Questions int            `json:"questions"`
	Judges    []table.Number `json:"judges"`   // the accuracy of each
	Accuracy  table.Number   `json:"accuracy"` // their mean
	// Agreement and Kappa are those of [FleissKappa] for the categories right and wrong. The paper's
	// 57 % accuracy, 70 % agreement and κ of 0.40 fit these; for the five words κ would exceed 0.6.
	Agreement table.Number `json:"agreement"`
	Kappa     table.Number `json:"kappa"`
}

// Score scores the answers of each judge, from [Sheet.ReadAnswers], for each condition by name. The
// sheet must have its key.
func (s *Sheet) Score(answers [][]int) []Score {
	var conditions []string
	for _, q := range s.Questions {
		conditions = append(conditions, q.Condition)
	}
	slices.Sort(conditions)
	var scores []Score
	for _, condition := range slices.Compact(conditions) {
		score := Score{Condition: condition}
		right, answered := make([]int, len(answers)), make([]int, len(answers))
		var counts [][]int // of each question: the judges who are right, and who are wrong
		for i, q := range s.Questions {
			if q.Condition != condition {
				continue
			}
			score.Questions++
			count := make([]int, 2)
			for j, of := range answers {
				switch of[i] {
				case -1:
					continue
				case q.Intruder:
					right[j]++
					count[0]++
				default:
					count[1]++
				}
				answered[j]++
			}
			counts = append(counts, count)
		}
		n := table.Number(0)
		for j := range answers {
			score.Judges = append(score.Judges, table.Number(float64(right[j])/float64(answered[j])))
			if answered[j] > 0 {
				score.Accuracy += score.Judges[j]
				n++
			}
		}
		score.Accuracy /= n
		agreement, kappa := FleissKappa(counts)
		score.Agreement, score.Kappa = table.Number(agreement), table.Number(kappa)
		scores = append(scores, score)
	}
	return scores
}

// FleissKappa returns the agreement of judges who assign items to categories, and Fleiss' κ, NaN if
// they are undefined. counts[i][c] is the number of judges who assigned item i to category c. Items
// may have different numbers of judges.
//
// Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 76 (1971); Gwet,
// Handbook of Inter-Rater Reliability, 4th edition (2014), chapter 2.
func FleissKappa(counts [][]int) (agreement, kappa float64) {
	var frequencies []float64 // of categories, summed over items with a judge
	items, paired := 0.0, 0.0
	for _, item := range counts {
		judges, agreeing := 0, 0
		for _, n := range item {
			judges += n
			agreeing += n * (n - 1)
		}
		if judges == 0 {
			continue
		}
		items++
		frequencies = append(frequencies, make([]float64, len(item)-len(frequencies))...)
		for c, n := range item {
			frequencies[c] += float64(n) / float64(judges)
		}
		if judges > 1 {
			paired++
			agreement += float64(agreeing) / float64(judges*(judges-1))
		}
	}
	agreement /= paired
	chance := 0.0
	for _, f := range frequencies {
		chance += f / items * f / items
	}
	if chance > 1-1e-12 { // all chose one category
		return agreement, math.NaN()
	}
	return agreement, (agreement - chance) / (1 - chance)
}
