package encode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Merge joins the shards of one input and saves the model of the whole input in the directory dir; force is as in
// [model.Model.Save]. The directories dirs of the shards may be in any order. The files are byte-identical to the files
// of an encoding without shards. Merge returns the content of model.json.
//
// The error is a [*vectors.InputError] if a shard is missing, repeated or damaged, or if shards differ in model, input,
// word list, options or kind of processor.
func Merge(ctx context.Context, dir string, force bool, dirs ...string) (info model.Info, err error) {
	to := modeldir.NewTarget(dir, force)
	if err := to.Check(); err != nil {
		return info, err
	}
	shards, m, err := openShards(dirs)
	if err != nil {
		return info, err
	}
	for _, s := range shards {
		var stop func()
		s.rows, stop = iter.Pull2(s.model.Rows(s.dir, Block))
		defer stop()
	}
	w, err := m.NewWriterTo(to)
	if err != nil {
		return info, err
	}
	defer func() { err = w.Abort(err) }()
	t := new(tally)
	for block := 0; block*Block < shards[0].part().Rows; block++ {
		rows, err := shards[block%len(shards)].next(t, block/len(shards))
		if err == nil {
			err = cmp.Or(ctx.Err(), w.Add(rows))
		}
		if err != nil {
			return info, err
		}
	}
	for _, s := range shards {
		if _, err, more := s.rows(); more {
			return info, err // a wrong checksum
		}
		t.worstGap = max(t.worstGap, s.encoding().WorstGap)
		t.unreached += s.encoding().Unreached
	}
	e := *m.Info.Encoding
	t.report(&e)
	return w.Commit(ctx, e)
}

// shard is a model of some blocks of an input.
type shard struct {
	dir      string
	model    *model.Model // without codes
	rows     func() (*vectors.Sparse, error, bool)
	rowsRead int
}

func (s *shard) encoding() *model.Encoding { return s.model.Info.Encoding }
func (s *shard) part() *model.Shard        { return s.encoding().Shard }

// errorf returns the error for a shard that can't be merged.
func (s *shard) errorf(format string, a ...any) error {
	return &vectors.InputError{File: s.dir, Err: fmt.Errorf(format, a...)}
}

// openShards opens and checks shards. It returns them in the order of their Index. It also returns the model to merge
// them into, in which the metrics of the Encoding are not set.
func openShards(dirs []string) (shards []*shard, m *model.Model, err error) {
	for _, dir := range dirs {
		s := &shard{dir: dir}
		if s.model, err = model.OpenDictionary(dir); err != nil {
			return nil, nil, err
		}
		if e := s.encoding(); e == nil || e.Shard == nil {
			return nil, nil, s.errorf("is not a shard")
		}
		if p := s.part(); p.Index < 1 || p.Index > p.Of || p.Rows < 0 || len(p.UnreachedRows) != len(s.encoding().UnreachedIDs) {
			return nil, nil, s.errorf("model.json: inconsistent shard %d of %d of %d rows (%d unreached rows, %d ids of them)",
				p.Index, p.Of, p.Rows, len(p.UnreachedRows), len(s.encoding().UnreachedIDs))
		}
		if shards = append(shards, s); len(shards) > 1 {
			if property := difference(shards[0].model, s.model); property != "" {
				return nil, nil, s.errorf("differs from %s in its %s", dirs[0], property)
			}
			s.model.Dictionary = shards[0].model.Dictionary // frees the shard's own copy
		}
	}
	if len(shards) == 0 {
		return nil, nil, &vectors.InputError{Err: errors.New("no shards to merge")}
	}
	slices.SortFunc(shards, func(a, b *shard) int { return a.part().Index - b.part().Index })
	of := shards[0].part().Of
	for i := range max(of, len(shards)) {
		if i >= len(shards) || shards[i].part().Index > i+1 {
			return nil, nil, &vectors.InputError{Err: fmt.Errorf("shard %d of %d is missing", i+1, of)}
		}
		s := shards[i]
		if s.part().Index < i+1 {
			return nil, nil, s.errorf("repeats shard %d of %d in %s", s.part().Index, of, shards[i-1].dir)
		}
		blocks, words := shardSize(s.part())
		if len(s.part().Losses) != blocks || len(s.part().Squares) != blocks || s.model.Info.Rows() != words {
			return nil, nil, s.errorf("model.json: shard %d of %d of %d rows has the wrong size (got %d rows in %d blocks, want %d in %d)",
				i+1, of, s.part().Rows, s.model.Info.Rows(), len(s.part().Losses), words, blocks)
		}
	}
	e := *shards[0].encoding()
	e.Shard = nil
	m = &model.Model{Info: shards[0].model.Info, Dictionary: shards[0].model.Dictionary}
	m.Info.Encoding = &e
	return shards, m, nil
}

func shardSize(p *model.Shard) (blocks, rows int) {
	all := p.Rows/Block + min(p.Rows%Block, 1) // can't overflow
	blocks = (all - p.Index + p.Of) / p.Of
	rows = blocks * Block
	if (all-p.Index)%p.Of == 0 { // this shard has the last block, which may be incomplete
		rows -= all*Block - p.Rows
	}
	return blocks, rows
}

// difference returns the name of a property in which the runs of two shards differ, or "".
func difference(a, b *model.Model) string {
	x, y := a.Info.Encoding, b.Info.Encoding
	switch {
	case !slices.Equal(a.Dictionary.Atoms, b.Dictionary.Atoms) || !slices.Equal(a.Dictionary.Mean, b.Dictionary.Mean) ||
		!slices.Equal(a.Dictionary.Themes, b.Dictionary.Themes) || !reflect.DeepEqual(a.Info.Training, b.Info.Training):
		return "model"
	case x.Input.SHA256 != y.Input.SHA256 || x.Input.Name != y.Input.Name || x.Shard.Rows != y.Shard.Rows:
		return "input"
	case x.Input.WordsSHA256 != y.Input.WordsSHA256:
		return "word list"
	case x.Shard.Of != y.Shard.Of:
		return "number of shards"
	case x.Lambda != y.Lambda || x.FirstLambda != y.FirstLambda || x.Steps != y.Steps || x.Nonzeros != y.Nonzeros || x.Gap != y.Gap:
		return "encoding options"
	case x.Search != y.Search:
		return fmt.Sprintf("version of the search (got %d, want %d)", y.Search, x.Search)
	case x.Device != y.Device:
		return fmt.Sprintf("kind of processor (got %s, want %s)", y.Device, x.Device)
	}
	return ""
}

// next reads the shard's next block, number n, and adds its metrics to t.
func (s *shard) next(t *tally, n int) (*vectors.Sparse, error) {
	rows, err, _ := s.rows()
	if err != nil {
		return nil, err
	}
	for _, row := range s.part().UnreachedRows {
		if i := row - s.rowsRead; i >= 0 && i < rows.Rows {
			t.addUnreached(i, rows.IDs[i])
		}
	}
	s.rowsRead += rows.Rows
	sums := blockSums{loss: s.part().Losses[n], squares: s.part().Squares[n]}
	sums.addCodes(&rows.CSR)
	t.addBlock(&rows.CSR, &sums)
	return rows, nil
}
