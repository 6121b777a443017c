package cli

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// timeless returns a model without the times, which differ between runs.
func timeless(t *testing.T, dir clitest.Dir, name string) *model.Model {
	t.Helper()
	m := dir.Model(t, name)
	for i := range m.Info.Training.Epochs {
		m.Info.Training.Epochs[i].Seconds = 0
	}
	return m
}

func TestResume(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "--method B --center", "--authors-stop --lambda 0.05", "--rate 2 --dictionary-steps 4", "--authors-order"} {
		t.Run(flags, func(t *testing.T) {
			dir, _ := clitest.Sample(t)
			line := "paper train in.txt -k 20 " + flags
			if !strings.Contains(flags, "--authors-stop") {
				line += " --epochs 6"
			}
			dir.MustRun(t, line+" -o whole")
			stderr := interruptAfter(t, dir, line+" -o model --checkpoint 1h", 2)
			checkParts(t, line, stderr, "\novercomplete: interrupted; model is a checkpoint after epoch 2; --resume continues it\n")
			// The same command again must not replace it, and names the flag that resumes it.
			checkRefusals(t, dir, line, map[string]string{" -o model --checkpoint 1h": "model: already exists, a checkpoint; --resume continues it"})
			interruptAfter(t, dir, line+" -o model --checkpoint 1h --resume", 4)
			stderr = interruptAfter(t, dir, line+" -o model --resume", 5)
			checkParts(t, line+", without checkpoints", stderr, "model is a checkpoint after epoch 4;")
			_, stderr = dir.MustRun(t, line+" -o model --resume --progress")
			if !strings.Contains(stderr, "resuming after epoch 4\n") || strings.Contains(stderr, "epoch 4/") || !strings.Contains(stderr, "epoch 5/") {
				t.Error(stderr)
			}
			if !reflect.DeepEqual(timeless(t, dir, "model"), timeless(t, dir, "whole")) || dir.Learned(t, "model") != dir.Learned(t, "whole") {
				t.Error("an interrupted training has a different result")
			}
			if _, err := os.Lstat(dir.Path("model/state")); err == nil {
				t.Error("a training that is done has a state")
			}
		})
	}
}

func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.Write(t, "other.txt", clitest.Text(clitest.Vectors(61, 8)))
	const line = "in.txt -k 20 --epochs 6 --checkpoint 1h"
	interruptAfter(t, dir, "paper train -o model "+line, 2)
	dir.MustRun(t, "paper train in.txt -o done --epochs 1")
	testonly.Must(t, os.CopyFS(dir.Path("moved.tmp0123abcd/old"), os.DirFS(dir.Path("model"))))
	checkRefusals(t, dir, "paper train --quiet --resume ", map[string]string{
		line + " -o moved": "moved.tmp0123abcd/old to moved",
		strings.Replace(line, "in.txt", "other.txt", 1) + " -o model": "the input's sha256 (got ",
		line + " -o model --max-rows 50":                              "the input's rows (got 50, want 60)",
		strings.Replace(line, "-k 20", "-k 30", 1) + " -o model":      "atoms (got 30, want 20)",
		line + " -o model --lambda 0.25":                              "lambda (got 0.25, want 0.5)",
		line + " -o done":                                             "done: is not a checkpoint: its training is finished, or stored no checkpoints",
		"in.txt -o x --checkpoint 0s":                                 "--checkpoint is 0s",
		"in.txt -o x --checkpoint often":                              `--checkpoint is "often", want a duration`,
	})
}

// A damaged byte in any file, or a file of another epoch, is detected before training resumes.
func TestResumeDamaged(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	const line = "paper train in.txt -k 20 --epochs 6 --checkpoint 1h --center "
	for name, epoch := range map[string]int{"model": 2, "later": 3} {
		interruptAfter(t, dir, line+"-o "+name, epoch)
	}
	files := []string{"model.json", "words.txt", "codes.npz", "dictionary.npy", "mean.npy", "state/S.npy", "state/Q.npy", "state/H.npy", "state/state.json"}
	for _, file := range files {
		whole, later := dir.Read(t, "model/"+file), dir.Read(t, "later/"+file)
		refused := func(damage string, content []byte) {
			dir.Write(t, "model/"+file, content)
			if code, _, stderr := dir.Run(t, line+"--quiet --resume -o model"); code != exitUsage || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s, %s: exit code %d, %q", file, damage, code, stderr)
			}
		}
		for at := len(whole) - 1; at >= 0; at -= 1 + len(whole)/5 {
			damaged := slices.Clone(whole)
			if damaged[at] ^= 0x04; at < len(whole)/5 {
				damaged = damaged[:at] // cut short
			}
			refused(fmt.Sprint("another byte ", at), damaged)
		}
		if !slices.Equal(whole, later) { // words and the mean are the same in each epoch
			refused("of another epoch", later)
		}
		dir.Write(t, "model/"+file, whole)
	}
	// The file's own description is checked like its checksum.
	whole := string(dir.Read(t, "model/state/state.json"))
	batch := regexp.MustCompile(`"batch":(\d+)`)
	changed := batch.ReplaceAllString(whole, `"batch":2`)
	if changed == whole {
		t.Fatal(whole)
	}
	dir.Write(t, "model/state/state.json", []byte(changed))
	checkRefusals(t, dir, line, map[string]string{"--quiet --resume -o model": "state/state.json: damaged"})
	dir.Write(t, "model/state/state.json", []byte(whole))
	dir.MustRun(t, line+"--quiet --resume -o model")
}
