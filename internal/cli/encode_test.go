package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/testonly/clitest"
	"overcomplete/internal/testonly/encodetest"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// checkEncoding compares a model's codes and metrics with the formulas in float64.
func checkEncoding(t *testing.T, dir clitest.Dir, name string, d *vectors.Dense, want model.Encoding) {
	t.Helper()
	m := dir.Model(t, name)
	e := m.Info.Encoding
	if e == nil {
		t.Fatal("model.json says nothing of the encoding")
	}
	if got := (model.Encoding{Lambda: e.Lambda, Steps: e.Steps, Nonzeros: e.Nonzeros, Gap: e.Gap}); !reflect.DeepEqual(got, want) {
		t.Errorf("encoded by %+v, want %+v", got, want)
	}
	if !slices.Equal(m.Codes.Words, d.Words) || m.Info.Encoding.Input.Words != d.Len() {
		t.Fatalf("%d words, want %d", len(m.Codes.Words), d.Len())
	}
	nonnegative := m.Info.Training.Recipe.Base().Method == "B"
	o := encode.Options{Lambda: e.Lambda, Nonnegative: nonnegative, Steps: e.Steps, Nonzeros: e.Nonzeros}
	dictionary := make([]float64, len(m.Dictionary.Atoms))
	for i, x := range m.Dictionary.Atoms {
		dictionary[i] = float64(x)
	}
	var loss, l1 float64
	for i := range m.Codes.Words {
		y, a := make([]float64, d.Dim), make([]float64, m.Codes.Cols)
		for j, x := range d.Row(i) {
			if y[j] = float64(x); m.Dictionary.Mean != nil {
				y[j] -= float64(m.Dictionary.Mean[j])
			}
		}
		index, value := m.Codes.Row(i)
		for n, k := range index {
			a[k] = float64(value[n])
			l1 += math.Abs(a[k])
		}
		if e.Gap > 0 {
			// The program sees gaps in float32, to parts in a million.
			if objective, gap := encodetest.Objective(y, dictionary, a, e.Lambda, nonnegative); gap > (e.Gap+1e-6)*objective {
				t.Errorf("word %d: gap %v of an objective of %v", i, gap, objective)
			}
		} else {
			for k, want := range encodetest.Code(y, dictionary, o) {
				// Steps in float32 add up to a part in 10⁵ of codes near 1.
				if math.Abs(a[k]-want) > 1e-5 {
					t.Fatalf("word %d: code %d is %v, want %v", i, k, a[k], want)
				}
			}
		}
		for _, r := range encodetest.Residual(y, dictionary, a) {
			loss += r * r
		}
	}
	words := float64(d.Len())
	for _, v := range []struct {
		name      string
		got, want float64
	}{
		{"error", e.Error, loss / words},
		{"mean |a|", e.L1, l1 / words},
		{"objective", e.Objective, loss/words + e.Lambda*l1/words},
		{"sparsity", e.Sparsity, 1 - float64(m.Codes.Nonzeros())/words/float64(m.Codes.Cols)},
	} {
		// Residuals are those of codes in float32, subtracted in float32.
		if math.Abs(v.got-v.want) > 1e-6*(1+v.want) {
			t.Errorf("%s is %v, the codes have %v", v.name, v.got, v.want)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o a --center --lambda 0.7 --epochs 10")
	dir.MustRun(t, "paper train in.txt -o b --method B --epochs 10")
	d := clitest.Vectors(200, 8) // the first 60 were trained on
	dir.Write(t, "new.txt", clitest.Text(d))
	density := func(name string) int {
		m := dir.Model(t, name)
		return int(math.Round(float64(m.Codes.Nonzeros()) / float64(m.Codes.Rows)))
	}
	for _, c := range []struct {
		args string
		want model.Encoding
	}{
		{"a new.txt", model.Encoding{Lambda: 0.7, Steps: 16, Nonzeros: density("a")}},
		{"b new.txt", model.Encoding{Lambda: 0.5, Steps: 16, Nonzeros: density("b")}},
		{"a new.txt --encode-steps 5 --nonzeros 4 --lambda 0.2", model.Encoding{Lambda: 0.2, Steps: 5, Nonzeros: 4}},
		{"b new.txt --nonzeros 1 --lambda 0", model.Encoding{Steps: 16, Nonzeros: 1}},
		{"a new.txt --exact", model.Encoding{Lambda: 0.7, Gap: 1e-4}},
		{"b new.txt --exact --gap 0.01 --lambda 0.3", model.Encoding{Lambda: 0.3, Gap: 0.01}},
	} {
		t.Run(c.args, func(t *testing.T) {
			stdout, stderr := dir.MustRun(t, "encode "+c.args+" -o out --force --json")
			checkEncoding(t, dir, "out", d, c.want)
			var printed struct {
				Model string
				model.Info
			}
			if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
				t.Fatal(err)
			}
			if m := dir.Model(t, "out"); printed.Model != "out" || !reflect.DeepEqual(printed.Info, m.Info) {
				t.Errorf("printed %s, model.json has %+v", stdout, m.Info)
			}
			if !regexp.MustCompile(`^encoding on the CPU\n200 words in .+\n$`).MatchString(stderr) {
				t.Errorf("on standard error %q", stderr)
			}
			trained := dir.Model(t, c.args[:1])
			got := dir.Model(t, "out")
			if !slices.Equal(got.Dictionary.Atoms, trained.Dictionary.Atoms) || !slices.Equal(got.Dictionary.Mean, trained.Dictionary.Mean) {
				t.Error("the dictionary or the mean is not the model's")
			}
			if !reflect.DeepEqual(got.Info.Training, trained.Info.Training) {
				t.Error("what model.json says of the training is not what the model's does")
			}
		})
	}

	// What was encoded can be encoded with.
	dir.MustRun(t, "encode a new.txt -o out --force --nonzeros 4")
	dir.MustRun(t, "encode out new.txt -o again")
	checkEncoding(t, dir, "again", d, model.Encoding{Lambda: 0.7, Steps: 16, Nonzeros: 4})

	stdout, stderr := dir.MustRun(t, "encode a new.txt -o out --force --exact --quiet")
	if !strings.HasPrefix(stdout, "out: 200 words × 80 sparse dimensions\n") || !strings.Contains(stdout, "largest gap") || stderr != "" {
		t.Errorf("printed %q, and on standard error %q", stdout, stderr)
	}
}

func TestEncodeStandardInput(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o a --epochs 3")
	dir.MustRun(t, "encode a in.txt -o want")
	f, err := os.Open(dir.Path("in.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := dir.Command("encode", "a", "-", "-o", "got")
	cmd.Stdin = f
	if code, _, stderr := clitest.Output(t, cmd); code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	if got, want := dir.Read(t, "got/codes.npz"), dir.Read(t, "want/codes.npz"); string(got) != string(want) {
		t.Error("standard input is encoded otherwise than a file")
	}
	if name := dir.Model(t, "got").Info.Encoding.Input.Name; name != "stdin" {
		t.Errorf("the input's name is %q", name)
	}
}

// Repeated words are all encoded; malformed rows, which zeros are, are dropped
// where that is asked for.
func TestEncodeOddRows(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o a -k 20 --epochs 3")
	dir.Write(t, "odd.txt", []byte("x 1 2 3 4 5 6 7 8\nx 8 7 6 5 4 3 2 1\nnull 0 0 0 0 0 0 0 0\ny 1 1 1 1 1 1 1 1\n"))
	_, stderr := dir.MustRun(t, "encode a odd.txt -o out --skip-bad --max-words 3")
	if m := dir.Model(t, "out"); !slices.Equal(m.Codes.Words, []string{"x", "x", "y"}) || !strings.Contains(stderr, `malformed rows dropped: 1 (odd.txt:3: word "null": all numbers are zero)`) {
		t.Errorf("words %q, on standard error %s", m.Codes.Words, stderr)
	}
}

// manyVectors makes an input of several blocks.
func manyVectors(t *testing.T, dir clitest.Dir, words int) {
	t.Helper()
	d := &vectors.Dense{Dim: 4}
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range words {
		d.Words = append(d.Words, fmt.Sprintf("w%d", i))
		for range d.Dim {
			d.Data = append(d.Data, float32(rng.NormFloat64()))
		}
	}
	dir.Write(t, "many.txt", clitest.Text(d))
}

// Shards merge into the very files of a single run, whatever their order and
// number, even where there are more than blocks.
func TestMerge(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	manyVectors(t, dir, 3*encode.Block+100)
	dir.MustRun(t, "paper train many.txt -o model --epochs 2 -k 9 --max-words 500 --center")
	for _, flags := range []string{"", "--exact --gap 1e-5"} {
		stdout, _ := dir.MustRun(t, "encode model many.txt -o whole --force --workers 1 "+flags)
		want := clitest.Dir(dir.Path("whole")).Tree(t)
		for _, of := range []int{1, 2, 3, 6} {
			var shards []string
			for i := range of {
				shard := fmt.Sprintf("part%dof%d", i+1, of)
				dir.MustRun(t, fmt.Sprintf("encode model many.txt -o %s --force --shard %d/%d %s", shard, i+1, of, flags))
				shards = append([]string{shard}, shards...)
				dir.Model(t, shard) // is a model too
			}
			merged, _ := dir.MustRun(t, "merge "+strings.Join(shards, " ")+" -o all --force")
			if got := clitest.Dir(dir.Path("all")).Tree(t); !reflect.DeepEqual(got, want) {
				for name := range want {
					if got[name] != want[name] {
						t.Errorf("%d shards, %q: %s differs", of, flags, name)
					}
				}
			}
			if merged[strings.Index(merged, ":"):] != stdout[strings.Index(stdout, ":"):] {
				t.Errorf("merge prints\n%s, encode\n%s", merged, stdout)
			}
		}
	}
}

// A shard without rows says that it has none, and a model of other loss that codes
// are of the squared one. Words that miss their gap are counted, and some named.
func TestEncodeSays(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o a --epochs 2 -k 20 --loss huber --huber-delta 0.3")
	stdout, stderr := dir.MustRun(t, "encode a in.txt -o empty --shard 2/2 --quiet")
	if want := "empty: 0 words × 20 sparse dimensions\n  no rows of the input are of shard 2/2: it has 60 words, dealt out by 4096\n"; stdout != want {
		t.Errorf("of an empty shard is printed %q, want %q", stdout, want)
	}
	note := "trained with the loss huber, encoded with the squared loss\n"
	if stderr != "a: "+note {
		t.Errorf("on standard error %q", stderr)
	}

	dir.MustRun(t, "encode a in.txt -o shard --shard 1/1 --exact")
	info := string(dir.Read(t, "shard/model.json"))
	for _, tt := range []struct{ encoding, shard, want string }{
		{`"unreached": 6, "unreached_words": ["word0", "word3"]`, `"unreached_rows": [0, 3]`, `words that did not get to a gap of 0.0001: 6 ("word0", "word3", …)`},
		{`"unreached": 1, "unreached_words": ["word0"]`, `"unreached_rows": [0]`, `words that did not get to a gap of 0.0001: 1 ("word0")`},
	} {
		changed := strings.Replace(info, `"shard": {`, tt.encoding+`, "shard": {`+tt.shard+`,`, 1)
		dir.Write(t, "shard/model.json", []byte(changed))
		if _, stderr := dir.MustRun(t, "merge shard -o merged --force"); stderr != "warning: "+tt.want+"\n" {
			t.Errorf("on standard error %q, want %q", stderr, tt.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	badInputs(t, dir)
	dir.MustRun(t, "paper train in.txt -o a --epochs 1 -k 20")
	dir.Write(t, "short.vec", []byte("x 1 2 3\ny 1 2 4\n"))
	dir.Write(t, "nil.txt", []byte("x 1 2 3 4 5 6 7 8\nnull 0 0 0 0 0 0 0 0\n"))
	dir.Write(t, "huge.txt", []byte("x 1 2 3 4 5 6 7 8\nhuge 3e38 -3e38 3e38 1 1 1 1 1\n"))
	for _, s := range []string{
		"a in.txt -o s1 --shard 1/2", "a in.txt -o s2 --shard 2/2", "a in.txt -o s3 --shard 1/3",
	} {
		dir.MustRun(t, "encode "+s)
	}
	spoiled := func(name, file string, change func(data []byte) []byte) {
		t.Helper()
		if err := os.CopyFS(dir.Path(name), os.DirFS(dir.Path("s1"))); err != nil {
			t.Fatal(err)
		}
		dir.Write(t, name+"/"+file, change(dir.Read(t, name+"/"+file)))
	}
	spoiled("cutcodes", "codes.npz", func(b []byte) []byte { return b[:len(b)/2] })
	ofEncoding := func(change func(s string) string) func(b []byte) []byte {
		return func(b []byte) []byte {
			training, encoding, _ := strings.Cut(string(b), `"encoding"`)
			return []byte(training + `"encoding"` + change(encoding))
		}
	}
	spoiled("future", "model.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), `"format": 1`, `"format": 9`, 1)) })
	spoiled("gpu", "model.json", ofEncoding(func(s string) string { return regexp.MustCompile(`"cpu \w+"`).ReplaceAllString(s, `"cuda 9.0 tf32"`) }))
	spoiled("zero", "dictionary.npy", func(b []byte) []byte { clear(b[128:]); return b })
	before := dir.Tree(t)
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"encode a short.vec -o out --quiet", []string{"short.vec: vectors of 3 numbers, and the dictionary's atoms have 8"}},
		{"encode a nil.txt -o out --quiet", []string{`nil.txt:2: word "null": all numbers are zero`}},
		{"encode a huge.txt -o out --quiet", []string{`"huge": its vector is too large`}},
		{"encode a nan.txt -o out --quiet", []string{"nan.txt:7: ", `"word6"`, "NaN"}},
		{"encode a nowhere.txt -o out --quiet", []string{"nowhere.txt: no such file"}},
		{"encode nowhere in.txt -o out", []string{"nowhere: no such file or directory"}},
		{"encode future in.txt -o out", []string{"future: model.json: format version is 9, want 1"}},
		{"encode zero in.txt -o out", []string{"zero: nothing can be encoded: the dictionary is zero"}},
		{"encode a in.txt -o a", []string{"a: already exists", "--force"}},
		{"encode a in.txt --output=", []string{"-o is empty"}},
		{"encode a in.txt -o out --encode-steps 0", []string{"--encode-steps is 0"}},
		{"encode a in.txt -o out --nonzeros 0", []string{"--nonzeros is 0"}},
		{"encode a in.txt -o out --nonzeros 81", []string{"--nonzeros is 81, and a has 20 dimensions"}},
		{"encode a in.txt -o out --lambda -1", []string{"--lambda is -1"}},
		{"encode a in.txt -o out --gap 0.1", []string{"--gap is of --exact"}},
		{"encode a in.txt -o out --exact --gap 1e-9", []string{"--gap is 1e-09", "1e-05"}},
		{"encode a in.txt -o out --exact --encode-steps 9", []string{"--encode-steps"}},
		{"encode a in.txt -o out --exact --nonzeros 4", []string{"--nonzeros"}},
		{"encode a in.txt -o out --exact --lambda 0", []string{"--exact needs", "--lambda"}},
		{"encode a in.txt -o out --shard 0/2", []string{`--shard is "0/2"`}},
		{"encode a in.txt -o out --workers 0", []string{"--workers is 0"}},
		{"encode a in.txt -o out --device gpu", []string{`--device is "gpu"`}},
		{"encode a in.txt -o out --device cuda --exact", []string{"--exact is of the CPU only", "--device cuda"}},

		{"merge s1 -o out", []string{"shard 2 of 2 is missing"}},
		{"merge s1 s2 s1 -o out", []string{"s1: shard 1 of 2, as is s1"}},
		{"merge s2 s3 -o out", []string{"s3: is of another number of shards than s2"}},
		{"merge gpu s2 -o out", []string{"s2: is of another kind of processor, cpu "}},
		{"merge a s2 -o out", []string{"a: is not a shard"}},
		{"merge cutcodes s2 -o out", []string{"cutcodes: codes.npz: "}},
		{"merge s1 nowhere -o out", []string{"nowhere: no such file or directory"}},
		{"merge s1 s2 -o a", []string{"a: already exists"}},
		{"merge s1 s2 --output=", []string{"-o is empty"}},
	} {
		checkRefused(t, dir, tt.args, tt.want, before)
	}
}

// The recipe best, which is the default, is what train.Fit makes of the same flags.
func TestRecipeBest(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	for _, c := range []struct {
		flags  string
		change func(h *model.Best)
	}{
		{"", func(*model.Best) {}},
		{"--method B --sparsity 0.8 --lambda 0.1 -k 20 --epochs 4 --dictionary-steps 3 --seed 5", func(h *model.Best) {
			h.Method, h.Nonzeros, h.Lambda, h.Atoms, h.Epochs, h.DictionarySteps, h.Seed = "B", 4, 0.1, 20, 4, 3, 5
		}},
		{"--factor 3", func(h *model.Best) { h.Atoms = 24 }},
	} {
		stdout, _ := dir.MustRun(t, "train in.txt -o best --force "+c.flags)
		h := train.Best()
		c.change(&h)
		want, err := train.Fit(t.Context(), d, h, cpu.Device{}, train.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := dir.Model(t, "best")
		if got.Info.Training.Recipe != want.Info.Training.Recipe || !reflect.DeepEqual(got.Codes, want.Codes) || !reflect.DeepEqual(got.Dictionary, want.Dictionary) {
			t.Errorf("%q: %+v, want %+v", c.flags, got.Info.Training.Recipe, want.Info.Training.Recipe)
		}
		if line := fmt.Sprintf("error          %.4f\n", got.Info.Encoding.Error); !strings.Contains(stdout, line) {
			t.Errorf("no %q in\n%s", line, stdout)
		}
	}
}

// --train-words names the first rows, or a sample.
func TestTrainWords(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	for _, tt := range []struct {
		which, printed string
		words          int
		order          model.Order
	}{
		{"40", "learned from   the first 40 words\n", 40, model.Frequency},
		{"first:40", "learned from   the first 40 words\n", 40, model.Frequency},
		{"random:40", "learned from   a random 40 words\n", 40, model.None},
		{"all", "", 60, model.None}, // as names with digits have none
		{"1000", "", 60, model.Frequency},
	} {
		stdout, _ := dir.MustRun(t, "train in.txt -o model --force -k 20 --sparsity 0.8 --train-words "+tt.which)
		m := dir.Model(t, "model")
		h := m.Info.Training.Recipe.(model.Best)
		if !strings.Contains(stdout, tt.printed) || h.TrainWords != tt.words || h.Order != tt.order || !slices.Equal(m.Codes.Words, d.Words) {
			t.Errorf("%s: %+v\n%s", tt.which, h, stdout)
		}
	}
}

// Repeated words and rows of zeros are the same in both readings, wherever they are.
func TestTrainWordsOddRows(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	odd := string(clitest.Text(d)) + "word3 1 2 3 4 5 6 7 8\nzero 0 0 0 0 0 0 0 0\nword55 8 7 6 5 4 3 2 1\n"
	dir.Write(t, "odd.txt", []byte(odd))
	const line = "train odd.txt --force -k 20 --sparsity 0.8 -o "
	for _, which := range []string{"40", "random:40"} {
		_, stderr := dir.MustRun(t, line+"model --train-words "+which)
		for _, warning := range []string{"duplicate words, the first of each kept: 2", `rows of zeros: 1 ("zero")`} {
			if n := strings.Count(stderr, "odd.txt: "+warning); n != 1 {
				t.Errorf("%s: %d times %s in\n%s", which, n, warning, stderr)
			}
		}
		if words := dir.Model(t, "model").Codes.Words; !slices.Equal(words, append(slices.Clone(d.Words), "zero")) {
			t.Errorf("%s: words %v", which, words)
		}
	}
}

// What teaches in part is judged as what teaches in whole, from a file, which is read twice,
// and from a pipe, which can be read once.
func TestTrainWordsFromPipes(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	const flags = " --train-words 40 -k 20 --sparsity 0.8 --force -o "
	run := func(args string) (code int, stderr string) {
		t.Helper()
		if !strings.Contains(args, "pipe") {
			code, _, stderr = dir.Run(t, args)
			return code, stderr
		}
		cmd := exec.Command("sh", "-c", `mkfifo pipe; cat in.txt >pipe & "$0" "$@"; code=$?; rm pipe; exit $code`)
		program := dir.Command(strings.Fields(args)...)
		cmd.Args = append(cmd.Args, program.Args...)
		cmd.Args[3] = program.Path
		cmd.Dir, cmd.Env = program.Dir, program.Env
		code, _, stderr = clitest.Output(t, cmd)
		return code, stderr
	}
	for _, from := range []string{"in.txt", "pipe"} {
		if code, stderr := run("train " + from + flags + "model"); code != 0 || !slices.Equal(dir.Model(t, "model").Codes.Words, d.Words) {
			t.Errorf("%s: exit code %d, %s", from, code, stderr)
		}
		if code, stderr := run("train " + from + flags + "zeros --lambda 50"); code != 1 || !strings.Contains(stderr, "all codes are zero") {
			t.Errorf("%s: exit code %d, %s", from, code, stderr)
		}
		if _, err := os.Stat(dir.Path("zeros")); err == nil {
			t.Errorf("%s: a model of zeros was saved", from)
		}
		if code, stderr := run("train " + from + flags + "sparse --lambda 1"); code != 0 || !strings.Contains(stderr, "a smaller λ") {
			t.Errorf("%s: exit code %d, %s", from, code, stderr)
		}
	}
}

// With --like a model has the dimensions of another, and their labels.
func TestTrainLike(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	dir.MustRun(t, "train in.txt -o old -k 20 --sparsity 0.8")
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n7\tseven\n"))
	dir.MustRun(t, "labels old --import labels.tsv")
	dir.Write(t, "fewer.txt", clitest.Text(&vectors.Dense{Words: d.Words[6:], Dim: d.Dim, Data: d.Data[6*d.Dim:]}))
	for _, flags := range []string{"", " -k 20 --train-words 30"} {
		os.RemoveAll(dir.Path("new"))
		dir.MustRun(t, "train fewer.txt -o new --like old --seed 2 --sparsity 0.8"+flags)
		stdout, _ := dir.MustRun(t, "compare old new --json")
		var got struct {
			Matches []interpret.Match
			Mean    float64 `json:"mean_cosine"`
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatal(err)
		}
		for k, m := range got.Matches {
			if m.Dimension != k {
				t.Errorf("%q: dimension %d is %d in the new model", flags, k, m.Dimension)
			}
		}
		if stdout, _ := dir.MustRun(t, "labels new"); got.Mean < 0.8 || !strings.Contains(stdout, "7\tseven\t") {
			t.Errorf("%q: mean cosine %v; labels\n%s", flags, got.Mean, stdout)
		}
	}
	dir.MustRun(t, "train in.txt -o plain -k 20 --sparsity 0.8")
	dir.Write(t, "wide.txt", clitest.Text(clitest.Vectors(60, 9)))
	before := dir.Tree(t)
	for args, want := range map[string]string{
		"train in.txt -o model --like old -k 21":      "old has 20 dimensions",
		"train in.txt -o model --like old --factor 2": "old has 20 dimensions",
		"train wide.txt -o model --like old":          "wide.txt: vectors of length 9, and the atoms to be like have 8",
		"train in.txt -o model --like nothing":        "nothing: no such file",
		"train in.txt -o model --like in.txt":         "in.txt: ",
	} {
		checkRefused(t, dir, args, []string{want}, before)
	}
}

// Where the second reading fails or is interrupted, the dictionary is kept.
func TestTrainWordsFails(t *testing.T) {
	t.Parallel()
	dir, d := clitest.Sample(t)
	const line = "train bad.txt --train-words 40 -k 20 --sparsity 0.8 -o "
	const kept = "model has the dictionary, with which encode makes codes\n"
	const bad = 50
	dir.Write(t, "bad.txt", clitest.Text(d))
	dir.MustRun(t, line+"whole")
	good := slices.Clone(d.Row(bad))
	d.Row(bad)[0] = 1e38 // whose square single precision can't hold
	dir.Write(t, "bad.txt", clitest.Text(d))
	code, stdout, stderr := dir.Run(t, line+"model")
	if row := fmt.Sprintf("bad.txt: row %d: ", bad+1); code != exitUsage || stdout != "" || !strings.Contains(stderr, row) || !strings.HasSuffix(stderr, kept) {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	copy(d.Row(bad), good)
	dir.Write(t, "bad.txt", clitest.Text(d))
	dir.MustRun(t, "encode model bad.txt -o encoded")
	if !reflect.DeepEqual(dir.Model(t, "encoded").Codes, dir.Model(t, "whole").Codes) {
		t.Error("encode makes other codes with what was kept")
	}
	for _, line := range []string{line, "train bad.txt --train-words all -k 20 --sparsity 0.8 -o "} {
		os.RemoveAll(dir.Path("model"))
		encoding := func(flags string) (stderr string) {
			code, _, stderr := clitest.Output(t, interruptedAt(dir.Command(strings.Fields(line+"model"+flags)...), 1, "encoding on the CPU"))
			if code != exitInterrupted {
				t.Errorf("%s: exit code %d", line, code)
			}
			return stderr
		}
		if stderr := encoding(""); !strings.HasSuffix(stderr, "interrupted; "+kept) {
			t.Error(stderr)
		}
		dir.MustRun(t, line+"model --force")
		before := dir.Tree(t)
		if stderr := encoding(" --force --seed 2"); !strings.Contains(stderr, "model is as it was") {
			t.Error(stderr)
		}
		dir.Unchanged(t, before)
	}
}

// Where the model can't be saved, the labels of what is in its place stay.
func TestLabelsOfAnotherStay(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "train in.txt -o model -k 20 --sparsity 0.8 --quiet")
	m := dir.Model(t, "model")
	precious := []interpret.Label{{Dimension: 3, Name: "precious"}}
	file := dir.Path("model/labels.json")
	if _, err := interpret.ChangeLabels(t.Context(), file, 20, precious, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	m.Labels = []byte("[]\n")
	if err := m.Save(dir.Path("model"), false); err == nil {
		t.Error("saved")
	}
	if got, err := interpret.ReadLabels(file, 20); err != nil || got[0].Name != "precious" {
		t.Errorf("labels are %v, error %v", got, err)
	}
}
