package eval

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/evaltest"
	"overcomplete/vectors"
)

// writeData writes lines to a file in a directory of data.
func writeData(t *testing.T, dir, name string, lines ...string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	testonly.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	testonly.Must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o666))
}

// numbered returns n lines whose last token is mark and a number.
func numbered(n int, mark string, line func(i int) string) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("%s %s%d", line(i), mark, i))
	}
	return lines
}

// marks counts the last tokens of texts, without their digits.
func marks(c *classification, texts []int) map[string]int {
	all := map[string]int{}
	for _, i := range texts {
		tokens := c.texts[i].tokens
		all[strings.TrimRight(tokens[len(tokens)-1], "0123456789")]++
	}
	return all
}

func wantFold(t *testing.T, what string, c *classification, f fold, train, test map[string]int) {
	t.Helper()
	if onTrain, onTest := marks(c, f.train), marks(c, f.test); !maps.Equal(onTrain, train) || !maps.Equal(onTest, test) {
		t.Errorf("%s: trains on %v and tests on %v, want %v and %v", what, onTrain, onTest, train, test)
	}
	all := slices.Concat(f.train, f.test)
	if slices.Sort(all); len(slices.Compact(all)) < len(f.train)+len(f.test) {
		t.Errorf("%s: a text serves twice: %v", what, f)
	}
}

// The texts on which C is chosen are drawn at random from the seed.
func TestSplitsAreShuffled(t *testing.T) {
	for name, split := range map[string]func(uint64) split{
		"held out": withHeldOut(1000, 300, 1), "cross-validation": withCrossValidation(1000, 1),
	} {
		first := split(1).tune[0].test
		early, _ := slices.BinarySearch(slices.Sorted(slices.Values(first)), 500)
		// n/2 ± five standard deviations of √(n/4).
		if n := float64(len(first)); math.Abs(float64(early)-n/2) > 5*math.Sqrt(n/4) {
			t.Errorf("%s: %d of %d texts are from the first half", name, early, len(first))
		}
		if !slices.Equal(first, split(1).tune[0].test) || slices.Equal(first, split(2).tune[0].test) {
			t.Errorf("%s: seeds 1 and 2 draw %v and %v", name, first, split(2).tune[0].test)
		}
	}
}

// Each split trains, tunes and tests on the protocol's texts.
func TestSplits(t *testing.T) {
	dir := t.TempDir()
	type counts = map[string]int

	binary := func(i int) string { return fmt.Sprint(i % 2) }
	for part, n := range (counts{"train": 30, "dev": 11, "test": 12}) {
		writeData(t, dir, "sst2/stsa.binary."+part, numbered(n, part, binary)...)
	}
	sst := readTask(t, "SST", dir)
	s := sst.split(1)
	wantFold(t, "SST's choice of C", sst, s.tune[0], counts{"train": 30}, counts{"dev": 11})
	wantFold(t, "SST", sst, s.test[0], counts{"train": 30}, counts{"test": 12})
	if len(s.tune) != 1 || len(s.test) != 1 {
		t.Errorf("SST has %d and %d folds, want one each", len(s.tune), len(s.test))
	}

	for part, n := range (counts{"train": 52, "test": 9}) {
		writeData(t, dir, "trec/raw.TREC."+part, numbered(n, part, func(i int) string { return fmt.Sprintf("C%d:x", i%6) })...)
	}
	trec := readTask(t, "TREC", dir)
	s = trec.split(1)
	var held []int
	for _, f := range s.tune {
		wantFold(t, "TREC's choice of C", trec, f, counts{"train": 52 - len(f.test)}, counts{"train": len(f.test)})
		if n := len(f.test); n < 10 || n > 11 {
			t.Errorf("a fold of TREC holds %d of 52 out", n)
		}
		held = append(held, f.test...)
	}
	slices.Sort(held)
	if len(s.tune) != 5 || !slices.Equal(held, span(0, 52)) {
		t.Errorf("TREC's %d folds hold out %v", len(s.tune), held)
	}
	wantFold(t, "TREC", trec, s.test[0], counts{"train": 52}, counts{"test": 9})

	for _, g := range []newsgroups{sports, computer, religion} {
		for _, group := range g.groups {
			for part, n := range (counts{"train": 130, "test": 7}) {
				for i := range n {
					writeData(t, dir, fmt.Sprintf("20news-bydate/20news-bydate-%s/%s/%03d", part, group, i), "From: x", "", part+fmt.Sprint(i))
				}
			}
		}
	}
	for task, held := range (counts{"Sports": 239, "Comp": 239, "Relig": 209}) {
		news := readTask(t, task, dir)
		s := news.split(1)
		wantFold(t, task+"'s choice of C", news, s.tune[0], counts{"train": 260 - held}, counts{"train": held})
		wantFold(t, task, news, s.test[0], counts{"train": 260 - held}, counts{"test": 14})
		if !slices.Equal(s.tune[0].train, s.test[0].train) {
			t.Errorf("%s is tested with other training texts than those that C was chosen with", task)
		}
	}

	lines := []string{"Fold_id\ttrigram\ttype_of_bracketing"}
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("%d \tx-n_y-j_fold%c-n \t%c", i%4, 'a'+i%4, "LR"[i/4%2]))
	}
	writeData(t, dir, "np-bracketing/dataset.txt", lines...)
	np := readTask(t, "NP", dir)
	s = np.split(1)
	wantFold(t, "NP's choice of C", np, s.tune[0], counts{"foldb": 10, "foldc": 10, "foldd": 10}, counts{"folda": 10})
	if len(s.tune) != 1 || len(s.test) != 3 {
		t.Fatalf("NP has %d and %d folds, want 1 and 3", len(s.tune), len(s.test))
	}
	wantFold(t, "NP's fold 1", np, s.test[0], counts{"foldc": 10, "foldd": 10}, counts{"foldb": 10})
	wantFold(t, "NP's fold 2", np, s.test[1], counts{"foldb": 10, "foldd": 10}, counts{"foldc": 10})
	wantFold(t, "NP's fold 3", np, s.test[2], counts{"foldb": 10, "foldc": 10}, counts{"foldd": 10})
}

