package judge

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const host = "127.0.0.1:8080"

// request asks the page as a browser would.
func request(t *testing.T, page http.Handler, method, target, body string, header ...string) (status int, text, location string) {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = host
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+host)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	content, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(content), w.Header().Get("Location")
}

var hiddenNumber = regexp.MustCompile(`name="question" value="(\d+)"`)

func TestPage(t *testing.T) {
	key := sampleKey(3)
	key.Questions[0].Words[1] = `<script>alert("1 & 2")</script>`
	key = NewKey(key.Questions, 7)
	test := key.Test()
	answers := open(t, filepath.Join(t.TempDir(), "answers.jsonl"), test)
	page := Page(answers, host)
	if status, text, _ := request(t, page, "GET", "/", ""); status != 200 || !strings.Contains(text, `name="judge"`) || !strings.Contains(text, "6 times") {
		t.Errorf("status %d:\n%s", status, text)
	}
	const judge = "Zoë & co"
	at := "/?judge=" + url.QueryEscape(judge)
	for i := range test.Questions {
		status, text, _ := request(t, page, "GET", at, "")
		number := hiddenNumber.FindStringSubmatch(text)
		if status != 200 || number == nil || number[1] != fmt.Sprint(i+1) || strings.Count(text, "<button ") != 5 || !strings.Contains(text, fmt.Sprintf("%d of 6 answered", i)) {
			t.Fatalf("question %d: status %d\n%s", i+1, status, text)
		}
		if strings.Contains(text, "<script>alert") || i == 0 && !strings.Contains(text, `value="&lt;script&gt;alert(&#34;1 &amp; 2&#34;)&lt;/script&gt;"`) {
			t.Fatalf("a word is not shown as text:\n%s", text)
		}
		form := url.Values{"judge": {" " + judge + " "}, "question": {number[1]}, "word": {test.Questions[i].Words[1]}}.Encode()
		for range 2 { // the second click does no harm
			status, text, location := request(t, page, "POST", "/answer", form)
			if status != http.StatusSeeOther || location != at {
				t.Fatalf("answer %d: status %d, to %s\n%s", i+1, status, location, text)
			}
		}
	}
	if _, text, _ := request(t, page, "GET", at, ""); !strings.Contains(text, "Thank you, Zoë &amp; co.") || strings.Contains(text, "<button") {
		t.Errorf("at the end:\n%s", text)
	}
	if q, n := answers.Next(judge); q != nil || n != 6 {
		t.Errorf("%d answers saved", n)
	}
}

// What is not asked by its own page is refused, and never fails.
func TestPageRefuses(t *testing.T) {
	test := sampleKey(3).Test()
	answers := open(t, filepath.Join(t.TempDir(), "answers.jsonl"), test)
	page := Page(answers, host)
	good := url.Values{"judge": {"ann"}, "question": {"1"}, "word": {test.Questions[0].Words[0]}}
	with := func(key, value string) string {
		form := url.Values{}
		for k, v := range good {
			form[k] = v
		}
		form.Set(key, value)
		return form.Encode()
	}
	for _, tt := range []struct {
		method, target, body string
		header               []string
		status               int
	}{
		{"GET", "/", "", []string{"Host", "evil.example:8080"}, 421},
		{"GET", "/", "", []string{"Host", "127.0.0.1:9"}, 421},
		{"GET", "/", "", []string{"Host", "localhost:8080"}, 200},
		{"GET", "/?judge=ann", "", []string{"Host", ""}, 421},
		{"POST", "/answer", good.Encode(), []string{"Origin", "http://evil.example"}, 403},
		{"POST", "/answer", good.Encode(), []string{"Origin", "null"}, 403},
		{"POST", "/answer", good.Encode(), []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/answer", "", nil, 405},
		{"GET", "/other", "", nil, 404},
		{"GET", "/%2e%2e/answers.jsonl", "", nil, 404},
		{"GET", "/?judge=" + strings.Repeat("x", 101), "", nil, 400},
		{"GET", "/?judge=" + strings.Repeat("é", 100), "", nil, 200},
		{"GET", "/?judge=%20ann+", "", nil, 200},
		{"GET", "/?judge=%00", "", nil, 400},
		{"GET", "/?judge=%ff%fe", "", nil, 400},
		{"POST", "/answer", "", nil, 400},
		{"POST", "/answer", "%zz", nil, 400},
		{"POST", "/answer", with("question", "0"), nil, 400},
		{"POST", "/answer", with("question", "7"), nil, 400},
		{"POST", "/answer", with("question", "99999999999999999999"), nil, 400},
		{"POST", "/answer", with("word", "other"), nil, 400},
		{"POST", "/answer", with("judge", " "), nil, 400},
		{"POST", "/answer", with("x", strings.Repeat("y", 1<<17)), nil, 400},
	} {
		if status, _, _ := request(t, page, tt.method, tt.target, tt.body, tt.header...); status != tt.status {
			t.Errorf("%s %.60s %.60s %v: status %d, want %d", tt.method, tt.target, tt.body, tt.header, status, tt.status)
		}
	}
	if _, n := answers.Next("ann"); n != 0 {
		t.Errorf("%d answers were taken", n)
	}
}

// The page may run what it is made with, told by its hash, and nothing else.
func TestPagePolicy(t *testing.T) {
	answers := open(t, filepath.Join(t.TempDir(), "answers.jsonl"), sampleKey(3).Test())
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/?judge=ann", nil)
	r.Host = host
	Page(answers, host).ServeHTTP(w, r)
	policy := w.Header().Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	for _, kind := range []string{"style", "script"} {
		found := regexp.MustCompile(`(?s)<`+kind+`>(.*?)</`+kind+`>`).FindAllStringSubmatch(w.Body.String(), -1)
		if len(found) != 1 {
			t.Fatalf("%d %ss in\n%s", len(found), kind, w.Body)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		if want := kind + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"; !strings.Contains(policy, want) {
			t.Errorf("no %s in %s", want, policy)
		}
	}
}
