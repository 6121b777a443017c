package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/train"
	"overcomplete/vectors"
)

func TestTrain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags  string
		words  int
		change func(h *model.Paper)
	}{
		{"", 60, func(*model.Paper) {}},
		{"--method B --tau 0.01 --lambda 0.2", 60, func(h *model.Paper) { h.Method, h.Tau, h.Lambda, h.Epochs = "B", 0.01, 0.2, 30 }},
		{"--center --rate 0.1 --dictionary-steps 10", 60, func(h *model.Paper) { h.Center, h.Rate, h.DictionarySteps = true, 0.1, 10 }},
		{"--loss huber --huber-delta 0.4 -k 30 --epochs 7 --lambda 0.1", 60, func(h *model.Paper) {
			h.Loss, h.HuberDelta, h.Atoms, h.Epochs, h.Lambda = "huber", 0.4, 30, 7, 0.1
		}},
		{"--authors-order --epochs +3 --factor 011 --seed 010", 60, func(h *model.Paper) { // all numbers are decimal
			h.AuthorsOrder, h.DictionarySteps, h.Epochs, h.Atoms, h.Seed = true, 0, 3, 88, 10
		}},
		{"--authors-stop --max-rows 40", 40, func(h *model.Paper) { h.AuthorsStop, h.Epochs = true, 50 }},
		{"--authors-stop --method B --authors-order", 60, func(h *model.Paper) {
			h.AuthorsStop, h.Method, h.AuthorsOrder, h.DictionarySteps, h.Epochs = true, "B", true, 0, 75
		}},
	} {
		want := train.Paper()
		want.Atoms, want.Epochs = 80, 20
		tt.change(&want)
		t.Run(tt.flags, func(t *testing.T) {
			dir, d := clitest.Sample(t)
			stdout, stderr := dir.MustRun(t, "paper train in.txt -o model --json --progress "+tt.flags)
			m := dir.Model(t, "model")

			if got := dir.Names(t); !slices.Equal(got, []string{"in.txt", "model"}) {
				t.Errorf("left %q", got)
			}
			if n := len(m.Info.Training.Epochs); n > want.Epochs || n < want.Epochs && !want.AuthorsStop || strings.Count(stderr, "\nepoch ") != n {
				t.Errorf("%d epochs, want %d, with a line each in\n%s", n, want.Epochs, stderr)
			}
			if m.Info.Training.Recipe != model.Recipe(want) {
				t.Errorf("trained with\n%+v, want\n%+v", m.Info.Training.Recipe, want)
			}
			sum := sha256.Sum256(dir.Read(t, "in.txt"))
			if want := (model.Input{Name: "in.txt", SHA256: hex.EncodeToString(sum[:]), Rows: tt.words, Dim: 8}); !reflect.DeepEqual(m.Info.Encoding.Input, want) {
				t.Errorf("input %+v, want %+v", m.Info.Encoding.Input, want)
			}
			if !slices.Equal(m.Codes.IDs, d.IDs[:tt.words]) {
				t.Errorf("words %q", m.Codes.IDs)
			}
			checkInfo(t, dir, "model", stdout)
		})
	}
}

// checkInfo checks that printed JSON has the name of a model and the content of its model.json.
func checkInfo(t *testing.T, dir clitest.Dir, name, stdout string) {
	t.Helper()
	var got, want map[string]any
	testonly.Must(t, json.Unmarshal([]byte(stdout), &got))
	testonly.Must(t, json.Unmarshal(dir.Read(t, name+"/model.json"), &want))
	want["model"] = name
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s is\n%v, in model.json\n%v", key, got[key], want[key])
		}
	}
}

