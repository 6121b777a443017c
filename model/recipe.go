package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
)

// A Recipe is the algorithm of a training with its hyperparameters: [Best] or [Paper]. Recipes are
// comparable with ==. [overcomplete/train.Best] and [overcomplete/train.Paper] return the defaults.
// Most fields have the name of a flag of "overcomplete train" or "overcomplete paper train".
type Recipe interface {
	// Base returns the hyperparameters that all recipes have.
	Base() Common

	// With returns the recipe with other values of these hyperparameters.
	With(Common) Recipe

	// Validate returns an [*InvalidError] for the first hyperparameter outside its domain. 0 and ""
	// are valid for hyperparameters with a default.
	Validate() error

	// String returns the name of the recipe.
	fmt.Stringer

	// centred reports whether the mean is subtracted from rows.
	centred() bool

	// trainRows returns the number of training rows, 0 for all, and whether they are the first rows.
	trainRows() (n int, first bool)
}

// A Method is a constraint on codes.
type Method string

// The methods of the paper.
const (
	Signed      Method = "A" // codes of either sign (paper §2.1)
	Nonnegative Method = "B" // codes of 0 or more, which can be binarised (paper §2.2)
)

// Common holds the hyperparameters that all recipes have.
type Common struct {
	Method          Method `json:"method"`           // "" for the default of the recipe "best"
	Atoms           int    `json:"atoms"`            // K; 0 for the default
	Epochs          int    `json:"epochs"`           // maximum of epochs; 0 for the default
	DictionarySteps int    `json:"dictionary_steps"` // dictionary updates per epoch; for "best" 0 is the default; for "paper" 1 or more
	Seed            uint64 `json:"seed"`
}

// Nonzeros returns the nonzeros per row of a sparsity, (1 − sparsity)·atoms, rounded and at least 1.
func Nonzeros(sparsity float64, atoms int) int {
	return max(1, int(math.Round((1-sparsity)*float64(atoms))))
}

// Base implements [Recipe].
func (c Common) Base() Common { return c }

// Best is the default recipe. It initialises the dictionary from rows, learns it in mini-batches, and encodes by
// package encode. It makes fewer updates than DictionarySteps if mini-batches would have less than 256 rows.
type Best struct {
	Common
	Nonzeros  int     `json:"nonzeros,omitempty"`   // maximum number of nonzeros per row; 0 for the default; see the function [Nonzeros]
	Lambda    float64 `json:"lambda"`               // λ, weight of Σ‖a_i‖₁, relative to mean ‖x − μ‖²
	Anchor    float64 `json:"anchor,omitempty"`     // weight that keeps atoms near their anchors (docs/guides/train.md); 0 for none
	TrainRows int     `json:"train_rows,omitempty"` // number of training rows for D and μ; 0 for the default; see Order
	Order     Order   `json:"order,omitempty"`      // whether the training rows are the first or a random sample; "" for the default
	Topics    int     `json:"topics,omitempty"`     // number of topics; 0 is the default (for words no topics); [NoTopics] means no topics
	Like      string  `json:"like,omitempty"`       // SHA-256 of an earlier model's atoms (float32, little-endian), which initialise and anchor the atoms of this training; "" if none
}

// NoTopics as the number of topics disables topics and themes.
const NoTopics = -1

// An Order is the meaning of the order of rows.
type Order string

// The orders.
const (
	Frequency Order = "frequency" // rows are words, frequent words first; the training rows are the first rows
	None      Order = "none"      // the order has no meaning; the training rows are a random sample, the same for every Seed
)

// Paper is the recipe of the paper, with its objective and its trainer, which learns dictionary and codes
// jointly.
type Paper struct {
	Common
	Lambda       float64 `json:"lambda"` // λ, weight of Σ‖a_i‖₁
	Tau          float64 `json:"tau"`    // τ, weight of ‖D‖²
	Rate         float64 `json:"rate"`   // η, AdaGrad's learning rate
	Loss         string  `json:"loss"`   // [Squared] or [Huber]
	HuberDelta   float64 `json:"huber_delta,omitempty"`
	Center       bool    `json:"center"`        // subtract the mean of the first n rows, with the default n of Best
	FromRows     bool    `json:"from_rows"`     // initialise the dictionary from rows that are far apart, not from random numbers
	AuthorsOrder bool    `json:"authors_order"` // update row by row like the authors' program (DictionarySteps is ignored), not in batches
	AuthorsStop  bool    `json:"authors_stop"`  // stop by the rule of the authors' program, and after Epochs at the latest
}

