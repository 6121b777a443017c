package interpret

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"overcomplete/vectors"
)

func TestTokenize(t *testing.T) {
	for text, want := range map[string]string{
		"It's 3.5 O'Neill's, rock'n'roll!": "it's 3 5 o'neill's rock'n'roll",
		"don’t 'quote' dogs'":              "don't quote dogs",
		"ЁЛКИ-palky naïve e\u0301te\u0301": "ёлки palky naïve e\u0301te\u0301",
		"שלום עולם مَرحبا":                 "שלום עולם مَرحبا",
		"日本語 と":                            "日本 本語 と",
		"犬 and 猫が好き2":                      "犬 and 猫が が好 好き 2",
		"กินข้าว":                          "กิน นข้ ข้า าว", // a mark is part of its character
		"<b>x</b>\x1b[31m \x00 🙂 _ ''":     "b x b 31m",
		"":                                 "",
	} {
		got := tokenize(text)
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", text, got, strings.Fields(want))
		}
	}
}

// Dimensions of made-up texts, half of whose words are of their own subject and the rest what all
// texts have, are called by their subjects' words, on each side.
func TestKeywords(t *testing.T) {
	const subjects, each, own = 8, 30, 3
	rng := rand.New(rand.NewPCG(1, 2))
	codes := &vectors.Sparse{Texts: &vectors.Texts{}, CSR: vectors.CSR{Cols: subjects / 2, Ptr: []int64{0}}}
	for i := range subjects * each {
		subject := i % subjects
		var words []string
		for range 4 {
			words = append(words, fmt.Sprintf("%c%cown", 'a'+subject, 'a'+rng.IntN(own)), fmt.Sprintf("%cfunction", 'a'+rng.IntN(5)))
		}
		words = append(words, fmt.Sprintf("rare%d", i))
		codes.Words = append(codes.Words, fmt.Sprint(i))
		codes.Texts.Add(strings.Join(words, " "), nil)
		value := float32(1 + rng.Float64())
		if subject%2 == 1 {
			value = -value
		}
		codes.AppendRow([]int32{int32(subject / 2)}, []float32{value})
	}
	x := NewIndex(codes)
	for subject := range subjects {
		got := x.Label(Pole{subject / 2, subject%2 == 1})
		slices.Sort(got)
		var want []string
		for i := range own {
			want = append(want, fmt.Sprintf("%c%cown", 'a'+subject, 'a'+i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("subject %d is called %q, want %q", subject, got, want)
		}
	}

	groups := make([]int32, len(codes.Words))
	for i := range groups {
		groups[i] = int32(i % subjects)
	}
	groups[0] = -1
	labels := x.GroupLabels(groups, own)
	for subject, label := range labels {
		for _, word := range label {
			if !strings.HasPrefix(word, string(rune('a'+subject))) || !strings.HasSuffix(word, "own") {
				t.Errorf("group %d is called %q", subject, label)
			}
		}
	}
	if len(labels) != subjects {
		t.Errorf("%d labels, want %d", len(labels), subjects)
	}
}

// One text of a dimension, empty ones and an enormous one are no reason to stop.
func TestKeywordsOfFew(t *testing.T) {
	x := textIndex(strings.Repeat("long ", 1<<18)+"end", "", "one two", "")
	if got := x.Keywords([]int{2}, 3); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q", got)
	}
	if got := x.Keywords([]int{0}, 3); !slices.Equal(got, []string{"long"}) {
		t.Errorf("%q", got)
	}
	if got := x.Keywords([]int{1, 3}, 3); len(got) > 0 {
		t.Errorf("%q", got)
	}
	// Of 40 texts all contain rain and two contain odd, which scores less than a quarter.
	var texts []string
	var rows []int
	for i := range 40 {
		texts, rows = append(texts, "rain"), append(rows, i)
	}
	texts[0], texts[1] = "rain odd", "rain odd"
	for i := range 40 {
		texts = append(texts, fmt.Sprint("other", i))
	}
	if got := textIndex(texts...).Keywords(rows, 3); !slices.Equal(got, []string{"rain"}) {
		t.Errorf("%q", got)
	}
	if got := x.Label(Pole{}); len(got) > 3 {
		t.Errorf("%q", got)
	}
}
