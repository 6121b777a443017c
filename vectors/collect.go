package vectors

import (
	"context"
	"fmt"
	"math"
	"slices"

	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
)

// A collector joins the blocks of a stream.
type collector struct {
	keep   func(rows *Dense) (n int, sample *Sample) // the function ReadOptions.Keep
	sample *Sample                                   // the result of keep, or nil
	rows   Dense                                     // has no vectors until join is called
	blocks [][]float32                               // vectors by block, unless rows has room for all vectors
	full   bool                                      // the function keep has limited the rows
}

// add adds a block. The argument announced is the number of rows of the block's file, or 0 if unknown. It returns
// an error if there is too little memory to join all blocks.
func (c *collector) add(block *Dense, announced int) error {
	if c.full {
		return nil
	}
	if c.sample != nil {
		c.sample.Add(block)
		memory.Recycle(block.Data)
		return nil
	}
	before := c.rows.Len()
	if before == 0 {
		c.rows = Dense{Dim: block.Dim, IDs: block.IDs, Texts: block.Texts}
		if announced > block.Len() && c.keep == nil {
			if err := checkRoom(announced, block.Dim); err != nil {
				return err
			}
			c.rows.Data = memory.Zeros[float32](announced * block.Dim)[:0]
		}
	} else {
		c.rows.IDs, c.rows.Texts = append(c.rows.IDs, block.IDs...), c.rows.Texts.Join(block.Texts)
	}
	if len(c.blocks) == 0 && cap(c.rows.Data)-len(c.rows.Data) >= len(block.Data) {
		c.rows.Data = append(c.rows.Data, block.Data...)
		memory.Recycle(block.Data)
		return nil
	}
	if len(c.rows.Data) > 0 {
		c.blocks, c.rows.Data = [][]float32{c.rows.Data}, nil
	}
	c.blocks = append(c.blocks, block.Data)
	if c.keep != nil {
		limit, sample := c.keep(&c.rows)
		switch {
		case sample != nil:
			if err := checkRoom(min(announced, sample.size), block.Dim); err != nil {
				return err
			}
			sample.grow(announced, block.Dim)
			c.startSample(sample)
			return nil
		case limit > 0 && limit < c.rows.Len():
			c.rows.IDs, c.rows.Texts, c.full = c.rows.IDs[:limit], c.rows.Texts.Slice(0, limit), true
		}
	}
	// The function join needs as much memory as the blocks. Check for it at intervals, not only after the last block.
	const interval, perRow = 1 << 26, 64 // in units of 4 bytes: check every 256 MiB, and estimate 256 bytes per id
	n, size := c.rows.Len(), block.Dim+perRow
	if len(c.blocks) > 1 && n*size/interval > before*size/interval {
		return c.checkMemory()
	}
	return nil
}

// checkRoom returns an error unless there is memory for the given number of rows, of dim numbers each.
func checkRoom(rows, dim int) error {
	if err := memory.Check(4 * uint64(rows) * uint64(dim)); err != nil {
		return fmt.Errorf("%d rows of %d numbers: %w", rows, dim, err)
	}
	return nil
}

// startSample moves the rows to a sample. Later calls of add extend this sample.
func (c *collector) startSample(s *Sample) {
	lo := 0
	for _, data := range c.blocks {
		hi := lo + len(data)/c.rows.Dim
		s.Add(&Dense{IDs: c.rows.IDs[lo:hi], Texts: c.rows.Texts.Slice(lo, hi), Dim: c.rows.Dim, Data: data})
		lo = hi
	}
	c.sample, c.rows, c.blocks = s, Dense{}, nil
}

// join copies the vectors of all blocks to one slice.
func (c *collector) join() error {
	if c.sample != nil {
		c.rows = c.sample.Rows
		return nil
	}
	numbers := c.rows.Len() * c.rows.Dim
	if len(c.blocks) == 0 {
		c.rows.Data = slices.Clip(c.rows.Data)
		return nil
	}
	if len(c.blocks) == 1 {
		c.rows.Data = slices.Clip(c.blocks[0][:numbers])
		return nil
	}
	if err := c.checkMemory(); err != nil {
		return err
	}
	c.rows.Data = memory.Zeros[float32](numbers)
	starts := make([]int, len(c.blocks)+1)
	for i, b := range c.blocks {
		starts[i+1] = starts[i] + len(b)
	}
	parallel.Each(context.Background(), len(c.blocks), func(i int) {
		copy(c.rows.Data[min(starts[i], numbers):], c.blocks[i])
		c.blocks[i] = nil // free its memory
	})
	return nil
}

// checkMemory returns an error unless there is memory for a copy of the vectors.
func (c *collector) checkMemory() error {
	if err := checkRoom(c.rows.Len(), c.rows.Dim); err != nil {
		return fmt.Errorf("after %w", err)
	}
	return nil
}

// normWarnings warns about rows whose norm exceeds 1000 times the median of nonzero norms.
func normWarnings(d *Dense) []string {
	norms := make([]float64, d.Len())
	parallel.Ranges(len(norms), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			norms[i] = math.Sqrt(float32s.Squares(d.Row(i)))
		}
	})
	var large tally
	if nonzero := slices.DeleteFunc(slices.Clone(norms), func(n float64) bool { return n == 0 }); len(nonzero) > 0 {
		slices.Sort(nonzero)
		limit := 1000 * nonzero[len(nonzero)/2]
		for i, n := range norms {
			if n > limit {
				large.add(quote(d.IDs[i]))
			}
		}
	}
	return large.warn(nil, "rows with a norm over 1000 times the median")
}
