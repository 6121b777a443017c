package intrusion

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Answers survive a reload, and are saved as a table.
func TestPageSavesAnswers(t *testing.T) {
	browser := os.Getenv("OVERCOMPLETE_CHROMIUM")
	if browser == "" {
		t.Skip("needs a browser: set OVERCOMPLETE_CHROMIUM to the path of Chromium")
	}
	s := sampleSheet(2)
	_, html, _ := files(t, s)
	// Pages of one server share a process and its local storage; pages of files may not.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, html) }))
	defer server.Close()
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.NoSandbox)...)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	evaluate := func(script string) string {
		t.Helper()
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	open := func() {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(server.URL)); err != nil {
			t.Fatal(err)
		}
	}
	open()
	evaluate(`document.querySelector("input[name='q2'][value='4']").click(); document.querySelector("input[name='q3'][value='1']").click(); ""`)
	open()
	if got := evaluate(`document.getElementById("answered").textContent`); got != "2 of 4 answered" {
		t.Errorf("the page says %q", got)
	}
	saved := evaluate(`(async () => {
		let blob;
		URL.createObjectURL = b => { blob = b; return "#"; };
		document.getElementById("save").click();
		return await blob.text();
	})()`)
	if want := s.ID + "\tanswer\n2\t4\n3\t1\n"; saved != want {
		t.Errorf("saved %q, want %q", saved, want)
	}
}
