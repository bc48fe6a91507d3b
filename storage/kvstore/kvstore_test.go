package kvstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/quotas/quotastest"
	"github.com/codesous/sous/storage/storagetest"
)

func TestKV(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		kv, tenant, ctx := kvstore.New(s), storagetest.Tenant(t), t.Context()
		key := "a:{b}\x00\xff " // any bytes
		get := func(ns string) string {
			t.Helper()
			value, found, err := kv.Get(ctx, tenant, ns, key)
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			return fmt.Sprintf("%q %v", value, found)
		}
		if got := get("one"); got != `"" false` {
			t.Errorf("Get of a missing key: got %s, want %s", got, `"" false`)
		}
		if err := kv.Set(ctx, tenant, "one", key, []byte("v\x00"), -1); err != nil {
			t.Fatalf("Set: %v", err)
		}
		if got := get("one"); got != `"v\x00" true` {
			t.Errorf("Get: got %s, want %s", got, `"v\x00" true`)
		}
		if got := get("two"); got != `"" false` {
			t.Errorf("Get in another namespace: got %s, want %s", got, `"" false`)
		}
		for _, want := range []bool{true, false} {
			if was, err := kv.Del(ctx, tenant, "one", key); err != nil || was != want {
				t.Errorf("Del: got %v and error %v, want %v", was, err, want)
			}
		}
		if err := kv.Set(ctx, tenant, "one", key, []byte("v"), 200*time.Millisecond); err != nil {
			t.Fatalf("Set: %v", err)
		}
		storagetest.Eventually(t, func() bool { return get("one") == `"" false` })
	})
}

// limited returns the keys of s with a limit of bytes and keys.
func limited(t *testing.T, s *storage.Store, limits quota.TenantLimits) *kvstore.KV {
	t.Helper()
	quotastest.Limit(t, s, limits)
	return kvstore.New(s)
}

// usage returns the counted keys and bytes of a tenant.
func usage(t *testing.T, kv *kvstore.KV, tenant string) string {
	t.Helper()
	keys, bytes, err := kv.Usage(t.Context(), tenant)
	if err != nil {
		t.Fatalf("Usage: %v", err)
	}
	return fmt.Sprintf("%d keys, %d bytes", keys, bytes)
}

// TestQuotaOfKeysAndBytes: writers at the same time do not exceed the limits by one byte; what
// adds nothing is admitted; deleted and expired keys free their room.
func TestQuotaOfKeysAndBytes(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		tenant, ctx := storagetest.Tenant(t), t.Context()
		kv := limited(t, s, quota.TenantLimits{KVBytes: 1000, KVKeys: 50})
		for _, namespace := range []string{"one", "two"} {
			if err := storage.NewTenants(s).RegisterNamespace(ctx, tenant, namespace); err != nil {
				t.Fatalf("RegisterNamespace: %v", err)
			}
		}
		refused := 0
		for _, err := range storagetest.Concurrently(40, func(i int) error {
			return kv.Set(ctx, tenant, "one", fmt.Sprintf("k%03d", i), bytes.Repeat([]byte("1"), 96), 0)
		}) {
			var e *api.Error
			if err != nil {
				refused++
				if !errors.As(err, &e) || e.Code != api.CodeTenantQuota || e.Quota.Unit != "kv_bytes" || e.Quota.Limit != 1000 || e.Quota.Used != 1000 {
					t.Errorf("Set: got error %v, want %s of kv_bytes", err, api.CodeTenantQuota)
				}
			}
		}
		if got := usage(t, kv, tenant); got != "10 keys, 1000 bytes" || refused != 30 {
			t.Fatalf("after 40 writes of 100 bytes: got %s and %d refusals, want 10 keys, 1000 bytes and 30", got, refused)
		}
		items, _, err := kv.List(ctx, tenant, "one", "", "", 100)
		if err != nil || len(items) != 10 {
			t.Fatalf("List: got %d keys and error %v, want 10", len(items), err)
		}
		name := items[0].Key
		if err := kv.Set(ctx, tenant, "one", name, bytes.Repeat([]byte("2"), 96), 0); err != nil {
			t.Errorf("Set of the same size: got error %v, want none", err)
		}
		if _, err := kv.Del(ctx, tenant, "one", name); err != nil {
			t.Errorf("Del: %v", err)
		}
		if err := kv.Set(ctx, tenant, "two", name, bytes.Repeat([]byte("1"), 96), 50*time.Millisecond); err != nil {
			t.Errorf("Set after a deletion: got error %v, want none", err)
		}
		storagetest.Eventually(t, func() bool { // the key in the other namespace has expired
			return kv.Set(ctx, tenant, "one", name, bytes.Repeat([]byte("1"), 96), 0) == nil
		})
		if got := usage(t, kv, tenant); got != "10 keys, 1000 bytes" {
			t.Errorf("at the end: got %s, want 10 keys, 1000 bytes", got)
		}
	})
}

