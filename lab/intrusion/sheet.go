package intrusion

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"overcomplete/internal/input"
	"overcomplete/internal/printing"
	"overcomplete/interpret"
)

// A Question asks people which word among five doesn't belong.
type Question struct {
	Words     [5]string `json:"words"`
	Intruder  int       `json:"intruder"`  // index in Words
	Condition string    `json:"condition"` // name of the codes or vectors, such as A or X
	Dimension int       `json:"dimension"`
}

// Draw returns one question about each of the n live dimensions with the highest variance, or about
// all if there are fewer.
func Draw(x *interpret.Index, n int, condition string, rng *rand.Rand) []Question {
	sampler := newSampler(x)
	live := sampler.live()
	questions := make([]Question, min(n, len(live)))
	for i := range questions {
		it := sampler.pool(live[i]).draw(rng)
		questions[i] = Question{Intruder: it.intruder, Condition: condition, Dimension: live[i]}
		for j, row := range it.rows {
			questions[i].Words[j] = printing.Text(x.Codes.IDs[row])
		}
	}
	return questions
}

// A Sheet is a word intrusion test for people (§4.1 of the paper). Judges see only the words.
type Sheet struct {
	ID        string     `json:"test"` // a hash of the words
	Questions []Question `json:"questions"`
}

// NewSheet returns a sheet of questions.
func NewSheet(questions []Question) *Sheet {
	hash := sha256.New()
	for _, q := range questions {
		fmt.Fprintf(hash, "%q", q.Words)
	}
	return &Sheet{fmt.Sprintf("test-%x", hash.Sum(nil)[:4]), questions}
}

// Write writes a table for the judges to tsv and the sheet with the intruders, as JSON, to key. The table's header
// begins with the ID. Judges fill in the last column with the number of a word, 1 to 5.
func (s *Sheet) Write(tsv, key io.Writer) error {
	table := s.ID + "\tword 1\tword 2\tword 3\tword 4\tword 5\tanswer\n"
	for i, q := range s.Questions {
		table += fmt.Sprintf("%d\t%s\t\n", i+1, strings.Join(q.Words[:], "\t"))
	}
	_, err := io.WriteString(tsv, table)
	return cmp.Or(err, printing.JSON(key, s))
}

// A Score is the accuracy and the agreement of judges in one condition.
type Score struct {
	Condition string          `json:"condition"`
	Questions int             `json:"questions"`
	Accuracy  printing.Number `json:"accuracy"` // share of right answers, NaN without answers
	// Agreement and Kappa are the results of [FleissKappa] for two categories, right and wrong. The paper's 57 %
	// accuracy, 70 % agreement and κ of 0.40 fit these two. With the five words as categories, κ would exceed 0.6.
	Agreement printing.Number `json:"agreement"`
	Kappa     printing.Number `json:"kappa"`
}

const maxBytes = 1 << 26 // largest size of a key or a table

// ScoreFiles scores the tables that judges filled in, one per judge. It returns a score for each condition, ordered by
// the conditions' names. The argument key is the path of the key that [Sheet.Write] wrote. A table with another ID, a
// repeated answer or an answer that isn't 1 to 5 is an error.
func ScoreFiles(key string, answers ...string) ([]Score, error) {
	data, err := input.Read(key, maxBytes)
	if err != nil {
		return nil, err
	}
	s := new(Sheet)
	if err := json.Unmarshal(data, s); err != nil || s.ID == "" || NewSheet(s.Questions).ID != s.ID {
		return nil, fmt.Errorf("%s: not the key of a word intrusion test", key)
	}
	counts := make([][]int, len(s.Questions)) // numbers of right and wrong answers
	conditions := map[string][][]int{}
	for i, q := range s.Questions {
		counts[i] = []int{0, 0}
		conditions[q.Condition] = append(conditions[q.Condition], counts[i])
	}
	for _, path := range answers {
		if err := s.count(counts, path); err != nil {
			return nil, err
		}
	}
	var scores []Score
	for _, condition := range slices.Sorted(maps.Keys(conditions)) {
		right, all := 0, 0
		for _, count := range conditions[condition] {
			right, all = right+count[0], all+count[0]+count[1]
		}
		agreement, kappa := FleissKappa(conditions[condition])
		scores = append(scores, Score{condition, len(conditions[condition]), printing.Number(right) / printing.Number(all), printing.Number(agreement), printing.Number(kappa)})
	}
	return scores, nil
}

// count adds the answers in the table of a judge to the counts of right and wrong answers.
func (s *Sheet) count(counts [][]int, path string) error {
	data, err := input.Read(path, maxBytes)
	if err != nil {
		return err
	}
	header, rows, _ := strings.Cut(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	if id, _, _ := strings.Cut(header, "\t"); id != s.ID {
		return fmt.Errorf("%s: no answers to this test (got %.40q, want %q and a tab, in UTF-8)", path, id, s.ID)
	}
	answered := make([]bool, len(counts))
	for i, line := range strings.Split(rows, "\n") {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		last := strings.TrimSpace(cells[len(cells)-1])
		if len(cells) == 1 || len(cells) == 1+len(Question{}.Words) {
			continue // no answer
		}
		question, _ := strconv.Atoi(cells[0])
		answer, _ := strconv.Atoi(last)
		if question < 1 || question > len(counts) || answered[question-1] || answer < 1 || answer > 5 {
			return fmt.Errorf("%s:%d: bad or repeated answer (got %.40q to question %.40q, want 1 to 5 to questions 1 to %d)", path, i+2, last, cells[0], len(counts))
		}
		answered[question-1] = true
		if answer-1 == s.Questions[question-1].Intruder {
			counts[question-1][0]++
		} else {
			counts[question-1][1]++
		}
	}
	if !slices.Contains(answered, true) {
		return fmt.Errorf("%s: no answers: the last column needs the numbers of words, 1 to 5", path)
	}
	return nil
}

// FleissKappa returns the agreement of judges who assign items to categories, and Fleiss' κ. Each is NaN if undefined.
// counts[i][c] is the number of judges who assigned item i to category c. Items may have different numbers of judges.
//
// Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 76 (1971); Gwet,
// Handbook of Inter-Rater Reliability, 4th edition (2014), chapter 2.
func FleissKappa(counts [][]int) (agreement, kappa float64) {
	frequencies := map[int]float64{} // by category, summed over items with a judge
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
	for c := range len(frequencies) {
		chance += frequencies[c] / items * frequencies[c] / items
	}
	return agreement, (agreement - chance) / (1 - chance) // 0/0 if all chose one category
}
