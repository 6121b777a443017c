package explore

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"overcomplete/internal/text"
)

//go:embed assets
var assets embed.FS

// scripts lists the scripts of the page, which share one scope.
var scripts = []string{"dom.js", "charts.js", "labels.js", "pages.js", "texts.js", "topics.js", "queries.js", "steer.js", "map.js", "save.js", "main.js"}

// mustAsset returns the contents of files, concatenated.
func mustAsset(names ...string) []byte {
	var all []byte
	for _, name := range names {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // the files are part of this program
		}
		all = append(all, data...)
	}
	return all
}

// A RequestError reports a request that has a mistake, such as an unknown word, or that lacks permission.
type RequestError struct {
	Status  int      `json:"-"` // HTTP status code
	Message string   `json:"error"`
	Word    string   `json:"word,omitempty"`    // unknown word
	Closest []string `json:"closest,omitempty"` // words with a similar spelling
}

func (e *RequestError) Error() string {
	if len(e.Closest) == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s; similar words: %s", e.Message, strings.Join(e.Closest, ", "))
}

func badRequest(format string, args ...any) error {
	return &RequestError{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &RequestError{Status: http.StatusNotFound, Message: fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) error {
	return &RequestError{Status: http.StatusForbidden, Message: fmt.Sprintf(format, args...)}
}

// Handler serves the page and its data so that no other site can read them. The Host header of a request must
// be an IP address, localhost or host, which may be empty. This prevents DNS rebinding. Handler also refuses
// requests for data by other sites' pages.
func (x *Explorer) Handler(host string) http.Handler {
	site := &site{host: host, frames: "'none'"}
	site.show(x)
	if x.options.Frames {
		site.frames = "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* vscode-webview: vscode-file:"
	}
	return site
}

// A site serves an explorer, and replaces it when stop words change. It refuses requests of other sites. It maps exact
// paths to handlers. Unlike [http.ServeMux], it redirects nothing to a cleaner path.
type site struct {
	host, frames string // host name, and the sources that may show the page in a frame
	routes       atomic.Pointer[map[string]http.Handler]
}

// labelsPath is the only path that accepts changes.
const labelsPath = "/data/labels"

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors "+s.frames)
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-cache") // the next model may have the same address
	serve, ok := (*s.routes.Load())[r.URL.Path]
	allowed := []string{http.MethodGet, http.MethodHead}
	if r.URL.Path == labelsPath {
		allowed = append(allowed, http.MethodPost)
	}
	switch list := strings.Join(allowed, ", "); {
	case !ownHost(r.Host, s.host):
		fail(w, forbidden("the host name %.100q is not served: use the IP address, or serve under this name", r.Host))
	case !sameOrigin(r):
		fail(w, forbidden("other sites can't read the data of this page"))
	case !ok:
		fail(w, notFound("no such page"))
	case !slices.Contains(allowed, r.Method):
		header.Set("Allow", list)
		fail(w, &RequestError{Status: http.StatusMethodNotAllowed, Message: list + " only"})
	default:
		serve.ServeHTTP(w, r)
	}
}

func (s *site) show(x *Explorer) {
	routes := map[string]http.Handler{
		"/":               file("text/html; charset=utf-8", page(nil)),
		"/explore.css":    file("text/css; charset=utf-8", mustAsset("explore.css")),
		"/explore.js":     file("text/javascript; charset=utf-8", mustAsset(scripts...)),
		"/icon.svg":       file("image/svg+xml", mustAsset("icon.svg")),
		"/data/model":     x.answer("", func(string) (any, error) { return s.current(x).summary, nil }),
		"/data/map":       x.answer("", func(string) (any, error) { return x.dimensionMap(), nil }),
		"/data/rows":      x.answer("", func(string) (any, error) { return x.rowMap(), nil }),
		"/data/word":      x.answer("word", x.answerWord),
		"/data/dimension": x.answer("dimension", x.answerDimension),
		"/data/query":     handler(x.serveQuery),
		labelsPath:        x.serveLabels(s),
		"/data/complete":  x.answer("prefix", x.complete),
		"/data/texts":     x.answer("rows", x.answerTexts),
	}
	if x.summary.Themes > 0 {
		routes["/data/topics"] = x.answer("", func(string) (any, error) { return x.topics(), nil })
		routes["/data/duplicates"] = x.answer("", func(string) (any, error) { return x.duplicates(), nil })
		routes["/data/topic"] = x.answer("topic", x.answerTopic)
	}
	s.routes.Store(&routes)
}

// maxParameter returns the largest length of a parameter in bytes. Each word of the model is allowed.
func (x *Explorer) maxParameter() int {
	n := maxQuery
	for _, w := range x.model.Codes.IDs {
		n = max(n, len(w))
	}
	return n
}

func (x *Explorer) answerWord(word string) (any, error) {
	row, err := x.findWord(word)
	if err != nil {
		return nil, err
	}
	return x.word(row), nil
}

func (x *Explorer) answerDimension(text string) (any, error) {
	k, err := strconv.Atoi(text)
	if err != nil {
		return nil, badRequest("the dimension isn't a number (got %.60q)", text)
	}
	if err := x.checkDimension(k); err != nil {
		return nil, err
	}
	return x.dimension(k), nil
}

// A textsAnswer holds excerpts and columns of rows.
type textsAnswer struct {
	Columns []string            `json:"columns"` // names
	Values  map[string][]string `json:"values"`  // by id of a text: its values of the columns
	texts
}

// maxListed is the largest number of rows in a request for texts.
const maxListed = 200

// answerTexts returns the texts of the rows in list, row numbers separated by commas.
func (x *Explorer) answerTexts(list string) (any, error) {
	a := textsAnswer{Columns: x.columnNames(), Values: map[string][]string{}}
	for i, number := range strings.Split(list, ",") {
		row, err := strconv.Atoi(number)
		if err != nil || row < 0 || row >= x.model.Codes.Rows || i == maxListed {
			return nil, badRequest("malformed rows (got %.60q, want up to %d numbers from 0 to %d, with commas between)", list, maxListed, x.model.Codes.Rows-1)
		}
		a.add(x, row, nil)
		a.Values[x.model.Codes.IDs[row]] = x.columnValues(row)
	}
	return a, nil
}

func (x *Explorer) columnNames() []string {
	names := []string{}
	for _, c := range x.textColumns() {
		names = append(names, c.Name)
	}
	return names
}

// columnValues returns the values of a row in the columns of columnNames.
func (x *Explorer) columnValues(row int) []string {
	values := []string{}
	for _, c := range x.textColumns() {
		values = append(values, text.Truncate(c.Values[row], listedText))
	}
	return values
}

// ownHost reports whether a Host header names this machine. It ignores the port, which a tunnel changes.
func ownHost(header, host string) bool {
	u, err := url.Parse("//" + header)
	if err != nil || u.Host != header {
		return false
	}
	name := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || name != "" && name == strings.ToLower(host)
}

// sameOrigin returns false if another site's page makes the request, except by a link to the page.
func sameOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	// Behind a proxy with HTTPS the scheme differs, and Sec-Fetch-Site shows that the origins are the same.
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && (origin != "https://"+r.Host || site != "same-origin") {
		return false
	}
	isLink := r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	return isLink || slices.Contains([]string{"", "same-origin", "none"}, site) // none: typed into the browser
}

