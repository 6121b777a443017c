package tabular

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// parseColumns parses columns in the form "name:kind", where the kind is the first letter of its name.
func parseColumns(t *testing.T, s string) (columns []Column) {
	t.Helper()
	kinds := map[string]Kind{"o": Other, "t": Text, "s": Scalar, "n": Number, "l": List, "b": Bytes}
	for f := range strings.FieldsSeq(s) {
		at := strings.LastIndex(f, ":")
		k, ok := kinds[f[at+1:]]
		if !ok {
			t.Fatalf("kind of %q", f)
		}
		columns = append(columns, Column{Name: f[:at], Kind: k, Type: "type " + f[at+1:]})
	}
	return columns
}

func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		columns string
		o       Options
		want    string // name, id, vectors and the rest, or the option and the error
	}{
		// A usual name or the only list, of whatever type, never loses to other numbers.
		{"id:n text:t embedding:l price:n", Options{}, "text id [embedding] [price]"},
		{"id:n text:t v:l price:n", Options{}, "text id [v] [price]"},
		{"id:n text:t embedding:t price:n", Options{}, "text id [embedding] [price]"},
		{"id:n text:t embedding:l other:l", Options{}, "text id [embedding] []"},
		{"id:n text:t Features:o price:n", Options{}, `VectorColumns: column "Features" can't be the vectors: its type is type o (want lists of numbers); store lists of numbers, or name the columns to read`},
		{"text:t embedding:b e0:n e1:n", Options{}, `VectorColumns: column "embedding" can't be the vectors: its type is type b (want lists of numbers); unpack it first: numpy.unpackbits for binary embeddings, numpy.frombuffer for others, or name the columns to read`},
		{"text:t vector:l embedding:l", Options{}, `VectorColumns: several columns can be the vectors, "vector" (type l), "embedding" (type l); name the one to read`},
		{"text:t a:l b:l", Options{}, `VectorColumns: several columns can be the vectors, "a" (type l), "b" (type l); name the one to read`},
		{"text:t a:l b:l", Options{VectorColumns: "b"}, "text - [b] []"},

		// A column per dimension.
		{"id:n text:t price:n 0:n 1:n 2:n", Options{}, "text id [0 1 2] [price]"},
		{"text:t e1:n e0:n e2:n year:n", Options{}, "text - [e0 e1 e2] [year]"},
		{"text:t dim_01:n dim_02:n", Options{}, "text - [dim_01 dim_02] []"},
		{"text:t e0:n e1:n e3:n", Options{}, `VectorColumns: no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; got "text" (type t), "e0" (type n), "e1" (type n), "e3" (type n)); name the columns to read`},
		{"text:t e1:n e01:n e2:n", Options{}, `VectorColumns: no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; got "text" (type t), "e1" (type n), "e01" (type n), "e2" (type n)); name the columns to read`},
		{"text:t price:n", Options{}, `VectorColumns: no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; got "text" (type t), "price" (type n)); name the columns to read`},
		{"text:t e0:n e1:n q1:n q2:n", Options{}, `VectorColumns: several groups of columns can be the vectors, "e0" to "e1" and "q1" to "q2"; name the ones to read`},
		{"text:t e0:n e1:n q1:n q2:n", Options{VectorColumns: "e*"}, "text - [e0 e1] [q1 q2]"},
		{"x:n y:n text:t price:n", Options{VectorColumns: "x:y"}, "text - [x y] [price]"},
		{"x:n text:t y:n", Options{VectorColumns: "x:y"}, `VectorColumns: column "text", within "x:y", has the type type t (want numbers)`},
		{"x:n text:t", Options{VectorColumns: "x"}, "text - [x] []"},
		{"x:n text:t", Options{VectorColumns: "z"}, `VectorColumns: no columns of numbers "z" (want a name, a pattern or first:last; columns: ["x" "text"])`},
		{"x:n text:t", Options{VectorColumns: "["}, `VectorColumns: invalid pattern "["`},

		// Names and ids.
		{"text:t words:n v:l", Options{}, "text - [v] [words]"},
		{"title:t words:n v:l", Options{}, "title - [v] [words]"},
		{"text:t content:o v:l", Options{}, "text - [v] []"},
		{"label:t text:b v:l", Options{}, `TextColumn: column "text" can't have the text: its type is type b; cast it to strings, or name another column`},
		{"label:t body:b v:l", Options{}, `TextColumn: several columns have text, "label" (type t), "body" (type b); name the one to read`},
		{"id:t body:b v:l", Options{}, `TextColumn: column "body" can't have the text: its type is type b; cast it to strings, or name another column`},
		{"label:t text:o v:l", Options{}, `TextColumn: column "text" can't have the text: its type is type o; name another column`},
		{"label:t text:o v:l", Options{TextColumn: "label"}, "label - [v] []"},
		{"text:t id:b v:l", Options{}, `IDColumn: column "id" can't have the ids: its type is type b; cast it to strings, or name another column`},
		{"text:t id:b v:l", Options{IDColumn: "none"}, "text - [v] []"},
		{"text:t id:s day:s v:l", Options{}, "text id [v] [day]"},
		{"text:t id:n v:l", Options{IDColumn: "none"}, "text - [v] [id]"},
		{"a:t b:t v:l", Options{}, `TextColumn: several columns have text, "a" (type t), "b" (type t); name the one to read`},
		{"a:t b:t v:l", Options{IDColumn: "b"}, "a b [v] []"},
		{"a:t v:l", Options{IDColumn: "b"}, `IDColumn: has no column "b" (columns: ["a" "v"])`},
		{"a:t v:l", Options{IDColumn: "a", TextColumn: "a"}, `IDColumn: column "a" can't have two roles, such as ids and texts`},
		{"word:t id:n v:l", Options{Rows: Words, IDColumn: "id"}, `IDColumn: column "id" can't have the ids, because rows are words`},

		// Without a text, the ids are words.
		{"id:n v:l", Options{}, "id - [v] []"},
		{"id:n v:l", Options{WordList: true}, "- id [v] []"},
		{"v:l", Options{}, "- - [v] []"},

		{"text:t __index_level_0__:n __proto__:t v:l", Options{}, "text - [v] [__proto__]"},
	} {
		columns := parseColumns(t, tt.columns)
		l, err := Choose(columns, tt.o)
		got := ""
		if e, ok := errors.AsType[*OptionError](err); ok {
			got = e.Option + ": " + e.Error()
		} else if err == nil {
			names := func(indices ...int) []string {
				all := []string{}
				for _, i := range indices {
					if i < 0 {
						all = append(all, "-")
					} else {
						all = append(all, columns[i].Name)
					}
				}
				return all
			}
			got = fmt.Sprint(strings.Join(names(l.Name, l.ID), " "), " ", names(l.Vectors...), " ", names(l.Rest...))
		}
		if got != tt.want {
			t.Errorf("%s, %+v:\n%s, want\n%s", tt.columns, tt.o, got, tt.want)
		}
	}
}
