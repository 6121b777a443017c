package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"overcomplete/internal/realdata"
	"overcomplete/interpret"
	"overcomplete/interpret/judge"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// readable is a model of method B whose dimensions can be read off:
//
//	read  1 0 0      month 0 3 0
//	write 2 0 .5     week  0 2 0
//	close 3 0 0      day   0 1 1
func readable() *model.Model {
	m := &model.Model{
		Info: model.Info{
			Format:   model.FormatVersion,
			Input:    model.Input{Name: "in.txt", Words: 6, Dim: 2},
			Training: train.Paper(),
		},
		Codes: &vectors.Sparse{
			Words: []string{"read", "write", "close", "month", "week", "day"},
			CSR: vectors.CSR{Rows: 6, Cols: 3, Ptr: []int64{0, 1, 3, 4, 5, 6, 8},
				Index: []int32{0, 0, 2, 0, 1, 1, 1, 2}, Value: []float32{1, 2, .5, 3, 3, 2, 1, 1}},
		},
		Dictionary: model.Dictionary{Dim: 2, Atoms: make([]float32, 6)},
	}
	m.Info.Training.Method, m.Info.Training.Atoms = "B", 3
	return m
}

func checkOutput(t *testing.T, line, want string) {
	t.Helper()
	if stdout, _ := mustRun(t, line); stdout != want {
		t.Errorf("%s prints\n%swant\n%s", line, stdout, want)
	}
}

func TestTopAndExplain(t *testing.T) {
	t.Chdir(saveModel(t, readable()))
	writeFile(t, "dense.txt", []byte("read 1 -1\nwrite 2 -.5\nclose -3 .5\n"))
	checkOutput(t, "top model --words 2 --dimensions 2", `dimension  variance  words
        0  1.33e+00  close write
        1  1.33e+00  month week
`)
	checkOutput(t, "top model 2", `dimension  variance  words
        2  1.46e-01  day write
`)
	checkOutput(t, "top dense.txt 1", `dimension  variance  words
        1  3.89e-01  close
`)
	checkOutput(t, "top model 2 --json", `[
  {
    "dimension": 2,
    "variance": 0.14583333333333334,
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
`)
	checkOutput(t, "explain model WRITE -n 2 --neighbours 0", `write: 2 of 3 dimensions
dimension   weight  words
        0        2  close write
        2      0.5  day write
`)
}

// Words are shown so that they can be told apart, and never as commands to the
// terminal.
func TestOddWords(t *testing.T) {
	const persian = "می\u200cخواهم" // a joiner is a part of such words
	m := readable()
	m.Codes.Words = []string{"New York", "\x1b[2Jread", " ", `"`, persian, "ça,va"}
	m.Codes.Value[5] = 1e-5
	t.Chdir(saveModel(t, m))
	checkOutput(t, "top model 0 1", `dimension  variance  words
        0  1.33e+00  " " "\x1b[2Jread" "New York"
        1  1.22e+00  "\"" ça,va `+persian+`
`)
	checkOutput(t, "explain model ça,va "+persian+" --words 1 --neighbours 2", `ça,va: 2 of 3 dimensions
nearest: " 0.71, `+persian+` 0.71
dimension   weight  words
        1        1  "\""
        2        1  ça,va

`+persian+`: 1 of 3 dimensions
nearest: " 1.00, ça,va 0.71
dimension   weight  words
        1    1e-05  "\""
`)
	checkOutput(t, "clusters model", `dimension  size  words
        0     3  "New York" "\x1b[2Jread" " "
        1     3  "\"" `+persian+` ça,va
        2     2  "\x1b[2Jread" ça,va
`)
	// A word with a comma is a group, as it stands.
	checkOutput(t, "heatmap model ça,va \x1b[2Jread,\" -o map.svg", `dimensions in common, of 3
    2  ça,va (2)
    0  "\x1b[2Jread" (2), " (1)
    0  ça,va (2), "\x1b[2Jread" (2), " (1)
`)
	// In a group of others it is quoted.
	checkOutput(t, "heatmap model \"ça,va\",\x1b[2Jread \"\"\"\","+persian+" -o quoted.svg", `dimensions in common, of 3
    1  ça,va (2), "\x1b[2Jread" (2)
    1  " (1), `+persian+` (1)
    0  ça,va (2), "\x1b[2Jread" (2), " (1), `+persian+` (1)
`)
	if _, _, stderr := command("explain model [2Jread"); strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, `the closest are "\x1b[2Jread"`) {
		t.Errorf("%q", stderr)
	}
}

