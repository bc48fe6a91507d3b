package hostcall

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

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

func (c *kvCalls) calls() map[string]call {
	return map[string]call{
		wire.KVGet.Name: handle(wire.KVGet, c.permitGet, c.get),
		wire.KVSet.Name: handle(wire.KVSet, c.permitSet, c.set),
		wire.KVDel.Name: handle(wire.KVDel, c.permitDel, c.del),
	}
}

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

func checkKVKey(key string) error {
	if key == "" || len(key) > wire.MaxKVKeyBytes || !utf8.ValidString(key) {
		return invalid("a key is 1 to %d bytes of UTF-8", wire.MaxKVKeyBytes)
	}
	return nil
}

func (c *kvCalls) get(ctx context.Context, s *Scope, a wire.KVKey, _ []byte) (wire.KVFound, []byte, error) {
	if err := checkKVKey(a.Key); err != nil {
		return wire.KVFound{}, nil, err
	}
	value, found, err := c.kv.Get(ctx, s.Tenant, s.Namespace, a.Key)
	return wire.KVFound{Found: found}, value, err
}

func (c *kvCalls) set(ctx context.Context, s *Scope, a wire.KVEntry, value []byte) (none wire.None, _ []byte, err error) {
	switch err := checkKVKey(a.Key); {
	case err != nil:
		return none, nil, err
	case len(value) > wire.MaxKVValueBytes:
		return none, nil, invalid("a value is at most %d bytes of JSON", wire.MaxKVValueBytes)
	case !json.Valid(value):
		return none, nil, invalid("a value is JSON")
	case a.TTLSeconds < 0 || a.TTLSeconds > wire.MaxKVTTLSeconds:
		return none, nil, invalid(wire.KVTTLRange)
	}
	ttl := time.Duration(a.TTLSeconds) * time.Second
	return none, nil, c.kv.Set(ctx, s.Tenant, s.Namespace, a.Key, value, ttl)
}

func (c *kvCalls) del(ctx context.Context, s *Scope, a wire.KVKey, _ []byte) (wire.KVDeleted, []byte, error) {
	if err := checkKVKey(a.Key); err != nil {
		return wire.KVDeleted{}, nil, err
	}
	deleted, err := c.kv.Del(ctx, s.Tenant, s.Namespace, a.Key)
	return wire.KVDeleted{Deleted: deleted}, nil, err
}
