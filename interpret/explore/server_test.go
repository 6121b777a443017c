package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"overcomplete/testonly"
)

// get sends a request to a handler. Fields are "Name: value": header fields, Method, Body, and From, the address of
// the browser.
func get(handler http.Handler, target string, fields ...string) *httptest.ResponseRecorder {
	r := &http.Request{Method: http.MethodGet, Host: "127.0.0.1:8420", RemoteAddr: "127.0.0.1:50000", Header: http.Header{}, URL: &url.URL{}}
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "Method":
			r.Method = value
		case "From":
			r.RemoteAddr = value
		case "Body":
			r.Body = io.NopCloser(strings.NewReader(value))
		default:
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// answered returns the answer to a request for data.
func answered[T any](t *testing.T, handler http.Handler, target string) (answer T) {
	t.Helper()
	w := get(handler, target)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %.200s, error %v", target, w.Code, w.Body, err)
	}
	return answer
}

func TestServes(t *testing.T) {
	handler := newExplorer(t, testModel(), "test").Handler("")
	for _, tt := range []struct{ target, contentType, want string }{
		{"/", "text/html; charset=utf-8", "<!DOCTYPE html>"},
		{"/explore.js", "text/javascript; charset=utf-8", "function wordPage"},
		{"/explore.css", "text/css; charset=utf-8", "color-scheme"},
		{"/icon.svg", "image/svg+xml", "<svg"},
		{"/data/model", "application/json", `"words":300`},
		{"/data/map", "application/json", `"x":`},
		{"/data/rows", "application/json", `"columns":`},
		{"/data/word?word=bank", "application/json", `"word":"bank"`},
		{"/data/word?word=River", "application/json", `"word":"river"`},
		{"/data/dimension?dimension=0", "application/json", `"histogram"`},
		{"/data/query?query=bank+river", "application/json", `"kind":"words"`},
		{"/data/labels", "application/json", `{"writable":false,"labels":[],"stop_words":[]}`},
		{"/data/complete?prefix=BA", "application/json", `["bank","Bank"]`},
		{"/data/complete?prefix=nothing+begins+so", "application/json", `[]`},
	} {
		w := get(handler, tt.target)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != tt.contentType || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s, without %q in %.200s", tt.target, w.Code, w.Header().Get("Content-Type"), tt.want, w.Body)
		}
		if head := get(handler, tt.target, "Method: HEAD"); head.Code != http.StatusOK {
			t.Errorf("HEAD %s: %d", tt.target, head.Code)
		}
	}
}

// Every answer, including errors, has exactly these security headers.
func TestHeader(t *testing.T) {
	handler := newExplorer(t, testModel(), "test").Handler("")
	for _, request := range [][]string{
		{"/"}, {"/explore.js"}, {"/data/map"}, {"/data/word?word=bank"},
		{"/data/word?word=none"}, {"/nothing"}, {"/", "Method: POST"}, {"/", "Host: other.example"}, {"/data/map", "Origin: null"},
	} {
		got := get(handler, request[0], request[1:]...).Header()
		for _, name := range []string{"Content-Type", "Content-Length", "Accept-Ranges", "Allow"} { // checked elsewhere, or unrelated to security
			got.Del(name)
		}
		want := http.Header{
			"Content-Security-Policy":      {"default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
			"Cross-Origin-Resource-Policy": {"same-origin"},
			"Referrer-Policy":              {"no-referrer"},
			"X-Content-Type-Options":       {"nosniff"},
			"Cache-Control":                {"no-cache"},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: header\n%v, want\n%v", request, got, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	handler := newExplorer(t, testModel(), "test").Handler("explorer.example")
	for _, tt := range []struct {
		target string
		status int
		fields []string
	}{
		{"/nothing", 404, nil},
		{"", 404, nil},
		{"//data/word?word=bank", 404, nil},
		{"/assets/index.html", 404, nil},

		{"/data/word?word=bamk", 404, nil},
		{"/data/dimension?dimension=40", 404, nil},
		{"/data/dimension?dimension=-1", 404, nil},
		{"/data/dimension?dimension=1e3", 400, nil},
		{"/data/word", 400, nil},
		{"/data/query?steer=3:1", 400, nil}, // TestAPI repeats parameters, and adds unknown ones
		{"/data/word?word=%zz", 400, nil},
		{"/data/word?word=%ff%fe", 400, nil},
		{"/data/word?word=a;b", 400, nil},
		{"/data/word?word=" + strings.Repeat("a", 4001), 400, nil},

		{"/data/word?word=bank", 405, []string{"Method: POST"}},
		{"/", 405, []string{"Method: DELETE"}},

		// DNS rebinding: another site's name resolves to this machine. TestAPI tries more.
		{"/data/model", 403, []string{"Host: localhost.other.example"}},
		{"/data/model", 403, []string{"Host: 127.0.0.1:8420/x"}},
		{"/data/model", 200, []string{"Host: localhost:9000"}}, // behind a tunnel
		{"/data/model", 200, []string{"Host: [::1]:8420"}},
		{"/data/model", 200, []string{"Host: 192.168.1.2:8420"}},
		{"/data/model", 200, []string{"Host: explorer.example:8420"}},

		// Another site's page. TestAPI tries more, and requests with an Origin.
		{"/data/model", 200, []string{"Origin: https://127.0.0.1:8420", "Sec-Fetch-Site: same-origin"}}, // behind HTTPS
		{"/", 403, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}},
		{"/", 200, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}}, // a link
		{"/data/model", 403, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}},
		{"/data/model", 200, []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"}},
		{"/data/model", 200, []string{"Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1:8420"}},
	} {
		w := get(handler, tt.target, tt.fields...)
		if w.Code != tt.status {
			t.Errorf("%.60s %v: %d, want %d", tt.target, tt.fields, w.Code, tt.status)
		}
		checkAnswer(t, fmt.Sprintf("%.60s %v", tt.target, tt.fields), w)
		if tt.status == 403 && strings.Contains(w.Body.String(), "bank") {
			t.Errorf("%.60s %v: has data", tt.target, tt.fields)
		}
		if tt.status == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%.60s: Allow is %q", tt.target, w.Header().Get("Allow"))
		}
	}
}

