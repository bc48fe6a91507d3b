package invoker

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Limits of cs.kv; GET /v1/limits prints them.
const (
	MaxKVKeyBytes   = 512
	MaxKVValueBytes = 64 << 10
	MaxKVTTLSeconds = 10 * 365 * 24 * 60 * 60
)

// kvHost serves cs.kv. A key is data to it: the store's key builder puts it
// behind the tenant's and namespace's prefix whatever it holds.
type kvHost struct {
	kv *storage.KV
}

type kvKey struct {
	Key string `json:"key"`
}

type kvSet struct {
	Key        string `json:"key"`
	TTLSeconds int64  `json:"ttl_seconds,omitempty"`
}

func permitKV(s *scope, op, key string) string {
	if c := s.capabilities.KV; c != nil && allows(c.Ops, op) {
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

func (h *kvHost) permitGet(s *scope, a kvKey) string { return permitKV(s, "get", a.Key) }
func (h *kvHost) permitSet(s *scope, a kvSet) string { return permitKV(s, "set", a.Key) }
func (h *kvHost) permitDel(s *scope, a kvKey) string { return permitKV(s, "del", a.Key) }

func checkKVKey(key string) error {
	if key == "" || len(key) > MaxKVKeyBytes || !utf8.ValidString(key) {
		return api.Errorf(api.CodeHostInvalidArgument, "a key is 1 to %d bytes of UTF-8", MaxKVKeyBytes)
	}
	return nil
}

type kvGetReply struct {
	Found bool `json:"found"`
}

func (h *kvHost) get(ctx context.Context, s *scope, a kvKey, _ []byte) (any, []byte, error) {
	if err := checkKVKey(a.Key); err != nil {
		return nil, nil, err
	}
	value, found, err := h.kv.Get(ctx, s.tenant, s.namespace, a.Key)
	return kvGetReply{Found: found}, value, err
}

func (h *kvHost) set(ctx context.Context, s *scope, a kvSet, value []byte) (any, []byte, error) {
	switch err := checkKVKey(a.Key); {
	case err != nil:
		return nil, nil, err
	case len(value) > MaxKVValueBytes:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "a value is at most %d bytes of JSON", MaxKVValueBytes)
	case !json.Valid(value):
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "a value is JSON")
	case a.TTLSeconds < 0 || a.TTLSeconds > MaxKVTTLSeconds:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "ttlSeconds is 1 to %d", MaxKVTTLSeconds)
	}
	ttl := time.Duration(a.TTLSeconds) * time.Second
	return struct{}{}, nil, h.kv.Set(ctx, s.tenant, s.namespace, a.Key, value, ttl)
}

type kvDelReply struct {
	Deleted bool `json:"deleted"`
}

func (h *kvHost) del(ctx context.Context, s *scope, a kvKey, _ []byte) (any, []byte, error) {
	if err := checkKVKey(a.Key); err != nil {
		return nil, nil, err
	}
	deleted, err := h.kv.Del(ctx, s.tenant, s.namespace, a.Key)
	return kvDelReply{Deleted: deleted}, nil, err
}
