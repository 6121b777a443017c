package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"overcomplete/internal/modeldir"
	"overcomplete/interpret"
	"overcomplete/interpret/topics"
	"overcomplete/model"
)

// proposeLabels stores the labels that a command proposes for the topics of a table. It skips topics that a person has
// labelled. It changes no label unless the command succeeds and answers exactly once for each topic.
func proposeLabels(cmd *cobra.Command, path, command string, m *model.Model, t *topics.Table, labels interpret.Labels, mark modeldir.Identity) error {
	file, err := modeldir.LabelsPath(path)
	if err != nil {
		return usageError{err}
	}
	given := labelsByID(labels, true)
	var asked []topics.ID
	var lines bytes.Buffer
	for _, topic := range slices.Concat(t.Topics, t.Subtopics) {
		if l := given[int(topic.ID)]; len(topic.Words) == 0 || l.Name != "" && !l.Proposed {
			continue
		}
		asked = append(asked, topic.ID)
		line := struct {
			Topic    topics.ID `json:"topic"`
			Keywords []string  `json:"keywords"`
			Examples []string  `json:"examples"`
		}{topic.ID, topic.Words, []string{}}
		for _, e := range topic.Examples {
			line.Examples = append(line.Examples, cmp.Or(e.Text, e.Word))
		}
		if err := json.NewEncoder(&lines).Encode(line); err != nil {
			return err
		}
	}
	if len(asked) == 0 {
		say(cmd.ErrOrStderr(), "all topics have labels; nothing to propose")
		return nil
	}
	say(cmd.ErrOrStderr(), "asking for labels of %d topics", len(asked))
	text, err := runCommand(cmd, command, &lines)
	if err != nil {
		return err
	}
	names, err := parseProposals(text, asked)
	if err != nil {
		return usagef("--propose: %w", err)
	}
	if labels, err = loadLabels(path, m.Codes.Cols); err != nil { // a person may have added labels meanwhile
		return err
	}
	given = labelsByID(labels, true)
	var changes []interpret.Label
	for _, id := range asked {
		l := given[int(id)]
		if l.Name != "" && !l.Proposed {
			continue
		}
		l = interpret.Label{ID: int(id), Name: names[id], Note: l.Note, Topic: true, Proposed: true}
		if err := l.Check(m.Codes.Cols, m.Info.Training.Themes.Len()); err != nil {
			return usagef("--propose: the command's label of %w", err)
		}
		changes = append(changes, l)
	}
	if _, err := interpret.ChangeLabels(cmd.Context(), file, m.Codes.Cols, changes, mark.Check); err != nil {
		return err
	}
	say(cmd.ErrOrStderr(), "%d labels proposed", len(changes))
	return nil
}

// maxProposals is the number of bytes that a command of --propose may write.
const maxProposals = 1 << 24

// A limitedBuffer calls stop when it would hold more than maxProposals bytes.
type limitedBuffer struct {
	text []byte
	stop func()
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > maxProposals {
		b.stop()
		return 0, errors.New("too much output")
	}
	b.text = append(b.text, p...)
	return len(p), nil
}

// runCommand runs a command of --propose with the given input and returns its output.
func runCommand(cmd *cobra.Command, command string, in *bytes.Buffer) (string, error) {
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	process := shell(ctx, cmd, command)
	out := &limitedBuffer{stop: stop}
	process.Stdin, process.Stdout = in, out
	err := process.Run()
	switch {
	case cmd.Context().Err() != nil:
		return "", cmd.Context().Err()
	case ctx.Err() != nil: // the buffer out has stopped the command
		return "", usagef("--propose: the command wrote more than %d MiB, want a line for each topic", maxProposals>>20)
	case err != nil:
		return "", usagef("--propose: the command failed (%w); no label was changed", err)
	}
	return string(out.text), nil
}

// parseProposals returns the labels in a command's output, by topic. It returns an error unless the output has exactly
// one label for each of the topics that the command was asked for.
func parseProposals(text string, asked []topics.ID) (map[topics.ID]string, error) {
	const want = `want {"topic": %d, "label": "…"}`
	names := map[topics.ID]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		var answer struct {
			Topic *topics.ID `json:"topic"`
			Label *string    `json:"label"`
		}
		err := json.Unmarshal([]byte(line), &answer)
		if err != nil || answer.Topic == nil || answer.Label == nil {
			return nil, fmt.Errorf("line %d of the command's output is no label (got %.60q); "+want, n, line, asked[0])
		}
		if _, twice := names[*answer.Topic]; twice || !slices.Contains(asked, *answer.Topic) {
			return nil, fmt.Errorf("line %d of the command's output is a label of topic %d, for which it wasn't asked or has answered", n, *answer.Topic)
		}
		if strings.ContainsRune(*answer.Label, utf8.RuneError) { // encoding/json replaces invalid bytes by this character
			return nil, fmt.Errorf("line %d of the command's output is a label that isn't UTF-8 text (got %.60q)", n, line)
		}
		if strings.TrimSpace(*answer.Label) == "" {
			return nil, fmt.Errorf("line %d of the command's output is an empty label", n)
		}
		names[*answer.Topic] = *answer.Label
	}
	for _, id := range asked {
		if _, ok := names[id]; !ok {
			return nil, fmt.Errorf("the command wrote %d labels for %d topics (topic %d is missing); "+want, len(names), len(asked), id, id)
		}
	}
	return names, nil
}