// Serve answers over a real connection, and ends with its context.
func TestServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testonly.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	m := testModel()
	m.Codes.IDs[7] = strings.Repeat("é", 10_000)
	go func() { ended <- newExplorer(t, m, "test").Serve(ctx, listener, "127.0.0.1") }()
	base := "http://" + listener.Addr().String()
	for _, tt := range []struct {
		target string
		status int
	}{
		{"/data/word?word=bank", 200},
		{"/data/word?word=" + url.QueryEscape(m.Codes.IDs[7]), 200}, // longer than maxQuery
		{"/data/word?word=" + url.QueryEscape(m.Codes.IDs[7]+"é"), 400},
		{"/data/word?word=" + strings.Repeat("a", 100_000), 431},
		{"/" + strings.Repeat("a", 5_000), 404},
	} {
		response, err := http.Get(base + tt.target)
		testonly.Must(t, err)
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != tt.status {
			t.Errorf("%.40s: %s, want %d", tt.target, response.Status, tt.status)
		}
	}
	for _, raw := range []string{"GET /data/%zz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n"} {
		connection, err := net.Dial("tcp", listener.Addr().String())
		testonly.Must(t, err)
		fmt.Fprint(connection, raw)
		answer, err := io.ReadAll(connection)
		connection.Close()
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
			t.Errorf("%q: %.40q, %v", raw, answer, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("after the end: %v", err)
	}
	if _, err := http.Get(base + "/"); err == nil {
		t.Error("still serves")
	}
}

// docs/reference/explorer.md documents each path and each field of its answer.
func TestDataIsDocumented(t *testing.T) {
	api, fields := documentedAPI(t)
	site := newExplorer(t, testTopics(), "test").Handler("").(*site)
	for path := range *site.routes.Load() {
		if _, documented := api[path]; !documented {
			t.Errorf("%s is not in the documents", path)
		}
		if delete(api, path); !strings.HasPrefix(path, "/data/") {
			continue
		}
		targets := map[string][]string{
			"/data/word": {"?word=bank"}, "/data/dimension": {"?dimension=3"}, "/data/topic": {"?topic=5"}, "/data/texts": {"?rows=0,7"}, "/data/complete": {"?prefix=b"},
			"/data/query": {"?query=bank", "?query=bank+-+river", "?query=common", "?query=first+line"},
		}[path]
		if targets == nil {
			targets = []string{""}
		}
		for _, query := range targets {
			for field := range answered[map[string]any](t, site, path+query) {
				if field != "texts" && !slices.Contains(fields[path], field) { // texts are in all answers
					t.Errorf("%s answers %s with %q, which is not in its row of docs/reference/explorer.md: %q", path, query, field, fields[path])
				}
			}
		}
	}
	for path := range api {
		t.Errorf("docs/reference/explorer.md has %s, which is not served", path)
	}
}

// With Options.Frames, pages of this machine can show the page in a frame.
func TestBrowserFrames(t *testing.T) {
	b := openBrowser(t)
	x := newWith(t, testModel(), "test", Options{Frames: true})
	handler := x.Handler("")
	if got := get(handler, "/").Header().Get("Content-Security-Policy"); !strings.Contains(got, "; frame-ancestors http://localhost:* http://127.0.0.1:*") {
		t.Errorf("policy %q", got)
	}
	asked := make(chan bool, 100)
	framed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/data/model" { // requested by the page's script
			asked <- true
		}
		handler.ServeHTTP(w, r)
	}))
	notebook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>notebook</title><link rel=icon href=data:,><iframe src=%q></iframe>", framed.URL)
	}))
	b.servers = append(b.servers, framed, notebook)
	b.do(chromedp.Navigate(strings.Replace(notebook.URL, "127.0.0.1", "localhost", 1)))
	select {
	case <-asked:
	case <-b.ctx.Done():
		t.Error("the page in the frame did not ask for its data")
	}
}