func TestExplainDense(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "dense.txt", []byte("read 1 -1\nwrite 2 -.5\nclose -3 .5\n"))
	checkOutput(t, "explain dense.txt write read --dimensions 1 --neighbours 1", `write: 2 of 2 dimensions
nearest: read 0.86
dimension   weight  words
        0        2  write read
and 1 weaker ones

read: 2 of 2 dimensions
nearest: write 0.86
dimension   weight  words
        0        1  write read
and 1 weaker ones
`)
	stdout, _ := mustRun(t, "explain dense.txt read --json --dimensions 0")
	var got []explanation
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	want := interpret.Explained{Dimension: 1, Weight: -1, Words: []string{"read", "write"}} // the negative end
	if len(got) != 1 || len(got[0].Strong) != 2 || !reflect.DeepEqual(got[0].Strong[1], want) {
		t.Errorf("%+v", got)
	}
}

func TestClusters(t *testing.T) {
	t.Chdir(saveModel(t, readable()))
	writeFile(t, "dense.txt", []byte("a 0 0\nb 9 9\nc 0 0\nd 0 0\n"))
	checkOutput(t, "clusters model --clusters 3 -n 2 --input dense.txt", `dimension  size  words
        0     3  read write
        1     3  month week
        2     2  write day
  k-means  size  words
        0     3  a c
        1     1  b
`)
	var got clustering
	writeFile(t, "many.txt", gloVeText(sampleVectors(300, 8)))
	stdout, _ := mustRun(t, "clusters model --clusters 1000 --input many.txt --json")
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.KMeans) != 100 {
		t.Errorf("%d clusters of 300 words, want 100, %v", len(got.KMeans), err)
	}
	got = clustering{}
	stdout, _ = mustRun(t, "clusters model --clusters 1 --json")
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Dimensions) != 1 || got.KMeans != nil {
		t.Errorf("%s: %v", stdout, err)
	}
}

func TestHeatmap(t *testing.T) {
	t.Chdir(saveModel(t, readable()))
	checkOutput(t, "heatmap model read,write,close month,week,day -o map.PNG", `dimensions in common, of 3
    1  read (1), write (2), close (1)
    1  month (1), week (1), day (2)
    0  read (1), write (2), close (1), month (1), week (1), day (2)
`)
	if _, err := png.Decode(bytes.NewReader(readFile(t, "map.PNG"))); err != nil {
		t.Error(err)
	}
	stdout, _ := mustRun(t, "heatmap model write,day -o map.svg --json")
	want := overlaps{3, []overlap{{[]string{"write", "day"}, []int{2, 2}, 1}}}
	var got overlaps
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v", stdout, err)
	}
	if svg := readFile(t, "map.svg"); !bytes.Contains(svg, []byte("<svg")) || !bytes.Contains(svg, []byte(">write<")) {
		t.Errorf("%.500s", svg)
	}
}

func TestSkipBad(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "bad.txt", []byte("read 1 -1\nbad 1 x\nwrite 2 -.5\nclose -3 .5\n"))
	const want = "dimension  variance  words\n        1  3.89e-01  close\n"
	if stdout, stderr := mustRun(t, "top bad.txt 1 --skip-bad"); stdout != want || !strings.Contains(stderr, "warning: bad.txt: ") {
		t.Errorf("%s%s", stdout, stderr)
	}
}

