package wire

import "encoding/binary"

// Bounds of a streamed answer, in bytes. A child that has sent StreamWindow bytes of the body
// sends no more until the parent grants a Credit, which it does as the client reads: so
// neither side holds more than the window, however slow the client is.
const (
	StreamWindow = 256 << 10
	MaxChunk     = 64 << 10
)

// StreamHead begins a streamed answer. Status is from 200 to 599, and there are at most
// MaxFetchHeaders headers.
type StreamHead struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
}

// AppendChunk appends a Chunk frame of 1 to MaxChunk bytes.
func AppendChunk(dst, data []byte) ([]byte, error) {
	if len(data) == 0 || len(data) > MaxChunk {
		return dst, ErrFrame
	}
	dst, at := begin(dst, KindChunk)
	return end(append(dst, data...), at)
}

// AppendSignal appends a frame without a payload: StreamEnd or Abort.
func AppendSignal(dst []byte, kind Kind) ([]byte, error) {
	dst, at := begin(dst, kind)
	return end(dst, at)
}

// AppendCredit appends a Credit frame.
func AppendCredit(dst []byte, n uint32) ([]byte, error) {
	dst, at := begin(dst, KindCredit)
	return end(binary.BigEndian.AppendUint32(dst, n), at)
}

// ParseCredit reads a Credit payload.
func ParseCredit(payload []byte) (uint32, error) {
	if len(payload) != 4 {
		return 0, ErrFrame
	}
	return binary.BigEndian.Uint32(payload), nil
}
