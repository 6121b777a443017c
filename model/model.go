// Package model reads and writes trained models. A model is a dictionary and, optionally, codes. Info
// describes how both were made. A model is stored as a directory, which is written atomically:
//
//	model.json      Info
//	dictionary.npy  Dictionary.Atoms, a K×L array of float32
//	mean.npy        Dictionary.Mean, an array of L float32, only if the input was centred
//	themes.npy      Dictionary.Themes, an M×L array of float32, only if there are themes
//	codes.npz       Codes, as scipy.sparse.save_npz writes a CSR matrix; only if the model has codes
//	words.txt       Codes.IDs, one per line, UTF-8; only with codes of words
//	texts.jsonl     Codes.Texts, one JSON object per line, with "id", "text" and the columns; only with codes of texts
//	intrusion.json  the word intrusion accuracy of dimensions, only if it was measured
//	labels.json     labels of dimensions, only if a user labelled some
//	stop_words.txt  words that labels leave out, only if a user chose some
//
// [Open] opens it:
//
//	m, err := model.Open("godoc.model")
//	for i, word := range m.Codes.IDs {
//		columns, values := m.Codes.Row(i)
//		fmt.Println(word, columns, values) // its sparse vector
//	}
//
// Package train trains models, package encode encodes new vectors with them, and package interpret
// shows the meaning of their dimensions.
//
// If a model can't be read, the error is a [*vectors.InputError], which names the file.
package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"overcomplete/internal/printing"
	"overcomplete/vectors"
)

// A Model is a dictionary and, optionally, the codes of an input.
//
// Row i of the dense input X is approximated by μ + a_i D, where a_i is row i of Codes, and D and μ
// are the atoms and the mean of Dictionary.
type Model struct {
	Info       Info
	Dictionary Dictionary
	Codes      *vectors.Sparse // A, V×K, in the order of the input; nil without codes

	// Labels is the content of labels.json for [Model.Save]; nil for no file. [Open] leaves it nil,
	// because labels may change while a model is open. To save an opened model with its labels, set Labels.
	Labels []byte
}

// Norms returns ‖μ + aD‖ for each code a, the norms of the reconstructions. If ctx is cancelled, it returns ctx.Err().
func (m *Model) Norms(ctx context.Context) ([]float64, error) {
	norms := make([]float64, m.Codes.Rows)
	x := make([]float64, m.Dictionary.Dim)
	for i := range norms {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		index, value := m.Codes.Row(i)
		m.Dictionary.Decode(x, index, value)
		squares := 0.0
		for _, v := range x {
			squares += v * v
		}
		norms[i] = math.Sqrt(squares)
	}
	return norms, nil
}

// FormatVersion is the version of the model directory that this package reads and writes.
const FormatVersion = 2

// Info is the content of model.json.
type Info struct {
	Format   int       `json:"format"`             // [FormatVersion]; set by [Model.Save]
	Training Training  `json:"training"`           // how the dictionary was learned
	Encoding *Encoding `json:"encoding,omitempty"` // how the codes were computed; nil without codes
}

// Training describes how a dictionary was learned.
type Training struct {
	Input  Input   `json:"input"`  // the training vectors
	Recipe Recipe  `json:"recipe"` // the algorithm and its hyperparameters
	Device string  `json:"device"` // "cpu" with its architecture or level, or "cuda" with its compute capability and, for the recipe "paper", the precision; results of different devices differ in the last bits
	Lambda float64 `json:"lambda"` // λ, weight of Σ‖a_i‖₁ in the objective; for the recipe "best", Best.Lambda · mean ‖x − μ‖²
	Epochs []Epoch `json:"epochs"` // metrics after each epoch

	Themes *Themes `json:"themes,omitempty"` // nil without themes
}

// validate returns an error unless the numbers of i are consistent. It accepts any file names.
func (i *Info) validate() error {
	t := &i.Training
	if t.Recipe == nil {
		return errors.New("training has no recipe")
	}
	atoms := t.Recipe.Base().Atoms
	switch {
	case t.Recipe.Base().Method == "":
		return errors.New("training has no method")
	case t.Input.Rows < 0 || t.Input.Dim <= 0 || atoms <= 0:
		return fmt.Errorf("a training of %d atoms on %d rows of %d dimensions is impossible", atoms, t.Input.Rows, t.Input.Dim)
	}
	if err := cmp.Or(t.Recipe.Validate(), checkName("device", t.Device), t.Themes.validate(), t.Input.checkFiles()); err != nil {
		return err
	}
	if !(t.Lambda >= 0) || math.IsInf(t.Lambda, 0) {
		return fmt.Errorf("lambda is %v, want 0 or more", t.Lambda)
	}
	if n, _ := t.Recipe.trainRows(); n > t.Input.Rows {
		return fmt.Errorf("train_rows is %d, want at most the %d rows of the training", n, t.Input.Rows)
	}
	for _, e := range t.Epochs {
		if !isShare(e.Sparsity) {
			return fmt.Errorf("sparsity after epoch %d is %v, want 0 to 1", e.Epoch, e.Sparsity)
		}
	}
	if i.Encoding != nil {
		return i.Encoding.validate(t.Input.Dim, atoms)
	}
	return nil
}

