package secrets

import (
	"bytes"
	"context"

	"github.com/codesous/sous/api"
)

// Value is a secret that was opened, or why it was not.
type Value struct {
	Name    string
	Version int64 // 0 where there is no record that can be read
	Text    []byte
	Err     error // CodeSecretNotFound, CodeSecretKeyMissing, CodeSecretUnreadable
	// Opened says that this call opened it: it was not known before.
	Opened bool

	sealed []byte // what Text was opened from
}

// Clear overwrites the value.
func (v *Value) Clear() { clear(v.Text) }

// Reveal reads the secrets of names in one command and opens those that are not, as
// they are, among known, which an earlier call gave; of these it gives copies. What
// cannot be opened has an error of its own: one of Reveal is the store's.
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
		if opener, err = s.ring(true); err == nil { // the key may have come a moment ago
			v.Text, err = opener.open(label(p, name, rec.Version), rec.Sealed)
		}
	}
	v.Err = err
	return v
}
