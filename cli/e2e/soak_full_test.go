//go:build full && linux

package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// An explorer that answers many requests always gives the same answers. It uses no more memory, descriptors and threads in
// the last quarter of the time than in the second. The medians may grow by a tenth, and by slack for memory that Go hasn't
// returned yet.
func TestSoakExplorer(t *testing.T) {
	t.Parallel()
	duration, err := time.ParseDuration(cmp.Or(os.Getenv("OVERCOMPLETE_SOAK"), "30s"))
	testonly.Must(t, err)
	end := time.Now().Add(duration)
	dir := clitest.New(t)
	dir.Write(t, "in.txt", clitest.Text(clitest.Vectors(600, 10)))
	dir.MustRun(t, "train in.txt -o model --quiet -k 30")
	cmd := dir.Command("explore", "model", "--port", "0")
	stdout, err := cmd.StdoutPipe()
	testonly.Must(t, err)
	testonly.Must(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	out := bufio.NewScanner(stdout)
	if !out.Scan() {
		t.Fatal("no address")
	}
	address := regexp.MustCompile(`http://[0-9.:]+`).FindString(out.Text())
	process := "/proc/" + strconv.Itoa(cmd.Process.Pid)
	rng := rand.New(rand.NewPCG(1, 1))
	paths := []string{"/", "/data/model", "/data/map", "/data/word?word=word%d", "/data/dimension?dimension=%d",
		"/data/query?query=word%d", "/data/query?query=word%d+-+word2", "/data/complete?prefix=word%d", "/data/word?word=none%d"}
	answers := map[string]string{}
	var resident, descriptors, threads []int
	for time.Now().Before(end) || len(resident) < 20 {
		for range 50 {
			path := paths[rng.IntN(len(paths))]
			if strings.Contains(path, "%d") {
				path = fmt.Sprintf(path, rng.IntN(30))
			}
			answer, err := http.Get(address + path)
			testonly.Must(t, err)
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if got := fmt.Sprint(answer.StatusCode, err, string(body)); answers[path] != "" && got != answers[path] {
				t.Fatalf("%s: %.200s\nbefore: %.200s", path, got, answers[path])
			} else {
				answers[path] = got
			}
			if want := http.StatusOK; strings.Contains(path, "none") == (answer.StatusCode == want) {
				t.Fatalf("%s: status %d", path, answer.StatusCode)
			}
		}
		status := testonly.ReadFile(t, process+"/status")
		open, err := os.ReadDir(process + "/fd")
		testonly.Must(t, err)
		resident, threads = append(resident, field(string(status), "VmRSS:")), append(threads, field(string(status), "Threads:"))
		descriptors = append(descriptors, len(open))
	}
	for name, figures := range map[string][]int{"kB resident": resident, "descriptors": descriptors, "threads": threads} {
		n, slack := len(figures)/4, 8
		if name == "kB resident" {
			slack = 16 << 10
		}
		if before, after := median(figures[n:2*n]), median(figures[3*n:]); after > before+before/10+slack {
			t.Errorf("%d %s grew to %d", before, name, after)
		}
	}
}

// field returns the number after a name in a file of /proc.
func field(status, name string) (n int) {
	_, value, _ := strings.Cut(status, name)
	fmt.Sscan(value, &n)
	return n
}

func median(x []int) int { return slices.Sorted(slices.Values(x))[len(x)/2] }
