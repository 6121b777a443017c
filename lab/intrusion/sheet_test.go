package intrusion

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// sampleSheet returns a sheet with n questions in each of two conditions.
func sampleSheet(n int) *Sheet {
	var questions []Question
	for i := range 2 * n {
		q := Question{Intruder: i % 5, Condition: "XA"[i%2 : i%2+1], Dimension: i}
		for j := range q.Words {
			q.Words[j] = fmt.Sprint("word", i, "-", j)
		}
		questions = append(questions, q)
	}
	return NewSheet(questions)
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	testonly.Must(t, os.WriteFile(path, []byte(content), 0o666))
	return path
}

// files returns the table and the key of a sheet.
func files(t *testing.T, s *Sheet) (tsv, key string) {
	t.Helper()
	var b [2]bytes.Buffer
	testonly.Must(t, s.Write(&b[0], &b[1]))
	return b[0].String(), b[1].String()
}

func TestSheetFiles(t *testing.T) {
	s := sampleSheet(2) // conditions X, A, X, A with intruders 0 to 3
	sheet, key := files(t, s)
	if want := s.ID + "\tword 1\tword 2\tword 3\tword 4\tword 5\tanswer\n" +
		"1\tword0-0\tword0-1\tword0-2\tword0-3\tword0-4\t\n2\tword1-0\tword1-1\tword1-2\tword1-3\tword1-4\t\n"; !strings.HasPrefix(sheet, want) {
		t.Errorf("the sheet is\n%s\nwant\n%s", sheet, want)
	}
	for _, bad := range []string{"", "5", `{"test": "", "questions": []}`, strings.Replace(key, "word0-0", "other", 1)} {
		if _, err := ScoreFiles(write(t, bad)); err == nil {
			t.Errorf("reads the key %q", bad)
		}
	}
	path := write(t, key)
	// A table saved by a spreadsheet, and one with two columns.
	for table, want := range map[string]string{
		"\ufeff" + strings.ReplaceAll(strings.Replace(sheet, "word0-4\t", "word0-4\t 1", 1), "\n", "\r\n"): "[{A 2 NaN NaN NaN} {X 2 1 NaN NaN}]",
		s.ID + "\tanswer\n4\t4\n2\t5\n": "[{A 2 0.5 NaN NaN} {X 2 NaN NaN NaN}]",
	} {
		if got, err := ScoreFiles(path, write(t, table)); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q has the scores %v, %v, want %v", table, got, err, want)
		}
	}
	for table, want := range map[string]string{
		"": "no answers to this test", "test-00\n": "no answers to this test", sheet: "no answers: the last column",
		s.ID + "\n5\t1\n":       `:2: bad or repeated answer (got "1" to question "5"`,
		s.ID + "\n1\t1\n1\t1\n": ":3: bad or repeated answer",
		s.ID + "\n1\t6\n":       ":2: bad or repeated answer",
	} {
		_, err := ScoreFiles(path, write(t, table))
		testonly.ErrorSays(t, table, err, want)
	}
}

func TestScore(t *testing.T) {
	s := sampleSheet(2) // conditions X, A, X, A with intruders 0 to 3
	_, key := files(t, s)
	paths := []string{write(t, key)}
	for _, answers := range []string{"1\t1\n2\t2\n3\t3\n4\t5\n", "1\t5\n2\t2\n4\t4\n"} {
		paths = append(paths, write(t, s.ID+"\n"+answers))
	}
	got, err := ScoreFiles(paths[0], paths[1:]...)
	// κ is computed by hand. P is (1 + 0)/2 for A. It is 0 for X, where only one question has two answers. P_e is
	// (3/4)² + (1/4)² for both.
	const want = `[{A 2 0.75 0.5 -0.3333333333333333} {X 2 0.6666666666666666 0 -1.6666666666666667}]`
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v\nwant %s", got, err, want)
	}
}

// Published examples: Wikipedia's article on Fleiss' kappa (κ = 0.210), and one with missing ratings (Gwet 2014,
// κ = 0.761).
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
