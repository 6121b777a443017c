package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"overcomplete/testonly/clitest"
	"overcomplete/train"
	"overcomplete/vectors"
)

// A bad command or input ends with a one-line error and exit code 2, and changes nothing.
func TestRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.Write(t, "short.txt", []byte("first 1 2\nshort 3\nlast 4 5\n"))
	dir.Write(t, "nan.txt", []byte("first 1 2\nnan 3 NaN\nlast 4 5\n"))
	dir.Write(t, "same.txt", []byte("one 1 2 3\ntwo 1 2 3\nthree 1 2 3\n"))
	dir.Write(t, "photos/cat.jpg", []byte("a cat"))
	dir.MustRun(t, "paper train in.txt -o old --epochs 1")
	checkRefusals(t, dir, "", map[string]string{
		"paper train nowhere.txt -o model":     "nowhere.txt: no such file",
		"paper train photos -o model":          "photos/cat.jpg: unknown format of vectors",
		"paper train short.txt -o model":       `short.txt:2: … "short" … got 1, want 2 numbers … --skip-bad`,
		"paper train in.txt -o old":            "old: already exists … --force",
		"paper train nan.txt -o old --force":   "nan.txt:2: ",
		"paper train in.txt -o photos --force": "photos: … neither empty nor a model",
		"paper train in.txt -o in.txt --force": "in.txt: not a directory",

		"paper train in.txt -o model -k 0":       "-k is 0",
		"top old --skip-bad":                     "--skip-bad is for dense vectors, and this is a model: old",
		"compare old old --skip-bad":             "--skip-bad is for dense vectors",
		"explain in.txt word0 --rare":            "--rare is for models, and this is none: in.txt",
		"paper train in.txt -o old/model":        "old/model: is in the directory of a model",
		"encode old in.txt -o ./old/./words.txt": "words.txt: is in the directory of a model",
		"merge old -o old/model":                 "old/model: is in the directory of a model",

		"paper train in.txt -o model --epochs 0x10":                        `--epochs is "0x10", want a`,
		"paper train in.txt -o model -k 2000000000":                        "60 rows … 2000000000 sparse dimensions … memory",
		"paper train in.txt -o model --factor 0":                           "--factor is 0",
		"paper train in.txt -o model --factor 2305843009213693953":         "--factor is 2305843009213693953", // × 8 is 8 in 64 bits
		"paper train in.txt -o model --factor 3 -k 24":                     "give -k or --factor, not both",
		"paper train in.txt -o model --lambda -1":                          "--lambda is -1",
		"paper train in.txt -o model --lambda NaN":                         "--lambda is NaN",
		"paper train in.txt -o model --lambda 1e39":                        "--lambda is 1e+39, which is +Inf in the single precision of training",
		"paper train in.txt -o model --rate 0":                             "--rate is 0",
		"paper train in.txt -o model --epochs 100001":                      "--epochs is 100001, want 1 to 100000",
		"train in.txt -o model --sparsity 1":                               "--sparsity is 1",
		"paper train in.txt -o model --lambda much":                        `--lambda is "much", want a`,
		"graph --lambda 1e-300":                                            "--lambda is 1e-300",
		"paper train in.txt -o model --workers 0":                          "--workers is 0",
		"paper train in.txt -o model --max-rows -1":                        "--max-rows is -1",
		"paper train in.txt -o model --dictionary-steps 0":                 "--dictionary-steps is 0",
		"paper train in.txt -o model --dictionary-steps 9 --authors-order": "--dictionary-steps",
		"paper train in.txt -o model --seed -1":                            "--seed is -1, want a",
		"train in.txt -o model -k 2000000000":                              "2000000000 sparse dimensions … memory",
		"train same.txt -o model --train-rows 2":                           "same.txt: … all training rows are the same vector",
		"train in.txt -o model --sparsity 0":                               "--sparsity is 0",
		"paper train in.txt -o model --sparsity 0.9":                       "no flag --sparsity",
		"train in.txt -o model --nonzeros 0":                               "--nonzeros is 0",
		"train in.txt -o model -k 30 --nonzeros 31":                        "--nonzeros is 31, want 1 to 30",
		"train in.txt -o model --nonzeros 3 --sparsity 0.9":                "give --sparsity or --nonzeros, not both",
		"train in.txt -o model --train-rows last:10":                       `--train-rows is "last:10" … random:n`,
		"train in.txt -o model --anchor -1":                                "--anchor is -1",
		"train in.txt -o model --from-rows":                                "no flag --from-rows … usage: overcomplete train VECTORS... -o MODEL; see overcomplete train --help",
		"paper train in.txt -o model --from-rows --authors-order":          "--from-rows has no meaning",
		"paper train in.txt -o model --method C":                           `--method is "C"`,
		"paper train in.txt -o model --loss foo":                           `--loss is "foo"`,
		"paper train in.txt -o model --loss huber":                         "--huber-delta",
		"paper train in.txt -o model --huber-delta 1":                      "--loss huber",
		"paper train in.txt -o model --loss huber --huber-delta 0":         "--huber-delta is 0",
		"paper train in.txt -o model --authors-stop --epochs 5":            "give --epochs or --authors-stop, not both",
		"paper train in.txt -o model --device gpu":                         `--device is "gpu" … cuda:i`,
		"paper train in.txt -o model --device cuda:all":                    `--device is "cuda:all" … cuda:i`,
		"paper train in.txt -o model --device cuda --authors-order":        "the authors' order … --device cuda",
		"paper train in.txt -o model --precision fp8":                      `--precision is "fp8" … fp16, tf32 or fp32`,
		"paper train in.txt -o model --words nowhere.txt":                  "in.txt: … word list",

		"paper train - --words - -o model": "stdin: … word list",

		"paper train in.txt":                                      "-o directory is missing … usage: overcomplete paper train VECTORS... -o MODEL … train --help",
		"paper train -o model":                                    "no arguments are given … VECTORS... -o MODEL … train --help",
		"paper train in.txt old -o model":                         "old: is a model, not dense vectors",
		"train in.txt in.txt -o model":                            "in.txt: is named twice",
		"train in*.npy -o model":                                  "in*.npy: the pattern matches no data files",
		"export old -o out":                                       "-f format is missing … export --help",
		"explore":                                                 "no arguments are given … explore --help",
		`explore old --export out --words "a`:                     `--words is "\"a", want a list separated by commas`,
		"train in.txt -o old --force --like ./old":                "--like and -o name the same model",
		"paper tune in.txt --data photos -o in.txt":               `-o is "in.txt", want a directory`,
		"paper report in.txt --data photos -o -":                  `-o is "-", want a directory`,
		"paper tune in.txt --data photos -o in.txt/out":           "not a directory",
		"paper tune in.txt --data photos -o out --lambda 1,2,1.0": `--lambda "1" is given twice`,
		"paper tune in.txt --data photos -o out --lambda a":       `--lambda is "a", want numbers separated by commas`,
		"paper report in.txt --data photos -o out --length 2,2":   `--length "2" is given twice`,
		"labels old --import in.txt --json":                       "give --json or --import, not both",
		"labels old --import in.txt -n 3":                         "give -n or --import, not both",
		"export old -f csr -o out --escape":                       "--escape has no effect on format csr",
		"explore in.txt --port 0":                                 "in.txt: not a model (got a file, want a directory with model.json)",
		"explore old --host=":                                     "--host is empty",
		"explore old --port 65536":                                "--port is 65536, want a whole number from 0 to 65535",
		"explore old --export page.html --words word1 --frame":    "give --frame or --export, not both",
		"explore old --export - --words word1":                    "--export writes a file, not standard output",
		"explore old --host no-where.invalid":                     "--host … no-where.invalid",
		"explore old --words word1":                               "--words requires --export",
		"explore old --export out --words word1 --port 0":         "give --port or --export, not both",
		"explore old --words word1 --export=":                     "--export is empty",
		"explore old --export out":                                "--words or --dimensions",
		"explore old --export out --dimensions one":               `--dimensions is "one", want whole numbers … explore --help`,
		"explore old --export out --dimensions 80":                "no dimension 80 (want 0 to 79)",
		"explore old --export out --words word1,wrod2":            `no word "wrod2" … similar words: word2`,
		"explore old --export photos --words word1 --force":       "photos: exists and is not a regular file",
		"explore old --export old/page.html --words word1":        "old/page.html: … directory of a model",
		"graph --dot foo":                                         `--dot is "foo" … dictionary, code, authors, encode or learn`,
		"graph --dot encode --loss huber --huber-delta 1":         "--loss has no effect on this step",
		"graph --dot learn --lambda 1":                            "--lambda has no effect on this step",
		"train in.txt -o model --quiet --progress":                "--quiet or --progress, not both",
		"graph code": `"code" … graph --help`,

		// A flag that the chosen device ignores, or an empty -o, is refused before any file is read.
		"train none -o b --device cuda --workers 2":                     "--workers has no effect on a GPU",
		"train none -o b --device cuda:1 --overcommit":                  "--overcommit has no effect on a GPU",
		"paper train none -o b --device cpu --precision fp16":           "--precision has no effect on the CPU",
		"paper train none -o b --authors-order --precision fp16":        "--precision has no effect on the CPU",
		"paper tune none --data d -o b --device cuda --workers 2":       "--workers has no effect on a GPU",
		"paper report none --data d -o b --device cpu --precision tf32": "--precision has no effect on the CPU",
		"train none --output=":                                          "-o is empty",
		"paper tune none --data d --output=":                            "-o is empty",
	})
}

