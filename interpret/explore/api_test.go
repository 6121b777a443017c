package explore

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// documentedAPI returns the parameters of each path in docs/reference/explorer.md, and the fields of its answer.
func documentedAPI(t testing.TB) (parameters, fields map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/explorer.md")
	testonly.Must(t, err)
	parameters, fields = map[string][]string{"/": nil, "/explore.css": nil, "/explore.js": nil, "/icon.svg": nil}, map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(/data/\\w+)\\??(\\w*)[^`]*`(.*)").FindAllStringSubmatch(string(text), -1) {
		path := row[1]
		if parameters[path] = nil; row[2] != "" {
			parameters[path] = []string{row[2]}
		}
		for i, name := range strings.Split(row[3], "`") {
			if strings.HasPrefix(name, "&steer=") {
				parameters[path] = append(parameters[path], "steer")
			} else if i%2 == 1 {
				fields[path] = append(fields[path], name)
			}
		}
	}
	return parameters, fields
}

// hostileValues are values of parameters and of fields of JSON.
var hostileValues = []string{"", "0", "1", "-1", "3", "39", "40", "999999999999999999999", "1e3", "0x1", "+1", " 1", "1.5", "NaN", "\x00", "\xff\xfe", "\u202e\u200b",
	"<script>", "../../etc/passwd", "bank", "bank - river", "#3", "-#3", "+", "- -", "\"", "\"bank", "17:0.5", "3:1e308,4:-1e308", "3:NaN", "3:0.5,3:0.5", ":", ",", "null",
	"\ufeff", "a\nb", "%", "%zz", "İ", "ß", "é", strings.Repeat("é ", 1000), strings.Repeat("a", 100_000), strings.Repeat("#1 - ", 800), strings.Repeat("9", 400)}

// Every documented path answers any request with an answer or with a refusal that states its reason. A refused request
// changes no label.
func TestAPI(t *testing.T) {
	file := t.TempDir() + "/labels.json"
	x := newWith(t, testTopics(), "test", Options{Labels: file, CheckModel: func() error { return nil }})
	handler := x.Handler("")
	if w := post(handler, `{"dimension": 3, "name": "kings"}`); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	kept, err := os.ReadFile(file)
	testonly.Must(t, err)
	cases := 0
	// try sends a request and checks its status. If want is 0, any status except a server error is valid.
	try := func(want int, target string, fields ...string) {
		t.Helper()
		cases++
		w := get(handler, target, fields...)
		checkAnswer(t, fmt.Sprintf("%.80q %.120q", target, fields), w)
		if want != 0 && w.Code != want {
			t.Errorf("%.80q %.120q: %d %.100s, want %d", target, fields, w.Code, w.Body, want)
		}
		if w.Code == http.StatusOK && slices.Contains(fields, "Method: POST") {
			os.WriteFile(file, kept, 0o666)
			return
		}
		if text, err := os.ReadFile(file); string(text) != string(kept) {
			t.Fatalf("%.80q %.120q: status %d, and the labels are %s, %v", target, fields, w.Code, text, err)
		}
	}
	api, _ := documentedAPI(t)
	valid := map[string]string{"word": "bank", "query": "bank", "topic": "5"}
	hosts := []string{"", "other.example", "127.0.0.1.other.example", "localhost:x", "user@127.0.0.1", "127.0.0.1/x", "[::1", "\x00", "0x7f.1", "127.1", "2130706433", "LOCALHOST.", "[::1%25x]"}
	origins := []string{"null", "http://other.example", "https://127.0.0.1:8420", "http://127.0.0.1:1", "http://localhost:8420", "http://127.0.0.1:8420/", "file://", "http://127.0.0.1:8420@other.example", "\xff"}
	for path, parameters := range api {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "", "get", "\x00"} {
			if path != labelsPath || method != "POST" {
				try(0, path, "Method: "+method)
			}
		}
		for _, host := range hosts {
			try(http.StatusForbidden, path, "Host: "+host)
		}
		for _, origin := range origins {
			try(http.StatusForbidden, path, "Origin: "+origin)
		}
		for _, site := range []string{"cross-site", "same-site", "x"} {
			try(http.StatusForbidden, path, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: cors")
		}
		for _, v := range hostileValues {
			v := url.QueryEscape(v)
			try(http.StatusBadRequest, path+"?unknown="+v)
			for i, name := range parameters {
				query := "?"
				if i > 0 {
					query += parameters[0] + "=" + valid[parameters[0]] + "&"
				}
				try(0, path+query+name+"="+v)
				try(http.StatusBadRequest, path+query+name+"="+v+"&"+name+"="+v)
				try(http.StatusBadRequest, path+query+name+"="+v+"&unknown=1")
				try(0, path+query+strings.ToUpper(name)+"="+v)
				try(0, path+query+name+"[]="+v)
			}
		}
		for _, query := range []string{"?&&", "?=", "?;", "?%zz", "?a=%", "?\x00", "?\xff=\xff"} {
			try(0, path+query)
		}
	}
	tryLabels(try)
	t.Logf("cases: %d", cases)
}

