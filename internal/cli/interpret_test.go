package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"overcomplete/cpu"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/internal/lab/judge"
	"overcomplete/internal/testonly/clitest"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// readable is a model of method B whose dimensions can be read off:
//
//	read  1 0 0      month 0 3 0
//	write 2 0 .5     week  0 2 0
//	close 3 0 0      day   0 1 1
func readable() *model.Model { return clitest.NewModel(readableWords, readableCodes) }

var (
	readableWords = []string{"read", "write", "close", "month", "week", "day"}
	readableCodes = [][]float32{{1, 0, 0}, {2, 0, .5}, {3, 0, 0}, {0, 3, 0}, {0, 2, 0}, {0, 1, 1}}
)

// A dimension that is switched off has no part in what is near.
func TestNearestWithout(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	stdout, _ := dir.MustRun(t, "nearest model day - #1 --json")
	var got proximity
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Without) != 1 || got.Without[0] != 1 || len(got.Nearest) != 1 || got.Nearest[0].Word != "write" {
		t.Errorf("JSON is %s", stdout)
	}
	if stdout, _ = dir.MustRun(t, "nearest model day - #1"); !strings.Contains(stdout, "day\nwithout dimension 1\n") {
		t.Errorf("it prints\n%s", stdout)
	}
	checkRefused(t, dir, "nearest model -- - #1", []string{"there is no word to take the dimension away from"}, dir.Tree(t))
}

func TestTopAndExplain(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	dir.Write(t, "dense.txt", []byte("read 1 -1\nwrite 2 -.5\nclose -3 .5\n"))
	checkOutput(t, dir, "top model --words 2 --dimensions 2", `dimension  variance  label               words
        0  1.33e+00  close, write, read  close write
        1  1.33e+00  month, week, day    month week
`)
	checkTable(t, dir, "top model 2", `dimension  variance  label       words
        2  1.46e-01  day, write  day write
`)
	checkTable(t, dir, "top dense.txt 1", `dimension  variance  label         words
        1  3.89e-01  −read, write  read write
                     close         close
`)
	dir.Write(t, "negative.txt", []byte("read 1 -1\nwrite 2 -.5\nclose 3 0\n"))
	checkTable(t, dir, "top negative.txt 1", `dimension  variance  label         words
        1  1.67e-01  −read, write  read write
`)
	checkOutput(t, dir, "top model 2 --json", `[
  {
    "dimension": 2,
    "variance": 0.14583333333333334,
    "sides": [
      {
        "label": "day, write",
        "words": [
          {
            "word": "day",
            "value": 1
          },
          {
            "word": "write",
            "value": 0.5
          }
        ]
      }
    ]
  }
]
`)
	checkOutput(t, dir, "explain model WRITE -n 2 --neighbours 0", `write: 2 of 3 dimensions
dimension   weight  label               words
        0        2  close, write, read  close write
        2      0.5  day, write          day write
`)
}