// A test is made, judged by two and scored; the sample is made of two conditions.
func TestIntrusion(t *testing.T) {
	sampleDir(t)
	mustRun(t, "train --recipe paper in.txt -o model --epochs 5 --quiet")
	make := "intrusion make X=in.txt A=model A=model -n 3 -o test.json"
	mustRun(t, make)
	test, key := readFile(t, "test.json"), readFile(t, "test.key.json")
	mustRun(t, make+" --force --seed 1")
	if !bytes.Equal(readFile(t, "test.json"), test) || !bytes.Equal(readFile(t, "test.key.json"), key) {
		t.Error("the same seed made another test")
	}
	mustRun(t, make+" --force --seed 2")
	if bytes.Equal(readFile(t, "test.json"), test) {
		t.Error("another seed made the same test")
	}
	k, err := judge.ReadKey("test.key.json")
	if err != nil {
		t.Fatal(err)
	}
	// Three dimensions of the highest variance of each, and the conditions mixed:
	// two of 84 orders have all questions of X at one end, that of this seed does not.
	x := sampleVectors(60, 8)
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
		cmd := newIntrusionJudge()
		var stderr bytes.Buffer
		cmd.SetIn(strings.NewReader(strings.Join(lines, "\n")))
		cmd.SetErr(&stderr)
		cmd.SetArgs([]string{"test.json", "-o", "answers.jsonl", "--judge", judge})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		return stderr.String()
	}
	checkOutput(t, "intrusion score test.key.json "+os.DevNull, `condition  questions    mean  shared  agreement  kappa
A                  6       –       0          –      –
X                  3       –       0          –      –
`)
	if stdout, _ := mustRun(t, "intrusion score test.key.json --json "+os.DevNull); strings.Count(stdout, `"judges": []`) != 2 {
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
	checkOutput(t, "intrusion score test.key.json answers.jsonl", `condition  questions     ann     ben    mean  shared  agreement  kappa
A                  6   100.0   100.0   100.0       6      100.0      –
X                  3   100.0   100.0   100.0       3      100.0      –
`)
	// A file that is given twice, and one that was cut short.
	all := readFile(t, "answers.jsonl")
	writeFile(t, "cut.jsonl", all[:len(all)-20])
	stdout, stderr := mustRun(t, "intrusion score test.key.json cut.jsonl answers.jsonl --json")
	if again, _ := mustRun(t, "intrusion score test.key.json answers.jsonl --json"); again != stdout ||
		!strings.Contains(stderr, "warning: 17 answers do not count, such as \"ann\"'s to question 1,") || !strings.Contains(stderr, "warning: cut.jsonl: the last line was cut short") {
		t.Errorf("%s\nnot\n%s\n%s", stdout, again, stderr)
	}
	var scores []jsonScore
	if err := json.Unmarshal([]byte(stdout), &scores); err != nil || len(scores) != 2 || scores[0].Kappa != nil || *scores[1].Accuracy != 1 {
		t.Errorf("%s: %v", stdout, err)
	}
}

// A judge who interrupts is told how to go on; input that can't be read is no end.
func TestIntrusionJudgeEnds(t *testing.T) {
	sampleDir(t)
	mustRun(t, "intrusion make X=in.txt -n 2 -o test.json")
	judgeWith := func(in io.Reader, interrupt bool) error {
		cmd := newIntrusionJudge()
		cmd.SetIn(in)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cmd.SetErr(writerFunc(func(p []byte) (int, error) {
			if string(p) == "> " && interrupt {
				cancel()
			}
			return len(p), nil
		}))
		cmd.SetArgs([]string{"test.json", "-o", "answers.jsonl", "--judge", "ann"})
		return cmd.ExecuteContext(ctx)
	}
	silent, writer := io.Pipe()
	defer writer.Close()
	err := judgeWith(silent, true)
	if want := "interrupted; 0 of 2 questions are answered; the same command goes on"; !errors.Is(err, context.Canceled) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := judgeWith(strings.NewReader(strings.Repeat("1", 1<<17)), false); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("an endless line: %v", err)
	}
}

