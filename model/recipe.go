package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// A Recipe is a way to learn a dictionary with its hyperparameters, which choose the objective
// and how it is minimised: [Best] or [Paper]. Recipes are values, and equal ones are ==. Start
// from [overcomplete/train.Best] or [overcomplete/train.Paper]. Fields have the names of the
// flags of "overcomplete train".
type Recipe interface {
	// Base returns what all recipes have, and With a recipe with other values of these.
	Base() Common
	With(Common) Recipe

	// Validate returns nil if every hyperparameter has a value that can be trained with, or
	// else an error that begins with the name of the first that has not and says what is
	// wanted. Atoms and Epochs may be 0, for their defaults.
	Validate() error

	// String is the recipe's name.
	fmt.Stringer
}

// A Method says which codes there are.
type Method string

// The methods of the paper.
const (
	Signed      Method = "A" // codes of either sign (paper §2.1)
	Nonnegative Method = "B" // codes of 0 or more, which can be made binary (paper §2.2)
)

// Common are the hyperparameters that all recipes have.
type Common struct {
	Method          Method `json:"method"`
	Atoms           int    `json:"atoms"`            // K
	Epochs          int    `json:"epochs"`           // most epochs to run: passes over all words
	DictionarySteps int    `json:"dictionary_steps"` // dictionary steps an epoch; "authors" takes one a word; best: or fewer, so that each has 256 words
	Seed            uint64 `json:"seed"`

	// Nonzeros is how many nonzeros a row has: in the recipe "best" each row at most, in "paper"
	// the mean, for which it looks for λ. 0 is the default: of "best" 3 % of the atoms, of "paper"
	// as many as λ gives. [Nonzeros] converts from a sparsity.
	Nonzeros int `json:"nonzeros,omitempty"`
}

// Nonzeros returns the nonzeros per row of a sparsity, the share of zeros: (1 − sparsity)·atoms,
// rounded and at least 1.
func Nonzeros(sparsity float64, atoms int) int {
	return max(1, int(math.Round((1-sparsity)*float64(atoms))))
}

// Base implements [Recipe].
func (c Common) Base() Common { return c }

// Best is the recipe of that name: a dictionary that is learned online, from words, and codes
// that package encode makes with it.
type Best struct {
	Common
	Lambda     float64 `json:"lambda"`                // λ, weight of Σ‖a_i‖₁, as a share of mean‖x − μ‖²
	Anchor     float64 `json:"anchor,omitempty"`      // how firmly atoms are held to the words that they start from: the inverse of the variance that they have about these, as a share of mean‖x − μ‖²
	TrainWords int     `json:"train_words,omitempty"` // rows that D and μ are learned from: the first, or if there is no order a random sample; 0 before it is settled, or where all were
	Order      Order   `json:"order,omitempty"`       // empty before it is told from the rows
	Like       string  `json:"like,omitempty"`        // SHA-256 of the atoms, float32 and little-endian, of another model's that D started from and was held to
}

// An Order is one of rows.
type Order string

// The orders of rows.
const (
	Frequency Order = "frequency" // rows are words, frequent ones first
	None      Order = "none"
)

// Paper is the recipe of that name: the paper's objective and its trainer, which learns
// dictionary and codes together.
type Paper struct {
	Common
	Algorithm  Algorithm `json:"algorithm"`
	Init       Init      `json:"init"`
	Lambda     float64   `json:"lambda"` // λ, weight of Σ‖a_i‖₁
	Tau        float64   `json:"tau"`    // τ, weight of ‖D‖²
	Rate       float64   `json:"rate"`   // η, AdaGrad's learning rate
	Loss       string    `json:"loss"`   // [Squared], [Huber], or the name of one of the program's own
	HuberDelta float64   `json:"huber_delta,omitempty"`
	State      Storage   `json:"state"` // what S and Q are kept as
	Stop       Stop      `json:"stop"`
	Center     bool      `json:"center"` // subtract the mean vector of the frequent words first
}

// Algorithm is how the recipe paper goes through the words.
type Algorithm string

// The algorithms.
const (
	Minibatch Algorithm = "minibatch" // two passes an epoch, of matrix products
	Authors   Algorithm = "authors"   // that of the paper's program, word by word
)

// Init is what a dictionary starts from.
type Init string

// What a dictionary starts from.
const (
	FromRandom Init = "random" // numbers
	FromWords  Init = "words"  // that are far apart
)

// Storage is what sums of gradients are kept as.
type Storage string

// Float16 is rounded, and takes half of the memory.
const (
	Float32 Storage = "float32"
	Float16 Storage = "float16"
)

