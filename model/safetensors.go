package model

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/safetensors"
)

// WriteSafetensors exports m as one .safetensors file, for programs that read safetensors. [Open] doesn't read it. If
// the parts of m don't agree, or if a word contains a newline, it returns an error and writes nothing.
//
//	dictionary      F32, K×L
//	mean            F32, L       only if the input was centred
//	themes          F32, M×L     only if there are themes
//	codes.indptr    I64, V+1     the codes, as the arrays of a CSR matrix, if there are any
//	codes.indices   I32
//	codes.data      F32
//	words           U8           UTF-8, with a newline after each word; only if rows are words
//	texts           U8           the lines of texts.jsonl; only if rows are texts
//
// The metadata "model.json" is Info as JSON.
func (m *Model) WriteSafetensors(w io.Writer) error {
	if err := m.validate(); err != nil {
		return err
	}
	info := m.Info
	info.Format = FormatVersion
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	d := &m.Dictionary
	tensors := []safetensors.Tensor{safetensors.New("dictionary", []int{d.Len(), d.Dim}, d.Atoms)}
	if d.Mean != nil {
		tensors = append(tensors, safetensors.New("mean", []int{d.Dim}, d.Mean))
	}
	if t := info.Training.Themes; t != nil {
		tensors = append(tensors, safetensors.New("themes", []int{t.Len(), d.Dim}, d.Themes))
	}
	if codes := m.Codes; codes != nil {
		name := "words"
		if codes.Texts != nil {
			name = "texts"
		}
		var size counter
		lines := func(w io.Writer) error {
			b := bufio.NewWriter(w)
			return cmp.Or(writeRows(b, codes.IDs, codes.Texts, 0), b.Flush())
		}
		if err := lines(&size); err != nil {
			return atomicfile.InFile(name, err)
		}
		tensors = append(tensors,
			safetensors.New("codes.indptr", []int{len(codes.Ptr)}, codes.Ptr),
			safetensors.New("codes.indices", []int{len(codes.Index)}, codes.Index),
			safetensors.New("codes.data", []int{len(codes.Value)}, codes.Value),
			safetensors.NewText(name, int64(size), lines))
	}
	return safetensors.Write(w, map[string]string{modeldir.Info: string(text)}, tensors)
}

// A counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
