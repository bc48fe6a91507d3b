package storage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestKV(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		kv, tenant, ctx := storage.NewKV(s), storagetest.Tenant(t), t.Context()
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
