package eval

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// suite has the paper's tasks in the order of its table. All but WS-353, by which the
// paper chooses hyperparameters, are averaged.
var suite = []struct {
	name string
	read func(name, dir string) (Task, error)
}{
	{TuningTask, func(name, dir string) (Task, error) {
		return ReadWordSimilarity(name, filepath.Join(dir, "wordsim", "EN-WS-353-ALL.txt"))
	}},
	{"SimLex-999", func(name, dir string) (Task, error) {
		return ReadWordSimilarity(name, filepath.Join(dir, "wordsim", "EN-SIMLEX-999.txt"))
	}},
	{"SST", func(name, dir string) (Task, error) { return readSentiment(name, filepath.Join(dir, "sst2")) }},
	{"TREC", func(name, dir string) (Task, error) { return readTREC(name, filepath.Join(dir, "trec")) }},
	{"Sports", sports.read},
	{"Comp", computer.read},
	{"Relig", religion.read},
	{"NP", func(name, dir string) (Task, error) {
		return readNPBracketing(name, filepath.Join(dir, "np-bracketing", "dataset.txt"))
	}},
}

// TuningTask is the task by which the paper chooses hyperparameters (§3).
const TuningTask = "WS-353"

// TaskNames returns the names of the paper's tasks in the order of its table.
func TaskNames() []string {
	var names []string
	for _, t := range suite {
		names = append(names, t.name)
	}
	return names
}

// ReadTask reads the paper's task of the given name, one of [TaskNames], from a
// directory that holds the folders wordsim, sst2, trec, 20news-bydate and
// np-bracketing. It is an error if there is no task of that name.
func ReadTask(name, dir string) (Task, error) {
	for _, t := range suite {
		if t.name == name {
			task, err := t.read(name, dir)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: task %s is read from there; docs/evaluation.md says what the folder of the data has, and where to get it", err, name)
			}
			return task, err
		}
	}
	return nil, fmt.Errorf("task %q is unknown, want one of %s", name, strings.Join(TaskNames(), ", "))
}

// Names returns the names of tasks.
func Names(tasks []Task) (names []string) {
	for _, t := range tasks {
		names = append(names, t.Name())
	}
	return names
}