// checkAnswer fails unless w is an answer, of valid JSON if it is JSON, or a refusal that states its reason.
func checkAnswer(t *testing.T, request string, w *httptest.ResponseRecorder) {
	t.Helper()
	var e RequestError
	switch {
	case w.Code != http.StatusOK:
		if w.Code < 400 || w.Code > 499 || json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Message == "" || len(e.Message) > 500 {
			t.Errorf("%s: %d %.200s", request, w.Code, w.Body)
		}
	case w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()):
		t.Errorf("%s: %.200s is not JSON", request, w.Body)
	}
}

// tryLabels posts invalid labels, and labels from other sites.
func tryLabels(try func(want int, target string, fields ...string)) {
	const good = `{"dimension":3,"name":"x"}`
	own := []string{"Method: POST", "Content-Type: application/json", "Origin: http://127.0.0.1:8420"}
	refuse := func(body string, fields ...string) {
		try(http.StatusBadRequest, labelsPath, append(append(own, "Body: "+body), fields...)...)
	}
	values := []string{"null", "true", "-1", "1.5", "1e3", "60", "99999999999999999999", `"3"`, `""`, "[]", "[3]", "{}", `{"a":1}`, "NaN", "03", "0x3", "'3'", ""}
	for _, v := range values {
		refuse(v)
		refuse(`[` + good + `,` + v)
		refuse(good + v + good)
		if v != "3" {
			refuse(`{"dimension":` + v + `,"name":"x"}`)
			refuse(`{"topic":` + v + `,"name":"x"}`)
			refuse(`{"dimension":3,"topic":` + strings.ReplaceAll(v, "null", "5") + `,"name":"x"}`)
		}
		if v != `"3"` && v != `""` {
			refuse(`{"dimension":3,"name":` + v + `}`)
			if v != "null" {
				refuse(`{"dimension":3,"name":"x","note":` + v + `}`)
			}
		}
		refuse(`{"dimension":3,"name":"x","other":` + v + `}`)
	}
	for i := range good { // cut, and with another byte
		refuse(good[:i])
		refuse(good[:i] + "\x00" + good[i:])
	}
	for _, name := range []string{"a\nb", "\u0000", strings.Repeat("a", 101), strings.Repeat("é", 101)} {
		text, _ := json.Marshal(name)
		refuse(`{"dimension":3,"name":` + string(text) + `}`)
	}
	refuse(strings.Repeat("[", 10_000))
	refuse(strings.Repeat(`{"a":`, 3_000))
	refuse(`{"dimension":3,"name":"x"` + strings.Repeat(" ", 1<<19) + `}`)
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", "application/json, text/plain", "\x00"} {
		refuse(good, "Content-Type: "+kind)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5000 { // labels, and texts of bytes that JSON contains
		const bytes = `{}[]":,0123456789.eE+-` + "\\ \tnulltruefalsedimensiontopicnamenote\x00\xff"
		body := []byte(good)
		for range 1 + rng.IntN(3) {
			body[rng.IntN(len(body))] = bytes[rng.IntN(len(bytes))]
		}
		try(0, labelsPath, append(own, "Body: "+string(body))...)
	}
}
