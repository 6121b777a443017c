package intrusion

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"overcomplete/internal/escape"
	"overcomplete/internal/input"
	"overcomplete/interpret"
)

// A Question asks people which of five words doesn't belong.
type Question struct {
	Words     [5]string `json:"words"`
	Intruder  int       `json:"intruder"`  // its index in Words
	Condition string    `json:"condition"` // what is compared, such as X and A
	Dimension int       `json:"dimension"`
}

// Draw returns a question for each of the n dimensions of the highest variance, or for all that are
// live if those are fewer.
func Draw(x *interpret.Index, n int, condition string, rng *rand.Rand) []Question {
	q := newQuestions(x)
	live := q.live()
	questions := make([]Question, min(n, len(live)))
	for i := range questions {
		it := q.pool(live[i]).draw(rng)
		questions[i] = Question{Intruder: it.intruder, Condition: condition, Dimension: live[i]}
		for j, row := range it.rows {
			questions[i].Words[j] = x.Codes.Words[row]
		}
	}
	return questions
}

// A Sheet is a word intrusion test for people (§4.1 of the paper). Judges see only the words.
type Sheet struct {
	ID        string     `json:"test"` // depends on the words
	Questions []Question `json:"questions"`
}

// NewSheet returns a sheet of these questions.
func NewSheet(questions []Question) *Sheet {
	hash := sha256.New()
	for _, q := range questions {
		fmt.Fprintf(hash, "%q", q.Words)
	}
	return &Sheet{fmt.Sprintf("test-%x", hash.Sum(nil)[:4]), questions}
}

// WriteTSV writes the table that judges fill in: in the last column, the numbers of words. Its header
// begins with the ID.
func (s *Sheet) WriteTSV(w io.Writer) error {
	table := s.ID + "\tword 1\tword 2\tword 3\tword 4\tword 5\tanswer\n"
	for i, q := range s.Questions {
		table += strconv.Itoa(i + 1)
		for _, word := range q.Words {
			table += "\t" + escape.Text(word)
		}
		table += "\t\n"
	}
	_, err := io.WriteString(w, table)
	return err
}

// WriteKey writes the sheet with the intruders, as JSON.
func (s *Sheet) WriteKey(w io.Writer) error { return escape.JSON(w, s) }

//go:embed sheet.html
var pageText string

var page = template.Must(template.New("sheet").Funcs(template.FuncMap{
	"number": func(i int) int { return i + 1 }, "hash": hashOf,
}).Parse(pageText))

// hashOf returns the hash of the text of an element for the Content-Security-Policy. The template drops
// comments of scripts, so that they must have none.
func hashOf(element string) string {
	_, text, _ := strings.Cut(pageText, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// WriteHTML writes a self-contained page that asks the questions and saves the answers as a table.
func (s *Sheet) WriteHTML(w io.Writer) error { return page.Execute(w, s) }

const maxBytes = 1 << 26

// ReadKey reads what [Sheet.WriteKey] wrote.
func ReadKey(path string) (*Sheet, error) {
	data, err := input.Read(path, maxBytes)
	if err != nil {
		return nil, err
	}
	s := new(Sheet)
	if err := json.Unmarshal(data, s); err != nil || s.ID == "" || NewSheet(s.Questions).ID != s.ID {
		return nil, fmt.Errorf("%s: not the key of a word intrusion test", path)
	}
	return s, nil
}

// ReadAnswers reads the table of a judge. It returns for each question the index of a word, or −1 if
// it isn't answered.
func (s *Sheet) ReadAnswers(path string) ([]int, error) {
	data, err := input.Read(path, maxBytes)
	if err != nil {
		return nil, err
	}
	header, table, _ := strings.Cut(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	if id, _, _ := strings.Cut(header, "\t"); id != s.ID {
		return nil, fmt.Errorf("%s: no answers to this test (got %.40q, want %q)", path, id, s.ID)
	}
	answers := make([]int, len(s.Questions))
	for i := range answers {
		answers[i] = -1
	}
	number := 1
	for line := range strings.Lines(table) {
		number++
		cells := strings.Split(strings.TrimSpace(line), "\t")
		question, err := strconv.Atoi(cells[0])
		if err != nil || question < 1 || question > len(answers) || answers[question-1] >= 0 {
			return nil, fmt.Errorf("%s:%d: unknown or repeated question (got %.40q, want 1 to %d)", path, number, cells[0], len(answers))
		}
		if len(cells) == 1 || len(cells) == 1+len(Question{}.Words) {
			continue // no answer
		}
		answer, err := strconv.Atoi(strings.TrimSpace(cells[len(cells)-1]))
		if err != nil || answer < 1 || answer > len(Question{}.Words) {
			return nil, fmt.Errorf("%s:%d: no number of a word (got %.40q, want 1 to 5)", path, number, cells[len(cells)-1])
		}
		answers[question-1] = answer - 1
	}
	return answers, nil
}
