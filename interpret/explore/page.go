package explore

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/template"

	"overcomplete/internal/parallel"
	"overcomplete/internal/text"
	"overcomplete/interpret"
)

// pageTemplate needs no escaping: it inserts only files of this package, and base64.
var pageTemplate = template.Must(template.New("").Parse(string(mustAsset("index.html"))))

// pageData is the data of an exported page, by kind and parameter.
type pageData struct {
	Model      summary                    `json:"model"`
	Labels     labelsAnswer               `json:"labels"`
	Map        dimensionMap               `json:"map"`
	Words      map[string]wordAnswer      `json:"word"`
	Dimensions map[string]dimensionAnswer `json:"dimension"`

	// These fields are set only if the model has topics.
	Topics     *topicTable              `json:"topics,omitempty"`
	Duplicates *duplicatesAnswer        `json:"duplicates,omitempty"`
	Rows       *rowMap                  `json:"rows,omitempty"`
	Bodies     [][]string               `json:"bodies,omitempty"` // by row of the map: an excerpt, the beginning of the text, and columns
	Columns    []string                 `json:"columns,omitempty"`
	Topic      map[string]typicalAnswer `json:"topic,omitempty"`
}

// page returns a page that contains data, compressed. If data is nil, the page requests its data.
func page(data *pageData) []byte {
	var fields struct{ Script, Style, Icon, Data, Policy string }
	if data != nil {
		fields.Script, fields.Style = string(mustAsset(scripts...)), string(mustAsset("explore.css"))
		fields.Icon = base64.StdEncoding.EncodeToString(mustAsset("icon.svg"))
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		w.Write(mustJSON(data))
		w.Close()
		fields.Data = base64.StdEncoding.EncodeToString(packed.Bytes())
		// The policy allows only this script, this style, and images in the page itself.
		fields.Policy = fmt.Sprintf("default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; script-src %s; style-src %s",
			hashSource(fields.Script), hashSource(fields.Style))
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, fields); err != nil {
		panic(err) // the template is part of this program
	}
	return b.Bytes()
}

// hashSource returns the expression of a content security policy that allows an inline script or style.
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Contents of an exported page.
const (
	neighbourhood   = 10      // words per dimension, or dimensions per word, by default
	exportedTypical = 8       // rows of a topic
	exportedText    = 1000    // characters of the beginning of a text; the page searches this beginning
	exportedTexts   = 5000000 // characters of all beginnings; with many texts, beginnings are shorter, but have at least listedText characters
)

// WritePage writes one HTML file that shows the summary, the maps, the topics, and the given words and
// dimensions. It needs no server or network. Without dimensions, the file has the ten strongest dimensions of each
// word. Without words, it has the ten top words of each dimension. WritePage returns a [*RequestError] for an
// unknown word or dimension, and if a model without topics is given neither words nor dimensions.
func (x *Explorer) WritePage(w io.Writer, words []string, dimensions []int) error {
	if len(words)+len(dimensions)+x.summary.Themes == 0 {
		return badRequest("the model has no topics, so the page needs words or dimensions")
	}
	data := &pageData{Model: x.summary, Labels: labelsAnswer{Labels: x.allLabels().Labels, StopWords: []string{}}, Map: x.dimensionMap(),
		Words: map[string]wordAnswer{}, Dimensions: map[string]dimensionAnswer{}}
	addWord := func(row int) { data.Words[x.model.Codes.IDs[row]] = x.word(row) }
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
	if x.summary.Themes > 0 {
		x.embedTopics(data)
	}
	// Only dimensions on the page stay in the list of the strongest.
	data.Model.Strongest = []int{}
	for _, k := range x.summary.Strongest {
		if _, ok := data.Dimensions[strconv.Itoa(k)]; ok {
			data.Model.Strongest = append(data.Model.Strongest, k)
		}
	}
	_, err := w.Write(page(data))
	return err
}

// embedTopics adds the topics, their pages, and the map of rows with the beginnings of their texts.
func (x *Explorer) embedTopics(data *pageData) {
	t, duplicates, rows := x.topics(), x.duplicates(), x.rowMap()
	data.Topics, data.Duplicates, data.Rows = t, &duplicates, &rows
	if x.summary.Texts {
		length := max(min(exportedText, exportedTexts/max(len(rows.Rows), 1)), listedText)
		data.Bodies, data.Columns = make([][]string, len(rows.Rows)), x.columnNames()
		parallel.Each(context.Background(), len(rows.Rows), func(i int) {
			excerpt, _ := x.index.Excerpt(rows.Rows[i], nil, listedText)
			data.Bodies[i] = append([]string{excerpt, text.Truncate(x.model.Codes.Texts.Text[rows.Rows[i]], length)}, x.columnValues(rows.Rows[i])...)
		})
	}
	data.Topic = map[string]typicalAnswer{}
	for _, topic := range slices.Concat(t.Topics, t.Subtopics) {
		data.Topic[strconv.Itoa(int(topic.ID))] = x.typicalOf(topic, exportedTypical)
	}
}
