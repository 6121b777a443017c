package vectors

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
)

// wordSeeds make two hashes of a word, which together no two words of a file share.
var wordSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// A row is what was found where a word and its vector should be.
type row struct {
	number   int    // of its line (text) or row (other formats), from 0 in its chunk
	word     string // or text; as far as it is known, if err isn't nil
	id       string // of a text, if the input has ids
	columns  []string
	doubtful bool  // the word may have swallowed numbers
	err      error // why the row is malformed
}

// A chunk is a run of consecutive rows.
type chunk struct {
	rows []row
	data []float32 // the vectors of the rows without an error, one after the other
	span int       // lines (text) or rows (other formats) that the chunk covers
}

// A builder puts the rows of a file together, in order, and applies what all
// formats have in common: duplicates, malformed rows, limits.
type builder struct {
	file    string
	options ReadOptions
	dim     int  // L
	want    int  // rows the file should have, or -1
	text    bool // rows are counted in lines
	bare    bool // lines have no words

	each func(*Dense) error     // takes the rows, if not nil; else they are kept
	name func() (string, error) // returns the next row's word or text, if rows have none

	texts   bool // rows are texts
	ids     bool // which have ids in the input
	columns []string
	about   string // which columns were read, for people

	words  []string
	said   *Texts // by words, if they are ids
	chunks [][]float32
	seen   map[[2]uint64]struct{} // hashes of words
	kept   int                    // rows so far that are neither malformed nor duplicates
	number int                    // lines or rows in the chunks so far
	found  int                    // rows so far, malformed ones included
	full   bool                   // no more words are wanted
	excess bool                   // there are more rows than wanted
	enough bool                   // of the rows that are kept: options.Keep said so

	duplicate, dropped, doubtful, zero, mended tally

	wordsSum string // SHA-256 of the word list
	numbered bool   // the words are the numbers of the rows
}

// numberRows lets rows that have no words be called by their numbers, from 0.
func (b *builder) numberRows() {
	b.numbered = true
	b.name = func() (string, error) { return strconv.Itoa(b.found), nil }
}

