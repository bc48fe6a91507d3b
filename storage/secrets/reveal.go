package secrets

import (
	"bytes"
	"context"

	"github.com/codesous/sous/api"
)

// Value is an opened secret, or the error that prevented that. Its holder must call Clear
// before it drops the Value, and must not log it.
type Value struct {
	Name    string
	Version int64  // 0 where no record could be read
	Text    []byte // nil with Err
	Err     error  // CodeSecretNotFound, CodeSecretKeyMissing, CodeSecretUnreadable
	// Opened reports that this call opened the secret; it was not among the known ones.
	Opened bool

	sealed []byte // the sealed form of Text
}

// Clear overwrites the value in memory. Copies of Text are the caller's.
func (v *Value) Clear() { clear(v.Text) }

// Reveal reads the secrets of names in one command and opens them. known are the values of
// an earlier call: an unchanged secret is copied from them and not opened again. A secret
// that cannot be opened has its error in its Value; an error of Reveal itself concerns the
// store. The result has a Value for each of names, in their order, and shares no memory with
// known. Reveal does not write to the audit; its caller does.
func (s *Secrets) Reveal(ctx context.Context, p Place, names []string, known []Value) ([]Value, error) {
	if len(names) == 0 {
		return nil, nil
	}
	found, err := s.records(ctx, s.store.SecretKeys(p.Tenant, p.Namespace), names)
	if err != nil {
		return nil, err
	}
	raws := make(map[string]string, len(found))
	for _, e := range found {
		raws[e.name] = e.raw
	}
	out := make([]Value, len(names))
	for i, name := range names {
		out[i] = s.value(p, name, raws[name], known)
	}
	return out, nil
}

// value opens one record; raw is "" for a missing one.
func (s *Secrets) value(p Place, name, raw string, known []Value) Value {
	v := Value{Name: name}
	if raw == "" {
		v.Err = notFound(name)
		return v
	}
	rec, err := decode(raw)
	if err != nil {
		v.Err = err
		return v
	}
	v.Version, v.sealed = rec.Version, rec.Sealed
	for _, k := range known {
		if k.Name == name && k.Version == rec.Version && k.Err == nil && bytes.Equal(k.sealed, rec.Sealed) {
			v.Text = bytes.Clone(k.Text)
			return v
		}
	}
	v.Opened = true
	opener, err := s.ring(false)
	if err == nil {
		v.Text, err = opener.open(label(p, name, rec.Version), rec.Sealed)
	}
	if api.ErrorCode(err) == api.CodeSecretUnreadable {
		opener, err = s.ring(true)
		if err == nil { // the key may be newer than the cached key file
			v.Text, err = opener.open(label(p, name, rec.Version), rec.Sealed)
		}
	}
	v.Err = err
	return v
}
