package train

import (
	"context"
	"fmt"

	"overcomplete/model"
	"overcomplete/vectors"
)

// Best returns the default recipe "best". [Fit] sets its other fields as [WithDefaults] does.
func Best() model.Best {
	return model.Best{
		Common: model.Common{Seed: 1},
		Lambda: 0.04,
		Anchor: 2,
	}
}

// Paper returns the default recipe "paper": λ = 0.5, τ = 1e-5 and η = 0.05 with the squared loss.
// [Fit] sets its other fields as [WithDefaults] does.
func Paper() model.Paper {
	return model.Paper{
		Common: model.Common{Method: model.Signed, DictionarySteps: 128, Seed: 1},
		Lambda: 0.5,
		Tau:    1e-5,
		Rate:   0.05,
		Loss:   model.Squared,
	}
}

// WithDefaults returns r with the default of each field that is 0 or empty, for training on x.
//
// The recipe "best":
//
//   - Method is A for words and B for texts.
//   - Order is Frequency unless the rows are texts, look like texts or ids, or are sorted.
//   - Atoms is 10·L, but at most half of the rows and half of TrainRows, if r sets it, and always at least L. For
//     texts it is the least of 10·L, 3,072·768/L, half of the rows, and half of TrainRows or, by default, 8,000.
//   - TrainRows is 20·Atoms. For rows in no order of frequency it is at least 100,000. For texts it is the larger of
//     16,000 and 2·Atoms. It never exceeds the number of rows.
//   - Nonzeros is 3 % of Atoms. For texts it is at least 8.
//   - Epochs is 2, or 4 for rows in no order of frequency.
//   - DictionarySteps is one per 8,192 training rows, between 16 and 64.
//
// Topics stays 0. For texts, training then chooses the fewest topics, 6 to 12, that explain 90 % of the variance that
// 12 topics explain. For words, training learns no topics.
//
// The recipe "paper":
//
//   - Atoms is 10·L.
//   - Epochs is 20 for method A and 30 for B. With the authors' stop rule it is the rule's maximum.
//
// Recipes of other types are returned unchanged.
func WithDefaults(r model.Recipe, x *vectors.Dense) model.Recipe {
	if checkRecipe(r) != nil {
		return r
	}
	return trainingOf(r).withDefaults(x, x.Len())
}

// TrainingRows returns the first n rows of x, where n is the default number of training rows of the recipe
// "best" for this number of atoms.
func TrainingRows(x *vectors.Dense, atoms int) *vectors.Dense {
	h := bestTraining{Common: model.Common{Atoms: atoms}, Order: defaultOrder(x)}
	return x.Slice(0, min(x.Len(), h.defaultTrainRows(x)))
}

// training is a recipe that can train.
type training interface {
	// withDefaults returns the recipe with its defaults for an input of n rows. The argument x holds all of these rows
	// or a sample.
	withDefaults(x *vectors.Dense, n int) model.Recipe

	// fit trains as [Fit] does.
	fit(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error)

	// converged reports whether training stops after these epochs, although the recipe allows more.
	converged(epochs []model.Epoch) bool
}

// checkRecipe returns an error unless r is a recipe of this package.
func checkRecipe(r model.Recipe) error {
	if trainingOf(r) == nil {
		return fmt.Errorf("train: unknown type of recipe (got %T, want model.Best or model.Paper)", r)
	}
	return nil
}

// trainingOf returns the training of a recipe of this package, or nil.
func trainingOf(r model.Recipe) training {
	switch r := r.(type) {
	case model.Best:
		return bestTraining(r)
	case model.Paper:
		return paperTraining(r)
	}
	return nil
}
