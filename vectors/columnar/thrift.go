package columnar

import "encoding/binary"

// thrift is a struct in Thrift's compact protocol, in which Parquet has its headers
// and its footer. Fields have numbers and must be added in their order.
type thrift struct {
	bytes []byte
	last  int // number of the last field
}

// Types of the compact protocol.
const (
	thriftI32    = 5
	thriftI64    = 6
	thriftString = 8
	thriftList   = 9
	thriftStruct = 12
)

func (t *thrift) field(number int, typ byte) {
	t.bytes = append(t.bytes, byte(number-t.last)<<4|typ)
	t.last = number
}

func (t *thrift) list(number, length int, typ byte) {
	t.field(number, thriftList)
	const short = 15
	t.bytes = append(t.bytes, byte(min(length, short))<<4|typ)
	if length >= short {
		t.bytes = binary.AppendUvarint(t.bytes, uint64(length))
	}
}

func (t *thrift) appendString(s string) {
	t.bytes = append(binary.AppendUvarint(t.bytes, uint64(len(s))), s...)
}

func (t *thrift) i32(number, v int) {
	t.field(number, thriftI32)
	t.bytes = binary.AppendVarint(t.bytes, int64(v))
}

func (t *thrift) i64(number int, v int64) {
	t.field(number, thriftI64)
	t.bytes = binary.AppendVarint(t.bytes, v)
}

func (t *thrift) i32s(number int, list ...int) {
	t.list(number, len(list), thriftI32)
	for _, v := range list {
		t.bytes = binary.AppendVarint(t.bytes, int64(v))
	}
}

func (t *thrift) string(number int, s string) {
	t.field(number, thriftString)
	t.appendString(s)
}

func (t *thrift) strings(number int, list ...string) {
	t.list(number, len(list), thriftString)
	for _, s := range list {
		t.appendString(s)
	}
}

func (t *thrift) structure(number int, s thrift) {
	t.field(number, thriftStruct)
	t.bytes = append(t.bytes, s.end()...)
}

func (t *thrift) structures(number int, list ...thrift) {
	t.list(number, len(list), thriftStruct)
	for _, s := range list {
		t.bytes = append(t.bytes, s.end()...)
	}
}

// end returns the bytes of the struct with its end.
func (t *thrift) end() []byte { return append(t.bytes[:len(t.bytes):len(t.bytes)], 0) }
