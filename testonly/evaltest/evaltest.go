// Package evaltest makes small data sets for tests, in the formats of the published ones:
//
//	dir, x := evaltest.Write(t)
package evaltest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

const (
	topics        = 6
	wordsPerTopic = 20
	dim           = 12
)

// Write writes data for all of the paper's tasks to a new directory, and returns its path and vectors to evaluate.
// Each word has a topic, and its vector is the topic's vector plus noise. The label of a text makes words of one
// topic likely. Some words of the texts have no vector.
func Write(t testing.TB) (dir string, x *vectors.Dense) {
	t.Helper()
	dir = t.TempDir()
	rng := rand.New(rand.NewPCG(7, 8))
	x = &vectors.Dense{Dim: dim}
	for topic := range topics {
		for n := range wordsPerTopic {
			x.IDs = append(x.IDs, word(topic, n))
			for j := range dim {
				v := 0.4 * rng.NormFloat64()
				if j == topic {
					v++
				}
				x.Data = append(x.Data, float32(v))
			}
		}
	}
	write := func(name string, lines ...string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testonly.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testonly.Must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o666))
	}
	// text returns a text of length words: one in three has the given topic, and the others have random topics below most.
	text := func(topic, most, length int) string {
		var tokens []string
		for range length {
			of := rng.IntN(most)
			if rng.IntN(3) == 0 {
				of = topic
			}
			token := word(of, rng.IntN(wordsPerTopic+2)) // the last two have no vector
			if rng.IntN(4) == 0 {
				token = strings.ToUpper(token)
			}
			tokens = append(tokens, token)
		}
		return strings.Join(tokens, " ")
	}
	type part struct {
		name  string
		texts int
	}
	repeat := func(n int, line func(i int) string) (lines []string) {
		for i := range n {
			lines = append(lines, line(i))
		}
		return lines
	}

	for _, name := range []string{"EN-WS-353-ALL", "EN-SIMLEX-999"} {
		write("wordsim/"+name+".txt", repeat(120, func(i int) string {
			a, b, score := rng.IntN(topics), rng.IntN(topics), 2
			if i%2 == 0 {
				b, score = a, 7
			}
			return fmt.Sprintf("%s\t%s\t%d.%d", word(a, rng.IntN(wordsPerTopic+2)), word(b, rng.IntN(wordsPerTopic)), score, rng.IntN(10))
		})...)
	}
	for _, part := range []part{{"train", 150}, {"dev", 60}, {"test", 80}} {
		write("sst2/stsa.binary."+part.name, repeat(part.texts, func(i int) string { return fmt.Sprintf("%d %s", i%2, text(i%2, 3, 8)) })...)
	}
	for _, part := range []part{{"train", 240}, {"test", 90}} {
		write("trec/raw.TREC."+part.name, repeat(part.texts, func(i int) string { return fmt.Sprintf("C%d:x %s", i%topics, text(i%topics, topics, 8)) })...)
	}
	for i, group := range []string{"alt.atheism", "soc.religion.christian", "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware",
		"rec.sport.baseball", "rec.sport.hockey"} {
		for _, part := range []part{{"train", 160}, {"test", 40}} {
			for post := range part.texts {
				write(fmt.Sprintf("20news-bydate/20news-bydate-%s/%s/%d", part.name, group, 1000+post),
					"Subject: "+word(5, 0), "", text(i, topics, 10)+",", "> \xe9 "+text(i, topics, 3))
			}
		}
	}
	phrases := repeat(200, func(i int) string {
		tokens := strings.Fields(strings.ToLower(text(i%2, 3, 3)))
		return fmt.Sprintf("%d \t%s-n_%s-j_%s-n \t%s", i/20, tokens[0], tokens[1], tokens[2], []string{"R", "L"}[i%2])
	})
	write("np-bracketing/dataset.txt", append([]string{"Fold_id\ttrigram\ttype_of_bracketing"}, phrases...)...)
	return dir, x
}

func word(topic, n int) string { return fmt.Sprintf("%c%c", 'a'+topic, 'a'+n) }
