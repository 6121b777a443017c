package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// serve runs explore, and returns the address that it prints. stop interrupts it, and returns its exit code and what it
// wrote to standard error.
func serve(t *testing.T, args ...string) (address string, stop func() (code int, stderr string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, print := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"explore", "--port", "0"}, args...), print, &stderr)
		print.Close()
	}()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	testonly.Must(t, err)
	return strings.TrimSpace(address), func() (int, string) {
		cancel()
		return <-ended, stderr.String()
	}
}

// The command prints the address of the page, serves it, and ends with exit code 0 when interrupted.
func TestExplore(t *testing.T) {
	t.Parallel()
	address, stop := serve(t, clitest.Save(t, readable()).Path("model"))
	response, err := http.Get(address + "data/model")
	testonly.Must(t, err)
	var about struct {
		Name  string
		Words int
	}
	err = json.NewDecoder(response.Body).Decode(&about)
	response.Body.Close()
	if err != nil || about.Name != "model" || about.Words != 6 {
		t.Errorf("got %+v, %v", about, err)
	}
	if code, stderr := stop(); code != 0 || stderr != "" {
		t.Errorf("exit code %d, %q on standard error", code, stderr)
	}
}

// A server that listens everywhere prints an address that a browser can open.
func TestExploreEverywhere(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	for _, host := range []string{"0.0.0.0", "::"} {
		address, stop := serve(t, dir.Path("model"), "--host", host)
		if code, stderr := stop(); code != 0 || !strings.HasPrefix(stderr, "warning: the page at ") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q on standard error", host, code, stderr)
		}
		if !strings.HasPrefix(address, "http://127.0.0.1:") {
			t.Errorf("%s: printed %q", host, address)
		}
	}
}

// --open gives the page's address to the desktop's opener.
func TestExploreOpens(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs xdg-open")
	}
	dir := clitest.Save(t, readable())
	dir.Write(t, "xdg-open", []byte("#!/bin/sh\necho \"$1\" > "+dir.Path("opened")+"\n"))
	testonly.Must(t, os.Chmod(dir.Path("xdg-open"), 0o777))
	t.Setenv("PATH", dir.Path("")+":"+os.Getenv("PATH"))
	dir.Write(t, "opened", nil)
	address, stop := serve(t, dir.Path("model"), "--open")
	for range 10_000 {
		if text, _ := os.ReadFile(dir.Path("opened")); len(text) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if code, stderr := stop(); code != 0 {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if opened := string(dir.Read(t, "opened")); opened != address+"\n" {
		t.Errorf("opened %q, want %q", opened, address)
	}
}

// --embed adds the texts nearest to the vector of a query. If the command ends, an error reports it.
func TestExploreEmbeds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	t.Parallel()
	dir := textsModel(t)
	for command, want := range map[string]string{
		`while read text; do [ "$text" = '"money?"' ] && echo '[0, 1]'; done`: `"nearest":[{"word":"d4","cosine":1,`,
		"read text; echo '[0]'": `"failure":"the command of --embed wrote 1 numbers, want 2"`,
		"read text; echo no":    `"failure":"the command of --embed wrote no vector: `,
		"exit":                  `"failure":"the command of --embed has ended`,
	} {
		address, stop := serve(t, dir.Path("model"), "--embed", command)
		response, err := http.Get(address + "data/query?query=money%3F")
		testonly.Must(t, err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) || !strings.Contains(string(body), `"words":["d5","d7"]`) {
			t.Errorf("%s: %s, %v\n%s, want %s", command, response.Status, err, body, want)
		}
		if code, stderr := stop(); code != 0 {
			t.Errorf("%s: exit code %d, %s", command, code, stderr)
		}
	}
}

func TestExploreRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o old --epochs 1")
	for name, file := range map[string]string{"named": "labels.json", "scored": "intrusion.json"} {
		dir.MustRun(t, "paper train in.txt --epochs 1 -o "+name)
		dir.Write(t, name+"/"+file, []byte(`[{"dimension": 1000, "name": "a"}]`))
	}
	checkRefusals(t, dir, "explore ", map[string]string{
		"old --host=":      "--host is empty",
		"old --port 65536": "--port is 65536, want a whole number from 0 to 65535",
		"old --export page.html --words word1 --frame": "give --frame or --export, not both",
		"old --export - --words word1":                 "--export writes a file, not standard output",
		"named --port 0":                               "labels.json: no dimension 1000",
		"scored --port 0":                              "intrusion.json: ",
		"in.txt --port 0":                              "in.txt: not a model (got a file, want a directory with model.json)",
	})
}

func TestExploreExport(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o old --epochs 1")
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n3\tkings\n"))
	dir.MustRun(t, "labels old --import labels.tsv")
	dir.MustRun(t, "explore old --export page.html --words word1,word2 --dimensions 3 --title Kings")
	data := func() string {
		t.Helper()
		_, packed, _ := strings.Cut(string(dir.Read(t, "page.html")), `id="data">`)
		packed, _, _ = strings.Cut(packed, "<")
		r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
		testonly.Must(t, err)
		text, err := io.ReadAll(r)
		testonly.Must(t, err)
		return string(text)
	}
	page := data()
	for _, want := range []string{`"name":"Kings"`, `"word":{"word1":`, `"dimension":{"3":`, `"labels":[{"dimension":3,"name":"kings"}]`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in the page", want)
		}
	}
	dir.MustRun(t, "explore old --export page.html --force --words word3")
	if !strings.Contains(data(), `"word":{"word3":`) {
		t.Error("the page was not replaced")
	}
}