// file serves constant bytes.
func file(contentType string, content []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := parameter(r, "", 0); err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", contentType)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
}

// answer serves the result of f as JSON. The argument of f is the value of the named parameter. If name is "",
// the request must have no parameter.
func (x *Explorer) answer(name string, f func(value string) (any, error)) http.Handler {
	limit := x.maxParameter()
	return handler(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		value, err := parameter(r, name, limit)
		if err != nil {
			return nil, err
		}
		return f(value)
	})
}

// serveQuery answers the parameter "query", steered by the optional parameter "steer".
func (x *Explorer) serveQuery(_ http.ResponseWriter, r *http.Request) (any, error) {
	query, err := parameter(r, "query", x.maxParameter(), "steer")
	if err != nil {
		return nil, err
	}
	return x.answerQuery(query, r.URL.Query().Get("steer"))
}

// A handler returns the data of an answer, which is sent as JSON.
type handler func(w http.ResponseWriter, r *http.Request) (any, error)

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := h(w, r)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, http.StatusOK, data)
}

// parameter returns the value of a request's parameter, of at most limit bytes. The request must have no other
// parameters, except optional ones. If name is "", it must have optional parameters only.
func parameter(r *http.Request, name string, limit int, optional ...string) (string, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", badRequest("malformed query: %v", err)
	}
	for _, other := range optional {
		if len(query[other]) <= 1 && len(query.Get(other)) <= limit {
			delete(query, other)
		}
	}
	if name == "" {
		if len(query) > 0 {
			return "", badRequest("unknown parameters (want none)")
		}
		return "", nil
	}
	values := query[name]
	switch {
	case len(values) != 1 || len(query) != 1:
		return "", badRequest("want one parameter %q, and no other", name)
	case len(values[0]) > limit:
		return "", badRequest("%s is too long (got %d bytes, want at most %d)", name, len(values[0]), limit)
	case !utf8.ValidString(values[0]):
		return "", badRequest("%s is not UTF-8", name)
	}
	return values[0], nil
}

// fail sends an error. An error that isn't a [*RequestError] is a bug of this package.
func fail(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*RequestError](err)
	if !ok {
		e = &RequestError{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	send(w, e.Status, e)
}

func send(w http.ResponseWriter, status int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(mustJSON(data))
}

// mustJSON encodes data of this package, which must have finite numbers. It escapes <, > and &.
func mustJSON(data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return text
}

// Serve serves the page on the listener until ctx is cancelled, and closes the listener. It then waits up to two
// seconds for open requests, and returns nil. If the listener fails, it returns the error. While serving, it computes
// slow answers, such as the topics and maps, before they are requested. See [Explorer.Handler] for host.
func (x *Explorer) Serve(ctx context.Context, listener net.Listener, host string) error {
	server := &http.Server{
		Handler:           x.Handler(host),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Minute, // the first request of the topics of millions of rows is slow
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16<<10 + 3*x.maxParameter(), // a URL can encode a byte as three: %20
	}
	go x.prepare()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if server.Shutdown(grace) != nil {
		server.Close()
	}
	return nil
}
