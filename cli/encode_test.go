package cli

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// checkEncoding compares a model's codes and metrics with [encode.Model].
func checkEncoding(t *testing.T, dir clitest.Dir, name string, d *vectors.Dense, want model.Encoding) {
	t.Helper()
	m := dir.Model(t, name)
	e := m.Info.Encoding
	o := encode.Options{
		Lambda: want.Lambda, Steps: want.Steps, Nonzeros: want.Nonzeros, Gap: want.Gap, Nonnegative: m.Info.Training.Recipe.Base().Method == model.Nonnegative,
	}
	encoded, err := encode.Model(t.Context(), m, d, cpu.Device{}, o)
	testonly.Must(t, err)
	encoded.Info.Encoding.Input = e.Input // contains the file
	if !reflect.DeepEqual(m.Codes, encoded.Codes) || !reflect.DeepEqual(e, encoded.Info.Encoding) {
		t.Errorf("encoded by %+v, want %+v", e, encoded.Info.Encoding)
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o a --center --lambda 0.7 --epochs 10")
	dir.MustRun(t, "paper train in.txt -o b --method B --epochs 10")
	d := clitest.Vectors(200, 8) // the model was trained on the first 60
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
			checkInfo(t, dir, "out", stdout)
			if !regexp.MustCompile(`^encoding on the CPU\n200 rows in .+\n$`).MatchString(stderr) {
				t.Errorf("on standard error %q", stderr)
			}
			got, trained := dir.Model(t, "out"), dir.Model(t, c.args[:1])
			if !reflect.DeepEqual(got.Dictionary, trained.Dictionary) || !reflect.DeepEqual(got.Info.Training, trained.Info.Training) {
				t.Errorf("dictionary and training %+v\ndiffer from the model's, %+v", got.Info.Training, trained.Info.Training)
			}
		})
	}

	checkPrints(t, dir, "encode b new.txt -o zeros --lambda 1000", "0.0 nonzeros per row", "warning: all codes are zero: use a smaller --lambda")

	// The output of encode is a model that can encode, too.
	dir.MustRun(t, "encode a new.txt -o out --force --nonzeros 4")
	dir.MustRun(t, "encode out new.txt -o again")
	checkEncoding(t, dir, "again", d, model.Encoding{Lambda: 0.7, Steps: 16, Nonzeros: 4})

	checkPrints(t, dir, "encode a new.txt -o out --force --exact --quiet", "out: 200 words × 80 sparse dimensions\n … largest duality gap", "")
}

// Repeated words are all encoded. With --skip-bad, malformed rows and rows of zeros are dropped.
func TestEncodeOddRows(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o a -k 20 --epochs 3")
	dir.Write(t, "odd.txt", []byte("x 1 2 3 4 5 6 7 8\nx 8 7 6 5 4 3 2 1\nnull 0 0 0 0 0 0 0 0\ny 1 1 1 1 1 1 1 1\n"))
	_, stderr := dir.MustRun(t, "encode a odd.txt -o out --skip-bad --max-rows 3")
	if m := dir.Model(t, "out"); !slices.Equal(m.Codes.IDs, []string{"x", "x", "y"}) || !strings.Contains(stderr, `malformed rows dropped: 1 (odd.txt:3: word "null": all numbers are zero)`) {
		t.Errorf("words %q, on standard error %s", m.Codes.IDs, stderr)
	}
	cmd := dir.Command(strings.Fields("encode a - -o piped --skip-bad --max-rows 3")...)
	cmd.Stdin = bytes.NewReader(dir.Read(t, "odd.txt"))
	if code, _, stderr := clitest.Output(t, cmd); code != 0 || dir.Learned(t, "piped") != dir.Learned(t, "out") {
		t.Errorf("standard input is encoded otherwise: exit code %d, %s", code, stderr)
	}
}

// Shards merge into the same files as a single run, in any order and number, even with more shards than blocks.
func TestMerge(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	dir.Write(t, "many.txt", clitest.Text(clitest.Vectors(3*encode.Block+100, 4)))
	dir.MustRun(t, "paper train many.txt -o model --epochs 2 -k 9 --max-rows 500 --center")
	for _, flags := range []string{"", "--exact --gap 1e-5"} {
		stdout, _ := dir.MustRun(t, "encode model many.txt -o whole --force --workers 1 "+flags)
		want := clitest.Dir(dir.Path("whole")).Tree(t)
		for _, of := range []int{1, 3, 6} {
			var shards []string
			for i := range of {
				shard := fmt.Sprintf("part%dof%d", i+1, of)
				dir.MustRun(t, fmt.Sprintf("encode model many.txt -o %s --force --shard %d/%d %s", shard, i+1, of, flags))
				shards = append([]string{shard}, shards...)
				dir.Model(t, shard) // a shard is a model, too
			}
			merged, _ := dir.MustRun(t, "merge "+strings.Join(shards, " ")+" -o all --force")
			if changed := want.Differences(clitest.Dir(dir.Path("all")).Tree(t)); changed != nil {
				t.Errorf("%d shards, %q: these differ: %q", of, flags, changed)
			}
			if merged[strings.Index(merged, ":"):] != stdout[strings.Index(stdout, ":"):] {
				t.Errorf("merge prints\n%s, encode\n%s", merged, stdout)
			}
		}
	}
}