// The names of losses of a residual r.
const (
	Squared = "squared" // Σr²
	Huber   = "huber"   // r² for |r| up to HuberDelta, linear beyond
)

// With implements [Recipe].
func (b Best) With(c Common) Recipe { b.Common = c; return b }

// With implements [Recipe].
func (p Paper) With(c Common) Recipe { p.Common = c; return p }

func (Best) String() string  { return "best" }
func (Paper) String() string { return "paper" }

func (Best) centred() bool    { return true }
func (p Paper) centred() bool { return p.Center }

func (b Best) trainRows() (n int, first bool) { return b.TrainRows, b.Order == Frequency }
func (Paper) trainRows() (n int, first bool)  { return 0, true }

// Validate implements [Recipe].
func (b Best) Validate() error {
	b.Method, b.Order = cmp.Or(b.Method, Signed), cmp.Or(b.Order, None)
	return cmp.Or(b.Common.validate(0), countFrom("nonzeros", b.Nonzeros, 0, cmp.Or(b.Atoms, math.MaxInt32)), atLeast0("lambda", b.Lambda), atLeast0("anchor", b.Anchor),
		countFrom("train-rows", b.TrainRows, 0, math.MaxInt32), oneOf("order", b.Order, Frequency, None),
		countFrom("topics", b.Topics, NoTopics, math.MaxInt32), checkName("like", b.Like))
}

// Validate implements [Recipe].
func (p Paper) Validate() error {
	minSteps := 1
	if p.AuthorsOrder { // one step per row: DictionarySteps is ignored
		minSteps = 0
	}
	err := cmp.Or(p.Common.validate(minSteps), atLeast0("lambda", p.Lambda), atLeast0("tau", p.Tau), positive("rate", p.Rate), oneOf("loss", p.Loss, Squared, Huber))
	switch {
	case err != nil:
		return err
	case p.Loss == Huber:
		err = positive("huber-delta", p.HuberDelta)
	case p.HuberDelta != 0:
		err = invalid("huber-delta", "is %v, but the loss is %s: it is only for the loss huber", p.HuberDelta, p.Loss)
	}
	if err == nil && p.AuthorsOrder && p.FromRows {
		return invalid("from-rows", "has no meaning with the authors' order, which initialises with random numbers")
	}
	return err
}

// maxEpochs is the largest number of epochs. The metrics of more epochs would exceed the size limit of
// model.json.
const maxEpochs = 100_000

func (c Common) validate(minSteps int) error {
	return cmp.Or(oneOf("method", c.Method, Signed, Nonnegative), countFrom("atoms", c.Atoms, 0, math.MaxInt32), countFrom("epochs", c.Epochs, 0, maxEpochs),
		countFrom("dictionary-steps", c.DictionarySteps, minSteps, math.MaxInt32))
}

// An InvalidError reports a hyperparameter outside its domain.
type InvalidError struct {
	Name    string // name of the hyperparameter, in lower case with hyphens
	Problem string // problem and remedy, such as "is 0, want 1 to 5"
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
		return invalid(name, "is %d, want 1 to %d", value, most) // 0 may be valid, but only to select a default
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
		return invalid(name, "is %v, which is %v in the single precision of training", value, single)
	}
	return nil
}

// MarshalJSON implements [json.Marshaler]. The key "recipe" has the name of the recipe.
func (b Best) MarshalJSON() ([]byte, error) {
	type fields Best
	return withName(b, fields(b))
}

// MarshalJSON implements [json.Marshaler]. The key "recipe" has the name of the recipe.
func (p Paper) MarshalJSON() ([]byte, error) {
	type fields Paper
	return withName(p, fields(p))
}

func withName(r Recipe, fields any) ([]byte, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"recipe":"`+r.String()+`",`), data[1:]...), nil
}

// parseRecipe parses the JSON of a recipe without validation.
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
