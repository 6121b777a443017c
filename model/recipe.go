package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
)

// A Recipe is the algorithm of a training with its hyperparameters: [Best] or [Paper]. Recipes are
// values that == compares. Start from [overcomplete/train.Best] or [overcomplete/train.Paper].
// Most fields have the name of a flag of "overcomplete train" or "overcomplete paper train".
type Recipe interface {
	// Base returns the hyperparameters that all recipes have, and With a recipe with other ones.
	Base() Common
	With(Common) Recipe

	// Validate returns nil if all hyperparameters are in their domains, or else an
	// [*InvalidError] for the first that is not. A hyperparameter may be 0 or empty if it has a
	// default.
	Validate() error

	// String returns the name of the recipe.
	fmt.Stringer

	// centred reports whether the mean is subtracted from rows.
	centred() bool

	// trainRows returns the number of training rows, 0 for all, and whether they are the first.
	trainRows() (n int, first bool)
}

// A Method is a constraint on codes.
type Method string

// The methods of the paper.
const (
	Signed      Method = "A" // codes of either sign (paper §2.1)
	Nonnegative Method = "B" // codes of 0 or more, which can be made binary (paper §2.2)
)

// Common are the hyperparameters that all recipes have.
type Common struct {
	Method          Method `json:"method"`           // in the recipe "best", empty for its default
	Atoms           int    `json:"atoms"`            // K; 0 for the default
	Epochs          int    `json:"epochs"`           // maximum of epochs, which are passes over all training rows; 0 for the default
	DictionarySteps int    `json:"dictionary_steps"` // dictionary updates per epoch; one per word in the authors' order; in "best" fewer if batches had less than 256 rows, and 0 for the default
	Seed            uint64 `json:"seed"`
}

// Nonzeros returns the nonzeros per row of a sparsity, the share of zeros: (1 − sparsity)·atoms,
// rounded and at least 1.
func Nonzeros(sparsity float64, atoms int) int {
	return max(1, int(math.Round((1-sparsity)*float64(atoms))))
}

// Base implements [Recipe].
func (c Common) Base() Common { return c }

// Best is the default recipe: the dictionary is learned online, initialised from words, and
// package encode makes the codes.
type Best struct {
	Common
	Nonzeros   int     `json:"nonzeros,omitempty"`    // maximum of nonzeros per row; 0 for the default. [Nonzeros] converts from a sparsity
	Lambda     float64 `json:"lambda"`                // λ, weight of Σ‖a_i‖₁, as a share of mean‖x − μ‖²
	Anchor     float64 `json:"anchor,omitempty"`      // inverse of the variance of atoms about the words that they are initialised from, as a share of mean‖x − μ‖²
	TrainWords int     `json:"train_words,omitempty"` // training rows of D and μ: the first, or without an order a random sample, which does not depend on the seed; 0 for the default
	Order      Order   `json:"order,omitempty"`       // empty for the default
	Topics     int     `json:"topics,omitempty"`      // default number of topics; 0 for one that the rows determine, and of words none; [NoTopics] for none
	Like       string  `json:"like,omitempty"`        // SHA-256 of the atoms, float32 and little-endian, of the model that the dictionary is initialised from and regularised towards
}

// NoTopics is a number of topics: no topics and themes are learned.
const NoTopics = -1

// An Order is an order of rows.
type Order string

// The orders of rows.
const (
	Frequency Order = "frequency" // rows are words, frequent ones first
	None      Order = "none"
)

// Paper is the recipe of the paper: its objective and its trainer, which learns dictionary and
// codes together.
type Paper struct {
	Common
	Lambda       float64 `json:"lambda"` // λ, weight of Σ‖a_i‖₁
	Tau          float64 `json:"tau"`    // τ, weight of ‖D‖²
	Rate         float64 `json:"rate"`   // η, AdaGrad's learning rate
	Loss         string  `json:"loss"`   // [Squared], [Huber], or the name of a loss of the calling program
	HuberDelta   float64 `json:"huber_delta,omitempty"`
	Center       bool    `json:"center"`        // subtract the mean vector of the frequent words
	FromWords    bool    `json:"from_words"`    // initialise the dictionary from words that are far apart, instead of random numbers
	Float16      bool    `json:"float16"`       // store the sums of gradients S and Q rounded, in half the memory
	AuthorsOrder bool    `json:"authors_order"` // update word by word as the authors' program, instead of in two passes of matrix products per epoch
	AuthorsStop  bool    `json:"authors_stop"`  // stop by the rule of the authors' program, or after all epochs
}

// The losses of a residual r that have a name.
const (
	Squared = "squared" // Σr²
	Huber   = "huber"   // r² up to HuberDelta, linear beyond
)

// With implements [Recipe].
func (b Best) With(c Common) Recipe { b.Common = c; return b }

// With implements [Recipe].
func (p Paper) With(c Common) Recipe { p.Common = c; return p }

func (Best) String() string  { return "best" }
func (Paper) String() string { return "paper" }

func (Best) centred() bool    { return true }
func (p Paper) centred() bool { return p.Center }

