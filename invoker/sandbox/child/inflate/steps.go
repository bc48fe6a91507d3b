package inflate

// step does one part of the work. It either uses the input that it needs or returns ErrMore
// and uses nothing, so that it can be called again.
type step func(d *Decoder, o *output) error

// Extra bits and bases of lengths and distances (RFC 1951, section 3.2.5).
var (
	lengthBase = [...]int{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits = [...]uint{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [...]int{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distBits   = [...]uint{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
	codeOrder  = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
)

const endOfBlock = 256

func blockHead(d *Decoder, _ *output) error {
	if !d.need(3) {
		return ErrMore
	}
	d.last = d.take(1) == 1
	switch d.take(2) {
	case 0:
		d.step = storedHead
	case 1:
		d.fixed()
		d.step = symbols
	case 2:
		d.step = dynamicHead
	default:
		return ErrData
	}
	return nil
}

// endBlock goes on behind a block.
func (d *Decoder) endBlock() {
	d.step = blockHead
	if d.last {
		d.align()
		d.ended, d.step = true, finish
	}
}

func storedHead(d *Decoder, _ *output) error {
	d.align()
	if !d.need(32) {
		return ErrMore
	}
	n, check := d.take(16), d.take(16)
	if n != check^0xffff {
		return ErrData
	}
	d.left = int(n) //nolint:gosec // 16 bits
	d.step = stored
	return nil
}

func stored(d *Decoder, o *output) error {
	for d.left > 0 && o.n < len(o.to) {
		if !d.need(8) {
			return ErrMore
		}
		d.put(o, byte(d.take(8)))
		d.left--
	}
	if d.left == 0 {
		d.endBlock()
	}
	return nil
}

// fixed sets the codes of RFC 1951, section 3.2.6.
func (d *Decoder) fixed() {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	d.literals.build(lengths[:], false)
	for i := range 30 {
		lengths[i] = 5
	}
	lengths[30], lengths[31] = 5, 5 // take part in the code and must not occur
	d.dist.build(lengths[:32], false)
}

func dynamicHead(d *Decoder, _ *output) error {
	if !d.need(14) {
		return ErrMore
	}
	d.nlit = int(d.take(5)) + 257 //nolint:gosec // 5 bits
	ndist := int(d.take(5)) + 1   //nolint:gosec // 5 bits
	d.total = int(d.take(4)) + 4  //nolint:gosec // 4 bits
	if d.nlit > 286 || ndist > 30 {
		return ErrData
	}
	clear(d.lengths[:])
	d.read, d.left = 0, ndist
	d.step = codeLengths
	return nil
}

// codeLengths reads the code of the lengths of the other codes.
func codeLengths(d *Decoder, _ *output) error {
	for d.read < d.total {
		if !d.need(3) {
			return ErrMore
		}
		d.lengths[codeOrder[d.read]] = uint8(d.take(3)) //nolint:gosec // 3 bits
		d.read++
	}
	if !d.literals.build(d.lengths[:len(codeOrder)], false) {
		return ErrData
	}
	clear(d.lengths[:])
	d.read, d.total, d.left = 0, d.nlit+d.left, 0
	d.step = codeTables
	return nil
}

// codeTables reads the lengths of the codes of literals and of distances.
func codeTables(d *Decoder, _ *output) error {
	for d.read < d.total {
		d.fill()
		symbol, n := d.literals.decode(d.bits)
		extra := [...]uint{2, 3, 7}[max(0, symbol-16)]
		if symbol < 16 {
			extra = 0
		}
		switch {
		case n > maxCode:
			return d.invalid()
		case n+extra > d.have:
			return ErrMore
		}
		d.take(n)
		if err := d.repeat(symbol, int(d.take(extra))); err != nil { //nolint:gosec // 7 bits
			return err
		}
	}
	if d.lengths[endOfBlock] == 0 || !d.literals.build(d.lengths[:d.nlit], true) || !d.dist.build(d.lengths[d.nlit:d.total], true) {
		return ErrData
	}
	d.step = symbols
	return nil
}

// repeat appends the length that a symbol means, or several.
func (d *Decoder) repeat(symbol, extra int) error {
	length, times := uint8(0), 1
	switch symbol {
	case 16:
		if d.read == 0 {
			return ErrData
		}
		length, times = d.lengths[d.read-1], 3+extra
	case 17:
		times = 3 + extra
	case 18:
		times = 11 + extra
	default:
		length = uint8(symbol) //nolint:gosec // less than 16
	}
	if d.read+times > d.total {
		return ErrData
	}
	for range times {
		d.lengths[d.read] = length
		d.read++
	}
	return nil
}

// invalid is the error for bits that begin no code, ErrMore if they may be too few to tell.
func (d *Decoder) invalid() error {
	if d.have < maxCode {
		return ErrMore
	}
	return ErrData
}

// symbols decodes literals and matches until the output is full or the block ends.
func symbols(d *Decoder, o *output) error {
	for o.n < len(o.to) {
		d.fill()
		symbol, n := d.literals.decode(d.bits)
		switch {
		case n > maxCode:
			return d.invalid()
		case n > d.have:
			return ErrMore
		case symbol < endOfBlock:
			d.take(n)
			d.put(o, byte(symbol)) //nolint:gosec // less than 256
			continue
		case symbol == endOfBlock:
			d.take(n)
			d.endBlock()
			return nil
		}
		if err := d.match(symbol-endOfBlock-1, n); err != nil {
			return err
		}
		copyMatch(d, o)
		if d.left > 0 {
			d.step = matching
			return nil
		}
	}
	return nil
}

// match reads the rest of a match, whose length has the given symbol and a code of n bits.
func (d *Decoder) match(symbol int, n uint) error {
	if symbol >= len(lengthBase) {
		return ErrData
	}
	bits := d.bits >> n
	length := lengthBase[symbol] + int(bits&(1<<lengthBits[symbol]-1)) //nolint:gosec // 5 bits
	n += lengthBits[symbol]
	far, m := d.dist.decode(d.bits >> n)
	switch {
	case m > maxCode && n+maxCode > d.have:
		return ErrMore
	case m > maxCode || n+m <= d.have && far >= len(distBase):
		return ErrData
	case n+m > d.have || n+m+distBits[far] > d.have:
		return ErrMore
	}
	n += m
	distance := distBase[far] + int(d.bits>>n&(1<<distBits[far]-1)) //nolint:gosec // 13 bits
	if distance > d.filled {
		return ErrData
	}
	d.take(n + distBits[far])
	d.left, d.distance = length, distance
	return nil
}

// matching copies the rest of a match for which the output had no room.
func matching(d *Decoder, o *output) error {
	copyMatch(d, o)
	if d.left == 0 {
		d.step = symbols
	}
	return nil
}

func copyMatch(d *Decoder, o *output) {
	for d.left > 0 && o.n < len(o.to) {
		d.put(o, d.window[(d.at-d.distance+windowSize)%windowSize])
		d.left--
	}
}
