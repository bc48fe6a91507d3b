package inflate

import "hash/adler32"

func zlibHead(d *Decoder, _ *output) error {
	if !d.need(16) {
		return ErrMore
	}
	method, flags := d.take(8), d.take(8)
	if method&15 != 8 || method>>4 > 7 || (method<<8|flags)%31 != 0 {
		return ErrHeader
	}
	d.step = blockHead
	if flags&0x20 != 0 {
		d.step = zlibDictionary
	}
	return nil
}

func zlibDictionary(d *Decoder, _ *output) error {
	if !d.need(32) {
		return ErrMore
	}
	if d.dictionary == nil || d.bigEndian() != adler32.Checksum(d.dictionary) {
		return ErrDictionary
	}
	d.preset(d.dictionary)
	d.step = blockHead
	return nil
}

func (d *Decoder) bigEndian() (v uint32) {
	for range 4 {
		v = v<<8 | uint32(d.take(8)) //nolint:gosec // 8 bits
	}
	return v
}

// headByte takes a byte of the gzip header.
func (d *Decoder) headByte() byte {
	b := byte(d.take(8)) //nolint:gosec // 8 bits
	d.header.Write([]byte{b})
	return b
}

const (
	gzipCRC     = 1 << 1
	gzipExtra   = 1 << 2
	gzipName    = 1 << 3
	gzipComment = 1 << 4
	checked     = 1 << 8 // the checksum of the trailer was read
)

func gzipHead(d *Decoder, _ *output) error {
	if d.left == 0 {
		if !d.need(32) {
			return d.early()
		}
		one, two, method, flags := d.headByte(), d.headByte(), d.headByte(), d.headByte()
		if one != 0x1f || two != 0x8b || method != 8 || flags&0xe0 != 0 {
			return ErrHeader
		}
		d.flags, d.left = uint64(flags), 6 // time, extra flags, system
	}
	for d.left > 0 {
		if !d.need(8) {
			return ErrMore
		}
		d.headByte()
		d.left--
	}
	d.step = gzipExtraLength
	return nil
}

// early is the error for a header of which less than four bytes are there.
func (d *Decoder) early() error {
	if d.have >= 8 && d.bits&0xff != 0x1f || d.have >= 16 && d.bits>>8&0xff != 0x8b {
		return ErrHeader
	}
	return ErrMore
}

func gzipExtraLength(d *Decoder, _ *output) error {
	if d.flags&gzipExtra == 0 {
		d.step = gzipText
		return nil
	}
	if !d.need(16) {
		return ErrMore
	}
	d.left = int(d.headByte()) | int(d.headByte())<<8
	d.step = gzipExtraData
	return nil
}

func gzipExtraData(d *Decoder, _ *output) error {
	for ; d.left > 0; d.left-- {
		if !d.need(8) {
			return ErrMore
		}
		d.headByte()
	}
	d.step = gzipText
	return nil
}

// gzipText skips the name and the comment, each up to a zero byte.
func gzipText(d *Decoder, _ *output) error {
	for d.flags&(gzipName|gzipComment) != 0 {
		if !d.need(8) {
			return ErrMore
		}
		if d.headByte() != 0 {
			continue
		}
		if d.flags&gzipName != 0 {
			d.flags &^= gzipName
		} else {
			d.flags &^= gzipComment
		}
	}
	d.step = gzipCheck
	return nil
}

func gzipCheck(d *Decoder, _ *output) error {
	d.step = blockHead
	if d.flags&gzipCRC == 0 {
		return nil
	}
	if !d.need(16) {
		d.step = gzipCheck
		return ErrMore
	}
	if uint64(d.header.Sum32()&0xffff) != d.take(16) {
		return ErrHeader
	}
	return nil
}

// finish checks what follows the last block.
func finish(d *Decoder, _ *output) error {
	switch d.format {
	case Gzip:
		if !d.need(32) {
			return ErrMore
		}
		if d.flags&checked == 0 {
			if uint32(d.take(32)) != d.sum.Sum32() { //nolint:gosec // 32 bits
				return ErrChecksum
			}
			d.flags |= checked
			return nil // the size follows
		}
		if uint32(d.take(32)) != d.size { //nolint:gosec // 32 bits
			return ErrChecksum
		}
	case Zlib:
		if !d.need(32) {
			return ErrMore
		}
		if d.bigEndian() != d.sum.Sum32() {
			return ErrChecksum
		}
	}
	return ErrEnd
}