// Matched intruders count before quarters, quarters before the variance, and dimensions
// without a score are left out.
func TestTopByCoherence(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, clitest.NewModel(readableWords, [][]float32{
		{1, 0, 0, 1, 0}, {2, 0, .5, 0, 1}, {3, 0, 0, 1, 0}, {0, 3, 0, 1, 2}, {0, 2, 0, 1, 0}, {0, 1, 1, 2, 3},
	}))
	c := &interpret.Coherence{
		Words: 6, Dimensions: 4, Quarters: make([]interpret.Estimate, 4), Quartered: 2,
		Scores: []interpret.Score{
			{Dimension: 0, Any: 1, Matched: .9},
			{Dimension: 2, Any: .3, Matched: 1, Quarters: []float64{.2, .8, 0, 0}},
			{Dimension: 3, Any: 0, Matched: 1, Quarters: []float64{.2, 0, .4, .6}},
			{Dimension: 4, Any: .1, Matched: .9},
		},
	}
	if err := c.Save(t.Context(), dir.Path("model/coherence.json")); err != nil {
		t.Fatal(err)
	}
	checkOutput(t, dir, "top model --sort coherence -n 2", `dimension  variance  top   q1   q2   q3   q4  label               words
        2  1.46e-01  100   20   80    0    0  day, write          day write
        3  3.33e-01  100   20    0   40   60  day, read, week     day read
        0  1.33e+00   90                      close, write, read  close write
        4  1.33e+00   90                      day, month, write   day month
`)
	checkOutput(t, dir, "top model --sort coherence -n 1 --dimensions 1 --json", `[
  {
    "dimension": 2,
    "variance": 0.14583333333333334,
    "sides": [
      {
        "label": "day, write",
        "coherence": {
          "dimension": 2,
          "any": 0.3,
          "matched": 1,
          "quarters": [
            0.2,
            0.8,
            0,
            0
          ]
        },
        "words": [
          {
            "word": "day",
            "value": 1
          }
        ]
      }
    ]
  }
]
`)
	// Negative sides have scores of their own, and the better side counts.
	signed := clitest.Save(t, clitest.NewModel(readableWords, [][]float32{{1, -1}, {2, -2}, {-1, 2}, {-.5, -4}, {0, 1}, {0, 1}}))
	both := &interpret.Coherence{
		Words: 6, Dimensions: 2, Scores: []interpret.Score{{Dimension: 0, Matched: .8}, {Dimension: 1, Matched: .1}},
		Negative: &interpret.Coherence{Words: 6, Dimensions: 1, Scores: []interpret.Score{{Dimension: 1, Matched: .9}}},
	}
	if err := both.Save(t.Context(), signed.Path("model/coherence.json")); err != nil {
		t.Fatal(err)
	}
	checkTable(t, signed, "top model --sort coherence -n 2", `dimension  variance  top   q1   q2   q3   q4  label                 words
        1  4.25e+00   90                      −month, write, read   month write
                      10                      close, week, day      close week
        0  9.79e-01   80                      write, read           write read
                                              −close, month         close month
`)
	checkTable(t, signed, "labels model -n 1", "dimension\tlabel\tnote\twords\n0\t\t\twrite − close\n1\t\t\tclose − month\n")
	// Two words have dimensions 0 and 2 in common. The mean cosine of any two is
	// (3/√10 + 1 − 1/√2 − 2/√5)/15 = 0.023.
	alike := clitest.Save(t, clitest.NewModel(readableWords, [][]float32{{1, 0, 1}, {2, 0, 1}, {0, 1, 0}, {0, 2, 0}, {-1, 0, 0}, {0, 0, 0}}))
	checkTable(t, alike, "top model --sort likeness", `dimension  variance  alike  label         words
        0  8.89e-01   0.98  write, read   write read
                            −week         week
        2  2.22e-01   0.98  read, write   read write
        1  5.83e-01  -0.02  month, close  month close
`)
	// Without, all is as if there were no scores.
	checkTable(t, dir, "top model --dimensions 1 -n 2 --sort variance", `dimension  variance  label               words
        0  1.33e+00  close, write, read  close write
`)
	if err := readable().Save(dir.Path("smaller"), false); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(t.Context(), dir.Path("smaller/coherence.json")); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, dir, "top smaller --sort coherence", []string{"smaller/coherence.json: ", "dimension 3", "less than 3"}, dir.Tree(t))
}

// Words are shown so that they can be told apart, and never as commands to the
// terminal.
func TestOddWords(t *testing.T) {
	t.Parallel()
	const persian = "می\u200cخواهم" // a joiner is a part of such words
	m := readable()
	m.Codes.Words = []string{"New York", "\x1b[2Jread", " ", `"`, persian, "ça,va"}
	m.Codes.Value[5] = 1e-5
	dir := clitest.Save(t, m)
	checkTable(t, dir, "top model 0 1", `dimension  variance  label                     words
        0  1.33e+00   , \x1b[2Jread, New York  " " "\x1b[2Jread" "New York"
        1  1.22e+00  ", ça,va, `+persian+`        "\"" ça,va `+persian+`
`)
	checkTable(t, dir, "explain model ça,va "+persian+" --words 1 --neighbours 2", `ça,va: 2 of 3 dimensions
nearest: " 0.71, `+persian+` 0.71
dimension   weight  label               words
        1        1  ", ça,va, `+persian+`  "\""
        2        1  ça,va, \x1b[2Jread  ça,va

`+persian+`: 1 of 3 dimensions
nearest: " 1.00, ça,va 0.71
dimension   weight  label               words
        1    1e-05  ", ça,va, `+persian+`  "\""
`)
	if _, _, stderr := dir.Run(t, "explain model [2Jread"); strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, `the closest are "\x1b[2Jread"`) {
		t.Errorf("%q", stderr)
	}
}

