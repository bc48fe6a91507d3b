package inflate

// maxCode is the longest code of DEFLATE in bits.
const maxCode = 15

// fastBits is the length of the codes that one look at a table decodes.
const fastBits = 10

// huffman decodes a canonical Huffman code (RFC 1951, section 3.2.2).
type huffman struct {
	fast    [1 << fastBits]uint16 // symbol<<4 | length, by the next bits; 0 for longer codes
	count   [maxCode + 1]uint16   // codes of each length
	symbols [288]uint16           // by code
}

// build sets the code with the given lengths, 0 for a symbol without a code. It reports
// whether they are those of a code: a complete one, or where single is set also one of a
// single symbol of length 1, or of none.
func (h *huffman) build(lengths []uint8, single bool) bool {
	*h = huffman{}
	used := 0
	for _, n := range lengths {
		h.count[n]++
		if n > 0 {
			used++
		}
	}
	h.count[0] = 0
	left := 1
	for n := 1; n <= maxCode; n++ {
		left = left<<1 - int(h.count[n])
		if left < 0 {
			return false
		}
	}
	if left > 0 && (!single || used > 1 || used == 1 && h.count[1] != 1) {
		return false
	}
	var offsets, next [maxCode + 2]uint16
	code := uint16(0)
	for n := 1; n <= maxCode; n++ {
		offsets[n+1] = offsets[n] + h.count[n]
		next[n] = code
		code = (code + h.count[n]) << 1
	}
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		h.symbols[offsets[n]] = uint16(symbol)
		offsets[n]++
		if n <= fastBits {
			for at := int(reversed(next[n], n)); at < len(h.fast); at += 1 << n {
				h.fast[at] = uint16(symbol)<<4 | uint16(n)
			}
		}
		next[n]++
	}
	return true
}

// reversed returns the lowest n bits of a code in the opposite order.
func reversed(code uint16, n uint8) uint16 {
	out := uint16(0)
	for range n {
		out = out<<1 | code&1
		code >>= 1
	}
	return out
}

// decode returns the symbol that the bits begin with and its length. The length is more than
// maxCode if no code begins so; it is more than the number of valid bits if more are needed.
func (h *huffman) decode(bits uint64) (symbol int, length uint) {
	if e := h.fast[bits&(1<<fastBits-1)]; e != 0 {
		return int(e >> 4), uint(e & 15)
	}
	code, first, index := 0, 0, 0
	for n := uint(1); n <= maxCode; n++ {
		code |= int(bits & 1)
		bits >>= 1
		count := int(h.count[n])
		if code-count < first {
			return int(h.symbols[index+code-first]), n
		}
		index += count
		first = (first + count) << 1
		code <<= 1
	}
	return 0, maxCode + 1
}
