package hostcall

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// KV is the store of cs.kv.
type KV interface {
	Get(ctx context.Context, tenant, namespace, key string) (value []byte, found bool, err error)
	// Set sets a value for ttl; 0 keeps it until it is deleted.
	Set(ctx context.Context, tenant, namespace, key string, value []byte, ttl time.Duration) error
	Del(ctx context.Context, tenant, namespace, key string) (deleted bool, err error)
}

// kvCalls serves cs.kv. A key is data to it: the store's key builder puts every key
// behind the prefix of its tenant and namespace.
type kvCalls struct {
	kv KV
}

// calls returns the three calls. Each has a permit of its own because the types of their
// arguments differ.
func (c *kvCalls) calls() map[string]call {
	return map[string]call{
		wire.KVGet.Name: handle(wire.KVGet, c.permitGet, c.get),
		wire.KVSet.Name: handle(wire.KVSet, c.permitSet, c.set),
		wire.KVDel.Name: handle(wire.KVDel, c.permitDel, c.del),
	}
}

// permitKV compares the operation with the declared ones and the key with the declared
// prefixes. A refusal shows at most 64 bytes of the key.
func permitKV(s *Scope, op, key string) string {
	if c := s.Capabilities.KV; c != nil && allows(c.Ops, op) {
		for _, prefix := range c.Prefixes {
			if strings.HasPrefix(key, prefix) {
				return ""
			}
		}
	}
	if len(key) > 64 {
		key = strings.ToValidUTF8(key[:64], "")
	}
	return `{"kv": {"prefixes": [` + quoted(key) + `], "ops": [` + quoted(op) + `]}}`
}

func (*kvCalls) permitGet(s *Scope, a wire.KVKey) string   { return permitKV(s, "get", a.Key) }
func (*kvCalls) permitSet(s *Scope, a wire.KVEntry) string { return permitKV(s, "set", a.Key) }
func (*kvCalls) permitDel(s *Scope, a wire.KVKey) string   { return permitKV(s, "del", a.Key) }

// checkKVKey refuses a key that the store does not take. The child checks the same, but may
// be forged. Errors: CodeHostInvalidArgument.
func checkKVKey(key string) error {
	if key == "" || len(key) > wire.MaxKVKeyBytes || !utf8.ValidString(key) {
		return invalid("a key is 1 to %s of UTF-8", api.SizeText(wire.MaxKVKeyBytes))
	}
	return nil
}

// get returns a value as it was set, as the blob. The namespace is the function's own:
// functions of one namespace share their keys.
func (c *kvCalls) get(ctx context.Context, s *Scope, a wire.KVKey, _ []byte) (wire.KVFound, []byte, error) {
	if err := checkKVKey(a.Key); err != nil {
		return wire.KVFound{}, nil, err
	}
	value, found, err := c.kv.Get(ctx, s.Tenant, s.Namespace, a.Key)
	return wire.KVFound{Found: found}, value, err
}

// set stores a value, which must be JSON: the child of another version will parse it. A TTL
// of 0 keeps it until it is deleted, and also removes the TTL of an earlier value. Errors:
// CodeHostInvalidArgument, the store's.
func (c *kvCalls) set(ctx context.Context, s *Scope, a wire.KVEntry, value []byte) (none wire.None, _ []byte, err error) {
	switch err := checkKVKey(a.Key); {
	case err != nil:
		return none, nil, err
	case len(value) > wire.MaxKVValueBytes:
		return none, nil, invalid("a value is at most %s of JSON", api.SizeText(wire.MaxKVValueBytes))
	case !json.Valid(value):
		return none, nil, invalid("a value is JSON")
	case a.TTLSeconds < 0 || a.TTLSeconds > wire.MaxKVTTLSeconds:
		return none, nil, invalid(wire.KVTTLRange)
	}
	ttl := time.Duration(a.TTLSeconds) * time.Second
	return none, nil, c.kv.Set(ctx, s.Tenant, s.Namespace, a.Key, value, ttl)
}

// del deletes a value and reports whether there was one.
func (c *kvCalls) del(ctx context.Context, s *Scope, a wire.KVKey, _ []byte) (wire.KVDeleted, []byte, error) {
	if err := checkKVKey(a.Key); err != nil {
		return wire.KVDeleted{}, nil, err
	}
	deleted, err := c.kv.Del(ctx, s.Tenant, s.Namespace, a.Key)
	return wire.KVDeleted{Deleted: deleted}, nil, err
}
