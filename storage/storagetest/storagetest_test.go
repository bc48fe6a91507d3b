package storagetest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestLikeKVRocks shows that the hook and the prelude, under which the suite runs on
// redis-server, answer as KVRocks does: it passes on a KVRocks without them.
func TestLikeKVRocks(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	c, ctx, key := s.Client(), t.Context(), storagetest.Tenant(t)
	for _, command := range []string{
		"HEXPIRE k 10 FIELDS 1 a", "WAIT 0 0", "LATENCY LATEST", "TOUCH k", "SWAPDB 0 1", "OBJECT ENCODING k", "CLIENT NO-EVICT on",
		"SCRIPT FLUSH SYNC", "FLUSHDB ASYNC", "MEMORY STATS", "CONFIG GET a b", "CONFIG RESETSTAT", "SAVE", "SPUBLISH c m",
		"XADD s MAXLEN ~ 3 * a b", "XTRIM s MAXLEN ~ 3", "EXPIRE k 10 NX", "PEXPIRE k 10 GT", "KEYS a?", "KEYS *a", "SCAN 0 MATCH *a",
		"HSCAN h 0 MATCH a*b",
	} {
		var args []any
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		if err := c.Do(ctx, args...).Err(); err == nil {
			t.Errorf("%s: got success, want an error", command)
		}
	}
	if err := c.GetRange(ctx, key, 0, 9).Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("GETRANGE of a missing key: got %v, want %v", err, redis.Nil)
	}
	pipe := c.Pipeline()
	pipe.GetRange(ctx, key, 0, 9)
	if _, err := pipe.Exec(ctx); !errors.Is(err, redis.Nil) {
		t.Errorf("GETRANGE of a missing key in a pipeline: got %v, want %v", err, redis.Nil)
	}
	got, err := c.Eval(ctx, storagetest.StrictKeys()+`return redis.call('GETRANGE', KEYS[1], 0, 9)`, []string{key}).Result()
	if !errors.Is(err, redis.Nil) {
		t.Errorf("GETRANGE of a missing key in a script: got %q, %v, want %v", got, err, redis.Nil)
	}
	// A hash without fields keeps its time-to-live.
	if err := c.HSet(ctx, key, "a", 1).Err(); err != nil {
		t.Fatalf("HSet: %v", err)
	}
	persist := `redis.call('PEXPIRE', KEYS[1], 60000) redis.call('HDEL', KEYS[1], 'a')
			if redis.call('PTTL', KEYS[1]) >= 0 and redis.call('PEXPIRE', KEYS[1], 1) == 0 then redis.call('PERSIST', KEYS[1]) end return 1`
	if err := c.Eval(ctx, storagetest.StrictKeys()+persist, []string{key}).Err(); err == nil || !strings.Contains(err.Error(), "NotFound: the key was expired") {
		t.Errorf("PERSIST of an emptied hash: got error %v, want one with %q", err, "NotFound: the key was expired")
	}
}

// An entry with an empty value, as older releases wrote them, is nil on KVRocks.
func TestEmptyStreamValues(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	written := storagetest.Open(t, storage.Config{URL: server.URL, Hook: func(redis.UniversalClient) {}}).Client()
	if err := written.XAdd(t.Context(), &redis.XAddArgs{Stream: "s", Values: []any{"a", "", "b", "c"}}).Err(); err != nil {
		t.Fatalf("written.XAdd: %v", err)
	}
	c := storagetest.Open(t, storage.Config{URL: server.URL}).Client()
	if err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: "s", Values: []any{"a", "b", "c", "d"}}).Err(); err != nil {
		t.Fatalf("XAdd: %v", err)
	}
	if _, err := c.XRange(t.Context(), "s", "-", "+").Result(); err == nil {
		t.Error("XRANGE of an empty value: got no error")
	}
	reply, err := c.Do(t.Context(), "XRANGE", "s", "-", "+").Slice()
	if err != nil || len(reply) != 2 {
		t.Fatalf("XRANGE: got %+v and error %v, want 2 entries", reply, err)
	}
	entry, _ := reply[0].([]any)
	if values, _ := entry[1].([]any); len(values) != 4 || values[1] != nil || values[3] != "c" {
		t.Errorf("got %q, want a nil value", reply)
	}
}

func TestKeysMatchesPatterns(t *testing.T) {
	t.Parallel()
	c := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}).Client()
	for _, key := range []string{"a", "ab", "aba", "b:a:b", "a.b"} {
		if err := c.Set(t.Context(), key, "x", 0).Err(); err != nil {
			t.Fatalf("Set: %v", err)
		}
	}
	for pattern, want := range map[string]string{
		"a": "a", "a*": "a a.b ab aba", "*b": "a.b ab b:a:b", "*:a:*": "b:a:b", "*": "a a.b ab aba b:a:b",
		"a*a": "aba", "a*b*a": "aba", "ab*ba": "", "a.b": "a.b", "x*": "",
	} {
		if got := strings.Join(storagetest.Keys(t, c, pattern), " "); got != want {
			t.Errorf("keys of %s: got %q, want %q", pattern, got, want)
		}
	}
}
