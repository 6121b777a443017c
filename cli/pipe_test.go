package cli

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"overcomplete/testonly/clitest"
)

// batch returns the bytes of rows of numbers.
func batch(rows int64, data []float32) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, rows)
	binary.Write(&b, binary.LittleEndian, data)
	return b.Bytes()
}

// Codes of batches equal the output of encode, for any size of the batches.
func TestPipe(t *testing.T) {
	t.Parallel()
	dir, x := clitest.Sample(t)
	dir.MustRun(t, "train in.txt -o model -k 20 --nonzeros 4")
	for _, flags := range []string{"", " --nonzeros 2"} {
		dir.MustRun(t, "encode model in.txt -o codes --force"+flags)
		codes := dir.Model(t, "codes").Codes
		cmd := dir.Command(strings.Fields("pipe model --workers 1" + flags)...)
		var in, want bytes.Buffer
		for _, rows := range [][2]int{{0, 60}, {7, 7}, {20, 21}, {3, 33}} {
			part := x.Slice(rows[0], rows[1])
			in.Write(batch(int64(part.Len()), part.Data))
			lo, hi := codes.Ptr[rows[0]], codes.Ptr[rows[1]]
			for _, p := range codes.Ptr[rows[0] : rows[1]+1] {
				binary.Write(&want, binary.LittleEndian, p-lo)
			}
			binary.Write(&want, binary.LittleEndian, codes.Index[lo:hi])
			binary.Write(&want, binary.LittleEndian, codes.Value[lo:hi])
		}
		cmd.Stdin = &in
		if code, stdout, stderr := clitest.Output(t, cmd); code != 0 || stdout != want.String() || stderr != "" {
			t.Errorf("%s: exit code %d, %d bytes, want %d; %s", flags, code, len(stdout), want.Len(), stderr)
		}
	}
	x.Data[1] = float32(math.NaN())
	for _, tt := range []struct {
		in   []byte
		args string
		want string
	}{
		{[]byte("abc"), "model", "standard input: unexpected EOF"},
		{batch(-1, nil), "model", "the batch has -1 rows, want 0 to 2147483647"},
		{batch(math.MaxInt64, nil), "model", "rows, want 0 to 2147483647"},
		{batch(math.MaxInt32, x.Data), "model", "the batch ends before its 2147483647 rows of 8 numbers: unexpected EOF"},
		{batch(60, x.Data), "model", "row 1: the vector is too large to encode, or has values that are not finite"},
		{nil, "in.txt", "in.txt"},
		{nil, "model --nonzeros 21", "--nonzeros is 21, and model has 20 dimensions"},
	} {
		cmd := dir.Command(strings.Fields("pipe " + tt.args)...)
		cmd.Stdin = bytes.NewReader(tt.in)
		if code, stdout, stderr := clitest.Output(t, cmd); code != exitUsage || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%.20q: exit code %d, %q, %s\nwithout %s", tt.in, code, stdout, stderr, tt.want)
		}
	}
}
