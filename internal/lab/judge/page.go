package judge

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"add": func(a, b int) int { return a + b }}).Parse(pageText))

// policy allows the page its own style and script, by their hashes, and nothing else.
var policy = fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
	hashBetween("<style>", "</style>"), hashBetween("<script>", "</script>"))

func hashBetween(start, end string) string {
	_, text, _ := strings.Cut(pageText, start)
	text, _, _ = strings.Cut(text, end)
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Page returns a handler of a web page on which any number of judges, who give their
// names, answer a test. It answers only requests whose Host header is host, a host:port,
// or localhost with the same port, so that a site that has its own name point to this
// machine (DNS rebinding) is refused. Other sites' pages cannot post answers.
func Page(a *Answers, host string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { a.show(w, r.URL.Query().Get("judge")) })
	mux.HandleFunc("POST /answer", a.answer)
	safe := http.NewCrossOriginProtection().Handler(mux)
	_, port, _ := net.SplitHostPort(host)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != host && r.Host != net.JoinHostPort("localhost", port) {
			http.Error(w, "this page is http://"+host, http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		safe.ServeHTTP(w, r)
	})
}

// show shows a judge the next question, somebody without a name a form for it, and
// who is done thanks.
func (a *Answers) show(w http.ResponseWriter, judge string) {
	judge = strings.TrimSpace(judge)
	data := struct {
		Judge, Problem  string
		Question        *Question
		Answered, Total int
	}{Judge: judge, Total: len(a.test.Questions)}
	status := http.StatusOK
	if judge != "" {
		if err := CheckName(judge); err != nil {
			status = http.StatusBadRequest
			data.Judge, data.Problem = "", err.Error()
		} else {
			data.Question, data.Answered = a.Next(judge)
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	page.Execute(w, data) // fails only if nobody reads any more
}

func (a *Answers) answer(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.PostFormValue("question"))
	if err != nil {
		http.Error(w, "there is no such question", http.StatusBadRequest)
		return
	}
	answer := Answer{Test: a.test.ID, Judge: strings.TrimSpace(r.PostFormValue("judge")), Number: number, Word: r.PostFormValue("word")}
	if err := answer.check(a.test); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// Who answers twice, in two windows or with two clicks, is shown the next question.
	if err := a.Add(answer); err != nil && !errors.Is(err, ErrAnswered) {
		http.Error(w, "the answer could not be saved: "+err.Error(), http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, "/?judge="+url.QueryEscape(answer.Judge), http.StatusSeeOther)
}
