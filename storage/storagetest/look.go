package storagetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage/storeserver"
)

// failer is the part of testing.TB that Keys uses; rapid.T implements it, too.
type failer interface {
	Helper()
	Fatal(args ...any)
	Context() context.Context
}

// Keys returns the keys of the whole store that match pattern, sorted. A * in pattern
// matches any text. It scans all keys, since KVRocks matches prefixes only.
func Keys(t failer, client redis.UniversalClient, pattern string) []string {
	t.Helper()
	found := map[string]bool{} // SCAN may name a key twice
	var mu sync.Mutex
	scan := func(ctx context.Context, node redis.Cmdable) error {
		each := node.Scan(ctx, 0, "*", 1000).Iterator()
		for each.Next(ctx) {
			if matches(each.Val(), pattern) {
				mu.Lock()
				found[each.Val()] = true
				mu.Unlock()
			}
		}
		return each.Err()
	}
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
	} else {
		err = scan(t.Context(), client)
	}
	if err != nil {
		t.Fatal("scan the keys of the store:", err)
	}
	return slices.Sorted(maps.Keys(found))
}

// matches reports whether key matches pattern, in which each * is any text. It is called
// for every key of the store; package regexp would take most of the time of a test.
func matches(key, pattern string) bool {
	prefix, rest, star := strings.Cut(pattern, "*")
	if !star {
		return key == pattern
	}
	key, ok := strings.CutPrefix(key, prefix)
	for ok {
		var part string
		part, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(key, part)
		}
		_, key, ok = strings.Cut(key, part)
	}
	return false
}

// Contents returns the value of a key of any type as text, such as "set [a b]" or "none ". The
// text differs where the values do; it does not contain the time to live.
func Contents(t testing.TB, client redis.UniversalClient, key string) string {
	t.Helper()
	ctx := t.Context()
	kind, err := client.Type(ctx, key).Result()
	var held any
	switch {
	case err != nil:
	case kind == "string":
		held, err = client.Get(ctx, key).Result()
	case kind == "hash":
		held, err = client.HGetAll(ctx, key).Result()
	case kind == "list":
		held, err = client.LRange(ctx, key, 0, -1).Result()
	case kind == "set":
		var members []string
		members, err = client.SMembers(ctx, key).Result()
		slices.Sort(members)
		held = members
	case kind == "zset":
		held, err = client.ZRangeWithScores(ctx, key, 0, -1).Result()
	case kind == "stream":
		held, err = client.Do(ctx, "XRANGE", key, "-", "+").Result()
	case kind != "none":
		t.Fatalf("%s: got type %s, want one that this function reads", key, kind)
	}
	if err != nil {
		t.Fatalf("client.Type: %v", err)
	}
	return kind + " " + fmt.Sprint(held)
}

// ShortLived sets the time to live of every matching key that has one to half a minute, so
// that ExpireBefore lets it expire within a script. It returns those keys.
func ShortLived(t testing.TB, client redis.UniversalClient, pattern string) (keys []string) {
	t.Helper()
	for _, key := range Keys(t, client, pattern) {
		if ttl, err := client.PTTL(t.Context(), key).Result(); err != nil {
			t.Fatalf("client.PTTL: %v", err)
		} else if ttl < 0 {
			continue
		}
		if err := client.PExpire(t.Context(), key, 30*time.Second).Err(); err != nil {
			t.Fatalf("client.PExpire: %v", err)
		}
		keys = append(keys, key)
	}
	return keys
}

// Expire fails t for each of keys that exists without a time to live.
func Expire(t testing.TB, client redis.UniversalClient, keys []string) {
	t.Helper()
	for _, key := range keys {
		if ttl, err := client.PTTL(t.Context(), key).Result(); err != nil {
			t.Fatalf("client.PTTL: %v", err)
		} else if ttl == -1 { // it has none
			t.Errorf("%s: got no time-to-live and the contents %s, want a time-to-live", key, Contents(t, client, key))
		}
	}
}

// Calls returns how often the server has executed each command, those of scripts included.
// The counts only grow: the difference of two calls is the number in between. Other tests on
// the same server count as well, so the caller needs a server of its own.
func Calls(t testing.TB, client redis.UniversalClient) map[string]int64 {
	t.Helper()
	calls, err := storeserver.Calls(context.WithoutCancel(t.Context()), client)
	if err != nil {
		t.Fatalf("storeserver.Calls: %v", err)
	}
	return calls
}
