package explore

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"overcomplete/testonly"
)

// Saved files contain the view: a table contains its lists, an SVG its words and charts, and a PNG shows the same
// picture.
func TestBrowserSaves(t *testing.T) {
	b := openBrowser(t)
	x := newExplorer(t, testModel(), "test")
	b.do(chromedp.Navigate(b.serve(x) + "/#/word/bank"))
	b.waitHeading("bank")
	// The test's browser has no download folder, so read the data of the link.
	evaluate[chromedp.Void](b, `saved = {}; HTMLAnchorElement.prototype.click = function () {
		const name = this.download;
		const read = new FileReader();
		read.onload = () => (saved[name] = read.result);
		read.readAsDataURL(blobs.get(this.href));
	}; blobs = new Map(); createURL = URL.createObjectURL; URL.createObjectURL = (blob) => { const url = createURL(blob); blobs.set(url, blob); return url; }; 0`)
	offered := func(button, name string) []byte {
		t.Helper()
		evaluate[chromedp.Void](b, `[...document.querySelectorAll(".save button")].find((e) => e.textContent === %s).click()`, quote(button))
		b.wait(`saved[%s] !== undefined`, quote(name))
		_, text, _ := strings.Cut(evaluate[string](b, `saved[%s]`, quote(name)), ";base64,")
		data, err := base64.StdEncoding.DecodeString(text)
		testonly.Must(t, err)
		return data
	}

	lists := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(offered("Table", "bank-test.csv"), []byte("\ufeff"))))
	lists.FieldsPerRecord = -1
	table, err := lists.ReadAll()
	testonly.Must(t, err)
	cells := map[string]string{} // third cells, by the first and second
	for _, record := range table[1:] {
		record = append(record, "", "")
		cells[record[0]+" "+record[1]] = record[2]
	}
	for _, n := range x.word(0).Nearest {
		if got := cells["Nearest words "+n.Word]; got != fmt.Sprintf("%.2f", n.Cosine) && n.Word != "\u2028" {
			t.Errorf("%q has %q in the table, want %.2f:\n%s", n.Word, got, n.Cosine, table)
		}
	}

	for _, view := range []struct{ address, file, shape, word string }{
		{"#/word/bank", "bank", "rect", "Nearest"},
		{"#/map", "map", "text", x.dimensionMap().Regions[0].Words[0]},
	} {
		evaluate[chromedp.Void](b, `location.hash = %s`, quote(view.address))
		b.wait(`document.title.startsWith(%s) && !document.getElementById("main").ariaBusy`, quote(view.file))
		if view.shape == "text" {
			b.wait(`document.querySelector(".names text")`)
		}
		picture := offered("SVG", view.file+"-test.svg")
		if err := xml.Unmarshal(picture, new(struct{})); err != nil {
			t.Fatalf("%s: %v", view.address, err)
		}
		svg := string(picture)
		if strings.Contains(svg, "<foreignObject") || strings.Count(svg, "<"+view.shape+" ") < 20 || !strings.Contains(svg, view.word) {
			t.Errorf("%s: the picture lacks shapes, or %q", view.address, view.word)
		}
		pixels, err := png.Decode(bytes.NewReader(offered("Picture", view.file+"-test.png")))
		testonly.Must(t, err)
		if want := evaluate[int](b, `2 * document.getElementById("main").getBoundingClientRect().width`); pixels.Bounds().Dx() != want {
			t.Errorf("%s: the PNG is %d pixels wide, want %d", view.address, pixels.Bounds().Dx(), want)
		}
	}
}
