// Package model reads and writes trained models. A model is what a training was
// asked for, what it measured, and the codes and the dictionary that it learned. It
// is kept in a directory, which is written whole or not at all:
//
//	model.json      Info
//	words.txt       Codes.Words, one a line, UTF-8
//	codes.npz       Codes, as scipy.sparse.save_npz writes a CSR matrix
//	dictionary.npy  Dictionary.Atoms, a K×L array of float32
//	mean.npy        Dictionary.Mean, an array of L float32, only if the input was centred
//	coherence.json  what package interpret measured of the dimensions, only if asked to
//	labels.json     what people say that dimensions mean, only if they did
//
// [Open] reads one, or the .safetensors file that [Model.WriteSafetensors] writes:
//
//	m, err := model.Open("godoc.model")
//	for i, word := range m.Codes.Words {
//		columns, values := m.Codes.Row(i)
//		fmt.Println(word, columns, values) // its sparse vector
//	}
//
// Package train makes models, package encode gives codes to new words with them, and
// package interpret shows what their dimensions mean.
//
// Errors name the file of the model that they are about.
package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"overcomplete/internal/escape"
	"overcomplete/vectors"
)

// Model is the result of a training.
//
// Row i of X, the dense input, is approximated by μ + a_i D, where a_i is row i
// of Codes, and D and μ are the Dictionary's.
type Model struct {
	Info       Info
	Codes      *vectors.Sparse // A, V×K, and its words in the input's order
	Dictionary Dictionary
}

// FormatVersion is the version of the model directory that this package writes. It
// reads versions 1 and 2 too. In both, all dictionaries were learned by the recipe
// "paper"; in version 1, an epoch's "error" was its loss.
const FormatVersion = 3

// Info is the content of model.json.
type Info struct {
	Format   int             `json:"format"` // [FormatVersion]; set by [Model.Save]
	Input    Input           `json:"input"`
	Training Hyperparameters `json:"training"`
	Device   string          `json:"device"` // that trained: "cpu" with its level, or "cuda" with its compute capability and the precision; results differ in the last bits
	Epochs   []Epoch         `json:"epochs"` // metrics after each epoch

	// Encoding says how the codes were made, if package encode made them and not the
	// training; it is nil otherwise. Training, Device and Epochs then still describe
	// the training of the dictionary, and Input the vectors that were encoded.
	Encoding *Encoding `json:"encoding,omitempty"`
}

// validate returns an error unless i can be the result of a training, or of an encoding
// after it. What Input says of files is for people: anybody may have named them.
func (i Info) validate() error {
	words, dim, atoms := i.Input.Words, i.Input.Dim, i.Training.Atoms
	if words < 0 || dim <= 0 || atoms <= 0 {
		return fmt.Errorf("no model has %d words, %d dimensions and %d atoms", words, dim, atoms)
	}
	if err := cmp.Or(checkName("loss", i.Training.Loss), checkName("like", i.Training.Like)); err != nil {
		return err
	}
	if err := i.Training.Validate(); err != nil {
		return err
	}
	if err := checkName("device", i.Device); err != nil {
		return err
	}
	for _, e := range i.Epochs {
		if !isShare(e.Sparsity) {
			return fmt.Errorf("sparsity after epoch %d is %v, want 0 to 1", e.Epoch, e.Sparsity)
		}
	}
	if e := i.Encoding; e != nil {
		if err := checkName("device", e.Device); err != nil {
			return err
		}
		if e.Most < 0 || e.Most > atoms || !isShare(e.Sparsity) {
			return fmt.Errorf("no encoding has %d nonzeros of %d at most and a sparsity of %v", e.Most, atoms, e.Sparsity)
		}
	}
	return nil
}

// TrainedOn returns the description of the vectors that the dictionary was learned from, which
// need not be those of the codes.
func (i Info) TrainedOn() Input {
	if i.Encoding != nil {
		return i.Encoding.TrainedOn
	}
	return i.Input
}

// Known returns how many of the words are those that the dictionary was learned from, as the
// frequent ones of a larger vocabulary, which come first; or 0 if that is not so.
func (i Info) Known() int {
	h, e := i.Training, i.Encoding
	if h.Order != "frequency" || e == nil || e.Shard != nil || i.Input.SHA256 == "" || e.TrainedOn.SHA256 != i.Input.SHA256 || h.TrainWords >= i.Input.Words {
		return 0
	}
	return h.TrainWords
}

func isShare(x float64) bool { return x >= 0 && x <= 1 }

// checkName returns an error if what can't be called so.
func checkName(what, name string) error {
	if len(name) > 100 || escape.Text(name) != name {
		return fmt.Errorf("%s is %.60q, want a name of at most 100 bytes that can be printed", what, name)
	}
	return nil
}

// Input describes the file of dense vectors that the codes were made from.
type Input struct {
	Name   string `json:"name"`   // the file's base name
	SHA256 string `json:"sha256"` // of the file's bytes as stored, in hexadecimal
	Words  int    `json:"words"`  // V
	Dim    int    `json:"dim"`    // L

	WordsSHA256 string `json:"words_sha256,omitempty"` // of the list of words, if that was a file of its own
}

