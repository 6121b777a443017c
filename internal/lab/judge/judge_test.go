package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"overcomplete/internal/table"
)

// Examples with published results: that of Wikipedia's article on Fleiss'
// kappa (14 raters, agreement 0.378, κ = 0.210, here to more digits, from the same
// table), and that of Fleiss 1971 (6 psychiatrists, 30 patients, κ = 0.430); and
// one with missing ratings, four raters of twelve units (Gwet 2014, agreement 0.818, κ = 0.761).
func TestFleissKappa(t *testing.T) {
	for _, tt := range []struct {
		name             string
		counts           [][]int
		agreement, kappa float64
	}{
		{"Wikipedia", [][]int{
			{0, 0, 0, 0, 14}, {0, 2, 6, 4, 2}, {0, 0, 3, 5, 6}, {0, 3, 9, 2, 0}, {2, 2, 8, 1, 1},
			{7, 7, 0, 0, 0}, {3, 2, 6, 3, 0}, {2, 5, 3, 2, 2}, {6, 5, 2, 1, 0}, {0, 2, 2, 3, 7},
		}, .3780, .2099},
		{"Fleiss", [][]int{
			{0, 0, 0, 6, 0}, {0, 3, 0, 0, 3}, {0, 1, 4, 0, 1}, {0, 0, 0, 0, 6}, {0, 3, 0, 3, 0},
			{2, 0, 4, 0, 0}, {0, 0, 4, 0, 2}, {2, 0, 3, 1, 0}, {2, 0, 0, 4, 0}, {0, 0, 0, 0, 6},
			{1, 0, 0, 5, 0}, {1, 1, 0, 4, 0}, {0, 3, 3, 0, 0}, {1, 0, 0, 5, 0}, {0, 2, 0, 3, 1},
			{0, 0, 5, 0, 1}, {3, 0, 0, 1, 2}, {5, 1, 0, 0, 0}, {0, 2, 0, 4, 0}, {1, 0, 2, 0, 3},
			{0, 0, 0, 0, 6}, {0, 1, 0, 5, 0}, {0, 2, 0, 1, 3}, {2, 0, 0, 4, 0}, {1, 0, 0, 4, 1},
			{0, 5, 0, 1, 0}, {4, 0, 0, 0, 2}, {0, 2, 0, 4, 0}, {1, 0, 5, 0, 0}, {0, 0, 0, 0, 6},
		}, .5556, .4302},
		{"Gwet", [][]int{
			{3, 0, 0, 0, 0}, {0, 3, 1, 0, 0}, {0, 0, 4, 0, 0}, {0, 0, 4, 0, 0}, {0, 4, 0, 0, 0}, {1, 1, 1, 1, 0},
			{0, 0, 0, 4, 0}, {3, 1, 0, 0, 0}, {0, 4, 0, 0, 0}, {0, 0, 0, 0, 3}, {2, 0, 0, 0, 0}, {0, 0, 1, 0, 0},
		}, .8182, .7612},
	} {
		agreement, kappa := FleissKappa(tt.counts)
		if math.Abs(agreement-tt.agreement) > 5e-5 || math.Abs(kappa-tt.kappa) > 5e-5 {
			t.Errorf("%s: agreement %.5f, κ %.5f; want %.4f, %.4f", tt.name, agreement, kappa, tt.agreement, tt.kappa)
		}
	}
	for name, counts := range map[string][][]int{"no items": nil, "one judge": {{1, 0}, {0, 1}}, "one category": {{3, 0}, {3, 0}}} {
		if _, kappa := FleissKappa(counts); !math.IsNaN(kappa) {
			t.Errorf("%s: κ is %v", name, kappa)
		}
	}
}

// sampleKey has n questions of each of two conditions; a word's name tells whether
// it is the intruder.
func sampleKey(n int) *Key {
	var questions []Solution
	for i := range 2 * n {
		s := Solution{Condition: "XA"[i%2 : i%2+1], Source: "model", Dimension: i}
		for j := range 5 {
			s.Words = append(s.Words, fmt.Sprint("word", i, "-", j))
		}
		s.Words[i%5] = fmt.Sprint("intruder", i)
		s.Intruder = s.Words[i%5]
		questions = append(questions, s)
	}
	return NewKey(questions, 7)
}

