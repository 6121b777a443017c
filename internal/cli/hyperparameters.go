package cli

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// modelFlags are the flags that state the objective of the recipe paper; commands that train and
// graph share them.
type modelFlags struct {
	model.Paper
}

func (f *modelFlags) register(cmd *cobra.Command) {
	f.Paper = train.Paper()
	flags := cmd.Flags()
	flags.StringVar((*string)(&f.Method), "method", string(f.Method), "A, or B for nonnegative codes")
	flags.Float64Var(&f.Lambda, "lambda", f.Lambda, "weight λ of the codes' Σ|a|: larger is sparser")
	flags.Float64Var(&f.Tau, "tau", f.Tau, "weight τ of the dictionary's ‖D‖²")
	flags.Float64Var(&f.Rate, "rate", f.Rate, "learning rate η of AdaGrad")
	flags.StringVar(&f.Loss, "loss", f.Loss, "loss of a residual r: squared, or huber (r² up to --huber-delta, linear beyond)")
	flags.Float64Var(&f.HuberDelta, "huber-delta", f.HuberDelta, "|r| where --loss huber turns linear")
}

// check refuses values outside their domain, naming the flag.
func (f *modelFlags) check(cmd *cobra.Command) error {
	if (f.Loss == model.Huber) != cmd.Flags().Changed("huber-delta") {
		return usagef("--loss huber and --huber-delta go together")
	}
	if err := cmp.Or(backend.CheckLoss(f.Paper), f.Paper.Validate()); err != nil {
		return usagef("--%w", err)
	}
	return nil
}

// recipeFlags are the flags that state a recipe; train, tune and sweep share them.
type recipeFlags struct {
	modelFlags
	recipeName string       // "" of a command that has no such flags, and a recipe of its own
	recipe     model.Recipe // what all flags come to, but for what depends on the vectors: see at
	factor     int
	sparsity   float64
	nonzeros   int // instead of sparsity, if it is not 0
	anchor     float64
	trainWords string // rows to learn from: all, [first:]n or random:n
}

// registerAtoms adds the flags that say what K is.
func (f *recipeFlags) registerAtoms(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVarP(&f.Atoms, "atoms", "k", 0, "K, the dimensions of the sparse vectors (default 10 times the dense ones; best: at most half as many as words, but no fewer than the dense ones)")
	flags.IntVar(&f.factor, "factor", 0, "K as a multiple of the dense dimensions, instead of -k")
}

// registerRecipe adds all other flags of recipes, of which the usual one is that by default.
func (f *recipeFlags) registerRecipe(cmd *cobra.Command, usual model.Recipe) {
	flags := cmd.Flags()
	flags.Float64Var(&f.sparsity, "sparsity", 0, fmt.Sprintf("`share` of zeros in the codes (default %v; paper: as comes of λ, or by a search for the λ)", train.DefaultSparsity))
	flags.IntVar(&f.nonzeros, "nonzeros", 0, "values of a code that are not zero, instead of --sparsity: 1 - nonzeros/K")
	flags.StringVar(&f.trainWords, "train-words", "", "best: `rows` to learn from: first:n or n, random:n or all; all are encoded (default of words, which are taken to be in order of frequency: the first 20 K; of rows that have none, or are texts: all)")
	flags.Float64Var(&f.anchor, "anchor", 0, fmt.Sprintf("best: how firmly dimensions are held to the words that they start from, so that they are there again with another seed; 0 for not at all (default %v)", train.Best().Anchor))
	f.modelFlags.register(cmd)
	flags.StringVar(&f.recipeName, "recipe", usual.String(), "best: a dictionary learned online from words; or paper: the paper's objective and trainer")
	flags.Lookup("lambda").DefValue = "0" // the usage says it
	flags.Lookup("lambda").Usage += fmt.Sprintf(" (default %v of the mean squared norm; paper: %v)", train.Best().Lambda, f.Lambda)
	flags.Lookup("method").Usage += " (default A; best: B for texts)"
	flags.Lookup("method").DefValue = "" // the usage says it
	for _, name := range []string{"tau", "rate", "loss", "huber-delta"} {
		flags.Lookup(name).Usage = "paper: " + flags.Lookup(name).Usage
	}
	flags.StringVar((*string)(&f.Init), "init", string(f.Init), "paper: start the dictionary from random numbers (random) or from words that are far apart (words)")
	flags.BoolVar(&f.Center, "center", false, "paper: subtract the mean of the frequent words first, as best always does")
	flags.IntVar(&f.Epochs, "epochs", 0, fmt.Sprintf("epochs to train, at most (default %d, or %d of rows in no order of frequency, such as texts; paper: %d for method A, %d for B)",
		train.DefaultEpochs(model.Best{}), train.DefaultEpochs(model.Best{Order: model.None}),
		train.DefaultEpochs(model.Paper{}), train.DefaultEpochs(model.Paper{Common: model.Common{Method: model.Nonnegative}})))
	flags.StringVar((*string)(&f.Stop), "stop", string(f.Stop), "paper: stop after --epochs (epochs), or by the rule of the paper's program (authors)")
	flags.StringVar((*string)(&f.Algorithm), "algorithm", string(f.Algorithm), "paper: minibatch, or that of its program, word by word and slow (authors)")
	flags.IntVar(&f.DictionarySteps, "dictionary-steps", f.DictionarySteps, "dictionary steps an epoch; best: or fewer, so that each has 256 words")
	flags.Uint64Var(&f.Seed, "seed", f.Seed, "seed of all that is random")
	flags.StringVar((*string)(&f.State), "state", string(f.State), "paper: what to keep sums of gradients as: float32, 8 bytes for each word and dimension, or float16, half of it, rounded")
}