func TestExplainDense(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	dir.Write(t, "dense.txt", []byte("read 1 -1\nwrite 2 -.5\nclose -3 .5\n"))
	checkTable(t, dir, "explain dense.txt write read --dimensions 1 --neighbours 1", `write: 2 of 2 dimensions
nearest: read 0.86
dimension   weight  label        words
        0        2  write, read  write read
and 1 weaker ones

read: 2 of 2 dimensions
nearest: write 0.86
dimension   weight  label        words
        0        1  write, read  write read
and 1 weaker ones
`)
	stdout, _ := dir.MustRun(t, "explain dense.txt read --json --dimensions 0")
	var got []explanation
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	want := labelled{"−read, write", interpret.Explained{Dimension: 1, Weight: -1, Words: []string{"read", "write"}}} // the negative end
	if len(got) != 1 || len(got[0].Strong) != 2 || !reflect.DeepEqual(got[0].Strong[1], want) {
		t.Errorf("%+v", got)
	}
}

func TestSkipBad(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	dir.Write(t, "bad.txt", []byte("read 1 -1\nbad 1 x\nwrite 2 -.5\nclose -3 .5\n"))
	want := [][]string{{"dimension", "variance", "label", "words"}, {"1", "3.89e-01", "−read, write", "read write"}, {"close", "close"}}
	if stdout, stderr := dir.MustRun(t, "top bad.txt 1 --skip-bad"); !reflect.DeepEqual(rows(stdout), want) || !strings.Contains(stderr, "warning: bad.txt: ") {
		t.Errorf("%s%s", stdout, stderr)
	}
}