func save(t *testing.T, name string, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFiles(t *testing.T) {
	key := sampleKey(3)
	test := key.Test()
	path := save(t, "test.json", test)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A judge who looks into the file learns nothing.
	for _, secret := range []string{`"intruder"`, "condition", "source", "dimension", "seed", "model"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the questions say %s:\n%s", secret, text)
		}
	}
	if got, err := ReadTest(path); err != nil || !reflect.DeepEqual(got, test) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ReadKey(save(t, "key.json", key)); err != nil || !reflect.DeepEqual(got, key) {
		t.Errorf("%v, %v", got, err)
	}
	changed := key.Test()
	changed.Questions[1].Words = slices.Clone(changed.Questions[1].Words)
	changed.Questions[1].Words[0] = "other"
	words := key.Questions[0].Words
	made := func(q Question) *Test {
		t := &Test{Questions: []Question{q}}
		t.ID = t.hash()
		return t
	}
	if _, err := ReadTest(save(t, "test.json", made(Question{1, words}))); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]any{
		"changed": changed, "empty": Test{}, "another file": map[string]int{"a": 1}, "no object": 5,
		"misnumbered": made(Question{2, words}), "short": made(Question{1, words[:4]}),
	} {
		path := save(t, "bad.json", bad)
		if _, err := ReadTest(path); err == nil || !strings.Contains(err.Error(), "bad.json: ") {
			t.Errorf("%s test: %v", name, err)
		}
		if _, err := ReadKey(path); err == nil || !strings.Contains(err.Error(), "bad.json: ") {
			t.Errorf("%s key: %v", name, err)
		}
	}
	if _, err := ReadKey(path); err == nil || !strings.Contains(err.Error(), "is it a key?") {
		t.Errorf("a test as a key: %v", err)
	}
}