// crowded returns a store with a clock, and a tenant with n namespaces of which the first has the
// only key that the tenant may have.
func crowded(t *testing.T, n int, ttl time.Duration) (kv *kvstore.KV, tenant string, now *atomic.Int64, sent func() int64) {
	t.Helper()
	now = &atomic.Int64{}
	now.Store(time.Now().UnixMilli())
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
	sent = storagetest.CountCommands(s.Client())
	kv, tenant = limited(t, s, quota.TenantLimits{KVKeys: 1}), storagetest.Tenant(t)
	names := make([]any, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%05d", i)
	}
	if err := s.Client().SAdd(t.Context(), s.Keys().Namespaces(tenant), names...).Err(); err != nil {
		t.Fatalf("SAdd: %v", err)
	}
	if err := kv.Set(t.Context(), tenant, "n00000", "held", []byte("1"), ttl); err != nil {
		t.Fatalf("Set: %v", err)
	}
	return kv, tenant, now, sent
}

// TestRefusedSetsCostConstantCommands: what a refused write costs does not grow with the namespaces
// of its tenant.
func TestRefusedSetsCostConstantCommands(t *testing.T) {
	t.Parallel()
	kv, tenant, now, sent := crowded(t, 3000, 0)
	for round := range 3 {
		before := sent()
		for i, err := range storagetest.Concurrently(50, func(int) error {
			return kv.Set(t.Context(), tenant, "n00001", "new", []byte("1"), 0)
		}) {
			if api.ErrorCode(err) != api.CodeTenantQuota {
				t.Errorf("Set %d beyond the quota: got error %v, want %s", i, err, api.CodeTenantQuota)
			}
		}
		// Two for each write, and one look at some namespaces for all of them.
		if got, most := sent()-before, int64(500); got > most {
			t.Errorf("50 refused writes in round %d: got %d commands, want at most %d", round, got, most)
		}
		now.Add(2000)
	}
}

// TestRoomIsFoundInFarNamespaces: an expired key makes room in any of many namespaces, after some
// attempts.
func TestRoomIsFoundInFarNamespaces(t *testing.T) {
	t.Parallel()
	kv, tenant, now, _ := crowded(t, 1000, time.Millisecond)
	const most = 20
	for try := 1; ; try++ {
		now.Add(2000)
		err := kv.Set(t.Context(), tenant, "n00001", "new", []byte("1"), 0)
		if err == nil {
			break
		}
		if api.ErrorCode(err) != api.CodeTenantQuota || try == most {
			t.Fatalf("Set %d after the other key has expired: got error %v, want none within %d", try, err, most)
		}
	}
	if got, want := usage(t, kv, tenant), "1 keys, 4 bytes"; got != want {
		t.Errorf("usage: got %s, want %s", got, want)
	}
}

// TestListByPrefix: pages in byte order, with keys of any bytes.
func TestListByPrefix(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		kv, tenant, ctx := kvstore.New(s), storagetest.Tenant(t), t.Context()
		for _, key := range []string{"a", "u:1", "u:2", "u:3", "u\xff", "v"} {
			if err := kv.Set(ctx, tenant, "n", key, []byte("12"), 0); err != nil {
				t.Fatalf("Set: %v", err)
			}
		}
		for prefix, want := range map[string]string{"": "a u:1 u:2 u:3 u\xff v", "u:": "u:1 u:2 u:3", "u\xff": "u\xff", "x": ""} {
			var got []string
			for after := ""; ; {
				items, next, err := kv.List(ctx, tenant, "n", prefix, after, 2)
				if err != nil {
					t.Fatalf("List: %v", err)
				}
				for _, e := range items {
					got = append(got, e.Key)
				}
				if next == "" {
					break
				}
				after = next
			}
			if strings.Join(got, " ") != want {
				t.Errorf("List of %q: got %q, want %q", prefix, got, want)
			}
		}
	})
}

