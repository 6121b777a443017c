package kernels

// widths are the lengths of rows in elements: codes have K, vectors have L. The pitches include padding.
type widths struct {
	atoms, dim          int
	codePitch, dimPitch int
}

// newWidths returns the widths for a precision, with rows aligned to 16 bytes.
func newWidths(p Precision, atoms, dim int) widths {
	unit := 4
	if p == fp16 {
		unit = 8
	}
	return widths{atoms, dim, roundUp(atoms, unit), roundUp(dim, unit)}
}

func (w widths) shape(rows int) shape {
	return shape{int32(rows), int32(w.atoms), int32(w.dim), int32(w.codePitch), int32(w.dimPitch)}
}

// The search has pitches and numbers of rows of its own; see [search].

// searchPitch returns the pitch of the search's codes.
func (w widths) searchPitch() int { return roundUp(w.atoms, searchColumns) }

// bytePitch returns the pitch of rows of n bytes, and of the search's rows of n floats.
func (widths) bytePitch(n int) int { return roundUp(n, searchDepth) }

// byteRows returns the number of rows, with padding, of D8 or of its transpose.
func (widths) byteRows(n int) int { return roundUp(n, 16) }

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// copyRows copies rows between matrices of different pitch, and clears the padding of dst.
func copyRows(dst []float32, dstPitch int, src []float32, srcPitch int) {
	for i := range len(dst) / dstPitch {
		row := dst[i*dstPitch : (i+1)*dstPitch]
		clear(row[copy(row, src[i*srcPitch:(i+1)*srcPitch]):])
	}
}

// pitched returns rows of the given length, padded to the pitch. If they need no padding, it returns rows itself.
func pitched(rows []float32, length, pitch int) []float32 {
	if length == pitch {
		return rows
	}
	p := make([]float32, len(rows)/length*pitch)
	copyRows(p, pitch, rows, length)
	return p
}
