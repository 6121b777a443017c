package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"overcomplete/model"
	"overcomplete/vectors"
)

//go:embed peers/sgemm.py
var sgemmScript string

//go:embed peers/dictionary_learning.py
var learningScript string

// Peers.
const (
	product  = "NumPy's product, V×L by L×K"
	authors  = "the authors' program, one core"
	learning = "scikit-learn's dictionary learning"
)

// errNotHere says why a peer could not be measured.
var errNotHere = errors.New("not here")

// peers measures other programs. One that is not here, or fails, is a figure with a
// note.
func (r *CPUReport) peers() {
	for _, peer := range []struct {
		name    string
		measure func() error
	}{
		{product, r.sgemm},
		{authors, r.authorsProgram},
		{learning, r.dictionaryLearning},
	} {
		if err := peer.measure(); err != nil {
			r.Figures = append(r.Figures, Figure{Name: peer.name, Note: err.Error()})
		}
	}
}

// runPython runs a script, which prints a result as JSON.
func (r *CPUReport) runPython(script string, result any, args ...any) error {
	if r.python == "" {
		return fmt.Errorf("%w: no --python", errNotHere)
	}
	words := []string{"-c", script}
	for _, a := range args {
		words = append(words, fmt.Sprint(a))
	}
	out, err := exec.Command(r.python, words...).Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		if exit.ExitCode() == 3 { // the script lacks a module
			err = errNotHere
		}
		return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	case err != nil:
		return fmt.Errorf("%w: %w", errNotHere, err)
	}
	return json.Unmarshal(out, result)
}

// sgemm compares the code pass with the product alone that most of it is.
func (r *CPUReport) sgemm() error {
	var result struct {
		Program string
		Seconds []float64
	}
	if err := r.runPython(sgemmScript, &result, r.Words, r.Dim, r.Atoms, repeats); err != nil {
		return err
	}
	for _, s := range result.Seconds {
		r.add(product, "GFLOP/s", codePass, result.Program, 2e-9*float64(r.Words)*float64(r.Dim)*float64(r.Atoms)/s)
	}
	return nil
}

func (r *CPUReport) dictionaryLearning() error {
	result, err := r.learn(10 * r.value(trainingAll))
	if err != nil {
		return err
	}
	r.add(learning, "s", trainingAll, result.String(), result.Seconds)
	return nil
}

// learn gives scikit-learn so many seconds to reach our objective.
func (r *CPUReport) learn(seconds float64) (result learningResult, err error) {
	x, codes, dictionary := r.file("x.npy"), r.file("codes.npz"), r.file("dictionary.npy")
	if err := errors.Join(
		writeVectors(x, r.x.Data, r.x.Dim),
		writeFile(codes, func(w io.Writer) error { return vectors.WriteCSR(w, &r.model.Codes.CSR) }),
		writeVectors(dictionary, r.model.Dictionary.Atoms, r.x.Dim),
	); err != nil {
		return result, err
	}
	h := r.model.Info.Training.Recipe.(model.Paper)
	err = r.runPython(learningScript, &result, x, codes, dictionary, h.Lambda, h.Tau, seconds)
	return result, err
}

// learningResult is what dictionary_learning.py prints.
type learningResult struct {
	Program   string
	Seconds   float64
	Words     int     // that it has learned from
	Objective float64 // of a sample of the words
	Ours      float64 // of the same words
	Reached   bool
}

func (r learningResult) String() string {
	outcome := "has not reached"
	if r.Reached {
		outcome = "has reached"
	}
	return fmt.Sprintf("%s after %d words %s our objective: %.4f, ours %.4f, on the same words", r.Program, r.Words, outcome, r.Objective, r.Ours)
}

// authorsEpochs are enough to tell how long one takes, as all take the same.
const (
	authorsEpochs = 3
	authorsWords  = 1000
)

// authorsProgram measures the program of the paper's authors on one core, which
// is how it gives the same result twice. It tells when it begins an epoch. It has
// no option for their number, so that it is ended.
func (r *CPUReport) authorsProgram() error {
	if r.authors == "" {
		return fmt.Errorf("%w: no --authors", errNotHere)
	}
	if r.Atoms%r.Dim != 0 {
		return fmt.Errorf("%d dimensions are no multiple of %d, which is all that it can do", r.Atoms, r.Dim)
	}
	words := r.x.Slice(0, min(authorsWords, r.Words))
	file := r.file("authors.txt")
	if err := os.WriteFile(file, glove(words), 0o666); err != nil {
		return err
	}
	h := r.model.Info.Training.Recipe.(model.Paper)
	cmd := exec.Command(r.authors, file, strconv.Itoa(r.Atoms/r.Dim), fmt.Sprint(h.Lambda), fmt.Sprint(h.Tau), "1", r.file("authors"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", errNotHere, err)
	}
	seconds := epochSeconds(stderr)
	cmd.Process.Kill()
	cmd.Wait() // it was killed, or gives 1 as ever
	if len(seconds) < authorsEpochs {
		return fmt.Errorf("%s ended after %d epochs", r.authors, len(seconds))
	}
	for _, s := range seconds {
		r.add(authors, "µs/word/epoch", training, fmt.Sprintf("%d words, %d epochs", words.Len(), authorsEpochs), 1e6*s/float64(words.Len()))
	}
	return nil
}

// epochSeconds reads what the authors' program says until it has begun another epoch
// often enough, and returns the seconds between.
func epochSeconds(says io.Reader) (seconds []float64) {
	var last time.Time
	lines := bufio.NewScanner(says)
	for len(seconds) < authorsEpochs && lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "Iteration: ") {
			continue
		}
		now := time.Now()
		if !last.IsZero() {
			seconds = append(seconds, now.Sub(last).Seconds())
		}
		last = now
	}
	return seconds
}
