package eval

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// suite lists the tasks that [ReadTask] reads. The paper averages all except TuningTask.
var suite = []struct {
	name string
	read func(name, dir string) (Task, error)
}{
	{TuningTask, wordSimilarityIn("EN-WS-353-ALL.txt")},
	{"SimLex-999", wordSimilarityIn("EN-SIMLEX-999.txt")},
	{"SST", readSentiment},
	{"TREC", readTREC},
	{"Sports", sports.read},
	{"Comp", computer.read},
	{"Relig", religion.read},
	{"NP", readNPBracketing},
}

// TuningTask is the task by which the paper chooses hyperparameters (§3).
const TuningTask = "WS-353"

// TaskNames returns the names of all tasks that [ReadTask] reads, in the order of the paper's table of results.
func TaskNames() []string {
	var names []string
	for _, t := range suite {
		names = append(names, t.name)
	}
	return names
}

// ReadTask reads the task of the given name, one of [TaskNames], from a directory with the folders
// wordsim, sst2, trec, 20news-bydate and np-bracketing.
func ReadTask(name, dir string) (Task, error) {
	for _, t := range suite {
		if t.name == name {
			task, err := t.read(name, dir)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: task %s needs it; docs/results/evaluation.md lists the files and their sources", err, name)
			}
			return task, err
		}
	}
	return nil, fmt.Errorf("task %q: unknown, want one of %s", name, strings.Join(TaskNames(), ", "))
}

// Names returns the names of tasks.
func Names(tasks []Task) (names []string) {
	for _, t := range tasks {
		names = append(names, t.Name())
	}
	return names
}

func wordSimilarityIn(file string) func(name, dir string) (Task, error) {
	return func(name, dir string) (Task, error) {
		return ReadWordSimilarity(name, filepath.Join(dir, "wordsim", file))
	}
}
