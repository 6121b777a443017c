package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The command prints where the page is, serves it, and ends well when it is told to.
func TestExplore(t *testing.T) {
	sampleDir(t)
	mustRun(t, "train in.txt -o old --epochs 1")
	ctx, cancel := context.WithCancel(t.Context())
	stdout, print := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, strings.Fields("explore old --listen 127.0.0.1:0"), print, &stderr)
		print.Close()
	}()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(strings.TrimSpace(address) + "data/model")
	if err != nil {
		t.Fatal(err)
	}
	var about struct {
		Name  string
		Words int
	}
	err = json.NewDecoder(response.Body).Decode(&about)
	response.Body.Close()
	if err != nil || about.Name != "old" || about.Words != 60 {
		t.Errorf("got %+v, %v", about, err)
	}
	cancel()
	if code := <-ended; code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d, %q on standard error", code, &stderr)
	}
}

func TestExploreExport(t *testing.T) {
	sampleDir(t)
	mustRun(t, "train in.txt -o old --epochs 1")
	mustRun(t, "explore old --export page.html --words word1,word2 --dimensions 3")
	page := string(readFile(t, "page.html"))
	for _, want := range []string{"<!DOCTYPE html>", `"word":{"word1":`, `"dimension":{"3":`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in the page", want)
		}
	}
	mustRun(t, "explore old --export page.html --force --words word3")
	if page := string(readFile(t, "page.html")); !strings.Contains(page, `"word":{"word3":`) {
		t.Error("the page was not replaced")
	}
}
