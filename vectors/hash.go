package vectors

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
)

// SHA256 returns the SHA-256 of x as little-endian float32, in hexadecimal.
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