// check settles the recipe, and refuses flags outside their domain.
func (f *recipeFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case f.recipeName == "":
		return nil
	case changed("sparsity") && !(f.sparsity > 0 && f.sparsity < 1):
		return usagef("--sparsity is %v, want a share of zeros between 0 and 1, such as 0.95", f.sparsity)
	case changed("nonzeros") && f.nonzeros < 1:
		return usagef("--nonzeros is %d, want 1 or more", f.nonzeros)
	case changed("nonzeros") && changed("sparsity"):
		return usagef("give --sparsity or --nonzeros, not both")
	}
	if err := f.settle(changed); err != nil {
		return err
	}
	if _, isPaper := f.recipe.(model.Paper); isPaper {
		if err := f.modelFlags.check(cmd); err != nil {
			return err
		}
	} else if err := f.recipe.Validate(); err != nil {
		return usagef("--%w", err)
	}
	for _, v := range []struct {
		flag        string
		value, most int
	}{{"atoms", f.Atoms, math.MaxInt32}, {"factor", f.factor, math.MaxInt32 / vectors.MaxDim}, {"epochs", f.Epochs, model.MostEpochs}} {
		if changed(v.flag) && (v.value < 1 || v.value > v.most) {
			return usagef("--%s is %d, want 1 to %d", v.flag, v.value, v.most)
		}
	}
	switch {
	case changed("atoms") && changed("factor"):
		return usagef("give -k or --factor, not both")
	case changed("stop") && changed("epochs"):
		return usagef("give --epochs or --stop, not both")
	case f.Algorithm == model.Authors && changed("dictionary-steps"):
		return usagef("--dictionary-steps has no meaning with --algorithm authors, which takes one step a word")
	}
	return nil
}

// settle makes a recipe of the flags, and refuses those of the other.
func (f *recipeFlags) settle(changed func(flag string) bool) error {
	best, paper := model.Best{}.String(), model.Paper{}.String()
	for recipe, flags := range map[string][]string{
		best:  {"train-words", "anchor", "like"},
		paper: {"tau", "rate", "loss", "huber-delta", "init", "stop", "algorithm", "state"},
	} {
		for _, flag := range flags {
			if f.recipeName != recipe && changed(flag) {
				return usagef("--%s is of --recipe %s", flag, recipe)
			}
		}
	}
	switch f.recipeName {
	case paper:
		if f.searches() && changed("lambda") {
			return usagef("give --lambda, or --sparsity or --nonzeros, which look for a λ, not both")
		}
		f.recipe = f.Paper
	case best:
		if changed("center") && !f.Center {
			return usagef("--recipe best centres the vectors; drop --center=false")
		}
		h := train.Best()
		h.Common = f.Common
		if changed("anchor") {
			h.Anchor = f.anchor
		}
		if changed("lambda") {
			h.Lambda = f.Lambda
		}
		if changed("train-words") {
			if err := settleTrainWords(&h, f.trainWords); err != nil {
				return err
			}
		}
		f.recipe = h
	}
	return nil
}

// searches reports whether a share of zeros was asked for, which paper looks for the λ of.
func (f *recipeFlags) searches() bool { return f.sparsity > 0 || f.nonzeros > 0 }

// settleTrainWords reads --train-words.
func settleTrainWords(best *model.Best, flag string) error {
	which, number, two := strings.Cut(flag, ":")
	if !two && which == "all" {
		best.TrainWords = math.MaxInt32
		return nil
	}
	if !two {
		which, number = "first", which
	}
	n, err := strconv.Atoi(number)
	order, ok := map[string]model.Order{"first": model.Frequency, "random": model.None}[which]
	if err != nil || !ok || n < 1 || n > math.MaxInt32 {
		return usagef("--train-words is %q, want first:n or n, random:n or all, with n from 1 to %d", flag, math.MaxInt32)
	}
	best.TrainWords, best.Order = n, order
	return nil
}

// atoms returns K for so many words.
func (f *recipeFlags) atoms(words, dim int) int {
	switch {
	case f.factor > 0:
		return f.factor * dim
	case f.Atoms == 0:
		return train.DefaultAtoms(f.recipe, words, dim)
	}
	return f.Atoms
}

// at returns the recipe with K atoms for vectors x, but for the defaults of training.
func (f *recipeFlags) at(cmd *cobra.Command, atoms int, x *vectors.Dense) (model.Recipe, error) {
	c := f.recipe.Base()
	c.Atoms, c.Nonzeros = atoms, f.nonzeros
	if f.sparsity > 0 {
		c.Nonzeros = model.Nonzeros(f.sparsity, atoms)
	}
	if _, isBest := f.recipe.(model.Best); isBest && x.Texts != nil && !cmd.Flags().Changed("method") {
		c.Method = model.Nonnegative // whose codes of texts explain more, and are easier to read
	}
	r := f.recipe.With(c)
	if err := r.Validate(); err != nil {
		return nil, usagef("--%w", err)
	}
	return r, nil
}