// The page is there until the program is interrupted; answers are in the file.
func TestIntrusionJudgeWeb(t *testing.T) {
	sampleDir(t)
	mustRun(t, "intrusion make X=in.txt -n 2 -o test.json")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stderr, out := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(ctx, strings.Fields("intrusion judge test.json -o answers.jsonl --web"), io.Discard, out)
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
	test, err := judge.ReadTest("test.json")
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
	answers, _, err := judge.ReadAnswers("answers.jsonl", test)
	if want := []judge.Answer{{Test: test.ID, Judge: "ann", Number: 1, Word: test.Questions[0].Words[2]}}; err != nil || !reflect.DeepEqual(answers, want) {
		t.Errorf("%v, %v", answers, err)
	}
}

// Only words that all sets have count, each once: "B" is b in the reference, "A"
// is not, because a is a word of the model itself.
func TestSharedWords(t *testing.T) {
	dense := func(words ...string) *vectors.Dense {
		d := &vectors.Dense{Words: words, Dim: 1}
		for i := range words {
			d.Data = append(d.Data, float32(i))
		}
		return d
	}
	sparse := func(words ...string) *model.Model {
		s := &vectors.Sparse{Words: words, CSR: vectors.CSR{Rows: len(words), Cols: 1, Ptr: []int64{0}}}
		for i := range words {
			s.Ptr, s.Index, s.Value = append(s.Ptr, int64(i+1)), append(s.Index, 0), append(s.Value, float32(i+1))
		}
		return &model.Model{Codes: s}
	}
	first := sparse("A", "B", "c", "a", "B", "b!", "C", "d", "E", "e!")
	second := sparse("E", "d", "c", "B", "a", "A", "b!")
	s := newSharedWords(dense("a", "b!", "A", "c", "d", "B", "E"), dense("e", "a", "b", "c", "x"), []*model.Model{first, second})
	want := []string{"B", "c", "a", "E"}
	for i, got := range [][]string{s.input.Words, s.codes[0].Words, s.codes[1].Words} {
		if !slices.Equal(got, want) {
			t.Errorf("set %d: words %v, want %v", i, got, want)
		}
	}
	for name, got := range map[string][]float32{"input": s.input.Data, "reference": s.reference.Data, "first": s.codes[0].Value, "second": s.codes[1].Value} {
		want := map[string][]float32{"input": {5, 3, 0, 6}, "reference": {2, 3, 1, 0}, "first": {2, 3, 4, 9}, "second": {4, 3, 5, 1}}[name]
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: rows %v, want %v", name, got, want)
		}
	}
	if got := s.centered(&model.Dictionary{Dim: 1, Mean: []float32{1}}).Data; !reflect.DeepEqual(got, []float32{4, 2, -1, 5}) {
		t.Errorf("less the mean: %v", got)
	}
}

// The figures are those of the definitions, of a model of each method: of its
// codes, of random directions of the same input less the mean, and of the input.
func TestIntrusionAuto(t *testing.T) {
	sampleDir(t)
	x, reference := sampleVectors(60, 8), sampleVectors(60, 5)
	writeFile(t, "reference.txt", gloVeText(reference))
	mustRun(t, "train --recipe paper in.txt -o a --epochs 5 --quiet --center")
	mustRun(t, "train --recipe paper in.txt -o b --epochs 5 --quiet --center --method B")
	var want []autoSet
	add := func(name string, codes *vectors.Sparse) {
		t.Helper()
		c, err := interpret.NewIntrusion(interpret.NewIndex(codes)).OddOneOut(t.Context(), reference, 1)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, autoSet{name, c})
	}
	for _, name := range []string{"a", "b"} {
		m := openModel(t, name)
		codes, centred := m.Codes, sampleVectors(60, 8)
		m.Dictionary.Center(centred.Data, centred.Data)
		add(name, codes)
		random, err := interpret.RandomProjection(t.Context(), centred, &codes.CSR, name == "b", 1)
		if err != nil {
			t.Fatal(err)
		}
		add(name+", random directions", random)
	}
	add("in.txt", interpret.FromDense(x))
	for i, s := range want {
		for _, other := range want[:i] {
			if s.Coherence == other.Coherence {
				t.Fatalf("%s and %s can't be told apart: %v", s.Name, other.Name, s.Coherence)
			}
		}
	}

	line := "intrusion auto a b --input in.txt --reference reference.txt"
	text, stderr := mustRun(t, line)
	for _, want := range []string{"over 60 words", "\na  ", "\na, random directions ", "\nin.txt ", "\nguessing "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if stderr != "" {
		t.Errorf("says %s", stderr)
	}
	stdout, _ := mustRun(t, line+" --json")
	var r autoResult
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Words != 60 || !reflect.DeepEqual(r.Sets, want) {
		t.Errorf("%s\nwant %+v, %v", stdout, want, err)
	}
	if other, _ := mustRun(t, line+" --json --seed 2"); other == stdout {
		t.Error("the same with another seed")
	}
	writeFile(t, "copy.txt", append(gloVeText(x), gloVeText(&vectors.Dense{Words: []string{"more"}, Dim: 8, Data: make([]float32, 8)})...))
	if _, stderr := mustRun(t, "intrusion auto a --input copy.txt --reference reference.txt"); !strings.Contains(stderr, "warning: a was trained on another file, in.txt, than copy.txt") {
		t.Errorf("says %s", stderr)
	}
}