// A test is made, judged by two and scored; the sample is made of two conditions.
func TestIntrusion(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o model --epochs 5 --quiet")
	make := "intrusion make X=in.txt A=model A=model -n 3 -o test.json"
	dir.MustRun(t, make)
	test, key := dir.Read(t, "test.json"), dir.Read(t, "test.key.json")
	dir.MustRun(t, make+" --force --seed 1")
	if !bytes.Equal(dir.Read(t, "test.json"), test) || !bytes.Equal(dir.Read(t, "test.key.json"), key) {
		t.Error("the same seed made another test")
	}
	dir.MustRun(t, make+" --force --seed 2")
	if bytes.Equal(dir.Read(t, "test.json"), test) {
		t.Error("another seed made the same test")
	}
	k, err := judge.ReadKey(dir.Path("test.key.json"))
	if err != nil {
		t.Fatal(err)
	}
	// Three dimensions of the highest variance of each, and the conditions mixed:
	// two of 84 orders have all questions of X at one end, that of this seed does not.
	x := clitest.Vectors(60, 8)
	variance := func(k int) float64 {
		sum, squares := 0.0, 0.0
		for i := range x.Len() {
			v := float64(x.Row(i)[k])
			sum, squares = sum+v, squares+v*v
		}
		return squares - sum*sum/float64(x.Len())
	}
	highest := []int{0, 1, 2, 3, 4, 5, 6, 7}
	slices.SortFunc(highest, func(a, b int) int { return cmp.Compare(variance(b), variance(a)) })
	highest = highest[:3]
	slices.Sort(highest)
	conditions := map[string]int{}
	order := ""
	var dimensions []int
	for _, q := range k.Questions {
		conditions[q.Condition+" "+q.Source]++
		order += q.Condition
		if q.Condition == "X" {
			dimensions = append(dimensions, q.Dimension)
		}
	}
	if want := map[string]int{"X in.txt": 3, "A model": 6}; !reflect.DeepEqual(conditions, want) {
		t.Errorf("questions %v, want %v", conditions, want)
	}
	if order == "XXXAAAAAA" || order == "AAAAAAXXX" {
		t.Errorf("conditions are not mixed: %s", order)
	}
	if slices.Sort(dimensions); !slices.Equal(dimensions, highest) {
		t.Errorf("dimensions %v of the vectors, want %v", dimensions, highest)
	}

	answer := func(judge string, lines ...string) string {
		cmd := dir.Command("intrusion", "judge", "test.json", "-o", "answers.jsonl", "--judge", judge)
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
		code, _, stderr := clitest.Output(t, cmd)
		if code != 0 {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
		return stderr
	}
	checkTable(t, dir, "intrusion score test.key.json "+os.DevNull, `condition  questions    mean  shared  agreement  kappa
A                  6       –       0          –      –
X                  3       –       0          –      –
`)
	if stdout, _ := dir.MustRun(t, "intrusion score test.key.json --json "+os.DevNull); strings.Count(stdout, `"judges": []`) != 2 {
		t.Errorf("without judges:\n%s", stdout)
	}
	right := func(from, to int) (lines []string) {
		for _, q := range k.Questions[from:to] {
			for i, w := range q.Words {
				if w == q.Intruder {
					lines = append(lines, fmt.Sprint(" ", i+1))
				}
			}
		}
		return lines
	}
	if out := answer("ann", append(right(0, 4), "0", "6", "one", "", "q", "1")...); !strings.HasSuffix(out, "4 of 9 questions are answered.\n") || strings.Count(out, "Type a number from 1 to 5, or q.\n") != 4 {
		t.Errorf("ann is told\n%s", out)
	}
	if out := answer(" ben ", right(0, 9)...); !strings.HasSuffix(out, "All 9 questions are answered. Thank you, ben.\n") {
		t.Errorf("ben is told\n%s", out)
	}
	if out := answer("ann", right(4, 9)...); !strings.HasSuffix(out, "All 9 questions are answered. Thank you, ann.\n") || strings.Contains(out, "\n4 of 9\n") {
		t.Errorf("ann is told when she comes back\n%s", out)
	}
	checkTable(t, dir, "intrusion score test.key.json answers.jsonl", `condition  questions     ann     ben    mean  shared  agreement  kappa
A                  6   100.0   100.0   100.0       6      100.0      –
X                  3   100.0   100.0   100.0       3      100.0      –
`)
	// A file that is given twice, and one that was cut short.
	all := dir.Read(t, "answers.jsonl")
	dir.Write(t, "cut.jsonl", all[:len(all)-20])
	stdout, stderr := dir.MustRun(t, "intrusion score test.key.json cut.jsonl answers.jsonl --json")
	if again, _ := dir.MustRun(t, "intrusion score test.key.json answers.jsonl --json"); again != stdout ||
		!strings.Contains(stderr, "warning: 17 answers do not count, such as \"ann\"'s to question 1,") || !strings.Contains(stderr, "warning: cut.jsonl: the last line was cut short") {
		t.Errorf("%s\nnot\n%s\n%s", stdout, again, stderr)
	}
	var scores []struct{ Kappa, Accuracy *float64 }
	if err := json.Unmarshal([]byte(stdout), &scores); err != nil || len(scores) != 2 || scores[0].Kappa != nil || *scores[1].Accuracy != 1 {
		t.Errorf("%s: %v", stdout, err)
	}
}

// A judge who interrupts is told how to go on; input that can't be read is no end.
func TestIntrusionJudgeEnds(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "intrusion make X=in.txt -n 2 -o test.json")
	cmd := interruptedAt(dir.Command("intrusion", "judge", "test.json", "-o", "answers.jsonl", "--judge", "ann"), 1, "> ")
	silent, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	defer writer.Close()
	cmd.Stdin = silent
	code, _, stderr := clitest.Output(t, cmd)
	if want := "overcomplete: interrupted; 0 of 2 questions are answered; the same command goes on\n"; code != exitInterrupted || !strings.HasSuffix(stderr, want) {
		t.Errorf("exit code %d, %q, want %q", code, stderr, want)
	}
	cmd = dir.Command("intrusion", "judge", "test.json", "-o", "answers.jsonl", "--judge", "ann")
	cmd.Stdin = strings.NewReader(strings.Repeat("1", 1<<17))
	if code, _, stderr := clitest.Output(t, cmd); code != exitFailed || !strings.HasSuffix(stderr, bufio.ErrTooLong.Error()+"\n") {
		t.Errorf("an endless line: exit code %d, %q", code, stderr)
	}
}