// add takes the rows of c, up to the number that is wanted. After an error or
// when b.full is set, add must not be called again.
func (b *builder) add(c chunk) error {
	distinct := b.each == nil || b.options.Distinct || b.ids
	if b.texts && b.said == nil {
		b.said = newTexts(b.columns)
	}
	if b.seen == nil && distinct {
		b.seen = make(map[[2]uint64]struct{})
	}
	kept, next := 0, 0 // numbers of c.data
	words := len(b.words)
	for _, r := range c.rows {
		if b.found == b.want {
			b.full, b.excess = true, true
			break
		}
		var vector []float32
		if r.err == nil { // what is wrong from here on does not take it out of c.data
			vector = c.data[next : next+b.dim]
			next += b.dim
		}
		if b.name != nil {
			word, err := b.name()
			if err != nil {
				return err
			}
			r.word = word
		}
		text := r.word
		if b.texts {
			switch r.word = r.id; {
			case !b.ids:
				r.word = strconv.Itoa(b.found)
			case r.id == "" && r.err == nil:
				r.err = errNoID
			}
			if text = b.mend(r.word, text); r.err == nil && len(text) > MaxText {
				r.err = fmt.Errorf("a text of over %d bytes", MaxText)
			}
		}
		if r.err == nil && (b.texts || b.name != nil) {
			if r.err = CheckWord(r.word); !b.texts {
				r.err = notWord(r.err)
			} else if r.err != nil {
				r.err = fmt.Errorf("its id, %s, can't be one: %w; name another column with --id-column, or none to have rows called by their numbers", quote(r.word), r.err)
			}
		}
		b.found++
		if r.err != nil {
			if err := b.reject(r); err != nil {
				return err
			}
			continue
		}
		if distinct {
			key := [2]uint64{maphash.String(wordSeeds[0], r.word), maphash.String(wordSeeds[1], r.word)}
			if _, ok := b.seen[key]; ok && b.texts {
				r.err = fmt.Errorf("the id %s is that of a row before; name a column of ids that differ with --id-column, or none to have rows called by their numbers", quote(r.word))
				if err := b.reject(r); err != nil {
					return err
				}
				continue
			} else if ok {
				b.duplicate.add(quote(r.word))
				continue
			}
			b.seen[key] = struct{}{}
		}
		if !slices.ContainsFunc(vector, func(x float32) bool { return x != 0 }) {
			if !distinct && !b.texts {
				r.err = errZero
				if err := b.reject(r); err != nil {
					return err
				}
				continue
			}
			b.zero.add(quote(r.word))
		}
		if r.doubtful {
			b.doubtful.add(quote(r.word))
		}
		b.kept++
		if !b.enough {
			b.words = append(b.words, r.word)
			if b.texts {
				b.said.Add(text, r.columns)
			}
		}
		if kept += b.dim; kept < next {
			copy(c.data[kept-b.dim:], vector)
		}
		if b.kept == b.options.MaxWords {
			b.full = true
			break
		}
	}
	b.number += c.span
	switch {
	case kept == 0, b.enough:
	case b.each == nil:
		b.chunks = append(b.chunks, c.data[:kept])
		if b.options.Keep != nil {
			if most := b.options.Keep(&Dense{Words: b.words, Texts: b.said, Dim: b.dim}); most > 0 && most < len(b.words) {
				b.words, b.enough = b.words[:most], true
				b.said = b.said.Slice(0, most)
			}
		}
		// In the end, join needs as much memory again: give up now, not when all is read.
		const often = 1 << 26 // numbers, where a word counts as some
		n, one := len(b.words), b.dim+64
		if len(b.chunks) > 1 && n*one/often > words*one/often {
			return b.checkMemory(n * b.dim)
		}
	default:
		d := &Dense{Words: b.words[words:], Texts: b.said, Dim: b.dim, Data: c.data[:kept]}
		b.words, b.said = nil, nil // they are each's
		if err := b.each(d); err != nil {
			return streamError{err}
		}
	}
	return nil
}

// streamError is an error of whom rows were handed to, and none of the input.
type streamError struct{ error }

var (
	errZero = errors.New("all numbers are zero")
	errNoID = errors.New("it has no id; name a column in which all rows have one with --id-column, or none to have rows called by their numbers")
)

// mend returns a text in UTF-8, with U+FFFD for what is not.
func (b *builder) mend(id, text string) string {
	if utf8.ValidString(text) {
		return text
	}
	b.mended.add(id)
	return strings.ToValidUTF8(text, "\uFFFD")
}

// reject counts a malformed row, or returns the error that it is.
func (b *builder) reject(r row) error {
	err := &InputError{File: b.file, Word: r.word, Err: r.err}
	if b.texts {
		err.Word = ""
	}
	number := b.number + r.number + 1
	if b.text {
		err.Line = number
	} else {
		err.Row = number
	}
	if b.options.SkipBad {
		b.dropped.add(err.Error())
		return nil
	}
	err.Err = fmt.Errorf("%w; --skip-bad drops such rows", r.err)
	if _, ok := r.err.(notWordError); ok {
		err.Err = fmt.Errorf("%w, and if they are texts --rows texts keeps them", err.Err)
	}
	return err
}

// notWordError is why something can't be a word, though it can be a text.
type notWordError struct{ error }

func notWord(err error) error {
	if err == nil {
		return nil
	}
	return notWordError{err}
}

// check returns an error if rows are missing.
func (b *builder) check() error {
	switch {
	case !b.full && b.found < b.want:
		return fmt.Errorf("the header declares %d words, the file has %d; it is cut short", b.want, b.found)
	case b.kept == 0 && b.dropped.count > 0:
		return fmt.Errorf("every row is malformed, the first is %s", b.dropped.first[0])
	case b.kept == 0:
		return errors.New("no word vectors")
	}
	return nil
}

// finish returns the rows that were kept.
func (b *builder) finish() (*Dense, error) {
	data, err := b.join()
	return &Dense{Words: b.words, Texts: b.said, Dim: b.dim, Data: data}, err
}