func (b Best) trainRows() (n int, first bool) { return b.TrainWords, b.Order == Frequency }
func (Paper) trainRows() (n int, first bool)  { return 0, true }

// Validate implements [Recipe].
func (b Best) Validate() error {
	b.Method, b.Order = cmp.Or(b.Method, Signed), cmp.Or(b.Order, None)
	return cmp.Or(b.Common.validate(0), countFrom("nonzeros", b.Nonzeros, 0, cmp.Or(b.Atoms, math.MaxInt32)), atLeast0("lambda", b.Lambda), atLeast0("anchor", b.Anchor),
		countFrom("train-words", b.TrainWords, 0, math.MaxInt32), oneOf("order", b.Order, Frequency, None),
		countFrom("topics", b.Topics, NoTopics, math.MaxInt32), checkName("like", b.Like))
}

// Validate implements [Recipe]. Loss may have any name, since programs can have losses of their
// own.
func (p Paper) Validate() error {
	leastSteps := 1
	if p.AuthorsOrder { // one step per word, whatever DictionarySteps says
		leastSteps = 0
	}
	err := cmp.Or(p.Common.validate(leastSteps), atLeast0("lambda", p.Lambda), atLeast0("tau", p.Tau), positive("rate", p.Rate), checkName("loss", p.Loss))
	switch {
	case err != nil:
		return err
	case p.Loss == Huber:
		err = positive("huber-delta", p.HuberDelta)
	case p.HuberDelta != 0:
		err = invalid("huber-delta", "is %v, which goes with the loss huber, and the loss is %s", p.HuberDelta, p.Loss)
	}
	if err == nil && p.AuthorsOrder && p.FromWords {
		return invalid("from-words", "has no meaning with the authors' order, which starts from random numbers")
	}
	return err
}

// mostEpochs is the maximum of epochs, so that a model.json with the metrics of all can be read
// again.
const mostEpochs = 100_000

func (c Common) validate(leastSteps int) error {
	return cmp.Or(oneOf("method", c.Method, Signed, Nonnegative), countFrom("atoms", c.Atoms, 0, math.MaxInt32), countFrom("epochs", c.Epochs, 0, mostEpochs),
		countFrom("dictionary-steps", c.DictionarySteps, leastSteps, math.MaxInt32))
}

// An InvalidError reports a hyperparameter outside its domain.
type InvalidError struct {
	Name    string // of the hyperparameter, in lower case with hyphens
	Problem string // such as "is 0, want 1 to 5"
}

func (e *InvalidError) Error() string { return e.Name + " " + e.Problem }

func invalid(name, format string, args ...any) error {
	return &InvalidError{name, fmt.Sprintf(format, args...)}
}

func oneOf[T ~string](name string, value, a, b T) error {
	if value != a && value != b {
		return invalid(name, "is %.60q, want %s or %s", value, a, b)
	}
	return nil
}

func countFrom(name string, value, least, most int) error {
	if value < least || value > most {
		return invalid(name, "is %d, want 1 to %d", value, most) // 0, where allowed, is for a default
	}
	return nil
}

func positive(name string, value float64) error {
	if !(value > 0) || math.IsInf(value, 0) {
		return invalid(name, "is %v, want a positive number", value)
	}
	return atLeast0(name, value)
}

func atLeast0(name string, value float64) error {
	if !(value >= 0) {
		return invalid(name, "is %v, want 0 or more", value)
	}
	if single := float32(value); value != 0 && single == 0 || math.IsInf(float64(single), 0) {
		return invalid(name, "is %v, which is %v in single precision, that of training", value, single)
	}
	return nil
}

// MarshalJSON implements [json.Marshaler]. The name of the recipe is beside its fields.
func (b Best) MarshalJSON() ([]byte, error) {
	type fields Best
	return withName(b, fields(b))
}

// MarshalJSON implements [json.Marshaler], as that of [Best].
func (p Paper) MarshalJSON() ([]byte, error) {
	type fields Paper
	return withName(p, fields(p))
}

// withName returns the JSON of a recipe's fields after its name.
func withName(r Recipe, fields any) ([]byte, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"recipe":"`+r.String()+`",`), data[1:]...), nil
}

// parseRecipe parses the JSON of a recipe and does not validate it.
func parseRecipe(data []byte) (Recipe, error) {
	var name struct{ Recipe string }
	if err := parseJSON(data, &name); err != nil {
		return nil, err
	}
	switch name.Recipe {
	case Best{}.String():
		var b Best
		err := parseJSON(data, &b)
		return b, err
	case Paper{}.String():
		var p Paper
		err := parseJSON(data, &p)
		return p, err
	}
	return nil, fmt.Errorf("recipe is %.60q, want best or paper", name.Recipe)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Training) UnmarshalJSON(data []byte) error {
	type fields Training
	raw := struct {
		*fields
		Recipe json.RawMessage `json:"recipe"`
	}{fields: (*fields)(t)}
	err := parseJSON(data, &raw)
	if err == nil && raw.Recipe != nil {
		t.Recipe, err = parseRecipe(raw.Recipe)
	}
	return err
}
