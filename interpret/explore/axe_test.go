package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"overcomplete/testonly"
)

// The pages pass the audit of axe-core (OVERCOMPLETE_AXE names axe.min.js) without violations, in both themes, at the
// widths of a desktop and a phone, at which they don't scroll sideways. The audit includes the size of targets, which
// axe-core checks only on request.
func TestBrowserAccessibility(t *testing.T) {
	path := os.Getenv("OVERCOMPLETE_AXE")
	if path == "" {
		t.Skip("needs axe-core: set OVERCOMPLETE_AXE to the path of its axe.min.js")
	}
	axe, err := os.ReadFile(path)
	testonly.Must(t, err)
	m := testModel()
	m.Codes.IDs[2] = strings.Repeat("long", 40)
	x := newExplorer(t, m, strings.Repeat("name", 30))
	texts := newWith(t, testTopics(), "texts", Options{Labels: filepath.Join(t.TempDir(), "labels.json")})
	everywhere := []string{"#/", "#/word/bank", "#/dimension/3", "#/compare/bank/river/" + m.Codes.IDs[2], "#/word/" + m.Codes.IDs[2], "#/query/bank%20%2B%20river", "#/map/3"}
	if testonly.Full {
		everywhere = append(everywhere, "#/dimensions", "#/rows", "#/word/"+m.Codes.IDs[50], "#/dimension/39", "#/query/the%20river%20bank%20has%20money", "#/map", "#/map/word/bank", "#/rows/bank", "#/word/bnak")
	}
	for _, site := range []struct {
		name      string
		open      func(b *browser) (url string)
		addresses []string
	}{
		{"server", func(b *browser) string { return b.serve(x) + "/" }, everywhere},
		{"texts", func(b *browser) string { return b.serve(texts) + "/" }, []string{"#/topic/5", "#/word/bank", "#/query/common%20subjecta", "#/topic/2", "#/unusual", "#/dimension/3", "#/", "#/rows"}},
		{"file", func(b *browser) string { return b.export(x, []string{"bank", "river"}, nil) }, []string{"#/", "#/word/bank", "#/map"}},
		{"file of topics", func(b *browser) string { return b.export(texts, nil, nil) }, []string{"#/", "#/topic/5", "#/unusual", "#/rows"}},
	} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				// Without the build tag full, audit each theme and each width once.
				if !testonly.Full && site.name+theme+fmt.Sprint(width) != "serverlight1280" && site.name+theme+fmt.Sprint(width) != "textsdark390" {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, %d pixels wide", site.name, theme, width), func(t *testing.T) {
					b := openBrowser(t)
					scheme := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}
					_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: scheme})
					testonly.Must(t, err)
					b.do(chromedp.EmulateViewport(width, 844), chromedp.Navigate(site.open(b)))
					b.wait(`document.querySelector("h1")`)
					evaluate[chromedp.Void](b, "%s; 0", axe)
					for _, address := range site.addresses {
						b.visit(address)
						if wide := evaluate[int64](b, `document.documentElement.scrollWidth`); wide > width {
							t.Errorf("%s is %d pixels wide", address, wide)
						}
						for _, violation := range evaluate[[]string](b, `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then((results) => results.violations
							.map((v) => v.id + " (" + v.nodes.length + "): " + v.help + "\n" + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary).join("\n")))`) {
							t.Errorf("%s: %s", address, violation)
						}
					}
				})
			}
		}
	}
}
