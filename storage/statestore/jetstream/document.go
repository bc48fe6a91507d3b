package jetstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/codesous/sous/storage/statestore"
)

// documentVersion is the first byte of every document. Then follow the expiry in milliseconds
// since 1970 (0: never) and the number of fields as uvarints, and each field's name and value,
// each after its length. A record with the field state, pending, that does not expire is
//
//	01                          the version
//	00                          no expiry
//	01                          1 field:
//	05 73 74 61 74 65           "state"
//	07 70 65 6e 64 69 6e 67     "pending"
//
// Fields are sorted by name, so that equal records have equal bytes.
const documentVersion = 1

var errMalformed = errors.New("the document is malformed")

// document is a record in the bucket. A document without fields does not exist.
type document struct {
	fields      statestore.Fields
	expiresAtMS int64
	revision    uint64 // 0 if it is not in the bucket
}

// encode returns the stored form of the document, without its revision.
func (d *document) encode() []byte {
	out := []byte{documentVersion}
	out = binary.AppendUvarint(out, uint64(d.expiresAtMS))
	out = binary.AppendUvarint(out, uint64(len(d.fields)))
	for _, name := range slices.Sorted(maps.Keys(d.fields)) {
		out = binary.AppendUvarint(out, uint64(len(name)))
		out = append(out, name...)
		out = binary.AppendUvarint(out, uint64(len(d.fields[name])))
		out = append(out, d.fields[name]...)
	}
	return out
}

// decode parses the output of encode. The values do not alias in.
func decode(in []byte) (document, error) {
	if len(in) == 0 || in[0] != documentVersion {
		return document{}, errMalformed
	}
	r := reader{in: in[1:]}
	d := document{fields: statestore.Fields{}, expiresAtMS: int64(r.number())}
	for range r.number() {
		name, value := r.bytes(), r.bytes()
		if r.failed {
			break
		}
		d.fields[string(name)] = append([]byte{}, value...)
	}
	if r.failed || len(r.in) > 0 {
		return document{}, errMalformed
	}
	return d, nil
}

// reader parses a document; after a failure it returns zero values.
type reader struct {
	in     []byte
	failed bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.in)
	if size <= 0 || r.failed {
		r.failed = true
		return 0
	}
	r.in = r.in[size:]
	return n
}

func (r *reader) bytes() []byte {
	n := r.number()
	if n > uint64(len(r.in)) {
		r.failed = true
	}
	if r.failed {
		return nil
	}
	out := r.in[:n]
	r.in = r.in[n:]
	return out
}

// set writes fields and removes those whose value is nil.
func (d *document) set(fields statestore.Fields) {
	for name, value := range fields {
		if value == nil {
			delete(d.fields, name)
		} else {
			d.fields[name] = value
		}
	}
}

// holds reports whether each field of expected has its value; nil means absent.
func (d *document) holds(expected statestore.Fields) bool {
	for name, want := range expected {
		value, ok := d.fields[name]
		if ok != (want != nil) || !bytes.Equal(value, want) {
			return false
		}
	}
	return true
}

// expire sets the time-to-live of the document, from now; 0 removes it.
func (d *document) expire(now time.Time, ttl time.Duration) {
	d.expiresAtMS = 0
	if ttl > 0 {
		d.expiresAtMS = now.UnixMilli() + statestore.Milliseconds(ttl)
	}
}

// expired reports whether the document has expired at now.
func (d *document) expired(now time.Time) bool {
	return d.expiresAtMS > 0 && d.expiresAtMS <= now.UnixMilli()
}

// record returns the document as a record. A document that expires at this moment has the
// shortest time-to-live, since 0 would mean none.
func (d *document) record(now time.Time) statestore.Record {
	r := statestore.Record{Fields: d.fields}
	if d.expiresAtMS > 0 {
		r.TTL = max(time.Millisecond, time.Duration(d.expiresAtMS-now.UnixMilli())*time.Millisecond)
	}
	return r
}