func open(t *testing.T, path string, test *Test) *Answers {
	t.Helper()
	a, torn, err := OpenAnswers(path, test)
	if err != nil || torn {
		t.Fatal(torn, err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// Judges answer at the same time and through two programs, stop and come back.
func TestAnswers(t *testing.T) {
	key := sampleKey(10)
	test := key.Test()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	first, second := open(t, path, test), open(t, path, test)
	var judges sync.WaitGroup
	answerSome := func(a *Answers, judge string, n int) {
		for range n {
			q, _ := a.Next(judge)
			if err := a.Add(Answer{Judge: judge, Number: q.Number, Word: q.Words[0]}); err != nil {
				t.Error(err)
			}
		}
	}
	for _, judge := range []string{"ann", "ben", "cleo"} {
		judges.Go(func() { answerSome(first, judge, 15) })
	}
	judges.Go(func() { answerSome(second, "dora", 20) })
	judges.Wait()
	again := open(t, path, test)
	for judge, want := range map[string]int{"ann": 15, "ben": 15, "cleo": 15, "dora": 20, "eve": 0} {
		q, n := again.Next(judge)
		if n != want || (q == nil) != (want == 20) || q != nil && q.Number != want+1 {
			t.Errorf("%s comes back to %v after %d answers, want %d", judge, q, n, want)
		}
	}
	if err := again.Add(Answer{Judge: "ann", Number: 1, Word: test.Questions[0].Words[0]}); !errors.Is(err, ErrAnswered) {
		t.Errorf("answered twice: %v", err)
	}
	for _, bad := range []Answer{
		{Judge: "ann", Number: 16, Word: "other"}, {Judge: "ann", Number: 0, Word: "word"}, {Judge: "ann", Number: 21, Word: "word"},
		{Judge: "", Number: 16, Word: test.Questions[15].Words[0]}, {Judge: "a\nb", Number: 16, Word: test.Questions[15].Words[0]},
	} {
		if err := again.Add(bad); err == nil {
			t.Errorf("%v is taken for an answer", bad)
		}
	}
	answers, torn, err := ReadAnswers(path, test)
	if err != nil || torn || len(answers) != 65 {
		t.Errorf("%d answers, torn: %t, %v", len(answers), torn, err)
	}
}

// A last line that was cut short locks nobody out.
func TestTornAnswers(t *testing.T) {
	test := sampleKey(10).Test()
	var lines []string
	for _, judge := range []string{"ann", "ben"} {
		text, _ := json.Marshal(Answer{test.ID, judge, 1, test.Questions[0].Words[0]})
		lines = append(lines, string(text)+"\n")
	}
	next := Answer{Judge: "cleo", Number: 2, Word: test.Questions[1].Words[0]}
	for cut := range len(lines[1]) {
		path := filepath.Join(t.TempDir(), "answers.jsonl")
		if err := os.WriteFile(path, []byte(lines[0]+lines[1][:cut]), 0o666); err != nil {
			t.Fatal(err)
		}
		want := 1
		if cut == len(lines[1])-1 { // all but its newline
			want = 2
		}
		wantTorn := cut > 0 && want == 1
		if answers, torn, err := ReadAnswers(path, test); err != nil || torn != wantTorn || len(answers) != want {
			t.Fatalf("cut after %d bytes: %d answers, torn: %t, %v", cut, len(answers), torn, err)
		}
		a, torn, err := OpenAnswers(path, test)
		if err != nil || torn != wantTorn {
			t.Fatalf("cut after %d bytes: opened, torn: %t, %v", cut, torn, err)
		}
		if err := a.Add(next); err != nil {
			t.Fatal(err)
		}
		a.Close()
		if answers, torn, err := ReadAnswers(path, test); err != nil || torn || len(answers) != want+1 || answers[want].Judge != "cleo" {
			t.Fatalf("cut after %d bytes, then another: %v, torn: %t, %v", cut, answers, torn, err)
		}
	}
}

// A file that is not of this test stays as it is.
func TestAnswersOfAnother(t *testing.T) {
	test := sampleKey(10).Test()
	other := sampleKey(9).Test()
	line := func(test *Test) string {
		text, _ := json.Marshal(Answer{test.ID, "ann", 1, test.Questions[0].Words[0]})
		return string(text) + "\n"
	}
	for _, tt := range []struct{ content, want string }{
		{line(other), ":1: is an answer to another test"},
		{line(test) + "my diary\n", ":2: is no answer"},
		{line(test) + "my diary", ":2: is no answer"},
		{line(test)[:len(line(test))-5] + "\n" + line(test), ":1: is no answer"},
		{strings.TrimSuffix(line(other), "\n"), ":1: is an answer to another test"},
		{line(other)[:30], ":1: is no answer"},
		{strings.Replace(line(test), `"question":1`, `"question":99`, 1), ":1: there is no question 99"},
	} {
		path := filepath.Join(t.TempDir(), "answers.jsonl")
		if err := os.WriteFile(path, []byte(tt.content), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := OpenAnswers(path, test); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.content, err, tt.want)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != tt.content {
			t.Errorf("%q has become %q, %v", tt.content, text, err)
		}
	}
}

// The paper's own table (§4.1) for sparse vectors: judges are right on 71, 70 and
// 72 of 100. The way in which they agree is made up, the κ that follows is counted
// by hand.
func TestScore(t *testing.T) {
	key := sampleKey(100)
	var answers []Answer
	answer := func(judge string, q Solution, right bool) {
		word := q.Intruder
		if !right {
			word = q.Words[slices.IndexFunc(q.Words, func(w string) bool { return w != q.Intruder })]
		}
		answers = append(answers, Answer{key.ID, judge, q.Number, word})
	}
	n := 0
	for _, q := range key.Questions {
		switch q.Condition {
		case "A": // all right on 60; then one is wrong on 10, 12 and 11; all wrong on 18 - 11
			answer("ann", q, n < 71)
			answer("ben", q, n < 60 || n >= 71 && n < 81)
			answer("cleo", q, n < 60 || n >= 81 && n < 93)
			n++
		case "X": // ben stops halfway, cleo does not begin
			answer("ann", q, true)
			if q.Number <= 100 {
				answer("ben", q, false)
			}
		}
	}
	scores, repeated := key.Score(answers)
	if len(repeated) > 0 {
		t.Errorf("repeated: %v", repeated)
	}
	a, x := scores[0], scores[1]
	wantA := []Accuracy{{"ann", 71, 100, .71}, {"ben", 70, 100, .7}, {"cleo", 72, 100, .72}}
	if a.Condition != "A" || a.Questions != 100 || a.Shared != 100 || !slices.Equal(a.Judges, wantA) || math.Abs(float64(a.Accuracy)-.71) > 1e-12 {
		t.Errorf("A: %+v, accuracy %v", a, a.Accuracy)
	}
	// 60 + 7 questions have 3 agreeing pairs of 3, the other 33 have 1.
	agreement, right := 67./100+33./100/3, 213./300
	chance := right*right + (1-right)*(1-right)
	if math.Abs(float64(a.Agreement)-agreement) > 1e-12 || math.Abs(float64(a.Kappa)-(agreement-chance)/(1-chance)) > 1e-12 {
		t.Errorf("A: agreement %v, κ %v; want %v, %v", a.Agreement, a.Kappa, agreement, (agreement-chance)/(1-chance))
	}
	wantX := []Accuracy{{"ann", 100, 100, 1}, {"ben", 0, 50, 0}, {"cleo", 0, 0, table.Number(math.NaN())}}
	// Ann and ben share 50 questions, on which they differ; of all 100, 75 are
	// right: on average of ann alone on 50, and of both on 50.
	kappa := (0 - (.75*.75 + .25*.25)) / (1 - (.75*.75 + .25*.25))
	if x.Condition != "X" || x.Shared != 50 || fmt.Sprint(x.Judges) != fmt.Sprint(wantX) || x.Accuracy != .5 || x.Agreement != 0 || math.Abs(float64(x.Kappa)-kappa) > 1e-12 {
		t.Errorf("X: %+v, accuracy %v, want κ %v", x, x.Accuracy, kappa)
	}

	// Who changes their mind is taken at their first word.
	second := answers[0]
	second.Word = "another"
	again, repeated := key.Score(append(slices.Clone(answers), second))
	if fmt.Sprint(again) != fmt.Sprint(scores) || !slices.Equal(repeated, []Answer{second}) {
		t.Errorf("with a repeated answer %+v, not %+v; repeated: %v", again, scores, repeated)
	}

	scores, _ = key.Score(nil)
	if len(scores) != 2 || !math.IsNaN(float64(scores[0].Accuracy)) || scores[0].Shared != 0 || !math.IsNaN(float64(scores[0].Agreement)) {
		t.Errorf("without answers: %+v", scores)
	}
}