// Encoding says how package encode made codes with a dictionary that was trained
// before, and what was measured of them. Means are over words.
type Encoding struct {
	TrainedOn Input   `json:"trained_on"` // the vectors that the dictionary was learned from
	Device    string  `json:"device"`     // as [Info.Device]
	Lambda    float64 `json:"lambda"`

	FirstLambda float64 `json:"first_lambda,omitempty"` // of the first step, if not exact; earlier versions had Lambda in all

	Steps int     `json:"steps,omitempty"` // of FISTA, if not exact
	Most  int     `json:"most,omitempty"`  // the most nonzeros that a code keeps, if not exact
	Gap   float64 `json:"gap,omitempty"`   // of the exact lasso, as a share of a word's objective

	Error       float64 `json:"error"`     // mean ‖x_i − μ − a_i D‖²
	Objective   float64 `json:"objective"` // Error + λ·L1
	Sparsity    float64 `json:"sparsity"`  // share of codes that are zero, 0 to 1
	L1          float64 `json:"l1"`        // mean ‖a_i‖₁
	UnusedAtoms int     `json:"unused_atoms"`
	WorstGap    float64 `json:"worst_gap,omitempty"` // the largest that was reached
	Unreached   int     `json:"unreached,omitempty"` // words whose gap is larger than Gap

	UnreachedWords []string `json:"unreached_words,omitempty"` // the first five of them

	Shard *Shard `json:"shard,omitempty"` // if these are not all words of the input
}

// Shard says which part of an input a model's words are. The input is dealt out in
// blocks of rows, numbered from 0: those of a shard have numbers n with
// n mod Of = Index−1.
type Shard struct {
	Index  int       `json:"index"` // from 1
	Of     int       `json:"of"`
	Words  int       `json:"words"`  // of the whole input
	Losses []float64 `json:"losses"` // Σ‖x_i − μ − a_i D‖² of each of its blocks

	UnreachedRows []int `json:"unreached_rows,omitempty"` // rows of Encoding.UnreachedWords, counted from 0 in the shard
}

// Hyperparameters choose the objective and how it is minimised. The zero value is not
// useful: start from [overcomplete/train.Best] or [overcomplete/train.Paper]. Fields have the names of the flags of
// "overcomplete train". Those that say "paper" are of that recipe and have their zero
// values with the other.
type Hyperparameters struct {
	Recipe          string  `json:"recipe"`                // "paper", its objective and trainer; or "best", a dictionary learned online, from words
	Method          string  `json:"method"`                // "A", or "B" for nonnegative codes (paper §2.1, §2.2)
	Algorithm       string  `json:"algorithm,omitempty"`   // paper: "minibatch" or "authors"
	Init            string  `json:"init,omitempty"`        // paper: what D starts from, "random" numbers or "words"
	Atoms           int     `json:"atoms"`                 // K
	Lambda          float64 `json:"lambda"`                // λ, weight of Σ‖a_i‖₁; best: as a share of mean‖x − μ‖²
	Anchor          float64 `json:"anchor,omitempty"`      // best: how firmly atoms are held to the words that they start from: the inverse of the variance that they have about these, as a share of mean‖x − μ‖²
	TrainWords      int     `json:"train_words,omitempty"` // best: rows that D and μ are learned from: the first, or if there is no order a random sample; 0 before it is settled, or where all were
	Like            string  `json:"like,omitempty"`        // best: SHA-256 of the atoms, float32 and little-endian, of another model's that D started from and was held to
	Order           string  `json:"order,omitempty"`       // best: "frequency" if rows are words, frequent ones first, or "none"
	Sparsity        float64 `json:"sparsity,omitempty"`    // share of codes that shall be zero; paper: to half a point, by another λ, or 0 to take λ as it is
	Tau             float64 `json:"tau,omitempty"`         // paper: τ, weight of ‖D‖²
	Rate            float64 `json:"rate,omitempty"`        // paper: η, AdaGrad's learning rate
	Loss            string  `json:"loss"`                  // "squared"; paper: or "huber", or the name of one of the program's own
	HuberDelta      float64 `json:"huber_delta,omitempty"`
	State           string  `json:"state,omitempty"`            // paper: what S and Q are kept as, "float32", or "float16", rounded, for half of their memory
	Epochs          int     `json:"epochs"`                     // most epochs to run: passes over all words
	Stop            string  `json:"stop,omitempty"`             // paper: "epochs" or "authors"
	DictionarySteps int     `json:"dictionary_steps,omitempty"` // dictionary steps an epoch (authors takes one a word); best: or fewer, so that each has 256 words
	Center          bool    `json:"center"`                     // subtract the mean vector first; best always does
	Seed            uint64  `json:"seed"`
}

