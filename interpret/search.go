package interpret

import (
	"context"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Search returns up to n rows whose word, or whose text if rows are texts, has the words of a
// query in it, without regard to case: those first in which it stands as a whole, from the beginning of a
// word, and in row order. It also returns how many there are. "row 17" is the row of that number, from 0.
func (x *Index) Search(query string, n int) (rows []int, total int) {
	query = strings.TrimSpace(query)
	if number, ok := strings.CutPrefix(query, "row "); ok {
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < x.Codes.Rows {
			return []int{i}, 1
		}
	}
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil, 0
	}
	whole := strings.Join(words, " ")
	found := make([][2][]int, x.blocks) // as a whole, and not
	parallel(context.Background(), x.blocks, func(b int) {
		lo, hi := x.block(b)
		for i := lo; i < hi; i++ {
			if in, asWhole := holds(strings.ToLower(x.Codes.Name(i)), words, whole); asWhole {
				found[b][0] = append(found[b][0], i)
			} else if in {
				found[b][1] = append(found[b][1], i)
			}
		}
	})
	for which := range 2 {
		for _, f := range found {
			total += len(f[which])
			rows = append(rows, f[which][:min(len(f[which]), max(0, n-len(rows)))]...)
		}
	}
	return rows, total
}

// holds reports whether a text in lower case has words in it, and whether they stand there as
// they do in whole, from the beginning of a word.
func holds(text string, words []string, whole string) (in, asWhole bool) {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false, false
		}
	}
	for rest := text; ; {
		at := strings.Index(rest, whole)
		if at < 0 {
			return true, false
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:at])
		if at == 0 && len(rest) == len(text) || at > 0 && !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			return true, true
		}
		_, size := utf8.DecodeRuneInString(rest[at:])
		rest = rest[at+size:]
	}
}
