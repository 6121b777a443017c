package interpret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
)

// Coherence says whether dimensions mean something: it is the result of
// [Intrusion.OddOneOut], and the content of a model's coherence.json. It is of the positive
// sides of dimensions, and Negative of the negative ones.
//
// Shares are of questions that were answered right, 0 to 1. Guessing is right in one
// of five.
type Coherence struct {
	Reference  string     `json:"reference,omitempty"` // name of the file of the vectors that were asked; the caller sets it
	Words      int        `json:"words"`               // that the questions were made of
	Seed       uint64     `json:"seed"`
	Dimensions int        `json:"dimensions"`         // how many are live
	Any        Estimate   `json:"any"`                // with all intruders equally likely
	Matched    Estimate   `json:"matched"`            // with intruders about as frequent as the top words
	Quarters   []Estimate `json:"quarters,omitempty"` // four, see Score, if some dimensions have them
	Quartered  int        `json:"quartered"`          // how many do
	Scores     []Score    `json:"scores,omitempty"`   // of each live dimension, in increasing order
	Negative   *Coherence `json:"negative,omitempty"` // the same of [Opposite] codes; nil if no value is negative, or nobody asked
}

// Score is the coherence of one side of a dimension.
type Score struct {
	Dimension int     `json:"dimension"`
	Any       float64 `json:"any"`
	Matched   float64 `json:"matched"`

	// Quarters are the shares for words of each quarter of the values on that side, from
	// the strongest quarter to the weakest: four, or none if there are too few words.
	Quarters []float64 `json:"quarters,omitempty"`
}

// Estimate is a mean over dimensions with its 95 % confidence interval.
type Estimate struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Save writes c as the file at path, whole or not at all, in place of one that is there.
func (c *Coherence) Save(ctx context.Context, path string) error {
	return atomicfile.WriteFile(ctx, path, true, func(w io.Writer) error { return json.NewEncoder(w).Encode(c) })
}

// mostCoherence is more bytes than the scores of a hundred thousand dimensions take.
const mostCoherence = 1 << 26

// ReadCoherence reads what [Coherence.Save] wrote of a model with K dimensions. The error
// wraps [io/fs.ErrNotExist] if there is no such file. It is an error, which names the file,
// if that holds anything else, or scores of dimensions that the model does not have.
func ReadCoherence(path string, dimensions int) (*Coherence, error) {
	data, err := input.ReadRegular(path, mostCoherence)
	if err != nil {
		return nil, err
	}
	c := new(Coherence)
	if err = json.Unmarshal(data, c); err == nil {
		err = c.validate(dimensions)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %.200v", path, err) // a number in it can be of any length
	}
	return c, nil
}

// validate returns an error unless c can be of a model with so many dimensions.
func (c *Coherence) validate(dimensions int) error {
	if c.Words < 1 || c.Dimensions != len(c.Scores) {
		return fmt.Errorf("no coherence is of %d words and %d dimensions with %d scores", c.Words, c.Dimensions, len(c.Scores))
	}
	for _, e := range append([]Estimate{c.Any, c.Matched}, c.Quarters...) {
		if !areShares(e.Low, e.Mean, e.High) {
			return fmt.Errorf("the mean %v, between %v and %v, is no estimate of a share, 0 to 1", e.Mean, e.Low, e.High)
		}
	}
	if !areQuarters(len(c.Quarters)) {
		return fmt.Errorf("%d quarters, want four or none", len(c.Quarters))
	}
	last, quartered := -1, 0
	for _, s := range c.Scores {
		switch {
		case s.Dimension <= last || s.Dimension >= dimensions:
			return fmt.Errorf("the score of dimension %d after that of %d, want an increasing order and less than %d", s.Dimension, last, dimensions)
		case !areShares(s.Any, s.Matched) || !areShares(s.Quarters...) || !areQuarters(len(s.Quarters)):
			return fmt.Errorf("dimension %d: the scores %v, %v and %v, want shares, 0 to 1, and four or none of quarters", s.Dimension, s.Any, s.Matched, s.Quarters)
		}
		last, quartered = s.Dimension, quartered+min(len(s.Quarters), 1)
	}
	if c.Quartered != quartered || (quartered > 0) != (len(c.Quarters) > 0) {
		return fmt.Errorf("%d quarters of %d dimensions, and %d scores with quarters", len(c.Quarters), c.Quartered, quartered)
	}
	if c.Negative == nil {
		return nil
	}
	if c.Negative.Negative != nil {
		return errors.New("negative sides have no negative sides")
	}
	if err := c.Negative.validate(dimensions); err != nil {
		return fmt.Errorf("negative sides: %w", err)
	}
	return nil
}

func areShares(values ...float64) bool {
	for _, v := range values {
		if !(v >= 0 && v <= 1) {
			return false
		}
	}
	return true
}

func areQuarters(n int) bool { return n == 0 || n == quarters }

const quarters = 4
