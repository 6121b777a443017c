//go:build unix

package cli

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// evil is a name with control sequences of terminals, markup of tables, and a line break.
const evil = "e\x1b[2J\u009b1m\u202e|`<b>&_*$%\nEVIL"

// evilWords are words with control characters, as hostile as vectors can contain.
var evilWords = []string{"\x1b]0;title\a", "\u009b2J", "\u202etxt.exe", "\ufffe", "\u2028", "a\x1fb", "\u200bnothing",
	"<script>alert(1)</script>", "|", "`x`", "&amp;", `\`, `"`, "'", "%s", "\U000e0041"}

// Names of words and files write no control characters and no extra lines to standard output or standard error. Every
// command runs, with valid and invalid arguments.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	dir, x := evalDir(t)
	d := clitest.Vectors(60, 8)
	copy(d.IDs, evilWords)
	text := evil + ".txt"
	dir.Write(t, text, clitest.Text(d))
	dir.Write(t, evil+".broken", []byte("a 1 2\n\x1b[2J 1 x\n"))
	dir.Write(t, evil+".pairs", []byte("\x1b[2J "+evilWords[1]+" 1\nword20 word21 3\nword22 word23 2\nword20 word23 2\n"))
	dir.Write(t, evil+".nonsense", []byte("\x1b[2J\x9b 1\n"))
	model, mixed := evil+".model", evil+".mixed"
	for i, word := range evilWords {
		x.IDs, x.Data = append(x.IDs, word), append(x.Data, x.Row(i)...)
	}
	dir.Write(t, mixed, clitest.Text(x))
	pairs := []string{"--wordsim", evil + ".pairs"}

	covered := map[string]bool{}
	for _, tt := range []struct {
		code int
		args []string
	}{
		{0, []string{"paper", "train", text, "-o", model, "--method", "B", "--epochs", "3", "--lambda", "0.1"}},
		{0, []string{"train", text, "-o", evil + ".json", "--epochs", "1", "--json"}},
		{2, []string{"train", evil + ".broken", "-o", "x"}},
		{2, []string{"train", text, "-o", "x", "--" + evil}},
		{2, []string{"train", text, "-o", "x", "--device", evil}},
		{0, []string{"train", text, "-o", evil + ".resumed", "--resume", "--epochs", "1"}},
		{0, []string{"encode", model, text, "-o", evil + ".1", "--shard", "1/2"}},
		{0, []string{"encode", model, text, "-o", evil + ".2", "--shard", "2/2", "--json"}},
		{0, []string{"encode", model, text, "-o", evil + ".exact", "--exact"}},
		{2, []string{"encode", evil, text, "-o", "y"}},
		{0, []string{"pipe", model}},
		{2, []string{"pipe", evil}},
		{0, []string{"query", model, text, "--more", "1"}},
		{2, []string{"query", evil, text}},
		{0, []string{"merge", evil + ".1", evil + ".2", "-o", evil + ".merged"}},
		{2, []string{"merge", model, "-o", "y"}},
		{0, []string{"export", model, "-f", "glove", "-o", evil + ".out"}},
		{2, []string{"export", model, "-f", "glove", "-o", evil + ".out"}},
		{2, []string{"export", model, "-f", "glove", "-o", model + "/y"}},
		{0, append([]string{"eval", model, model + ":binary", text, "thresh1:" + text}, pairs...)},
		{0, append([]string{"eval", model, "--markdown"}, pairs...)},
		{2, []string{"eval", model, "--wordsim", evil + ".nonsense"}},
		{2, append([]string{"eval", evil}, pairs...)},
		{0, []string{"recall", text, model}},
		{2, []string{"recall", text, evil}},
		{0, []string{"paper", "tune", "x.txt", "-o", evil + ".paper", "--data", "data", "--factor", "1", "--lambda", "0.1"}},
		{2, []string{"paper", "tune", text, "-o", "y", "--data", evil}},
		{0, []string{"paper", "report", mixed, "-o", evil + ".report", "--data", "data", "--factor", "1", "--lambda", "0.1", "--length", "1", "--heatmap", strings.Join(evilWords[:1], ",")}},
		{2, []string{"paper", "report", text, "-o", model, "--data", "data", "--reference", text}},
		{0, []string{"top", model, "-n", "60"}},
		{0, []string{"top", text, "-n", "60", "--json"}},
		{2, []string{"top", model, evil}},
		{2, []string{"topics", model}},
		{2, []string{"topics", evil}},
		{0, append([]string{"explain", model, "-n", "60", "--neighbours", "60"}, evilWords...)},
		{2, []string{"explain", model, "\x1b]0;title"}},
		{2, []string{"explain", evil, "word20"}},
		{0, []string{"explain", evil + ".1", "word20", "--vocabulary", model}},
		{0, append([]string{"compare", model}, evilWords...)},
		{2, []string{"compare", model, "word20", "\x1b]0;title"}},
		{0, []string{"compare", model, evil + ".merged", "--dimensions", "60"}},
		{2, []string{"compare", model, evil}},
		{0, []string{"nearest", model, evilWords[0], "-n", "60", "--dimensions", "60"}},
		{0, []string{"nearest", model, "word20", "-", "word21", "--json"}},
		{2, []string{"nearest", model, "\x1b]0;title"}},
		{2, []string{"labels", model, "--import", text}},
		{0, []string{"labels", model, "-n", "60"}},
		{0, []string{"intrusion", "make", evil + "=" + model, evil + "2=" + text, "-n", "2", "-o", evil + ".test.tsv"}},
		{2, []string{"intrusion", "score", evil + ".test.key.json", evil + ".test.tsv"}},
		{0, []string{"intrusion", "auto", model, "--input", text, "--reference", evil + ".out"}},
		{2, []string{"intrusion", "auto", model, "--input", text, "--reference", text}},
		{2, []string{"top", model, "--sort", "intrusion"}},
		{0, []string{"intrusion", "auto", model, "--input", text, "--reference", evil + ".out", "--save", "--json"}},
		{0, []string{"top", model, "--sort", "intrusion", "-n", "60"}},
		{0, []string{"explore", model, "--export", evil + ".html", "--words", evilWords[0]}},
		{2, []string{"explore", model, "--export", "y.html", "--words", "\x1b]0;titl\a"}},
		{2, []string{"explore", evil}},
		{2, []string{"graph", "--dot", evil}},
		{2, []string{"devices", evil}},
		{0, []string{"devices"}},
		{2, []string{"version", evil}},
		{0, []string{"version"}},
		{1, []string{"man", evil}},
		{2, []string{"help", evil}},
		{2, []string{evil}},
	} {
		if cmd, _, err := newRoot().Find(tt.args); err == nil {
			covered[cmd.CommandPath()] = true
		}
		code, stdout, stderr := clitest.Output(t, dir.Command(tt.args...))
		if code != tt.code {
			t.Errorf("%q: exit code %d, want %d: %q", tt.args, code, tt.code, stderr)
		}
		for _, printed := range []string{stdout, stderr} {
			checkPlain(t, tt.args, printed)
		}
	}
	for _, cmd := range commands(newRoot()) {
		if !cmd.HasSubCommands() && !strings.Contains(cmd.CommandPath(), "completion") && !covered[cmd.CommandPath()] {
			t.Errorf("%q is not tried", cmd.CommandPath())
		}
	}

	for _, file := range []string{"report.md", "heatmap.svg"} {
		checkPlain(t, []string{"paper", "report", file}, string(dir.Read(t, evil+".report/"+file)))
	}
	// A table keeps its rows and columns.
	_, stdout, _ := clitest.Output(t, dir.Command(append([]string{"eval", model, "--markdown"}, pairs...)...))
	rows := 0
	for line := range strings.Lines(stdout) {
		if strings.HasPrefix(line, "|") {
			rows++
			if cells := strings.Count(line, "|") - strings.Count(line, `\|`); cells != 3 {
				t.Errorf("%d cells in %q", cells-1, line)
			}
		}
	}
	if rows != 3 {
		t.Errorf("%d rows in\n%s", rows, stdout)
	}
	// Exports keep words unchanged, on standard output, too.
	if _, stdout, stderr := clitest.Output(t, dir.Command("export", model, "-f", "glove", "-o", "-")); stdout != string(dir.Read(t, evil+".out")) {
		t.Errorf("other than in the file: %q, %s", stdout, stderr)
	}
	back, _, err := vectors.Read(t.Context(), []string{dir.Path(evil + ".out")}, vectors.ReadOptions{})
	if err != nil || !slices.Equal(back.IDs, d.IDs) {
		t.Errorf("read back %q, %v", back.IDs, err)
	}
}

// checkPlain checks that the output of a command is text, and that no name makes a line of its own.
func checkPlain(t *testing.T, args []string, printed string) {
	t.Helper()
	if !utf8.ValidString(printed) || strings.ContainsFunc(printed, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
		t.Errorf("%q prints %q", args, printed)
	}
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "EVIL") {
			t.Errorf("%q prints a line of a name's own: %q", args, printed)
		}
	}
}
