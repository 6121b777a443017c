package encode

import (
	"testing"

	"overcomplete/model"
)

// The closed form of shardSize agrees with counting block by block.
func TestShardSize(t *testing.T) {
	for _, total := range []int{0, 1, Block - 1, Block, Block + 1, 5*Block + 7, 12 * Block} {
		for of := 1; of <= 7; of++ {
			for index := 1; index <= of; index++ {
				blocks, rows := 0, 0
				for block := index - 1; block*Block < total; block += of {
					blocks++
					rows += min(Block, total-block*Block)
				}
				gotBlocks, gotWords := shardSize(&model.Shard{Index: index, Of: of, Rows: total})
				if gotBlocks != blocks || gotWords != rows {
					t.Errorf("shard %d of %d of %d words: %d words in %d blocks, want %d in %d", index, of, total, gotWords, gotBlocks, rows, blocks)
				}
			}
		}
	}
}