// join returns the vectors of the words, which all chunks have or the first ones, and gives
// up each chunk once it is copied.
func (b *builder) join() ([]float32, error) {
	if len(b.chunks) == 1 {
		return slices.Clip(b.chunks[0][:len(b.words)*b.dim]), nil
	}
	if err := b.checkMemory(len(b.words) * b.dim); err != nil {
		return nil, err
	}
	data := make([]float32, len(b.words)*b.dim)
	var wg sync.WaitGroup
	rest := data
	for i, c := range b.chunks {
		part := rest[:min(len(c), len(rest))]
		rest = rest[len(part):]
		wg.Go(func() {
			copy(part, c)
			b.chunks[i] = nil
		})
	}
	wg.Wait()
	return data, nil
}

// checkMemory returns an error unless there is memory for so many numbers more.
func (b *builder) checkMemory(numbers int) error {
	if err := memory.Check(4 * uint64(numbers)); err != nil {
		return fmt.Errorf("after %d words of %d numbers: %w", len(b.words), b.dim, err)
	}
	return nil
}

func (b *builder) warnings() []string {
	var w []string
	if b.numbered && b.options.Rows != KindTexts { // texts are called by their numbers
		w = append(w, "no words: its rows are called by their numbers, from 0; train and encode take a list of words (--words), all commands a .npz with an array of words")
	}
	if b.excess {
		w = append(w, fmt.Sprintf("more rows than the %d that the header declares; the rest is ignored", b.want))
	}
	w = b.duplicate.warn(w, "duplicate words, the first of each kept")
	w = b.mended.warn(w, "texts that are not UTF-8, with U+FFFD for what is not")
	w = b.dropped.warn(w, "malformed rows dropped")
	w = b.doubtful.warn(w, "words that end in a number; if it is part of the vector, the row is too long")
	return b.zero.warn(w, "rows of zeros")
}

// normWarnings warns of the rows whose norm is over 1000 times the median of those that are
// not zero.
func normWarnings(d *Dense) []string {
	norms := make([]float64, d.Len())
	parallel.Ranges(len(norms), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			norms[i] = norm(d.Row(i))
		}
	})
	var large tally
	if nonzero := slices.DeleteFunc(slices.Clone(norms), func(n float64) bool { return n == 0 }); len(nonzero) > 0 {
		slices.Sort(nonzero)
		limit := 1000 * nonzero[len(nonzero)/2]
		for i, n := range norms {
			if n > limit {
				large.add(quote(d.Words[i]))
			}
		}
	}
	return large.warn(nil, "rows with a norm over 1000 times the median")
}

func norm(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// checkVector returns an error if vector can't be that of a row. Text is checked as it is
// parsed.
func checkVector(vector []float32) error {
	for i, x := range vector {
		if x-x != 0 { // infinite or NaN
			return fmt.Errorf("value %d is %v, %w", i+1, x, errNotNumber)
		}
	}
	return nil
}

// CheckWord returns an error unless word can be that of a vector: a line of a list of
// words, in UTF-8 and not empty.
func CheckWord(word string) error {
	switch {
	case word == "":
		return errors.New("empty word")
	case len(word) > window:
		return fmt.Errorf("a word of over %d bytes", window)
	case !utf8.ValidString(word):
		return errors.New("the word isn't UTF-8")
	case strings.ContainsAny(word, "\x00\t\n\r"):
		return errors.New("the word contains a tab, a line break or a NUL")
	}
	return nil
}

// A tally counts things and remembers the first few.
type tally struct {
	count int
	first []string
}

func (t *tally) add(s string) {
	const few = 3
	if t.count++; t.count <= few {
		t.first = append(t.first, s)
	}
}

// warn appends a line to warnings if anything was counted.
func (t *tally) warn(warnings []string, what string) []string {
	if t.count == 0 {
		return warnings
	}
	list := strings.Join(t.first, ", ")
	if t.count > len(t.first) {
		list += ", …"
	}
	return append(warnings, fmt.Sprintf("%s: %d (%s)", what, t.count, list))
}
