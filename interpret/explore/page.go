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

// pageTemplate is filled with this package's own files and with JSON without HTML.
var pageTemplate = template.Must(template.New("").Parse(string(mustAsset("index.html"))))

// embedded is the data of an exported page, by kind and parameter.
type embedded struct {
	Model      about                      `json:"model"`
	Labels     labelsAnswer               `json:"labels"`
	Map        chart                      `json:"map"`
	Words      map[string]wordAnswer      `json:"word"`
	Dimensions map[string]dimensionAnswer `json:"dimension"`

	// Only if the model has topics.
	Topics *topicTable              `json:"topics,omitempty"`
	Rows   *rowChart                `json:"rows,omitempty"`
	Topic  map[string]typicalAnswer `json:"topic,omitempty"`
	Theme  map[string]typicalAnswer `json:"theme,omitempty"`
}

// page returns the page that requests its data or, unless data is nil, the page that contains them.
func page(data *embedded) []byte {
	var fields struct{ Script, Style, Icon, Data, Policy string }
	if data != nil {
		fields.Script, fields.Style = string(mustAsset(scripts...)), string(mustAsset("explore.css"))
		fields.Icon = base64.StdEncoding.EncodeToString(mustAsset("icon.svg"))
		fields.Data = string(mustJSON(data))
		// The page can load nothing else.
		fields.Policy = fmt.Sprintf("default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; script-src %s; style-src %s",
			hashSource(fields.Script), hashSource(fields.Style))
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, fields); err != nil {
		panic(err) // the template is part of this program
	}
	return b.Bytes()
}

// hashSource returns the source of an inline script or style in a content security policy.
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Contents of an exported page.
const (
	neighbourhood     = 10 // words of a dimension, or dimensions of a word, if none were chosen
	exportedTypical   = 8  // rows of a topic or theme
	exportedBeginning = 80 // characters of a text on the map
)

// WritePage writes one HTML file that shows the topics, words and dimensions, the summary and the maps, without
// a server or a network. If no dimensions are given, it has the ten strongest of each word; if no words
// are given, the ten top words of each dimension. It returns a [*RequestError] for an unknown word or
// dimension, or if there is nothing to show: no topics, no words and no dimensions.
func (x *Explorer) WritePage(w io.Writer, words []string, dimensions []int) error {
	if len(words)+len(dimensions)+x.about.Themes == 0 {
		return badRequest("the model has no topics, so the page needs words or dimensions")
	}
	data := &embedded{Model: x.about, Labels: labelsAnswer{Labels: x.allLabels().Labels}, Map: x.mapped(),
		Words: map[string]wordAnswer{}, Dimensions: map[string]dimensionAnswer{}}
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
	if x.about.Themes > 0 {
		x.embedTopics(data)
	}
	// The summary shows dimensions that the page has.
	data.Model.Strongest = []int{}
	for _, k := range x.strongest {
		if _, ok := data.Dimensions[strconv.Itoa(k)]; ok {
			data.Model.Strongest = append(data.Model.Strongest, k)
		}
	}
	_, err := w.Write(page(data))
	return err
}

// embedTopics adds the topics, their pages and the map of rows, of whose texts it has the beginnings.
func (x *Explorer) embedTopics(data *embedded) {
	t, rows := x.topics(), x.rows()
	data.Topics, data.Rows = t, &rows
	if rows.Texts != nil {
		begin := map[string]string{}
		for id, text := range rows.Texts {
			begin[id] = cut(text, exportedBeginning)
		}
		rows.Texts = begin
	}
	data.Topic, data.Theme = map[string]typicalAnswer{}, map[string]typicalAnswer{}
	for _, topic := range t.Topics {
		data.Topic[strconv.Itoa(int(topic.ID))] = x.typicalOf(t.table, topic, exportedTypical)
	}
	for _, theme := range t.Themes {
		data.Theme[strconv.Itoa(int(theme.ID))] = x.typicalOf(t.table, theme, exportedTypical)
	}
}
