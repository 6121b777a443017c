package text

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTokenize(t *testing.T) {
	for text, want := range map[string]string{
		"It's 3.5 O'Neill's, rock'n'roll!": "it's 3 5 o'neill's rock'n'roll",
		"don’t 'quote' dogs'":              "don't quote dogs",
		"ЁЛКИ-palky naïve e\u0301te\u0301": "ёлки palky naïve e\u0301te\u0301",
		"שלום עולם مَرحبا":                 "שלום עולם مَرحبا",
		"日本語 と":                            "日本 本語 と",
		"ロー":                               "ロー",
		"犬 and 猫が好き2":                      "犬 and 猫が が好 好き 2",
		"กินข้าว":                          "กิน นข้ ข้า าว", // marks belong to their character
		"<b>x</b>\x1b[31m \x00 → _ ''":     "b x b 31m",
		"wow👍🏽🙂🙂!":                         "wow 👍🏽 🙂 🙂",
		"👩‍👧ok می\u200cخواهم":              "👩‍👧 ok می\u200cخواهم",
		"":                                 "",
	} {
		got := Tokenize(text)
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", text, got, strings.Fields(want))
		}
	}
}

// Addresses and the words beside them, numbers, single letters and very long words don't count for labels. Words in
// passages that repeat an earlier text don't count either.
func TestTerms(t *testing.T) {
	x := NewTerms([]string{
		"Ann@site.org (v. 3.5 of 1st b2 x11 file_name and/or mp3) end. " + strings.Repeat("W", 41),
		"He wrote: the lazy dog sleeps all day long. Ann",
		"> the lazy dog sleeps all day long. No, the dog barks",
		"",
	}, true)
	counts := make([]int32, len(x.Words))
	for i, want := range []string{"and or mp3 end", "he wrote the lazy dog sleeps all day long ann", "long no the dog barks", ""} {
		var got []string
		for at := x.Starts[i]; at < x.Starts[i+1]; at++ {
			if x.Counted[at] {
				got = append(got, x.Words[x.IDs[at]])
				counts[x.IDs[at]]++
			}
		}
		slices.Sort(got)
		if words := strings.Fields(want); !slices.Equal(got, slices.Sorted(slices.Values(words))) {
			t.Errorf("text %d: %q, want %q", i, got, words)
		}
	}
	if !slices.Equal(counts, x.Counts) {
		t.Errorf("texts of each word: %d, want %d", x.Counts, counts)
	}
}

// The words of many texts are in the order of their first occurrence, and each text lists its distinct words. This holds
// for any number of workers, with and without labels.
func TestTermsOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var texts []string
	var words []string // in the order of their first occurrence
	var want [][]string
	for range 2*batchTexts + 7 {
		var own []string
		for range rng.IntN(12) {
			own = append(own, fmt.Sprintf("w%d", int(rng.ExpFloat64()*50)))
		}
		texts = append(texts, strings.Join(own, " "))
		var distinct []string
		for _, word := range own {
			if !slices.Contains(distinct, word) {
				distinct = append(distinct, word)
			}
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		want = append(want, distinct)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := NewTerms(texts, true)
	if !slices.Equal(one.Words, words) {
		t.Fatalf("%d words, want %d", len(one.Words), len(words))
	}
	for i := range texts {
		var got []string
		for _, id := range one.IDs[one.Starts[i]:one.Starts[i+1]] {
			got = append(got, one.Words[id])
		}
		if !slices.Equal(got, want[i]) {
			t.Fatalf("text %d: %q, want %q", i, got, want[i])
		}
	}
	runtime.GOMAXPROCS(3)
	if three := NewTerms(texts, true); !reflect.DeepEqual(three, one) {
		t.Error("terms differ between one and three workers")
	}
	search := NewTerms(texts, false)
	if !slices.Equal(search.Words, one.Words) || !slices.Equal(search.IDs, one.IDs) || !slices.Equal(search.Starts, one.Starts) {
		t.Error("other terms without labels")
	}
}
