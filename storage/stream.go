package storage

import (
	"fmt"

	"github.com/redis/go-redis/v9"
)

// StreamEntry is an entry of a stream. A missing field reads as "": entries are written
// without empty values.
type StreamEntry struct {
	ID     string
	Fields map[string]string
}

// StreamEntries parses the reply of an XRANGE or XREVRANGE that was sent with Do. For an
// empty value, as older releases wrote them, KVRocks replies nil, which the client's own
// XRange refuses to parse.
func StreamEntries(cmd *redis.Cmd) ([]StreamEntry, error) {
	replies, err := cmd.Slice()
	if err != nil {
		return nil, err
	}
	entries := make([]StreamEntry, len(replies))
	for i, reply := range replies {
		pair, _ := reply.([]any)
		if len(pair) != 2 {
			return nil, fmt.Errorf("parse a stream: entry %d is %v", i, reply)
		}
		id, _ := pair[0].(string)
		words, _ := pair[1].([]any)
		entries[i] = StreamEntry{id, make(map[string]string, len(words)/2)}
		for k := 0; k+1 < len(words); k += 2 {
			name, _ := words[k].(string)
			value, _ := words[k+1].(string) // nil is ""
			entries[i].Fields[name] = value
		}
	}
	return entries, nil
}