// The chosen C and the score equal the results of an exhaustive search with a fine fit for each C.
func TestChoiceOfC(t *testing.T) {
	dir, x := evaltest.Write(t)
	representation := sparsified(x)
	other := 0
	for _, name := range TaskNames()[2:] {
		task := readTask(t, name, dir)
		x := mustFeatures(t, representation, task)
		share := func(folds []fold, c float64) float64 {
			right, all := 0, 0
			for _, f := range folds {
				r := newRegression(x, f.train)
				p, err := r.fit(t.Context(), c, nil, fine)
				testonly.Must(t, err)
				right += count(r.classify(p, f.test))
				all += len(f.test)
			}
			return 100 * float64(right) / float64(all)
		}
		// choice returns the smallest C with the largest share.
		choice := func(folds []fold) float64 {
			best, highest := 0.0, -1.0
			for _, c := range grid {
				if s := share(folds, c); s > highest {
					best, highest = c, s
				}
			}
			return best
		}
		s := task.split(1)
		c := choice(s.tune)
		r := mustEvaluate(t, representation, task)[0]
		if score := share(s.test, c); r.C != c || float64(r.Score) != score {
			t.Errorf("%s: %.2f with C = %g, want %.2f with %g", name, r.Score, r.C, score, c)
		}
		if choice(s.test) != c {
			other++
		}
	}
	// Otherwise the test could not distinguish a choice on the tune folds from one on the test folds.
	if other < 2 {
		t.Errorf("the test texts would choose another C in %d tasks only", other)
	}
}

func TestTRECIsLatin1(t *testing.T) {
	dir := t.TempDir()
	lines := strings.Split(strings.Repeat("A:x \xe9t\xe9\nB:x na\xefve\n", 10), "\n")
	lines = lines[:len(lines)-1]
	writeData(t, dir, "trec/raw.TREC.train", lines...)
	writeData(t, dir, "trec/raw.TREC.test", lines...)
	x := NewDense("x", &vectors.Dense{IDs: []string{"été", "naïve"}, Dim: 1, Data: []float32{1, -1}})
	if r := mustEvaluate(t, x, readTask(t, "TREC", dir))[0]; r.Covered != 40 || r.Score != 100 {
		t.Errorf("%+v", r)
	}
	// A byte order mark says that a file is UTF-8.
	writeData(t, dir, "trec/raw.TREC.test", "\ufeffA:x été", "B:x naïve")
	if r := mustEvaluate(t, x, readTask(t, "TREC", dir))[0]; r.Covered != 22 {
		t.Errorf("%d of 22 tokens covered with a byte order mark", r.Covered)
	}
}