// validate returns an error unless the numbers of e are consistent with each other and with the dictionary.
func (e *Encoding) validate(dim, atoms int) error {
	switch s := e.Shard; {
	case e.Input.Rows < 0 || e.Input.Dim != dim:
		return fmt.Errorf("an encoding of %d rows of %d dimensions with atoms of length %d is impossible", e.Input.Rows, e.Input.Dim, dim)
	case s != nil && (s.Index < 1 || s.Index > s.Of || s.Rows < e.Input.Rows):
		return fmt.Errorf("shard %d of %d with %d rows of an input of %d rows is impossible", s.Index, s.Of, e.Input.Rows, s.Rows)
	case e.UnusedAtoms > atoms || e.Unreached > e.Input.Rows || e.Steps > math.MaxInt32:
		return fmt.Errorf("an encoding with %d dead atoms among %d, %d rows among %d above the gap, and %d steps is impossible", e.UnusedAtoms, atoms, e.Unreached, e.Input.Rows, e.Steps)
	case e.Nonzeros < 0 || e.Nonzeros > atoms || !isShare(e.Sparsity):
		return fmt.Errorf("an encoding with at most %d nonzeros among %d and a sparsity of %v is impossible", e.Nonzeros, atoms, e.Sparsity)
	case !(e.Variance >= 0) || math.IsInf(e.Variance, 0):
		return fmt.Errorf("variance is %v, want 0 or more", e.Variance)
	case !(min(e.Lambda, e.FirstLambda, e.Gap) >= 0) || math.IsInf(max(e.Lambda, e.FirstLambda, e.Gap), 0) || min(e.Steps, e.UnusedAtoms, e.Unreached) < 0:
		return fmt.Errorf("an encoding with a lambda of %v, %v in the first step, a gap of %v, %d steps, %d dead atoms and %d rows above the gap is impossible",
			e.Lambda, e.FirstLambda, e.Gap, e.Steps, e.UnusedAtoms, e.Unreached)
	}
	return cmp.Or(checkName("device", e.Device), e.Input.checkFiles())
}

// Rows returns the number of rows with a code.
func (i *Info) Rows() int {
	if i.Encoding == nil {
		return 0
	}
	return i.Encoding.Input.Rows
}

// Known returns n if the training rows were the first n of more than n rows with codes, such as the frequent words of
// a vocabulary. Otherwise it returns 0.
func (i *Info) Known() int {
	n, first := i.Training.Recipe.trainRows()
	e := i.Encoding
	if !first || e == nil || e.Shard != nil || e.Input.SHA256 == "" || i.Training.Input.SHA256 != e.Input.SHA256 || n >= e.Input.Rows {
		return 0
	}
	return n
}

func isShare(x float64) bool { return x >= 0 && x <= 1 }

// checkName returns an error unless name is short and printable.
func checkName(what, name string) error {
	if len(name) > 100 || printing.Text(name) != name {
		return fmt.Errorf("%s is %.60q, want a name of at most 100 bytes that can be printed", what, name)
	}
	return nil
}

// Input describes dense vectors, and the files that they are from.
type Input struct {
	Name   string `json:"name"`   // as in [vectors.Source]
	SHA256 string `json:"sha256"` // as in [vectors.Source]
	Rows   int    `json:"rows"`   // V
	Dim    int    `json:"dim"`    // L

	WordsSHA256 string `json:"words_sha256,omitempty"` // SHA-256 of the word list; "" without a word list

	Texts bool `json:"texts,omitempty"` // rows are texts

	// FileCount is the number of files, or 0 for a single file. SHA256 covers all files. Files lists them if
	// there are at most 100.
	FileCount int            `json:"file_count,omitempty"`
	Files     []vectors.File `json:"files,omitempty"`
}

// NewInput describes the files of vectors. The caller sets Rows, Texts and Dim.
func NewInput(s *vectors.Source) Input {
	const maxFiles = 100 // 10,000 files would be 3 MB of model.json
	in := Input{Name: s.Name, SHA256: s.SHA256, WordsSHA256: s.WordsSHA256, FileCount: len(s.Files)}
	if len(s.Files) <= maxFiles {
		in.Files = s.Files
	}
	return in
}

// checkFiles returns an error unless Files lists FileCount files or none.
func (in *Input) checkFiles() error {
	if in.FileCount < 0 || in.Files != nil && len(in.Files) != in.FileCount {
		return fmt.Errorf("an input of %d files with %d in the list is impossible", in.FileCount, len(in.Files))
	}
	return nil
}

