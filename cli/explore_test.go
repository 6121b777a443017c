package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
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

// get returns the answer to a request, which must succeed.
func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	testonly.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: %s, %v", url, response.Status, err)
	}
	return string(body)
}

// The command prints the address of the page, serves it, and ends with exit code 0 when interrupted. If it listens
// everywhere, it prints an address that a browser can open, and warns.
func TestExplore(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	for host, warnings := range map[string]int{"127.0.0.1": 0, "0.0.0.0": 1, "::": 1} {
		address, stop := serve(t, dir.Path("model"), "--host", host)
		checkParts(t, host, get(t, address+"data/model"), `"name":"model" … "words":6,`)
		code, stderr := stop()
		if n := strings.Count(stderr, "warning: the page at "); code != 0 || n != warnings || strings.Count(stderr, "\n") != n || !strings.HasPrefix(address, "http://127.0.0.1:") {
			t.Errorf("%s: exit code %d, printed %q, %q on standard error", host, code, address, stderr)
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
		checkParts(t, command, get(t, address+"data/query?query=money%3F"), want+` … "words":["d5","d7"]`)
		if code, stderr := stop(); code != 0 {
			t.Errorf("%s: exit code %d, %s", command, code, stderr)
		}
	}
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
	checkParts(t, "the page", data(), `"name":"Kings" … "word":{"word1": … "dimension":{"3": … "labels":[{"dimension":3,"name":"kings"}]`)
	dir.MustRun(t, "explore old --export page.html --force --words word3")
	checkParts(t, "the replaced page", data(), `"word":{"word3":`)
}
