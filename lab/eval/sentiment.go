package eval

import (
	"fmt"
	"path/filepath"
	"strings"
)

// readSentiment reads the binary Stanford Sentiment Treebank from the files
// stsa.binary.train, .dev and .test of a directory. They have a line "0 tokens" or
// "1 tokens" for each sentence. C is chosen by the accuracy on .dev, which is never
// trained on.
func readSentiment(name, dir string) (Task, error) {
	var l labels
	var parts []part
	for _, file := range []string{"train", "dev", "test"} {
		p, err := readLabelled(filepath.Join(dir, "stsa.binary."+file), utf8Text, &l, func(line string) (string, string, error) {
			label, rest, _ := strings.Cut(line, " ")
			if label != "0" && label != "1" {
				return "", "", fmt.Errorf("label is %q, want 0 or 1", label)
			}
			return label, rest, nil
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return newTask(name, &l, parts, withDevelopment(len(parts[0].texts), len(parts[1].texts), len(parts[2].texts)))
}