// Stop is the rule by which training ends.
type Stop string

// The rules.
const (
	AfterEpochs Stop = "epochs"  // all of them
	AuthorsRule Stop = "authors" // that of the paper's program, but not after more epochs than that
)

// The losses of a residual r that every program knows.
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

// Validate implements [Recipe].
func (b Best) Validate() error {
	err := cmp.Or(b.Common.validate(1), atLeast0("lambda", b.Lambda), atLeast0("anchor", b.Anchor), countFrom("train-words", b.TrainWords, 0, math.MaxInt32),
		checkName("like", b.Like))
	if err == nil && b.Order != "" {
		err = oneOf("order", b.Order, Frequency, None)
	}
	return err
}

// Validate implements [Recipe]. Loss may have any name, since programs can have losses of their
// own.
func (p Paper) Validate() error {
	steps := 1
	if p.Algorithm == Authors { // which takes a step a word, whatever this says
		steps = 0
	}
	err := cmp.Or(p.Common.validate(steps), oneOf("algorithm", p.Algorithm, Minibatch, Authors), oneOf("init", p.Init, FromRandom, FromWords),
		oneOf("state", p.State, Float32, Float16), oneOf("stop", p.Stop, AfterEpochs, AuthorsRule),
		atLeast0("lambda", p.Lambda), atLeast0("tau", p.Tau), positive("rate", p.Rate), checkName("loss", p.Loss))
	switch {
	case err != nil:
		return err
	case p.Loss == Huber:
		err = positive("huber-delta", p.HuberDelta)
	case p.HuberDelta != 0:
		err = fmt.Errorf("huber-delta is %v, which goes with the loss huber, and the loss is %s", p.HuberDelta, p.Loss)
	}
	if err == nil && p.Algorithm == Authors && p.Init == FromWords {
		return errors.New("init is words, and the algorithm authors starts from random numbers")
	}
	return err
}

// MostEpochs are as many as a recipe can have: they have their metrics in a model.json that can be
// read again.
const MostEpochs = 100_000

func (c Common) validate(leastSteps int) error {
	return cmp.Or(oneOf("method", c.Method, Signed, Nonnegative), countFrom("atoms", c.Atoms, 0, math.MaxInt32), countFrom("epochs", c.Epochs, 0, MostEpochs),
		countFrom("dictionary-steps", c.DictionarySteps, leastSteps, math.MaxInt32), countFrom("nonzeros", c.Nonzeros, 0, cmp.Or(c.Atoms, math.MaxInt32)))
}

func oneOf[T ~string](name string, value, a, b T) error {
	if value != a && value != b {
		return fmt.Errorf("%s is %.60q, want %s or %s", name, value, a, b)
	}
	return nil
}

func countFrom(name string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %d, want 1 to %d", name, value, most) // 0, where it may be, is for a default
	}
	return nil
}

func positive(name string, value float64) error {
	if !(value > 0) || math.IsInf(value, 0) {
		return fmt.Errorf("%s is %v, want a positive number", name, value)
	}
	return atLeast0(name, value)
}

func atLeast0(name string, value float64) error {
	if !(value >= 0) {
		return fmt.Errorf("%s is %v, want 0 or more", name, value)
	}
	if single := float32(value); value != 0 && single == 0 || math.IsInf(float64(single), 0) {
		return fmt.Errorf("%s is %v, which is %v in single precision, that of training", name, value, single)
	}
	return nil
}

// MarshalJSON implements [json.Marshaler]. The name of the recipe is beside its fields.
func (b Best) MarshalJSON() ([]byte, error) {
	type fields Best
	return json.Marshal(struct {
		Recipe string `json:"recipe"`
		fields
	}{b.String(), fields(b)})
}

// MarshalJSON implements [json.Marshaler], as that of [Best].
func (p Paper) MarshalJSON() ([]byte, error) {
	type fields Paper
	return json.Marshal(struct {
		Recipe string `json:"recipe"`
		fields
	}{p.String(), fields(p)})
}

// ParseRecipe parses the JSON of a recipe. It does not validate it.
func ParseRecipe(data []byte) (Recipe, error) {
	var is struct{ Recipe string }
	if err := parseJSON(data, &is); err != nil {
		return nil, err
	}
	switch is.Recipe {
	case Best{}.String():
		var b Best
		err := parseJSON(data, &b)
		return b, err
	case Paper{}.String():
		var p Paper
		err := parseJSON(data, &p)
		return p, err
	}
	return nil, fmt.Errorf("recipe is %.60q, want best or paper", is.Recipe)
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
		t.Recipe, err = ParseRecipe(raw.Recipe)
	}
	return err
}
