package explore

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"text/template"

	"overcomplete/interpret"
)

// pageTemplate is filled in with nothing but this package's own files and JSON
// that is safe within HTML.
var pageTemplate = template.Must(template.New("").Parse(string(mustAsset("index.html"))))

// embedded is a page's data, by the kind of question and its parameter.
type embedded struct {
	Model      about                      `json:"model"`
	Labels     labelsAnswer               `json:"labels"`
	Map        chart                      `json:"map"`
	Words      map[string]wordAnswer      `json:"word"`
	Dimensions map[string]dimensionAnswer `json:"dimension"`
}

// page returns the page that asks the server for data or, unless data is nil,
// the one that has them.
func page(data *embedded) []byte {
	var fields struct{ Script, Style, Icon, Data, Policy string }
	if data != nil {
		fields.Script, fields.Style = string(mustAsset(scripts...)), string(mustAsset("explore.css"))
		fields.Icon = base64.StdEncoding.EncodeToString(mustAsset("icon.svg"))
		fields.Data = string(mustJSON(data))
		// The page has all it needs: it can reach nothing else.
		fields.Policy = fmt.Sprintf("default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; script-src %s; style-src %s",
			hashSource(fields.Script), hashSource(fields.Style))
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, fields); err != nil {
		panic(err) // the template is part of this program
	}
	return b.Bytes()
}

// hashSource is how a content security policy allows a script or style that is
// part of the page.
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// neighbourhood is how many words of a dimension, or dimensions of a word, come
// with it into a page for which none were chosen.
const neighbourhood = 10

// WritePage writes one HTML file that shows the given words and dimensions, the summary
// and the map. It needs neither a server nor a network. If no dimensions are given, it
// has the ten strongest of each word; if no words are given, it has the ten top words
// of each dimension. A word or dimension that the model does not have is a
// [*NotFoundError].
func (x *Explorer) WritePage(w io.Writer, words []string, dimensions []int) error {
	data := &embedded{x.about, labelsAnswer{Labels: x.allLabels().Labels}, x.mapped(), map[string]wordAnswer{}, map[string]dimensionAnswer{}}
	addWord := func(row int) { data.Words[x.model.Codes.Words[row]] = x.word(row) }
	addDimension := func(k int) { data.Dimensions[strconv.Itoa(k)] = x.dimension(k) }
	for _, word := range words {
		row, err := x.findWord(word)
		if err != nil {
			return err
		}
		addWord(row)
		if len(dimensions) == 0 {
			weights := x.index.Code(row).Weights()
			for _, w := range weights[:min(neighbourhood, len(weights))] {
				addDimension(w.Dimension)
			}
		}
	}
	for _, k := range dimensions {
		if err := x.checkDimension(k); err != nil {
			return err
		}
		addDimension(k)
		if len(words) == 0 {
			for _, e := range x.index.Top(interpret.Pole{Dimension: k}, neighbourhood) {
				addWord(e.Row)
			}
		}
	}
	// It begins with dimensions that it has.
	data.Model.Strongest = []int{}
	for _, k := range x.strongest {
		if _, ok := data.Dimensions[strconv.Itoa(k)]; ok {
			data.Model.Strongest = append(data.Model.Strongest, k)
		}
	}
	_, err := w.Write(page(data))
	return err
}
