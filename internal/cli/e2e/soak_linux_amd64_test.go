package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"overcomplete/internal/npy"
	"overcomplete/internal/testonly/clitest"
)

// A soak is an hour of what people do for days: an explorer that many ask, that is labelled and
// whose model is replaced under it; shards of a million rows that are killed and encoded again;
// trainings with too little memory. OVERCOMPLETE_SOAK says for how long, such as 1h. Without it there are
// a few rounds, of a few rows.
func TestSoak(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes hundreds of runs")
	}
	s := soak{begin: time.Now(), rounds: 8, rows: 3000}
	if full {
		s.rounds, s.rows = 40, 100_000
	}
	if text := os.Getenv("OVERCOMPLETE_SOAK"); text != "" {
		var err error
		if s.long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		s.rows = 1_000_000
	}
	t.Run("explorer", s.explorer)
	t.Run("encode", s.encode)
	t.Run("train", s.train)
}

type soak struct {
	begin  time.Time
	long   time.Duration
	rounds int
	rows   int
}

// each returns the numbers of rounds: so many, and more until the time is over.
func (s soak) each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; (i < s.rounds || time.Since(s.begin) < s.long) && yield(i); i++ {
		}
	}
}

// --- An explorer

// What is counted of an explorer, and by how much of each the median of the last quarter of a
// soak may be above that of the second one, besides a tenth: kilobytes for what Go has not
// given back, a few for connections that are being closed.
var counted = []struct {
	name  string
	slack int
}{{"resident kB", 16 << 10}, {"heap kB", 1 << 10}, {"descriptors", 8}, {"threads", 8}, {"goroutines", 8}}

// grown reports whether figures go on growing: whether the median of their last quarter is more
// than a tenth and so much above that of their second one. In the first one all begins.
func grown(figures []int, slack int) bool {
	median := func(x []int) int { return slices.Sorted(slices.Values(x))[len(x)/2] }
	n := len(figures) / 4
	was, is := median(figures[n:2*n]), median(figures[len(figures)-n:])
	return is > was+was/10+slack
}