func TestTrainWarns(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	d.IDs[3] = d.IDs[2]
	dir.Write(t, "in.txt", clitest.Text(d))
	_, stderr := dir.MustRun(t, "paper train in.txt -o model --epochs 1 --quiet -k 8")
	want := "warning: in.txt: duplicate words, only the first row of each kept: 1 (\"word2\")\n" +
		"warning: 8 sparse dimensions for 8 dense ones are not overcomplete\n"
	if stderr != want {
		t.Errorf("standard error is\n%s, want\n%s", stderr, want)
	}

	// These settings make uninformative codes of 60 words of length 8 by the recipe best.
	dir.Write(t, "in.txt", clitest.Text(clitest.Vectors(60, 8)))
	for _, tt := range []struct{ flags, want string }{
		{"", ""},
		{"-k 30 --sparsity 0.8", ""},
		{"-k 30", "warning: 1 nonzeros per row describe a word poorly; --nonzeros 5 keeps more\n"},
		{"-k 30 --sparsity 0.5 --lambda 0.005", "warning: 15 nonzeros per row are more than the 8 dense dimensions; --nonzeros 8 keeps as many\n"},
		{"--factor 5 --sparsity 0.85", "warning: 40 dimensions for 60 rows, which initialise them: most will describe a single row; -k 30 has two rows per dimension\n"},
	} {
		if _, stderr := dir.MustRun(t, "train in.txt -o model --force --quiet "+tt.flags); stderr != tt.want {
			t.Errorf("%s: standard error is\n%s, want\n%s", tt.flags, stderr, tt.want)
		}
	}
}

// A training whose model is saved succeeds, even if the model can't be read for the summary.
func TestReportWithoutModel(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "train in.txt -o model -k 20 --nonzeros 5")
	dir.MustRun(t, "train in.txt -o topics -k 20 --nonzeros 5 --topics 3")
	for _, name := range []string{"model", "topics"} {
		info := dir.Model(t, name).Info
		cmd := newTrain()
		cmd.SetContext(t.Context())
		var stdout, stderr bytes.Buffer
		cmd.SetOut(&stdout)
		cmd.SetErr(&stderr)
		f := &trainFlags{output: dir.Path("replaced")}
		if err := f.report(cmd, info); err != nil || !strings.Contains(stdout.String(), "sparsity") || strings.Count(stderr.String(), "\n") != 1 ||
			!strings.Contains(stderr.String(), "replaced is written, but can't be read for this summary: ") {
			t.Errorf("%s: %v\n%s%s", name, err, &stdout, &stderr)
		}
	}
}

// Too many open files, full disks and failing file systems are failures of the system, not of the input.
func TestSystemFailureIsNoUsage(t *testing.T) {
	for errno, want := range map[syscall.Errno]bool{
		syscall.EMFILE: false, syscall.ENFILE: false, syscall.EIO: false, syscall.ENOSPC: false, syscall.EDQUOT: false, syscall.ESTALE: false,
		syscall.ETIMEDOUT: false, syscall.ENOENT: true, syscall.EACCES: true,
	} {
		if err := usageError(usageError{&vectors.InputError{File: "a", Err: errno}}); isUsage(err) != want {
			t.Errorf("%v: usage %v, want %v", errno, !want, want)
		}
	}
}

