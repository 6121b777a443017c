package train

import (
	"context"
	"fmt"

	"overcomplete/model"
	"overcomplete/vectors"
)

// Best returns the default recipe "best". [Settled] sets what is 0 here.
func Best() model.Best {
	return model.Best{
		Common: model.Common{Seed: 1},
		Lambda: 0.04,
		Anchor: 2,
	}
}

// Paper returns the default recipe "paper". [Settled] sets what is 0 here.
func Paper() model.Paper {
	return model.Paper{
		Common: model.Common{Method: model.Signed, DictionarySteps: 128, Seed: 1},
		Lambda: 0.5,
		Tau:    1e-5,
		Rate:   0.05,
		Loss:   model.Squared,
	}
}

// Settled returns r as [Fit] trains with it on x: fields that are 0 or empty have their defaults.
//
//   - Atoms is 10·L. In the recipe "best" it is at most half the number of rows to learn from,
//     which initialise atoms, but not less than L. For texts it is at most half the training rows and
//     3,072·768/L, whatever L.
//   - Epochs of "paper" is 20 for method A and 30 for B, or the maximum of the authors' stop rule. Epochs of
//     "best" is 2, or 4 for rows in no order of frequency.
//   - DictionarySteps of "best" is 64, or for texts one per 1,000 training rows: at least 16 and at most 64.
//   - Nonzeros of "best" is 3 % of Atoms, and at least 8 for texts.
//   - Method of "best" is A for words and B for texts.
//   - Order of "best" is Frequency unless the rows are texts, look like texts or ids, or are sorted.
//   - Topics of "best" is the least number that explains 85 % of the variance that the themes of texts explain.
//   - TrainWords of "best" is 20·Atoms, but at least 100,000 of rows in no order of frequency; of texts
//     it is 2·Atoms, but at least 16,000.
//
// What is neither a [model.Best] nor a [model.Paper] is returned as it is.
func Settled(r model.Recipe, x *vectors.Dense) model.Recipe {
	if checkRecipe(r) != nil {
		return r
	}
	return trainingOf(r).settled(x, x.Len())
}

// Frequent returns the rows of x that the recipe "best" learns a number of atoms from by default.
func Frequent(x *vectors.Dense, atoms int) *vectors.Dense {
	h := best{Common: model.Common{Atoms: atoms}, Order: defaultOrder(x)}
	return x.Slice(0, min(x.Len(), h.defaultTrainWords(x)))
}

// training is a recipe with the steps of its training.
type training interface {
	// settled returns the recipe with its defaults for vectors x of an input of n rows.
	settled(x *vectors.Dense, n int) model.Recipe

	// fit is [Fit].
	fit(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error)

	// converged reports whether a training ends after these epochs, before all are done.
	converged(epochs []model.Epoch) bool
}

// checkRecipe returns an error unless r is a recipe of this package.
func checkRecipe(r model.Recipe) error {
	switch r.(type) {
	case model.Best, model.Paper:
		return nil
	}
	return fmt.Errorf("train: the recipe is of type %T, want model.Best or model.Paper", r)
}

// trainingOf returns the training of a recipe that [checkRecipe] accepts.
func trainingOf(r model.Recipe) training {
	switch r := r.(type) {
	case model.Best:
		return best(r)
	case model.Paper:
		return paper(r)
	}
	panic("train: no recipe")
}