func TestPosts(t *testing.T) {
	p := newPart(t.TempDir())
	for name, content := range map[string]string{
		"1":         "From: me\nSubject: x\n\nfirst paragraph\n\nsecond, isn't\xe9it\n",
		"2":         "From: me\r\nSubject: x\r\n\r\nfirst paragraph\r\n\r\nsecond, isn't\xe9it\r\n",
		"3":         "\nfirst paragraph\n\nsecond, isn't\xe9it\n", // no header
		"4":         "\r\nfirst paragraph\r\n\r\nsecond, isn't\xe9it\r\n",
		".DS_Store": "no post",
	} {
		writeData(t, p.path, "g/"+name, content)
	}
	if err := p.readPosts("g"); err != nil || len(p.texts) != 4 {
		t.Fatalf("%d posts, error %v", len(p.texts), err)
	}
	want := text{"g", []string{"first", "paragraph", "second", "isn't", "it"}}
	for i, got := range p.texts {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("post %d is %q, want %q", i+1, got, want)
		}
	}
}

// A score requires ten items with vectors.
func TestFewItems(t *testing.T) {
	dir := t.TempDir()
	x := NewDense("x", &vectors.Dense{IDs: []string{"a", "b", "c", "d", "e"}, Dim: 2, Data: []float32{1, 0, -1, 0, 1, 1, 0, 1, 1, 2}})
	for n := 9; n <= 10; n++ {
		var pairs, texts []string
		for i := range n {
			pairs = append(pairs, fmt.Sprintf("a %c %d", 'b'+i%4, i%4))
			texts = append(texts, "L:x a", "R:x b")
		}
		writeData(t, dir, "pairs", append(pairs, "a unknown 1")...)
		writeData(t, dir, "trec/raw.TREC.train", texts...)
		writeData(t, dir, "trec/raw.TREC.test", append(texts[:n:n], strings.Repeat("L:x unknown\n", 30)+"R:x unknown")...)
		similarity, err := ReadWordSimilarity("pairs", filepath.Join(dir, "pairs"))
		testonly.Must(t, err)
		for i, r := range mustEvaluate(t, x, similarity, readTask(t, "TREC", dir)) {
			if few := n < 10; math.IsNaN(float64(r.Score)) != few || (r.Note != "") != few {
				t.Errorf("task %d with %d covered items: %+v", i, n, r)
			}
		}
	}
}

// A classifier needs two labels in all texts that it is trained on.
func TestFoldsOfOneLabel(t *testing.T) {
	dir := t.TempDir()
	x := NewDense("x", &vectors.Dense{IDs: []string{"a"}, Dim: 1, Data: []float32{1}})
	lines := []string{"Fold_id"}
	for i := range 40 { // L in fold 2 only
		lines = append(lines, fmt.Sprintf("%d\ta-n_b-n_c-n\t%c", i%4, "RRLR"[i%4]))
	}
	writeData(t, dir, "np-bracketing/dataset.txt", lines...)
	train := "trec/raw.TREC.train"
	writeData(t, dir, train, "YES:x a", "NO:x a", "YES:x b")
	writeData(t, dir, "trec/raw.TREC.test", strings.Split(strings.Repeat("YES:x a\nNO:x b\n", 10), "\n")...)
	for _, tt := range []struct {
		task Task
		want string
	}{
		{readTask(t, "NP", dir), filepath.Join(dir, "np-bracketing", "dataset.txt") + ": with 10 texts held out, all training texts of NP have the label \"R\""},
		{readTask(t, "TREC", dir), filepath.Join(dir, train) + ": with 1 texts held out, all training texts of TREC have the label \"YES\""},
	} {
		_, err := Run(t.Context(), x, []Task{tt.task}, 1, nil)
		if _, input := errors.AsType[*vectors.InputError](err); !input || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v, want an InputError %q", err, tt.want)
		}
	}
}

func TestNotFinite(t *testing.T) {
	dir, x := evaltest.Write(t)
	x.Data[3*x.Dim] = float32(math.Inf(1))
	_, err := Run(t.Context(), NewDense("x", x), []Task{readTask(t, "SST", dir)}, 1, nil)
	testonly.ErrorSays(t, "an infinite value", err, "are not finite")
}