// The page is there until the program is interrupted; answers are in the file.
func TestIntrusionJudgeWeb(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "intrusion make X=in.txt -n 2 -o test.json")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stderr, out := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"intrusion", "judge", dir.Path("test.json"), "-o", dir.Path("answers.jsonl"), "--web"}, io.Discard, out)
		out.Close()
	}()
	said := make([]byte, 200)
	n, err := stderr.Read(said)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, stderr)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(string(said[:n]))
	if address == "" {
		t.Fatalf("no address in %q", said[:n])
	}
	test, err := judge.ReadTest(dir.Path("test.json"))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.PostForm(address+"/answer", url.Values{"judge": {"ann"}, "question": {"1"}, "word": {test.Questions[0].Words[2]}})
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(reply.Body)
	reply.Body.Close()
	if err != nil || reply.StatusCode != 200 || !bytes.Contains(page, []byte("1 of 2 answered")) {
		t.Errorf("%s %s, %v", reply.Status, page, err)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
	answers, _, err := judge.ReadAnswers(dir.Path("answers.jsonl"), test)
	if want := []judge.Answer{{Test: test.ID, Judge: "ann", Number: 1, Word: test.Questions[0].Words[2]}}; err != nil || !reflect.DeepEqual(answers, want) {
		t.Errorf("%v, %v", answers, err)
	}
}