// Flags set hyperparameters, and a pipe gives the same model as a file. --train-rows selects the first rows, or a sample.
// Any number of workers starts no more threads than there are processors.
func TestTrainBest(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	const first = "training rows         the first 40 words\n"
	rows := func(n int, order model.Order) func(h *model.Best) {
		return func(h *model.Best) { h.TrainRows, h.Order, h.Nonzeros = n, order, 3 }
	}
	for _, tt := range []struct {
		flags, printed string
		change         func(h *model.Best)
	}{
		{"", "", func(*model.Best) {}},
		{"--method B --sparsity 0.8 --lambda 0.1 -k 20 --epochs 4 --dictionary-steps 3 --seed 5", "", func(h *model.Best) {
			h.Method, h.Nonzeros, h.Lambda, h.Atoms, h.Epochs, h.DictionarySteps, h.Seed = "B", 4, 0.1, 20, 4, 3, 5
		}},
		{"--factor 3 --anchor 0", "", func(h *model.Best) { h.Atoms, h.Anchor = 24, 0 }},
		{"--train-rows 40 --nonzeros 3", first, rows(40, model.Frequency)},
		{"--train-rows first:40 --nonzeros 3", first, rows(40, model.Frequency)},
		{"--train-rows random:40 --nonzeros 3", "training rows         a random 40 words\n", rows(40, model.None)},
		{"--train-rows all --nonzeros 3", "", rows(60, model.None)}, // as names with digits have none
		{"--train-rows 1000 --nonzeros 3", "", rows(60, model.Frequency)},
	} {
		stdout, _ := dir.MustRun(t, "train in.txt -o file --force "+tt.flags)
		h := train.Best()
		tt.change(&h)
		m := dir.Model(t, "file")
		if want := train.WithDefaults(h, d); m.Info.Training.Recipe != want || !slices.Equal(m.Codes.IDs, d.IDs) || !strings.Contains(stdout, tt.printed) {
			t.Errorf("%q: %+v, want %+v; %d words\n%s", tt.flags, m.Info.Training.Recipe, want, len(m.Codes.IDs), stdout)
		}
		cmd := dir.Command(strings.Fields("train - -o pipe --force --workers 2147483647 " + tt.flags)...)
		cmd.Stdin = bytes.NewReader(clitest.Text(d))
		if code, _, stderr := clitest.Output(t, cmd); code != 0 || dir.Learned(t, "pipe") != dir.Learned(t, "file") {
			t.Errorf("%q: exit code %d, or another model from a pipe: %s", tt.flags, code, stderr)
		}
	}
}

// Both readings treat repeated words and rows of zeros alike, at any position.
func TestTrainWordsOddRows(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	odd := string(clitest.Text(d)) + "word3 1 2 3 4 5 6 7 8\nzero 0 0 0 0 0 0 0 0\nword55 8 7 6 5 4 3 2 1\n"
	dir.Write(t, "odd.txt", []byte(odd))
	const line = "train odd.txt --force -k 20 --sparsity 0.8 -o "
	for _, which := range []string{"40", "random:40"} {
		_, stderr := dir.MustRun(t, line+"model --train-rows "+which)
		for _, warning := range []string{"duplicate words, only the first row of each kept: 2", `rows of zeros: 1 ("zero")`} {
			if n := strings.Count(stderr, "odd.txt: "+warning); n != 1 {
				t.Errorf("%s: %d times %s in\n%s", which, n, warning, stderr)
			}
		}
		if words := dir.Model(t, "model").Codes.IDs; !slices.Equal(words, append(slices.Clone(d.IDs), "zero")) {
			t.Errorf("%s: words %v", which, words)
		}
	}
}

// With --like, a model has the dimensions and labels of an earlier one.
func TestTrainLike(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	dir.MustRun(t, "train in.txt -o old -k 20 --sparsity 0.8")
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n7\tseven\n"))
	dir.MustRun(t, "labels old --import labels.tsv")
	dir.Write(t, "fewer.txt", clitest.Text(&vectors.Dense{IDs: d.IDs[6:], Dim: d.Dim, Data: d.Data[6*d.Dim:]}))
	dir.MustRun(t, "train fewer.txt -o new --like old --seed 2 --sparsity 0.8 -k 20 --train-rows 30")
	got := runJSON[modelMatch](t, dir, "compare old new --json")
	if stdout, _ := dir.MustRun(t, "labels new"); got.Mean < 0.8 || !strings.Contains(stdout, "7\tseven\t") {
		t.Errorf("mean cosine %v; labels\n%s", got.Mean, stdout)
	}
	dir.Write(t, "wide.txt", clitest.Text(clitest.Vectors(60, 9)))
	checkRefusals(t, dir, "", map[string]string{
		"train in.txt -o model --like old -k 21":      "old has 20 dimensions",
		"train in.txt -o model --like old --factor 2": "old has 20 dimensions",
		"train wide.txt -o model --like old":          "wide.txt: the vectors differ in length from the atoms of the earlier model (got 9, want 8)",
		"train in.txt -o model --like nothing":        "nothing: no such file",
		"train in.txt -o model --like in.txt":         "in.txt: ",
	})
}

