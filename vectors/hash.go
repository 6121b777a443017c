package vectors

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
)

// SHA256 returns the SHA-256 of vectors as float32, little-endian: it tells whether they
// are others, which need not be from a file.
func SHA256(x []float32) string {
	hash := sha256.New()
	var b []byte
	for part := range slices.Chunk(x, 1<<14) {
		b = b[:0]
		for _, x := range part {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		hash.Write(b)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
