package api

import "encoding/json"

// KVEntry is a key of cs.kv. Value is absent in lists; ExpiresAtMS is 0 for a key that does not
// expire.
type KVEntry struct {
	Key         string          `json:"key"`
	Bytes       int64           `json:"bytes" doc:"the size of the value"`
	ExpiresAtMS int64           `json:"expires_at_ms,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
}