// An empty shard is reported, and so is a model of another loss, whose codes minimise the squared loss. Words that miss
// their gap are counted, and some are named.
func TestEncodeSays(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o a --epochs 2 -k 20 --loss huber --huber-delta 0.3")
	stdout, stderr := dir.MustRun(t, "encode a in.txt -o empty --shard 2/2 --quiet")
	if want := "empty: 0 words × 20 sparse dimensions\n  shard 2/2 has no rows: the input has 60, in blocks of 8192\n"; stdout != want {
		t.Errorf("of an empty shard is printed %q, want %q", stdout, want)
	}
	note := "trained with the loss huber, encoded with the squared loss\n"
	if stderr != "a: "+note {
		t.Errorf("on standard error %q", stderr)
	}

	dir.MustRun(t, "encode a in.txt -o shard --shard 1/1 --exact")
	info := string(dir.Read(t, "shard/model.json"))
	for _, tt := range []struct{ encoding, shard, want string }{
		{`"unreached": 6, "unreached_ids": ["word0", "word3"]`, `"unreached_rows": [0, 3]`, `rows above the duality gap of 0.0001: 6 ("word0", "word3", …)`},
		{`"unreached": 1, "unreached_ids": ["word0"]`, `"unreached_rows": [0]`, `rows above the duality gap of 0.0001: 1 ("word0")`},
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
	dir.MustRun(t, "paper train in.txt -o a --epochs 1 -k 20")
	dir.Write(t, "nan.txt", []byte("x 1 2 3 4 5 6 7 8\nnan 1 2 3 4 5 6 7 NaN\n"))
	dir.Write(t, "short.vec", []byte("x 1 2 3\ny 1 2 4\n"))
	dir.Write(t, "nil.txt", []byte("x 1 2 3 4 5 6 7 8\nnull 0 0 0 0 0 0 0 0\n"))
	dir.Write(t, "huge.txt", []byte("x 1 2 3 4 5 6 7 8\nhuge 3e38 -3e38 3e38 1 1 1 1 1\n"))
	dir.MustRun(t, "encode a in.txt -o s1 --shard 1/2")
	dir.MustRun(t, "encode a in.txt -o s2 --shard 2/2")
	dir.MustRun(t, "encode a in.txt -o s3 --shard 1/3")
	spoiled := func(name, file string, change func(data []byte) []byte) {
		t.Helper()
		testonly.Must(t, os.CopyFS(dir.Path(name), os.DirFS(dir.Path("s1"))))
		dir.Write(t, name+"/"+file, change(dir.Read(t, name+"/"+file)))
	}
	spoiled("future", "model.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), `"format": 2`, `"format": 9`, 1)) })
	spoiled("zero", "dictionary.npy", func(b []byte) []byte { clear(b[128:]); return b })
	checkRefusals(t, dir, "", map[string]string{
		"encode a short.vec -o out --quiet":               "short.vec: vectors differ in length from the dictionary's atoms (got 3 numbers, want 8)",
		"encode a nil.txt -o out --quiet":                 `nil.txt:2: word "null": all numbers are zero`,
		"encode a huge.txt -o out --quiet":                `"huge": the vector is too large`,
		"encode a nan.txt -o out --quiet":                 `nan.txt:2: … "nan" … NaN`,
		"encode nowhere in.txt -o out":                    "nowhere: no such file or directory",
		"encode future in.txt -o out":                     "future: model.json: format version is 9, want 2: train the model again with this version",
		"encode zero in.txt -o out":                       "zero: nothing can be encoded: the dictionary is zero",
		"encode a in.txt -o a":                            "a: already exists … --force",
		"encode a in.txt -o out --encode-steps 0":         "--encode-steps is 0",
		"encode a in.txt -o out --nonzeros 81":            "--nonzeros is 81, and a has 20 dimensions",
		"encode a in.txt -o out --lambda -1":              "--lambda is -1",
		"encode a in.txt -o out --gap 0.1":                "--gap requires --exact",
		"encode a in.txt -o out --exact --encode-steps 9": "--encode-steps",
		"encode a in.txt -o out --exact --nonzeros 4":     "--nonzeros",
		"encode a in.txt -o out --exact --lambda 0":       "--exact needs … --lambda",
		"encode a in.txt -o out --shard 0/2":              `--shard is "0/2"`,
		"encode a in.txt -o out --device cuda --exact":    "--exact runs on the CPU only … --device cuda",

		"merge s1 -o out":       "shard 2 of 2 is missing",
		"merge s1 s2 s1 -o out": "s1: repeats shard 1 of 2 in s1",
		"merge s1 s2 s2 -o out": "s2: repeats shard 2 of 2 in s2",
		"merge s2 s3 -o out":    "s3: differs from s2 in its number of shards",
		"merge a s2 -o out":     "a: is not a shard",
		"merge s1 s2 -o a":      "a: already exists",
	})
}