// Validate returns nil if every hyperparameter has a value that can be trained with,
// or else an error that begins with the name of the first that has not and says what
// is wanted. Atoms and Epochs may be 0, for their defaults. Loss may have any name, since
// programs can have losses of their own.
func (h Hyperparameters) Validate() error {
	isPaper := h.Recipe != "best"
	for _, v := range []struct {
		name, value, a, b string
		paper             bool
	}{
		{"recipe", h.Recipe, "paper", "best", false}, {"method", h.Method, "A", "B", false},
		{"algorithm", h.Algorithm, "minibatch", "authors", true}, {"init", h.Init, "random", "words", true},
		{"state", h.State, "float32", "float16", true}, {"stop", h.Stop, "epochs", "authors", true},
		{"order", h.Order, "frequency", "none", false},
	} {
		switch {
		case v.name == "order" && v.value == "": // which is told from the rows
		case v.paper && !isPaper:
			if v.value != "" {
				return errNotBest(v.name, v.value)
			}
		case v.value != v.a && v.value != v.b:
			return fmt.Errorf("%s is %.60q, want %s or %s", v.name, v.value, v.a, v.b)
		}
	}
	for _, v := range []struct {
		name     string
		value    float64
		positive bool
	}{
		{"lambda", h.Lambda, false}, {"anchor", h.Anchor, false}, {"tau", h.Tau, false}, {"rate", h.Rate, isPaper}, {"huber-delta", h.HuberDelta, h.Loss == "huber"},
	} {
		switch {
		case v.positive && !(v.value > 0) || math.IsInf(v.value, 0):
			return fmt.Errorf("%s is %v, want a positive number", v.name, v.value)
		case !(v.value >= 0):
			return fmt.Errorf("%s is %v, want 0 or more", v.name, v.value)
		}
		if single := float32(v.value); v.value != 0 && single == 0 || math.IsInf(float64(single), 0) {
			return fmt.Errorf("%s is %v, which is %v in single precision, that of training", v.name, v.value, single)
		}
	}
	isAuthors := 0
	if h.Algorithm == "authors" { // which takes a step a word, whatever this says
		isAuthors = 1
	}
	for _, v := range []struct {
		name               string
		value, least, most int
	}{
		{"atoms", h.Atoms, 0, math.MaxInt32}, {"train-words", h.TrainWords, 0, math.MaxInt32}, {"epochs", h.Epochs, 0, mostEpochs},
		{"dictionary-steps", h.DictionarySteps, 1 - isAuthors, math.MaxInt32},
	} {
		if v.value < v.least || v.value > v.most {
			return fmt.Errorf("%s is %d, want 1 to %d", v.name, v.value, v.most)
		}
	}
	switch {
	case !(h.Sparsity >= 0 && h.Sparsity < 1) || h.Sparsity == 0 && !isPaper:
		return fmt.Errorf("sparsity is %v, want a share of zeros between 0 and 1, such as 0.95", h.Sparsity)
	case h.HuberDelta != 0 && h.Loss != "huber":
		return fmt.Errorf("huber-delta is %v, which goes with the loss huber, and the loss is %s", h.HuberDelta, h.Loss)
	case isPaper && h.Algorithm == "authors" && h.Init == "words":
		return errors.New("init is words, and the algorithm authors starts from random numbers")
	case isPaper && (h.Anchor != 0 || h.TrainWords != 0 || h.Order != "" || h.Like != ""):
		return errors.New("anchor, train-words, order and like are of the recipe best")
	case isPaper:
		return nil
	case !h.Center:
		return errors.New("center is false, and the recipe best always centres")
	case h.Loss != "squared":
		return errNotBest("loss", h.Loss)
	case h.Tau != 0:
		return errNotBest("tau", h.Tau)
	case h.Rate != 0:
		return errNotBest("rate", h.Rate)
	}
	return nil
}

// mostEpochs have their metrics in a model.json of less than mostInfo bytes.
const mostEpochs = 100_000

// errNotBest is the error of a hyperparameter that the recipe best does not have.
func errNotBest(name string, value any) error {
	return fmt.Errorf("%s is %v, and the recipe best has none to choose", name, value)
}

// Epoch is what was measured in one epoch of training. Means are over words.
type Epoch struct {
	Epoch       int     `json:"epoch"`        // t = 1, 2, …
	RunningLoss float64 `json:"running_loss"` // mean loss of a word as the dictionary pass met it, D and A still moving
	Loss        float64 `json:"loss"`         // mean loss of a word with the epoch's final D and A
	Error       float64 `json:"error"`        // mean ‖x_i − μ − a_i D‖² with these, whatever the loss; 0 where version 1 did not keep it
	Objective   float64 `json:"objective"`    // Loss + λ·L1 + τ‖D‖²/V
	Sparsity    float64 `json:"sparsity"`     // share of codes that are zero, 0 to 1
	L1          float64 `json:"l1"`           // mean ‖a_i‖₁
	AtomNorm    float64 `json:"atom_norm"`    // mean Euclidean norm of an atom
	UnusedAtoms int     `json:"unused_atoms"` // dimensions that no word uses
	LineSearch  float64 `json:"line_search"`  // share of the dictionary steps that the line search shortened (α < 1)
	Seconds     float64 `json:"seconds"`      // wall-clock time of the epoch
}
