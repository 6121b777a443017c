package cli

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/testonly/clitest"
)

// alike is readable with two words whose cosine is 0.6·0.8 = 0.48.
func alike(t *testing.T) clitest.Dir {
	t.Helper()
	codes := slices.Clone(readableCodes)
	codes[0], codes[1] = []float32{6, 8, 0}, []float32{8, 0, 6}
	return clitest.Save(t, clitest.NewModel(readableWords, codes))
}

func TestCompare(t *testing.T) {
	t.Parallel()
	dir := alike(t)
	checkOutput(t, dir, "compare model read WRITE", `read, write: cosine 0.480

what they share: 0.480
   part      %  dimension  label                read  write
 0.4800  100.0          0  write, read, close  0.600  0.800

what tells them apart: 0.520
   part     %  dimension  label                read  write
 0.3200  61.5          1  read, month, week   0.800  0.000
 0.1800  34.6          2  write, day          0.000  0.600
 0.0200   3.8          0  write, read, close  0.600  0.800
`)
	stdout, _ := dir.MustRun(t, "compare model read write close --json --dimensions 1")
	var got struct {
		Words         []string
		Pairs         []struct{ Cosine float64 }
		Shared, Apart struct {
			Sum, Rest  float64
			Others     int
			Dimensions []struct {
				Part   float64
				Values []float64
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	mean := (0.48 + 0.6 + 0.8) / 3
	if len(got.Pairs) != 3 || math.Abs(got.Shared.Sum-mean) > 1e-7 || math.Abs(got.Apart.Sum-(1-mean)) > 1e-7 || got.Apart.Others != 2 || len(got.Apart.Dimensions) != 1 ||
		math.Abs(got.Apart.Dimensions[0].Part+got.Apart.Rest-got.Apart.Sum) > 1e-7 || len(got.Shared.Dimensions[0].Values) != 3 {
		t.Errorf("%+v", got)
	}
	for line, want := range map[string]string{
		"compare model read":                       "requires at least 3 arg",
		"compare model read wriet":                 `"wriet" is none of the 6 words; the closest are write`,
		"compare model read write --dimensions -1": "--dimensions is -1, want 0 or more",
	} {
		if code, stdout, stderr := dir.Run(t, line); code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	dir := alike(t)
	checkOutput(t, dir, "nearest model read -n 2 --dimensions 1", `read
cosine  word  dimensions, % of the cosine
 0.800  month  read, month, week (1) 100 · 0 others 0
 0.800  week  read, month, week (1) 100 · 0 others 0
`)
	// read − month is (0.6, −0.2).
	checkTable(t, dir, "nearest model read - month", `read − month
cosine  word  dimensions, % of the cosine
 0.949  close  write, read, close (0) 100 · 0 others 0
 0.759  write  write, read, close (0) 100 · 0 others 0
`)
	checkTable(t, dir, "nearest model the months: month, month and day! -n 1 --dimensions 1", `2·month day
not in the model: the, months:, and
cosine  word  dimensions, % of the cosine
 0.968  week  read, month, week (1) 100 · 0 others 0
`)
	checkOutput(t, dir, "nearest model month - month", "0·month\nno word is near\n")
	for line, want := range map[string]string{
		"nearest model":             "requires at least 2 arg",
		"nearest model mnoth":       `"mnoth" is none of the 6 words; the closest are month`,
		"nearest model month -":     "there is no word after the last -",
		"nearest model 2":           `"2" is a dimension, and no word: see overcomplete top`,
		"nearest model a b c d e f": "the model has none of the words of this text",
	} {
		if code, stdout, stderr := dir.Run(t, line); code != exitUsage || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}