// If the second reading fails or is interrupted, the dictionary is kept.
func TestTrainWordsFails(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	const line = "train bad.txt --train-rows 40 -k 20 --sparsity 0.8 -o "
	const kept = "model has the dictionary; encode makes the codes\n"
	const bad = 50
	whole := clitest.Text(d)
	d.Row(bad)[0] = 1e38 // its square overflows single precision
	dir.Write(t, "bad.txt", clitest.Text(d))
	code, stdout, stderr := dir.Run(t, line+"model")
	if row := fmt.Sprintf("bad.txt: row %d: ", bad+1); code != exitUsage || stdout != "" || !strings.Contains(stderr, row) || !strings.HasSuffix(stderr, kept) {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	dir.Write(t, "bad.txt", whole)
	for _, line := range []string{line, "train bad.txt --train-rows all -k 20 --sparsity 0.8 -o "} {
		os.RemoveAll(dir.Path("model"))
		encoding := func(flags string) (stderr string) {
			t.Helper()
			_, stderr = interruptAt(t, dir, line+"model"+flags, 1, "encoding on the CPU")
			return stderr
		}
		checkParts(t, line, encoding(""), "interrupted; "+kept)
		dir.MustRun(t, line+"model --force")
		before := dir.Tree(t)
		for _, seed := range []uint64{1, 2} { // the second dictionary replaces the first one
			stderr := encoding(fmt.Sprint(" --force --seed ", seed))
			checkParts(t, line, stderr, "interrupted; model is unchanged, model.dictionary has the dictionary; encode makes the codes\n")
			if m := dir.Model(t, "model.dictionary"); m.Info.Training.Recipe.Base().Seed != seed {
				t.Errorf("kept %+v", m.Info.Training)
			}
		}
		os.RemoveAll(dir.Path("model.dictionary"))
		dir.Unchanged(t, before)

		// The dictionary replaces a checkpoint of fewer epochs.
		interruptAfter(t, dir, line+"model --force --epochs 3 --checkpoint 1h", 1)
		checkParts(t, line, encoding(" --epochs 3 --resume"), "interrupted; "+kept)
		if m := dir.Model(t, "model"); len(m.Info.Training.Epochs) != 3 {
			t.Errorf("kept %+v", m.Info.Training)
		}
	}
}

// A training whose codes are all zero fails, and writes nothing. Codes with fewer nonzeros than wanted give a warning.
func TestTrainNothingActive(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	for _, line := range []string{"paper train in.txt", "train in.txt --train-rows 40", "train in.txt --train-rows all"} { // the second reads twice
		code, stdout, stderr := dir.Run(t, line+" -o model --lambda 1000")
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, "overcomplete: all codes are zero; lower --lambda") {
			t.Errorf("%s: exit code %d, %q, %q", line, code, stdout, stderr)
		}
		if got := dir.Names(t); !slices.Equal(got, []string{"in.txt"}) {
			t.Errorf("%s: left %q", line, got)
		}
	}
	for _, rows := range []string{"40", "all"} {
		checkPrints(t, dir, "train in.txt -o sparse --force --lambda 1 -k 20 --sparsity 0.8 --train-rows "+rows, "sparse: ", "a smaller λ")
	}
	// Checkpoints remain, and the error names them.
	code, _, stderr := dir.Run(t, "paper train in.txt -o model --lambda 1000 --epochs 4 --checkpoint 1ns --quiet")
	if code != exitFailed || !strings.HasSuffix(stderr, "overcomplete: all codes are zero; model is a checkpoint after epoch 3; lower --lambda\n") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// Dimensions are shown by their top words among the first rows. A dimension similar to an earlier one is omitted.
func TestShownDimensions(t *testing.T) {
	t.Parallel()
	m := clitest.NewModel([]string{"the", "bank", "money", "of", "and", "river"}, [][]float32{{1, 0, 0}, {0, 5, 4}, {0, 4, 3}, {2, 0, 0}, {1, 0, 0}, {0, 0, 0}})
	want := []dimension{{1, []string{"bank", "money"}}, {0, []string{"of", "the", "and"}}}
	if got := topDimensions(m.Codes); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