func TestGrown(t *testing.T) {
	const slack = 8
	rng := rand.New(rand.NewPCG(1, 1))
	for name, tt := range map[string]struct {
		at   func(i int) int
		want bool
	}{
		"noise":               {func(int) int { return 100 + rng.IntN(8) }, false},
		"a beginning":         {func(i int) int { return min(10*i, 100) }, false},
		"a peak":              {func(i int) int { return 100 + i/38%2*400 }, false},
		"one each time":       {func(i int) int { return 10 + i }, true},
		"a fifth, in the end": {func(i int) int { return 100 + i/30*20 }, true},
	} {
		var figures []int
		for i := range 40 {
			figures = append(figures, tt.at(i))
		}
		if got := grown(figures, slack); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// asker asks an explorer.
type asker struct {
	t      *testing.T
	base   string
	client *http.Client
	pace   *time.Ticker // of requests

	mu      sync.Mutex
	answers map[string][32]byte // by what was asked: the model that is shown is one
	asked   map[int]int         // by status
}

// ask sends a request, checks its status and, where the answer is never to change, that it is the
// one that came before. It returns the answer.
func (a *asker) ask(method, path, body string, want int, same bool) []byte {
	<-a.pace.C
	r, err := http.NewRequest(method, a.base+path, strings.NewReader(body))
	if err != nil {
		a.t.Error(err)
		return nil
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(r)
	if err != nil {
		a.t.Error(err)
		return nil
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		a.t.Errorf("%s %s: %d, want %d, %v: %.300s", method, path, answer.StatusCode, want, err, content)
	}
	sum := sha256.Sum256(content)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[answer.StatusCode]++
	if was, ok := a.answers[path]; same && ok && was != sum {
		a.t.Errorf("%s %s: another answer than before: %.300s", method, path, content)
	}
	if same {
		a.answers[path] = sum
	}
	return content
}

// mixed asks one of all that the page asks for, of either model, and of what nobody should.
func (a *asker) mixed(rng *rand.Rand, words, dims int) {
	word := func() string { return "word" + strconv.Itoa(rng.IntN(words)) }
	beside := []string{"", "/other"}[rng.IntN(2)]
	get := func(path, parameter, value string, want int) {
		if parameter != "" {
			path += "?" + parameter + "=" + url.QueryEscape(value)
		}
		a.ask(http.MethodGet, beside+path, "", want, want == http.StatusOK)
	}
	switch rng.IntN(12) {
	case 0:
		get([]string{"/", "/explore.js", "/explore.css", "/icon.svg", "/data/model"}[rng.IntN(5)], "", "", http.StatusOK)
	case 1:
		get([]string{"/data/map", "/data/rows", "/data/matches"}[rng.IntN(3)], "", "", http.StatusOK)
	case 2, 3:
		get("/data/word", "word", word(), http.StatusOK)
	case 4, 5:
		get("/data/dimension", "dimension", strconv.Itoa(rng.IntN(dims)), http.StatusOK)
	case 6:
		get("/data/ask", "question", word()+" "+word(), http.StatusOK)
	case 7:
		get("/data/ask", "question", word()+" - "+word()+" + "+word(), http.StatusOK)
	case 8:
		get("/data/complete", "prefix", word()[:rng.IntN(5)+1], http.StatusOK)
	case 9:
		get("/data/word", "word", "no word", http.StatusNotFound)
	case 10:
		get("/data/dimension", "dimension", strconv.Itoa(-1-rng.IntN(2)*dims), http.StatusNotFound)
	case 11:
		a.ask([]string{http.MethodPut, http.MethodDelete}[rng.IntN(2)], beside+"/data/word?word="+word(), "", http.StatusMethodNotAllowed, false)
	}
}

func (s soak) explorer(t *testing.T) {
	t.Parallel()
	const (
		words, dim, atoms = 600, 10, 30
		requests, askers  = 50, 4 // in a round
		rate              = 200   // a second
	)
	dir := clitest.New(t)
	dir.Write(t, "in.txt", clitest.Text(clitest.Vectors(words, dim)))
	dir.MustRun(t, fmt.Sprintf("train in.txt -o model --quiet -k %d", atoms))
	dir.MustRun(t, fmt.Sprintf("train in.txt -o other --quiet -k %d --seed 2", atoms))

	cmd := dir.Command("explore", "model", "other", "--listen", "127.0.0.1:0")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Env = own, append(cmd.Env, watched+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	watch, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	out := bufio.NewScanner(told)
	if !out.Scan() {
		t.Fatal(&stderr)
	}
	a := &asker{t: t, base: strings.TrimSuffix(out.Text(), "/"), client: &http.Client{Transport: &http.Transport{}, Timeout: hang},
		pace: time.NewTicker(time.Second / rate), answers: map[string][32]byte{}, asked: map[int]int{}}
	defer a.pace.Stop()
	process := "/proc/" + strconv.Itoa(cmd.Process.Pid)

	type label struct {
		Dimension int    `json:"dimension"`
		Name      string `json:"name"`
	}
	labels := map[int]label{}
	rng := rand.New(rand.NewPCG(1, 0))
	post := func(want int) {
		l := label{rng.IntN(atoms), fmt.Sprint("label ", rng.IntN(1000))}
		if rng.IntN(4) == 0 {
			l.Name = "" // takes it away
		}
		body, _ := json.Marshal(l)
		a.ask(http.MethodPost, "/data/labels", string(body), want, false)
		if want != http.StatusOK {
			return
		}
		if delete(labels, l.Dimension); l.Name != "" {
			labels[l.Dimension] = l
		}
	}
	readBack := func() {
		t.Helper()
		want := []label{}
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			want = append(want, labels[k])
		}
		var served struct{ Labels []label }
		var printed []label
		stdout, _ := dir.MustRun(t, "labels model --json")
		if err := cmp.Or(json.Unmarshal(a.ask(http.MethodGet, "/data/labels", "", http.StatusOK, false), &served), json.Unmarshal([]byte(stdout), &printed)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(served.Labels, want) || !slices.Equal(printed, want) {
			t.Fatalf("labels are %v, served %v, printed %v", want, served.Labels, printed)
		}
	}
	figures := make([][]int, len(counted))
	var at []time.Duration
	for round := range s.each() {
		var all sync.WaitGroup
		for i := range askers {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
				for range requests / askers {
					a.mixed(rng, words, atoms)
				}
			})
		}
		post(http.StatusOK)
		post(http.StatusOK)
		all.Wait()
		readBack()
		dir.MustRun(t, "explore model --export page.html --force --words word1,word2")
		if round%4 == 1 {
			// Another model takes the place of the one that is shown, which is what it was, but
			// for labels: they would be of the other one's dimensions.
			kept := dir.Tree(t)
			if err := os.Rename(dir.Path("model"), dir.Path("kept")); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(dir.Path("model"), os.DirFS(dir.Path("other"))); err != nil {
				t.Fatal(err)
			}
			post(http.StatusForbidden)
			dir.MustRun(t, fmt.Sprintf("train in.txt -o model --force --quiet -k %d --seed %d", atoms, round))
			post(http.StatusForbidden)
			a.mixed(rng, words, atoms)
			if _, err := os.Stat(dir.Path("model/labels.json")); err == nil {
				t.Error("a model has the labels of another")
			}
			if err := cmp.Or(os.RemoveAll(dir.Path("model")), os.Rename(dir.Path("kept"), dir.Path("model"))); err != nil {
				t.Fatal(err)
			}
			dir.Unchanged(t, kept)
		}

		a.client.CloseIdleConnections()
		now := make([]int, len(counted))
		fmt.Fprintln(watch)
		if out.Scan(); !read(out.Text(), "", &now[4], &now[1]) {
			t.Fatalf("%q, %s", out.Text(), &stderr)
		}
		now[1] >>= 10
		status, err := os.ReadFile(process + "/status")
		descriptors, err2 := os.ReadDir(process + "/fd")
		if err := cmp.Or(err, err2); err != nil || !read(string(status), "VmRSS:", &now[0]) || !read(string(status), "Threads:", &now[3]) {
			t.Fatal(err, string(status))
		}
		now[2] = len(descriptors)
		at = append(at, time.Since(s.begin))
		for i, f := range now {
			figures[i] = append(figures[i], f)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v, %s", err, &stderr)
	}

	t.Logf("answers by status: %v", a.asked)
	var head strings.Builder
	for _, c := range counted {
		fmt.Fprintf(&head, " | %s", c.name)
	}
	t.Logf("after%s", &head)
	const moments = 12
	for i := 0; i < len(at); i += max(len(at)/moments, 1) {
		var line strings.Builder
		for _, f := range figures {
			fmt.Fprintf(&line, " | %d", f[i])
		}
		t.Logf("round %d, %v%s", i+1, at[i].Round(time.Second), &line)
	}
	for i, c := range counted {
		if grown(figures[i], c.slack) {
			t.Errorf("%s: more and more: %v", c.name, figures[i])
		}
	}
}

// read reads what follows the beginning of a line.
func read(text, begin string, values ...any) bool {
	_, rest, ok := strings.Cut(text, begin)
	n, err := fmt.Sscan(rest, values...)
	return ok && err == nil && n == len(values)
}

// --- Shards

func (s soak) encode(t *testing.T) {
	t.Parallel()
	const dim, atoms, shards = 16, 32, 4
	dir := clitest.New(t)
	x := clitest.Vectors(s.rows, dim)
	dir.Write(t, "words.txt", []byte(strings.Join(x.Words, "\n")+"\n"))
	var array bytes.Buffer
	if err := npy.Write(&array, []int{s.rows, dim}, x.Data); err != nil {
		t.Fatal(err)
	}
	dir.Write(t, "x.npy", array.Bytes())
	array = bytes.Buffer{}
	x = nil
	dir.MustRun(t, fmt.Sprintf("train x.npy --words words.txt --max-words 2000 -o model --quiet -k %d --nonzeros 4", atoms))
	line := "encode model x.npy --words words.txt --quiet"

	calls := 0 // that a command makes which is not killed
	// run runs a command until it is killed at a call, or ends, and returns the most kilobytes that it
	// had resident, 0 if it was killed.
	run := func(args string, killedAt int) (most int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n := 0
		ended, _, stderr, err := traceUntil(ctx, t, dir.Command(strings.Fields(args)...), func(c sysCall) syscall.Errno {
			if c.class == "exit" {
				status, _ := os.ReadFile("/proc/" + strconv.Itoa(c.process) + "/status")
				read(string(status), "VmHWM:", &most)
				calls = n
			}
			if n++; n == killedAt {
				return kill
			}
			return 0
		})
		if err != nil || ended.Exited() && (ended.ExitStatus() != 0 || most == 0) {
			t.Fatalf("%s: %v, exit code %d, %s", args, err, ended.ExitStatus(), stderr)
		}
		return most
	}
	one := run(line+" -o whole", 0)
	whole := sums(t, dir, "whole")

	rng := rand.New(rand.NewPCG(2, 0))
	killed, ran := 0, 0
	var most []int // of each round
	// until runs a command until its model is there, which may take being killed so often.
	until := func(args, output string, most int) (kB int) {
		t.Helper()
		for n := rng.IntN(most + 1); ; n-- {
			at := 0
			if n > 0 {
				at = 1 + rng.IntN(calls)
			}
			ran++
			if kB = run(args+" -o "+output, at); kB > 0 {
				return kB
			}
			killed++
			if _, err := os.Stat(dir.Path(output)); err == nil {
				return 0 // it was done, but for ending
			}
		}
	}
	for range s.each() {
		all, merge := 0, "merge"
		for i := range shards {
			shard := fmt.Sprintf("s%d", i+1)
			all = max(all, until(fmt.Sprintf("%s --shard %d/%d", line, i+1, shards), shard, 2))
			merge += " " + shard
		}
		until(merge, "merged", 2)
		if merged := sums(t, dir, "merged"); !maps.Equal(merged, whole) {
			t.Fatalf("merged are %v, want %v", slices.Sorted(maps.Keys(merged)), slices.Sorted(maps.Keys(whole)))
		}
		most = append(most, all)
		for _, name := range dir.Names(t) {
			if name == "merged" || strings.HasPrefix(name, "s") || temporary.MatchString(name) {
				if err := os.RemoveAll(dir.Path(name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("%d rows, %d rounds of %d shards: %d runs, of which %d were killed; the most resident: %d kB in one piece, %d of a shard",
		s.rows, len(most), shards, ran, killed, one, slices.Max(most))
	if killed == 0 || grown(most, 16<<10) {
		t.Errorf("%d were killed; of each round, the most resident: %v kB", killed, most)
	}
}

// sums returns a checksum of each file in a directory.
func sums(t *testing.T, dir clitest.Dir, name string) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := os.DirFS(dir.Path(name))
	err := fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := root.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		all[path] = fmt.Sprintf("%x", sum.Sum(nil))
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%s has %d files, %v", name, len(all), err)
	}
	return all
}

// --- Little memory

// A limit of the shell's stands for a small machine: control groups can be made by few. How many
// addresses a training has besides its memory is Go's, so that the limits are shares of the most that
// it had.
func (s soak) train(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	const words = 1000
	dir.Write(t, "in.txt", clitest.Text(clitest.Vectors(words, 8)))
	line := "paper train in.txt -k 4000 --epochs 1 --quiet --force -o "
	dir.MustRun(t, "paper train in.txt -o model --epochs 1 -k 4 --max-words 100")
	// peak returns the most kilobytes of addresses, and of memory, of a command.
	peak := func(args string) (addresses, resident int) {
		t.Helper()
		ended, _, stderr := trace(t, dir.Command(strings.Fields(args)...), func(c sysCall) syscall.Errno {
			if c.class == "exit" {
				status, _ := os.ReadFile("/proc/" + strconv.Itoa(c.process) + "/status")
				read(string(status), "VmPeak:", &addresses)
				read(string(status), "VmHWM:", &resident)
			}
			return 0
		})
		if ended.ExitStatus() != 0 || addresses == 0 || resident == 0 {
			t.Fatalf("%s: exit code %d, %d kB, %d resident: %s", args, ended.ExitStatus(), addresses, resident, stderr)
		}
		return addresses, resident
	}
	least, _ := peak("version")
	most, resident := peak(line + "whole")
	before := dir.Tree(t)
	outcomes := map[string]int{}
	rng := rand.New(rand.NewPCG(3, 0))
	for round := range s.each() {
		// From half of what it takes to do nothing to more than it takes, and a part of the memory after
		// which Go collects.
		limit := least/2 + rng.IntN(most-least/2+most/10)
		if round%2 == 0 {
			limit = least + rng.IntN(2*(most-least))
		}
		cmd := underShell(dir, "ulimit -v "+strconv.Itoa(limit), strings.Fields(line+"model")...)
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%dKiB", resident*(1+rng.IntN(10))/10))
		code, _, stderr := clitest.Output(t, cmd)
		outcome := ""
		var said []string
		for l := range strings.Lines(stderr) {
			if strings.HasPrefix(l, "overcomplete: ") {
				said = append(said, l)
			}
		}
		same := dir.Learned(t, "model") == dir.Learned(t, "whole")
		switch {
		case code == 0 && same:
			outcome = "comes to the same model"
		case code == clitest.Usage && !same && len(said) == 1 && strings.Contains(said[0], "memory"):
			outcome = "is refused in a line"
		case code != 0 && len(said) == 0: // see "What is not promised"
			outcome = "is ended by Go"
		default:
			t.Errorf("%d kB: exit code %d, the same model: %v\n%s", limit, code, same, stderr)
		}
		outcomes[outcome]++
		if !same { // what was there still is
			after := only(dir.Tree(t), func(path, _ string) bool { return !temporary.MatchString(path) })
			if changed := before.Differences(after); changed != nil {
				t.Fatalf("%d kB: exit code %d, changed files: %q", limit, code, changed)
			}
		}
		dir.Restore(t, before)
	}
	t.Logf("%d words, %d kB of addresses, %d of which Go takes for nothing, %d resident: %v", words, most, least, resident, outcomes)
	if outcomes["comes to the same model"] == 0 {
		t.Errorf("no training had enough: %v", outcomes)
	}
}