// The figures are those of the definitions, of a model of each method: of its
// codes, of controls from the same input, and of the input.
func TestIntrusionAuto(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	x, reference := clitest.Vectors(60, 8), clitest.Vectors(60, 5)
	dir.Write(t, "reference.txt", clitest.Text(reference))
	dir.MustRun(t, "paper train in.txt -o a --epochs 5 --quiet --center")
	dir.MustRun(t, "paper train in.txt -o b --epochs 5 --quiet --center --method B")
	var seed uint64
	var want []intrusion.Result
	var scores map[string]*interpret.Coherence // of the models, with those of their dimensions
	add := func(name, control string, codes *vectors.Sparse, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c, err := interpret.NewIntrusion(interpret.NewIndex(codes)).OddOneOut(t.Context(), reference, seed)
		if err != nil {
			t.Fatal(err)
		}
		c.Reference = "reference.txt"
		if len(c.Scores) != c.Dimensions || c.Dimensions == 0 {
			t.Errorf("%s: %d scores of %d dimensions", name, len(c.Scores), c.Dimensions)
		}
		if scores[name] == nil {
			if name == "a" { // its codes have both signs
				opposite := *codes
				opposite.Value = slices.Clone(codes.Value)
				for i := range opposite.Value {
					opposite.Value[i] *= -1
				}
				negative, err := interpret.NewIntrusion(interpret.NewIndex(&opposite)).OddOneOut(t.Context(), reference, seed)
				if err != nil || negative.Dimensions == 0 {
					t.Fatal(negative, err)
				}
				negative.Reference = "reference.txt"
				c.Negative = &negative
			}
			scores[name] = &c
		} else {
			c.Scores = nil
		}
		want = append(want, intrusion.Result{Name: name, Control: intrusion.Control(control), Coherence: c})
	}

	line := "intrusion auto a b --input in.txt --reference reference.txt"
	before := dir.Tree(t)
	text, stderr := dir.MustRun(t, line)
	for _, want := range []string{"over 60 words", "\na  ", "\n  negative sides  ", "\n  random directions  ", "\n  random dictionary  ", "\n  word rows  ", "\nin.txt ", "\nguessing "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if stderr != "" {
		t.Errorf("says %s", stderr)
	}
	for _, seed = range []uint64{2, 1} {
		want, scores = nil, map[string]*interpret.Coherence{}
		for _, name := range []string{"a", "b"} {
			m := dir.Model(t, name)
			codes, centred := m.Codes, clitest.Vectors(60, 8)
			m.Dictionary.Center(centred.Data, centred.Data)
			add(name, "", codes, nil)
			random, err := interpret.RandomProjection(t.Context(), centred, &codes.CSR, name == "b", seed)
			add(name, "random directions", random, err)
			y, err := intrusion.Standardise(x, 80)
			if err != nil {
				t.Fatal(err)
			}
			for _, control := range []intrusion.Control{intrusion.RandomDictionary, intrusion.WordRows} {
				encoded, err := y.Encode(t.Context(), control, 80, int(math.Round(float64(codes.Nonzeros())/60)), m.Info.Training.Recipe.Base().Method, seed, cpu.Device{})
				if err != nil {
					t.Fatal(err)
				}
				add(name, string(control), encoded.Codes, nil)
			}
		}
		add("in.txt", "", interpret.FromDense(x), nil)
		want[len(want)-1].Scores = nil
		for i, s := range want {
			for _, other := range want[:i] {
				if s.Any == other.Any && s.Matched == other.Matched {
					t.Fatalf("%s, %s and %s, %s can't be told apart: %v", s.Name, s.Control, other.Name, other.Control, s.Coherence)
				}
			}
		}
		stdout, _ := dir.MustRun(t, fmt.Sprint(line, " --json --seed ", seed))
		var r autoResult
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || !reflect.DeepEqual(r.Sets, want) {
			t.Errorf("%s\nwant %+v, %v", stdout, want, err)
		}
	}
	dir.Unchanged(t, before) // without --save
	dir.MustRun(t, line+" --save --seed 2")
	dir.MustRun(t, line+" --save")
	for _, name := range []string{"a", "b"} {
		if got, err := interpret.ReadCoherence(dir.Path(name+"/coherence.json"), 80); err != nil || !reflect.DeepEqual(got, scores[name]) {
			t.Errorf("%s: saved %+v, %v, want %+v", name, got, err, scores[name])
		}
	}
	dir.Write(t, "copy.txt", append(clitest.Text(x), clitest.Text(&vectors.Dense{Words: []string{"more"}, Dim: 8, Data: make([]float32, 8)})...))
	if _, stderr := dir.MustRun(t, "intrusion auto a --input copy.txt --reference reference.txt"); !strings.Contains(stderr, "warning: a was trained on another file, in.txt, than copy.txt") {
		t.Errorf("says %s", stderr)
	}
	// A model that is replaced takes its scores along.
	dir.MustRun(t, "paper train in.txt -o a --epochs 5 --quiet --force")
	if _, err := os.Stat(dir.Path("a/coherence.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new model has the old one's scores: %v", err)
	}
}

func TestInterpretRefuses(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	m := readable()
	m.Info.Training.Recipe = ofMethod(m.Info.Training.Recipe, model.Signed)
	if err := m.Save(dir.Path("signed"), false); err != nil {
		t.Fatal(err)
	}
	dir.Write(t, "in.txt", clitest.Text(clitest.Vectors(60, 8)))
	dir.Write(t, "bad.txt", []byte("a 1 2\nb 1 x\n"))
	same := []byte("read 1 2\nwrite 3 4\n")
	dir.Write(t, "same.txt", same)
	var packed bytes.Buffer
	g := gzip.NewWriter(&packed)
	g.Write(same)
	g.Close()
	dir.Write(t, "same.txt.gz", packed.Bytes())
	dir.Write(t, "other.txt", []byte("zzz 1 2\nyyy 1 3\n"))
	dir.Write(t, "equal.txt", []byte("read 1 2\nwrite 1 2\n"))
	dir.MustRun(t, "export model --format safetensors -o model.safetensors")
	dir.MustRun(t, "intrusion make X=in.txt -n 2 -o test.json")
	if err := os.Mkdir(dir.Path("empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	before := dir.Tree(t)
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"top", []string{"1 arg", "top --help"}},
		{"top nowhere", []string{"nowhere: no such file"}},
		{"top empty", []string{"empty: not a model"}},
		{"top bad.txt", []string{"bad.txt:2: ", `"b"`}},
		{"top model 3", []string{`no dimension "3"`, "0 to 2"}},
		{"top model -- -1", []string{`no dimension "-1"`}},
		{"top model one", []string{`no dimension "one"`}},
		{"top model 1 --dimensions 2", []string{"--dimensions"}},
		{"top model -n 0", []string{"--words is 0, want 1"}},
		{"top model --sort coherence", []string{"model has no scores", `"overcomplete intrusion auto model --input VECTORS --reference VECTORS --save"`}},
		{"top model --sort size", []string{`--sort is "size", want variance, coherence or likeness`}},
		{"top model 1 --sort variance", []string{"--sort", "not both"}},
		{"top same.txt --sort coherence", []string{"same.txt: ", "directory of a model"}},
		{"top model --dimensions -1", []string{"--dimensions is -1"}},
		{"explain model", []string{"2 arg"}},
		{"explain model raed", []string{`"raed"`, "6 words", "closest are read"}},
		{"explain model xylophone", []string{`"xylophone"`, "no word is spelled alike"}},
		{"explain model read --neighbours -1", []string{"--neighbours is -1"}},
		{"intrusion", []string{"make, judge, score or auto"}},
		{"intrusion mark", []string{`"mark"`}},
		{"intrusion make model -o t.json", []string{`"model"`, "CONDITION=MODEL", "A=model"}},
		{"intrusion make =model -o t.json", []string{"CONDITION=MODEL", "such as A=model\n"}},
		{"intrusion make A=nowhere -o t.json", []string{"nowhere: no such file"}},
		{"intrusion make A=model -o t.json", []string{"model: only 0 dimensions"}},
		{"intrusion make X=in.txt -o t.json", []string{"in.txt: only 8 dimensions", "--dimensions 8"}},
		{"intrusion make X=in.txt -n 0 -o t.json", []string{"--dimensions is 0"}},
		{"intrusion make X=in.txt -n 2 -o t.txt", []string{"t.txt", ".json"}},
		{"intrusion make X=in.txt -n 2 -o test.json", []string{"test.json: already exists", "--force"}},
		{"intrusion make X=in.txt -n 2 -o model/t.json", []string{"in the directory of a model"}},
		{"intrusion judge test.json -o a.jsonl", []string{"--judge", "--web"}},
		{"intrusion judge test.json -o a.jsonl --web --judge ann", []string{"--judge", "--web"}},
		{"intrusion judge test.json -o a.jsonl --judge=", []string{"--judge: ", "name"}},
		{"intrusion judge nowhere -o a.jsonl --judge ann", []string{"nowhere: no such file"}},
		{"intrusion judge in.txt -o a.jsonl --judge ann", []string{"in.txt: ", "no word intrusion test"}},
		{"intrusion judge test.json -o in.txt --judge ann", []string{"in.txt:1: is no answer"}},
		{"intrusion judge test.json -o empty/x/a --judge ann", []string{"no such file or directory"}},
		{"intrusion judge test.json -o model/a --judge ann", []string{"in the directory of a model"}},
		{"intrusion score test.json in.txt", []string{"test.json: ", "is it a key?"}},
		{"intrusion score test.key.json in.txt", []string{"in.txt:1: is no answer"}},
		{"intrusion score test.key.json", []string{"2 arg"}},
		{"intrusion auto model --input in.txt", []string{`"reference"`}},
		{"intrusion auto model --input in.txt --reference other.txt", []string{"in.txt has 8 dimensions", "trained on vectors of 2"}},
		{"intrusion auto model --input other.txt --reference in.txt", []string{"no word is in all of"}},
		{"intrusion auto model --input same.txt --reference same.txt.gz", []string{"same.txt.gz has the same vectors as same.txt"}},
		{"intrusion auto in.txt --input in.txt --reference in.txt", []string{"in.txt: "}},
		{"intrusion auto model --input equal.txt --reference same.txt", []string{"equal.txt: of the words that all have, the first, 2, have one vector"}},
		{"intrusion auto model.safetensors --input same.txt --reference equal.txt --save", []string{"model.safetensors: scores", "directory of a model"}},
	} {
		checkRefused(t, dir, tt.args, tt.want, before)
	}
}
