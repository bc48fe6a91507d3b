// Package inflate decompresses data that is pushed to it in pieces: gzip, zlib and raw
// DEFLATE (RFC 1950 to 1952).
//
// The readers of the standard library pull their input, and cannot go on after a piece that
// ends too early. To push to one takes a goroutine for each stream, which has to be ended
// when a script leaves the stream. A Decoder is a plain value: its state is 45 KB, and the
// collector takes it.
package inflate

import (
	"errors"
	"hash"
	"hash/adler32"
	"hash/crc32"
)

// Format is what a Decoder decompresses.
type Format int

// Formats. Raw has neither a header nor a checksum.
const (
	Raw Format = iota
	Zlib
	Gzip
)

// Errors of Read. ErrMore means that the input is used up before the end. All others last.
var (
	ErrMore       = errors.New("inflate: the input ends before the data")
	ErrEnd        = errors.New("inflate: the data has ended")
	ErrHeader     = errors.New("inflate: incorrect header check")
	ErrDictionary = errors.New("inflate: missing dictionary")
	ErrData       = errors.New("inflate: invalid data")
	ErrChecksum   = errors.New("inflate: incorrect data check")
)

const (
	windowSize = 32 << 10
	// readBudget bounds the input of one call of Read in bytes: input without output takes
	// time, too.
	readBudget = 1 << 20
)

// Decoder is the state of one stream. Use New.
type Decoder struct {
	format     Format
	dictionary []byte
	in         []byte
	bits       uint64
	have       uint // valid bits
	step       step
	err        error

	window [windowSize]byte
	at     int // where the next byte goes
	filled int // bytes of the window that can be copied, at most its size

	last           bool // the block is the last one
	ended          bool // all blocks were read
	left           int  // bytes of a stored block, or of a match
	distance       int  // of the match
	literals, dist huffman
	lengths        [320]uint8
	read, total    int // lengths that were read, and how many there are
	nlit           int

	sum    hash.Hash32
	header hash.Hash32 // of the gzip header
	flags  uint64
	size   uint32 // bytes of output
}

// New returns a decoder. dictionary is that of zlib or of raw data, nil for none.
func New(format Format, dictionary []byte) *Decoder {
	d := &Decoder{format: format, dictionary: dictionary}
	switch format {
	case Gzip:
		d.sum, d.header, d.step = crc32.NewIEEE(), crc32.NewIEEE(), gzipHead
	case Zlib:
		d.sum, d.step = adler32.New(), zlibHead
	default:
		d.step = blockHead
		d.preset(dictionary)
	}
	return d
}

// preset fills the window with the end of a dictionary.
func (d *Decoder) preset(dictionary []byte) {
	tail := dictionary[max(0, len(dictionary)-windowSize):]
	d.filled = copy(d.window[:], tail)
	d.at = d.filled % windowSize
}

// Write appends to the input. The decoder keeps p and does not change it.
func (d *Decoder) Write(p []byte) {
	if len(d.in) == 0 {
		d.in = p
		return
	}
	d.in = append(append(make([]byte, 0, len(d.in)+len(p)), d.in...), p...)
}

// Unread returns the number of bytes of the input that follow the end of the data.
func (d *Decoder) Unread() int {
	return len(d.in) + int(d.have/8)
}

// Next begins another stream of the same format with the input that follows the end of the
// data. It reports whether that begins with the given bytes; otherwise nothing changes.
func (d *Decoder) Next(begin []byte) bool {
	if d.Unread() < len(begin) {
		return false
	}
	bits, have, in := d.bits, d.have, d.in
	for i, b := range begin {
		switch {
		case i < int(have/8) && byte(bits>>(8*i)) != b:
			return false
		case i >= int(have/8) && in[i-int(have/8)] != b:
			return false
		}
	}
	*d = *New(d.format, d.dictionary)
	d.bits, d.have, d.in = bits, have, in
	return true
}

// Read decompresses into p. It returns the number of bytes, which may be 0 without an error:
// then the call used a large part of the input, and the next one goes on.
func (d *Decoder) Read(p []byte) (n int, err error) {
	if d.err != nil {
		return 0, d.err
	}
	o := &output{to: p}
	stop := max(0, len(d.in)-readBudget)
	// The trailer is checked in a call of its own: the sum counts the output of whole calls.
	for err == nil && o.n < len(p) && !(d.ended && o.n > 0) && (len(d.in) > stop || stop == 0) {
		err = d.step(d, o)
	}
	d.produced(p[:o.n])
	if err != nil && !errors.Is(err, ErrMore) {
		d.err = err
	}
	if o.n > 0 { // the error comes again with the next call
		return o.n, nil
	}
	return 0, err
}

// produced counts output, which is checked at the end.
func (d *Decoder) produced(p []byte) {
	d.size += uint32(len(p)) //nolint:gosec // the size of gzip is modulo 2^32
	if d.sum != nil {
		d.sum.Write(p)
	}
}

// output is where a call of Read writes.
type output struct {
	to []byte
	n  int
}

func (d *Decoder) put(o *output, b byte) {
	o.to[o.n] = b
	o.n++
	d.window[d.at] = b
	d.at = (d.at + 1) % windowSize
	if d.filled < windowSize {
		d.filled++
	}
}

// need makes at least n bits available, at most 56.
func (d *Decoder) need(n uint) bool {
	d.fill()
	return d.have >= n
}

func (d *Decoder) fill() {
	for d.have <= 56 && len(d.in) > 0 {
		d.bits |= uint64(d.in[0]) << d.have
		d.in = d.in[1:]
		d.have += 8
	}
}

func (d *Decoder) take(n uint) uint64 {
	v := d.bits & (1<<n - 1)
	d.bits >>= n
	d.have -= n
	return v
}

// align drops the bits up to the next byte.
func (d *Decoder) align() { d.take(d.have % 8) }