// Kind returns the kind of the rows.
func (in *Input) Kind() vectors.Kind {
	if in.Texts {
		return vectors.KindTexts
	}
	return vectors.KindWords
}

// Encoding describes how codes were computed, and their metrics. Means are over rows.
type Encoding struct {
	Input   Input    `json:"input"`
	Columns []string `json:"columns,omitempty"` // names of the other columns of texts
	Device  string   `json:"device"`            // as [Training.Device]; "cuda" for codes from any GPU, because all GPUs compute the same bits
	Lambda  float64  `json:"lambda"`            // λ, weight of ‖a‖₁

	// The next five fields are 0 for the codes of a training by the recipe "paper".

	FirstLambda float64 `json:"first_lambda,omitempty"` // λ of the first step; 0 for exact codes
	Steps       int     `json:"steps,omitempty"`        // number of FISTA steps; 0 for exact codes
	Nonzeros    int     `json:"nonzeros,omitempty"`     // maximum of nonzeros per row; 0 for exact codes
	Search      int     `json:"search,omitempty"`       // [encode.SearchVersion]; 0 for exact codes and for codes from before version 2
	Gap         float64 `json:"gap,omitempty"`          // requested bound of the relative duality gap of exact codes; 0 for other codes

	Variance    float64 `json:"variance,omitempty"`  // mean ‖x_i − μ‖²; 0 for the codes of a training by "paper"
	Error       float64 `json:"error"`               // mean ‖x_i − μ − a_i D‖²
	Objective   float64 `json:"objective"`           // Error + λ·L1; for the codes of a training by "paper", as in [Epoch]
	Sparsity    float64 `json:"sparsity"`            // share of zero values, 0 to 1
	L1          float64 `json:"l1"`                  // mean ‖a_i‖₁
	UnusedAtoms int     `json:"unused_atoms"`        // number of dead atoms: dimensions without a nonzero
	WorstGap    float64 `json:"worst_gap,omitempty"` // largest relative duality gap of exact codes
	Unreached   int     `json:"unreached,omitempty"` // number of rows whose gap exceeds Gap

	UnreachedIDs []string `json:"unreached_ids,omitempty"` // IDs of the first five rows whose gap exceeds Gap

	Shard *Shard `json:"shard,omitempty"` // nil if all rows of the input are encoded
}

// Explained returns the explained variance, 1 − Error/Variance, which is negative if codes of zeros would have
// a smaller error. The result known is false for codes that a training by the recipe "paper" computed.
func (e *Encoding) Explained() (share float64, known bool) {
	return 1 - e.Error/e.Variance, e.Variance > 0
}

// PaperEncoding describes the codes that a training by the recipe "paper" computed, with the metrics of its last epoch, or
// with zeros if there are no epochs.
func (t *Training) PaperEncoding() *Encoding {
	var last Epoch
	if n := len(t.Epochs); n > 0 {
		last = t.Epochs[n-1]
	}
	return &Encoding{
		Input: t.Input, Device: t.Device, Lambda: t.Lambda,
		Error: last.Error, Objective: last.Objective, Sparsity: last.Sparsity, L1: last.L1, UnusedAtoms: last.UnusedAtoms,
	}
}

// Shard describes a part of an input. Block n of the rows is in the shard if n mod Of = Index−1. Blocks have
// encode.Block rows, and are numbered from 0.
type Shard struct {
	Index  int       `json:"index"`  // 1 to Of
	Of     int       `json:"of"`     // number of shards
	Rows   int       `json:"rows"`   // number of rows of the whole input
	Losses []float64 `json:"losses"` // Σ‖x_i − μ − a_i D‖² by block of the shard

	Squares []float64 `json:"squares"` // Σ‖x_i − μ‖² by block of the shard

	UnreachedRows []int `json:"unreached_rows,omitempty"` // rows of Encoding.UnreachedIDs, counted from 0 in the shard
}

// Epoch holds the metrics of an epoch of training. Means are over training rows.
type Epoch struct {
	Epoch       int     `json:"epoch"`        // t = 1, 2, …
	RunningLoss float64 `json:"running_loss"` // mean loss of a row before its dictionary update
	Loss        float64 `json:"loss"`         // mean loss of a row with the epoch's final D and A
	Error       float64 `json:"error"`        // mean ‖x_i − μ − a_i D‖² with the epoch's final D and A
	Objective   float64 `json:"objective"`    // Loss + λ·L1 + τ‖D‖²/V
	Sparsity    float64 `json:"sparsity"`     // share of zero values, 0 to 1
	L1          float64 `json:"l1"`           // mean ‖a_i‖₁
	AtomNorm    float64 `json:"atom_norm"`    // mean Euclidean norm of an atom
	UnusedAtoms int     `json:"unused_atoms"` // number of dead atoms: dimensions without a nonzero
	LineSearch  float64 `json:"line_search"`  // share of dictionary updates that the line search shortened
	Seconds     float64 `json:"seconds"`      // wall-clock time of the epoch
}