// Method B's dimensions are more coherent than random directions, in the eyes of
// vectors learned from other text.
func TestIntrusionAutoRealData(t *testing.T) {
	x, glove := realdata.Path(t, "vectors/googlenews.300d.8000.txt.gz"), realdata.Path(t, "vectors/glove.6B.50d.9163.txt.gz")
	t.Chdir(t.TempDir())
	mustRun(t, "train --recipe paper "+x+" -o model --method B --max-words 4000 -k 1500 --quiet")
	stdout, _ := mustRun(t, "intrusion auto model --input "+x+" --reference "+glove+" --json")
	var r autoResult
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	model, random := r.Sets[0], r.Sets[1]
	if r.Words < 3000 || random.Any.Low <= .2 || model.Any.Low <= random.Any.High || model.Matched.Low <= random.Matched.High {
		t.Errorf("%+v", r)
	}
}

func TestInterpretRefuses(t *testing.T) {
	t.Chdir(saveModel(t, readable()))
	m := readable()
	m.Info.Training.Method = "A"
	if err := m.Save("signed", false); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "in.txt", gloVeText(sampleVectors(60, 8)))
	writeFile(t, "bad.txt", []byte("a 1 2\nb 1 x\n"))
	same := []byte("read 1 2\nwrite 3 4\n")
	writeFile(t, "same.txt", same)
	var packed bytes.Buffer
	g := gzip.NewWriter(&packed)
	g.Write(same)
	g.Close()
	writeFile(t, "same.txt.gz", packed.Bytes())
	writeFile(t, "other.txt", []byte("zzz 1 2\nyyy 1 3\n"))
	mustRun(t, "intrusion make X=in.txt -n 2 -o test.json")
	if err := os.Mkdir("empty", 0o777); err != nil {
		t.Fatal(err)
	}
	before := tree(t, ".")
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
		{"top model --dimensions -1", []string{"--dimensions is -1"}},
		{"explain model", []string{"2 arg"}},
		{"explain model raed", []string{`"raed"`, "6 words", "closest are read"}},
		{"explain model xylophone", []string{`"xylophone"`, "no word is spelled alike"}},
		{"explain model read --neighbours -1", []string{"--neighbours is -1"}},
		{"clusters signed", []string{"method B", "method A"}},
		{"clusters in.txt", []string{"in.txt: "}},
		{"clusters model --clusters 0", []string{"--clusters is 0"}},
		{"clusters model --input nowhere", []string{"nowhere: no such file"}},
		{"heatmap model read,write", []string{`"output"`}},
		{"heatmap model read,, -o m.png", []string{`""`}},
		{"heatmap model read,wrote -o m.png", []string{`"wrote"`, "closest are write"}},
		{"heatmap model read, -o m.png", []string{`""`}},
		{"heatmap model read -o m.bmp", []string{"m.bmp", ".png or .svg"}},
		{"heatmap model read -o model/m.png", []string{"in the directory of a model"}},
		{"heatmap model read -o empty/x/m.png", []string{"no such file or directory"}},
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
	} {
		checkRefused(t, tt.args, tt.want, before)
	}
}
