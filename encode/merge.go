package encode

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"overcomplete/model"
	"overcomplete/vectors"
)

// A ShardError says why models cannot be merged: they are not the shards of one input,
// or one of them is damaged.
type ShardError struct{ Err error }

func (e *ShardError) Error() string { return e.Err.Error() }
func (e *ShardError) Unwrap() error { return e.Err }

// Merge puts the shards of one input together. The directories dirs hold the shards,
// in any order. The model of the whole input is saved as the directory dir, with force
// as in [model.Model.Save]. Its files are, to the byte, those that a [Stream] without a
// shard would have made. Merge returns the content of its model.json.
//
// The error is a [*ShardError] if a shard is missing, there twice or damaged, or if
// they differ in model, input, word list, options or kind of processor. Other errors
// are those of [model.Model.SaveRows], or of ctx if it is cancelled.
func Merge(ctx context.Context, dir string, force bool, dirs ...string) (model.Info, error) {
	shards, m, err := openShards(dirs)
	defer func() {
		for _, s := range shards {
			s.rows.Close()
		}
	}()
	if err != nil {
		return model.Info{}, &ShardError{err}
	}
	return m.SaveRows(ctx, dir, model.MayReplace(force), func(add func(*vectors.Sparse) error) (model.Encoding, error) {
		e := *m.Info.Encoding
		err := mergeRows(ctx, shards, &e, add)
		return e, err
	})
}

// shard is a model of part of an input's rows.
type shard struct {
	dir  string
	rows *model.Rows
	done int // rows that were read
}

func (s *shard) encoding() *model.Encoding { return s.rows.Info.Encoding }
func (s *shard) part() *model.Shard        { return s.encoding().Shard }

// openShards opens shards, in their order, and returns what their model is to be
// but for words, codes and what is measured of them. The caller closes those that
// were opened, also after an error.
func openShards(dirs []string) (shards []*shard, m *model.Model, err error) {
	for _, dir := range dirs {
		rows, err := model.OpenRows(dir)
		if err != nil {
			return shards, nil, err
		}
		s := &shard{dir: dir, rows: rows}
		shards = append(shards, s)
		if e := rows.Info.Encoding; e == nil || e.Shard == nil {
			return shards, nil, fmt.Errorf("%s: is no output of encode --shard", dir)
		}
		if p := s.part(); p.Index < 1 || p.Index > p.Of || p.Words < 0 || len(p.UnreachedRows) != len(s.encoding().UnreachedWords) {
			return shards, nil, fmt.Errorf("%s: model.json: shard %d of %d, of %d words, with %d rows for %d words that are named",
				dir, p.Index, p.Of, p.Words, len(p.UnreachedRows), len(s.encoding().UnreachedWords))
		}
		head, err := model.OpenDictionary(dir)
		if err == nil && !reflect.DeepEqual(head.Info, rows.Info) {
			err = fmt.Errorf("%s: has been replaced while it was read", dir)
		}
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
	if len(shards) == 0 {
		return nil, nil, errors.New("there are no shards to merge")
	}
	slices.SortFunc(shards, func(a, b *shard) int { return a.part().Index - b.part().Index })
	of := shards[0].part().Of
	for i, s := range shards {
		if index := s.part().Index; index < i+1 {
			return shards, nil, fmt.Errorf("%s and %s are both shard %d of %d", shards[i-1].dir, s.dir, index, of)
		} else if index > i+1 {
			return shards, nil, fmt.Errorf("shard %d of %d is missing", i+1, of)
		}
		blocks, words := shares(s.part())
		if len(s.part().Losses) != blocks || len(s.part().Squares) != blocks || s.rows.Info.Words() != words {
			return shards, nil, fmt.Errorf("%s: model.json: %d words in %d blocks, want %d in %d: shard %d of %d of %d words",
				s.dir, s.rows.Info.Words(), len(s.part().Losses), words, blocks, i+1, of, s.part().Words)
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
	all := p.Words / Block
	last := p.Words % Block // words of a block that is not full
	if last > 0 {
		all++
	}
	if all < p.Index {
		return 0, 0
	}
	blocks = (all-p.Index)/p.Of + 1
	words = blocks * Block
	if last > 0 && (all-p.Index)%p.Of == 0 {
		words -= Block - last
	}
	return blocks, words
}

// sameRun returns an error unless two shards are of one input, encoded in the same
// way with the same dictionary.
func sameRun(a, b *shard, first, second *model.Model) error {
	x, y := first.Info.Encoding, second.Info.Encoding
	in, other := x.Input, y.Input
	for _, v := range []struct {
		what   string
		differ bool
	}{
		{"models", !slices.Equal(first.Dictionary.Atoms, second.Dictionary.Atoms) || !slices.Equal(first.Dictionary.Mean, second.Dictionary.Mean) ||
			!reflect.DeepEqual(first.Info.Training, second.Info.Training)},
		{"inputs", in.SHA256 != other.SHA256 || in.Name != other.Name || x.Shard.Words != y.Shard.Words},
		{"word lists", in.WordsSHA256 != other.WordsSHA256},
		{"numbers of shards", x.Shard.Of != y.Shard.Of},
		{"flags of encode", x.Lambda != y.Lambda || x.FirstLambda != y.FirstLambda || x.Steps != y.Steps || x.Nonzeros != y.Nonzeros || x.Gap != y.Gap},
		{fmt.Sprintf("kinds of processor, %s and %s (--device, --precision and OVERCOMPLETE_CPU choose it)", x.Device, y.Device), x.Device != y.Device},
	} {
		if v.differ {
			return fmt.Errorf("%s and %s are of different %s", a.dir, b.dir, v.what)
		}
	}
	return nil
}

// mergeRows adds the shards' blocks in turn, and fills in what is measured of them.
func mergeRows(ctx context.Context, shards []*shard, e *model.Encoding, add func(*vectors.Sparse) error) error {
	t := new(tally)
	for _, s := range shards {
		t.worstGap = max(t.worstGap, s.encoding().WorstGap)
		t.unreached += s.encoding().Unreached
	}
	total := shards[0].part().Words
	for block := 0; block*Block < total; block++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := shards[block%len(shards)]
		rows, err := s.rows.Next(Block)
		if err != nil {
			return &ShardError{err}
		}
		for _, row := range s.part().UnreachedRows {
			if i := row - s.done; i >= 0 && i < rows.Rows {
				t.name(i, rows.Words[i])
			}
		}
		s.done += rows.Rows
		i := block / len(shards)
		t.block(&rows.CSR, s.part().Losses[i], s.part().Squares[i])
		if err := add(rows); err != nil {
			return err
		}
	}
	for _, s := range shards {
		if err := s.rows.Finish(); err != nil {
			return &ShardError{err}
		}
	}
	t.report(e)
	return nil
}