// The line of an error is short, even if names are long.
func TestLongNames(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	long := strings.Repeat("nä", 2000)
	for _, args := range []string{
		long, "help " + long, "completion " + long, "train --" + long, "train " + long + " -o m", "train in.txt -o m --device " + long, "train in.txt -o m --train-rows " + long,
		"train in.txt -o m --like " + long, "train in.txt -o m --text-column " + long, "encode in.txt in.txt -o m --shard " + long, "merge " + long + " -o m",
		"merge in.txt -o " + long, "eval in.txt --wordsim " + long, "eval in.txt --data d --tasks " + long, "eval in.txt --data " + long,
		"paper tune in.txt -o m --data " + long, "labels in.txt --import " + long, "intrusion make A=" + long + " -o m.tsv", "intrusion make A=in.txt -o " + long,
		"intrusion score " + long + " in.txt", "intrusion auto in.txt --input in.txt --reference " + long, "nearest in.txt " + long, "explain in.txt " + long, "graph --dot " + long,
	} {
		code, _, stderr := dir.Run(t, args)
		if code != exitUsage || utf8.RuneCountInString(stderr) >= 300 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%.60s: exit code %d, %d characters, %.400s", args, code, len(stderr), stderr)
		}
	}
}

// Advice names only flags that the command has.
func TestAdvice(t *testing.T) {
	t.Parallel()
	bad := &vectors.InputError{Err: errors.New("bad"), Options: []string{"SkipBad", "WordList"}}
	for _, tt := range []struct {
		command string
		err     error
		want    string
	}{
		{"train", bad, "; --skip-bad drops such rows, --words names that file"},
		{"eval", bad, "; --skip-bad drops such rows"},
		{"top", bad, "; --skip-bad drops such rows"},
		{"explore", bad, ""},
		{"merge", bad, ""},
		{"train", train.ErrMemory, "; lower -k, lower --max-rows, try --overcommit"},
		{"paper train", train.ErrMemory, "; lower -k, lower --max-rows, try --overcommit"},
		{"encode", train.ErrMemory, "; lower --max-rows"},
		{"train --device cuda", train.ErrMemory, "; lower -k, use --device cpu"},
		{"paper train --device cuda:1", train.ErrMemory, "; lower -k, lower --max-rows, use --device cpu"},
		{"explore", train.ErrZeroCodes, ""},
	} {
		cmd, flags, err := newRoot().Find(strings.Fields(tt.command))
		if err == nil {
			err = cmd.ParseFlags(flags)
		}
		if got := advice(cmd, tt.err); err != nil || got != tt.want {
			t.Errorf("%s, %v: advice %q, want %q", tt.command, tt.err, got, tt.want)
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o old --epochs 1")
	before := dir.Tree(t)
	for _, args := range []string{"paper train in.txt -o model", "train in.txt -o old --force", "export old -f jsonl -o out", "export old -f csr -o -",
		"encode old in.txt -o new --quiet", "explore old --export out --words word1"} {
		if stdout, stderr := interruptAt(t, dir, args, 0, ""); stdout != "" || stderr != "overcomplete: interrupted, no file was written\n" {
			t.Errorf("%s: %q on standard output, %q on standard error", args, stdout, stderr)
		}
		dir.Unchanged(t, before)
	}
}

// An interrupted command ends even if nobody reads its standard error.
func TestInterruptedWithoutReaders(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	before := dir.Tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	stderr := writerFunc(func([]byte) (int, error) { // never returns
		cancel()
		select {}
	})
	if code := run(ctx, []string{"paper", "train", dir.Path("in.txt"), "-o", dir.Path("model"), "--epochs", "100000"}, io.Discard, stderr); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	dir.Unchanged(t, before)
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands(newRoot()) {
		if !strings.Contains(cmd.Example+cmd.Long, cmd.CommandPath()) {
			t.Errorf("the help of %q has no example of it", cmd.CommandPath())
		}
	}
	dir := clitest.New(t)
	for _, args := range []string{"", "--help", "paper train --help", "help export"} {
		checkPrints(t, dir, args, "Examples:\n  overcomplete ", "")
	}
}

// Unknown commands and flags are refused with a suggestion, and empty arguments with the usage.
func TestSuggests(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	const train = "; usage: overcomplete train VECTORS... -o MODEL; see overcomplete train --help"
	for args, want := range map[string]string{
		"trian":                   `no command "trian"; did you mean train?; see overcomplete --help`,
		"trian -o a":              `no command "trian"; did you mean train?; see overcomplete --help`,
		"heatmap":                 `no command "heatmap"; did you mean paper?; see overcomplete --help`,
		"completion foo":          `no command "foo"; see overcomplete completion --help`,
		"intrusion":               `intrusion requires a subcommand: make, score or auto; see overcomplete intrusion --help`,
		"themes":                  `no command "themes"; did you mean topics?; see overcomplete --help`,
		"xyzzy":                   `no command "xyzzy"; see overcomplete --help`,
		"intrusion atuo":          `no command "atuo"; did you mean auto?; see overcomplete intrusion --help`,
		"help trian":              `no command "trian"; did you mean train?; see overcomplete help --help`,
		"train a -x":              "no flag -x" + train,
		"train a --epoch=3":       "no flag --epoch; did you mean --epochs?" + train,
		"train a -o":              "-o needs a value, directory: model directory to write" + train,
		"train a -o b --json=yes": `--json is "yes", want no value; see overcomplete train --help`,
		"version a":               `one argument is given, "a"; usage: overcomplete version; see overcomplete version --help`,
		"train  -o model":         "an argument is empty" + train,
	} {
		code, stdout, stderr := clitest.Output(t, dir.Command(strings.Split(args, " ")...))
		if code != exitUsage || stdout != "" || stderr != "overcomplete: "+want+"\n" {
			t.Errorf("%s: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// Shells complete the values of flags, including later values of lists.
func TestCompletesValues(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"__complete train --method ":              "A\nB\n:4\n",
		"__complete graph --loss ":                "squared\nhuber\n:4\n",
		"__complete graph --dot ":                 "dictionary\ncode\nauthors\nencode\nlearn\n:4\n",
		"__complete eval --tasks WS-353,SimLex":   "WS-353,SimLex-999\n",
		"__complete encode --device ":             "auto\ncpu\ncuda\n:4\n",
		"__complete export model --format word2v": "word2vec\n",
	} {
		if code, stdout, stderr := inProcess(t.Context(), strings.Split(args, " ")...); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit code %d, %s%s", args, code, stdout, stderr)
		}
	}
}

// Every command has a manual page with its flags.
func TestMan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, _, stderr := inProcess(t.Context(), "man", dir); code != 0 {
		t.Fatal(stderr)
	}
	for _, cmd := range commands(newRoot()) {
		if !cmd.IsAvailableCommand() {
			continue
		}
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(string(page), "--"+f.Name) {
				t.Errorf("%s: the page lacks --%s", cmd.CommandPath(), f.Name)
			}
		})
	}
}
