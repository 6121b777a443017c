package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"overcomplete/cpu"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/internal/testonly/clitest"
	"overcomplete/interpret"
	"overcomplete/vectors"
)

// A test for people is made of two conditions, answered by two judges, and scored.
func TestIntrusion(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o model --epochs 5 --quiet")
	make := "intrusion make X=in.txt A=model A=model -n 3 -o test.tsv"
	dir.MustRun(t, make)
	test, key := dir.Read(t, "test.tsv"), dir.Read(t, "test.key.json")
	dir.MustRun(t, make+" --force --seed 1")
	if !bytes.Equal(dir.Read(t, "test.tsv"), test) || !bytes.Equal(dir.Read(t, "test.key.json"), key) {
		t.Error("the same seed made another test")
	}
	if dir.MustRun(t, make+" --force --seed 2"); bytes.Equal(dir.Read(t, "test.tsv"), test) {
		t.Error("another seed made the same test")
	}
	sheet, err := intrusion.ReadKey(dir.Path("test.key.json"))
	if err != nil {
		t.Fatal(err)
	}
	// Three dimensions of the highest variance of each, and the conditions mixed: two of 84 orders
	// have all questions of X at one end, and that of this seed doesn't.
	variance := func(k int) float64 {
		var values []float64
		for i, x := 0, clitest.Vectors(60, 8); i < x.Len(); i++ {
			values = append(values, float64(x.Row(i)[k]))
		}
		return stat.Variance(values, nil)
	}
	highest := []int{0, 1, 2, 3, 4, 5, 6, 7}
	slices.SortFunc(highest, func(a, b int) int { return cmp.Compare(variance(b), variance(a)) })
	highest = highest[:3]
	slices.Sort(highest)
	order := ""
	var dimensions []int
	ann, ben := sheet.ID+"\tanswer\n", sheet.ID+"\n"
	for i, q := range sheet.Questions {
		order += q.Condition
		if q.Condition == "X" {
			dimensions = append(dimensions, q.Dimension)
			ben += fmt.Sprintf("%d\t%d\n", i+1, q.Intruder+1)
		}
		ann += fmt.Sprintf("%d\t%d\n", i+1, q.Intruder+1)
	}
	if strings.Count(order, "X") != 3 || len(order) != 9 || order == "XXXAAAAAA" || order == "AAAAAAXXX" {
		t.Errorf("conditions are %s", order)
	}
	if slices.Sort(dimensions); !slices.Equal(dimensions, highest) {
		t.Errorf("dimensions %v of the vectors, want %v", dimensions, highest)
	}
	dir.Write(t, "ann.tsv", []byte(ann))
	dir.Write(t, "ben.tsv", []byte(ben))
	checkTable(t, dir, "intrusion score test.key.json ann.tsv ben.tsv test.tsv", `condition  questions    ann    ben  test   mean  agreement  kappa
A                  6  100.0      –     –  100.0          –      –
X                  3  100.0  100.0     –  100.0      100.0      –
`)
	if stdout, _ := dir.MustRun(t, "intrusion score test.key.json test.tsv --json"); strings.Count(stdout, `"accuracy": null`) != 2 {
		t.Errorf("without answers:\n%s", stdout)
	}
}

func TestIntrusionUsage(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.Write(t, "same.txt", []byte("read 1 2\nwrite 2 1\n"))
	dir.Write(t, "same2.txt", []byte("read 1 2\nwrite 2 1\n"))
	dir.Write(t, "other.txt", []byte("zzz 1 2\nyyy 1 3\n"))
	dir.Write(t, "equal.txt", []byte("read 1 2\nwrite 1 2\n"))
	dir.MustRun(t, "paper train same.txt -o model -k 3 --epochs 1 --quiet")
	dir.MustRun(t, "export model --format safetensors -o model.safetensors")
	dir.MustRun(t, "intrusion make X=in.txt -n 2 -o test.tsv")
	before := dir.Tree(t)
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"intrusion", []string{"make, score or auto"}},
		{"intrusion mark", []string{`"mark"`}},
		{"intrusion make model -o t.tsv", []string{`"model"`, "CONDITION=MODEL", "A=model"}},
		{"intrusion make =model -o t.tsv", []string{"CONDITION=MODEL", "such as A=model\n"}},
		{"intrusion make A=nowhere -o t.tsv", []string{"nowhere: no such file"}},
		{"intrusion make X=in.txt -o t.tsv", []string{"in.txt: too few dimensions", "set --dimensions 8"}},
		{"intrusion make X=in.txt -n 0 -o t.tsv", []string{"--dimensions is 0"}},
		{"intrusion make X=in.txt -n 2 -o t.txt", []string{"t.txt", ".tsv"}},
		{"intrusion make X=in.txt -n 2 -o test.tsv", []string{"test.tsv: already exists", "--force"}},
		{"intrusion make X=in.txt -n 2 -o model/t.tsv", []string{"in the directory of a model"}},
		{"intrusion score test.tsv in.txt", []string{"test.tsv: not the key"}},
		{"intrusion score test.key.json in.txt", []string{"in.txt: no answers to this test"}},
		{"intrusion auto model --input in.txt --reference other.txt", []string{"in.txt has 8 dimensions", "trained on vectors of 2"}},
		{"intrusion auto model --input other.txt --reference in.txt", []string{"no word is in all of"}},
		{"intrusion auto model --input same.txt --reference same2.txt", []string{"same2.txt has the same vectors as same.txt"}},
		{"intrusion auto in.txt --input in.txt --reference in.txt", []string{"in.txt: "}},
		{"intrusion auto model --input equal.txt --reference same.txt", []string{"equal.txt: of the words that all have, the first, 2, have one vector"}},
		{"intrusion auto model.safetensors --input same.txt --reference equal.txt --save", []string{"model.safetensors: scores", "directory of a model"}},
	} {
		checkRefused(t, dir, tt.args, tt.want, before)
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
