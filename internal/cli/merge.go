package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/vectors"
)

func newMerge() *cobra.Command {
	var output string
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "merge SHARD... -o OUT",
		Short: "Put the outputs of encode --shard together",
		Long: `Merge puts the models that "overcomplete encode --shard 1/n" to "n/n" wrote
together. OUT is, to the byte, what encode writes without --shard. All shards have
to be there, in any order, and of the same model, input, flags and kind of
processor; what they hold is streamed, however much it is.`,
		Example: `  overcomplete merge part*.model -o all.model`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return usagef("-o is empty, want the name of a directory")
			}
			if err := model.CheckSave(output, force); err != nil {
				return err
			}
			shards, m, err := openShards(args)
			defer func() {
				for _, s := range shards {
					s.rows.Close()
				}
			}()
			if err != nil {
				return usageError{err}
			}
			if err := m.SaveRows(output, force, func(add func([]string, *vectors.Sparse) error) error {
				return mergeRows(cmd.Context(), shards, m.Info.Encoding, add)
			}); err != nil {
				return err
			}
			return reportEncoding(cmd.OutOrStdout(), output, m.Info, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "", "model `directory` to write")
	flags.BoolVar(&force, "force", false, "replace a model that exists")
	flags.BoolVar(&asJSON, "json", false, "print the results as JSON")
	cmd.MarkFlagRequired("output")
	return cmd
}

// shard is a model of part of an input's rows.
type shard struct {
	dir  string
	rows *model.Rows
}

func (s shard) part() *model.Shard { return s.rows.Info.Encoding.Shard }

// openShards opens shards, in their order, and returns what their model is to be
// but for words, codes and what is measured of them. The caller closes those that
// were opened, also after an error.
func openShards(dirs []string) (shards []shard, m *model.Model, err error) {
	for _, dir := range dirs {
		rows, err := model.OpenRows(dir)
		if err != nil {
			return shards, nil, err
		}
		s := shard{dir, rows}
		shards = append(shards, s)
		if e := rows.Info.Encoding; e == nil || e.Shard == nil {
			return shards, nil, fmt.Errorf("%s: is no output of encode --shard", dir)
		}
		if p := s.part(); p.Index < 1 || p.Index > p.Of || p.Words < 0 {
			return shards, nil, fmt.Errorf("%s: model.json: shard %d of %d, of %d words", dir, p.Index, p.Of, p.Words)
		}
		head, err := model.OpenDictionary(dir)
		switch {
		case err != nil:
			return shards, nil, err
		case m == nil:
			m = head
		default:
			if err := sameRun(shards[0], s, m, head); err != nil {
				return shards, nil, err
			}
		}
	}
	slices.SortFunc(shards, func(a, b shard) int { return a.part().Index - b.part().Index })
	of := shards[0].part().Of
	for i, s := range shards {
		if index := s.part().Index; index < i+1 {
			return shards, nil, fmt.Errorf("%s and %s are both shard %d of %d", shards[i-1].dir, s.dir, index, of)
		} else if index > i+1 {
			return shards, nil, fmt.Errorf("shard %d of %d is missing", i+1, of)
		}
		blocks, words := shares(s.part())
		if len(s.part().Losses) != blocks || s.rows.Info.Input.Words != words {
			return shards, nil, fmt.Errorf("%s: model.json: %d words in %d blocks, want %d in %d: shard %d of %d of %d words",
				s.dir, s.rows.Info.Input.Words, len(s.part().Losses), words, blocks, i+1, of, s.part().Words)
		}
	}
	if len(shards) < of {
		return shards, nil, fmt.Errorf("shard %d of %d is missing", len(shards)+1, of)
	}
	e := *m.Info.Encoding
	e.Shard = nil
	m.Info.Encoding = &e
	return shards, m, nil
}

// shares returns how many blocks and words a shard must have.
func shares(p *model.Shard) (blocks, words int) {
	all := p.Words / encode.Block
	last := p.Words % encode.Block // words of a block that is not full
	if last > 0 {
		all++
	}
	if all < p.Index {
		return 0, 0
	}
	blocks = (all-p.Index)/p.Of + 1
	words = blocks * encode.Block
	if last > 0 && (all-p.Index)%p.Of == 0 {
		words -= encode.Block - last
	}
	return blocks, words
}

// sameRun returns an error unless two shards are of one input, encoded in the same
// way with the same dictionary.
func sameRun(a, b shard, first, second *model.Model) error {
	x, y := first.Info.Encoding, second.Info.Encoding
	for _, v := range []struct {
		what   string
		differ bool
	}{
		{"models", !slices.Equal(first.Dictionary, second.Dictionary) || !slices.Equal(first.Mean, second.Mean) ||
			x.TrainedOn != y.TrainedOn || first.Info.Training != second.Info.Training},
		{"inputs", first.Info.Input.SHA256 != second.Info.Input.SHA256 || first.Info.Input.Name != second.Info.Input.Name || x.Shard.Words != y.Shard.Words},
		{"numbers of shards", x.Shard.Of != y.Shard.Of},
		{"flags of encode", x.Lambda != y.Lambda || x.Steps != y.Steps || x.Most != y.Most || x.Gap != y.Gap},
		{fmt.Sprintf("kinds of processor, %s and %s (--device, --precision and OVERCOMPLETE_CPU choose it)", x.Device, y.Device), x.Device != y.Device},
	} {
		if v.differ {
			return fmt.Errorf("%s and %s are of different %s", a.dir, b.dir, v.what)
		}
	}
	return nil
}

// mergeRows adds the shards' blocks in turn, and fills in what is measured of them.
func mergeRows(ctx context.Context, shards []shard, e *model.Encoding, add func([]string, *vectors.Sparse) error) error {
	tally := new(encode.Tally)
	for _, s := range shards {
		tally.WorstGap = max(tally.WorstGap, s.rows.Info.Encoding.WorstGap)
		tally.Unreached += s.rows.Info.Encoding.Unreached
	}
	total := shards[0].part().Words
	for block := 0; block*encode.Block < total; block++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := shards[block%len(shards)]
		words, codes, err := s.rows.Next(encode.Block)
		if err != nil {
			return usageError{err}
		}
		tally.Block(codes, s.part().Losses[block/len(shards)])
		if err := add(words, codes); err != nil {
			return err
		}
	}
	for _, s := range shards {
		if err := s.rows.Finish(); err != nil {
			return usageError{err}
		}
	}
	tally.Report(e)
	return nil
}