// TestSweepCorrectsCounts: after a crash at any write of a script, a sweep finds the counts that
// the values have. Values of an earlier release, which have no index, are entered.
func TestSweepCorrectsCounts(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	for k := range 8 {
		for name, call := range map[string]func(kv *kvstore.KV, tenant string) error{
			"set": func(kv *kvstore.KV, t string) error {
				return kv.Set(context.Background(), t, "n", "new", []byte("123"), 0)
			},
			"ttl": func(kv *kvstore.KV, t string) error {
				return kv.Set(context.Background(), t, "n", "new", []byte("123"), time.Hour)
			},
			"smaller": func(kv *kvstore.KV, t string) error {
				return kv.Set(context.Background(), t, "n", "old", []byte("1"), 0)
			},
			"larger": func(kv *kvstore.KV, t string) error {
				return kv.Set(context.Background(), t, "n", "old", []byte("12345678"), 0)
			},
			"delete": func(kv *kvstore.KV, t string) error {
				_, err := kv.Del(context.Background(), t, "n", "old")
				return err
			},
		} {
			s := storagetest.Open(t, storage.Config{URL: server.URL})
			kv, tenant := kvstore.New(s), storagetest.Tenant(t)
			if err := kv.Set(t.Context(), tenant, "n", "old", []byte("1234"), 0); err != nil {
				t.Fatalf("Set: %v", err)
			}
			broken := storagetest.Open(t, storage.Config{URL: server.URL, ScriptPrelude: storagetest.CutAfter(k)})
			_ = call(kvstore.New(broken), tenant) // it fails where it was cut
			sweep(t, kv, tenant)
			checkCounts(t, s, kv, tenant, fmt.Sprintf("%s cut after %d writes", name, k))
			_ = s.Close()
			_ = broken.Close()
		}
	}
}

func sweep(t *testing.T, kv *kvstore.KV, tenant string) {
	t.Helper()
	for end := false; !end; {
		swept, err := kv.Sweep(t.Context(), tenant, "n")
		if err != nil {
			t.Fatalf("Sweep: %v", err)
		}
		end = swept.End
	}
}

// checkCounts compares the counts with the values in the store.
func checkCounts(t *testing.T, s *storage.Store, kv *kvstore.KV, tenant, when string) {
	t.Helper()
	keys, size := 0, 0
	for _, name := range []string{"old", "new"} {
		value, found, err := kv.Get(t.Context(), tenant, "n", name)
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		if found {
			keys++
			size += len(name) + len(value)
		}
	}
	got, want := usage(t, kv, tenant), fmt.Sprintf("%d keys, %d bytes", keys, size)
	if got != want {
		t.Errorf("%s: got %s, want %s", when, got, want)
	}
	if n := s.Client().ZCard(t.Context(), s.KVKeys(tenant, "n").Index()).Val(); int(n) != keys {
		t.Errorf("%s: got %d keys in the index, want %d", when, n, keys)
	}
}

// TestAdoption: values that an earlier release has written are listed and counted once.
func TestAdoption(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	kv, tenant := kvstore.New(s), storagetest.Tenant(t)
	for i := range 500 {
		if err := s.Client().Set(t.Context(), s.KVKeys(tenant, "n").Value(fmt.Sprintf("k%d:%d", i, i)), "12", 0).Err(); err != nil {
			t.Fatalf("Set: %v", err)
		}
	}
	if err := kv.Set(t.Context(), tenant, "n", "own", []byte("1"), 0); err != nil {
		t.Fatalf("Set: %v", err)
	}
	for range 2 {
		adoption := kvstore.NewAdoption(s)
		for end := false; !end; {
			done, err := adoption.Step(t.Context())
			if err != nil {
				t.Fatalf("Step: %v", err)
			}
			end = done.End
		}
	}
	keys, _, err := kv.Usage(t.Context(), tenant)
	if err != nil || keys != 501 {
		t.Errorf("Usage: got %d keys and error %v, want 501", keys, err)
	}
	sweep(t, kv, tenant)
	if keys, _, _ := kv.Usage(t.Context(), tenant); keys != 501 {
		t.Errorf("Usage after a sweep: got %d keys, want 501", keys)
	}
}
