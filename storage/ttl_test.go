package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/storagetest"
)

// TestTimesToLive looks at every key: what was published stays, and what an
// invocation leaves behind goes.
func TestTimesToLive(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	f := newFixture(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	ctx := t.Context()
	draft, consumed := f.draft(t, "aa"), f.draft(t, "bb")
	if _, _, err := f.publish(consumed, "bb", "prod"); err != nil {
		t.Fatalf("publish: %v", err)
	}
	running, inline, large := f.running(), f.running(), f.running()
	f.start(t, running, inline, large)
	for a, result := range map[*activations.Record]string{
		inline: `"r"`, large: `"` + strings.Repeat("r", api.MaxInlineResultBytes) + `"`,
	} {
		if _, _, err := f.activations.Finish(ctx, succeeded(a, f.NowMS(), result)); err != nil {
			t.Fatalf("activations.Finish: %v", err)
		}
	}
	if err := activations.NewLogs(f.Store).Append(ctx, running, 0, []byte("{}\n")); err != nil {
		t.Fatalf("Logs.Append: %v", err)
	}
	kv := kvstore.New(f.Store)
	for key, ttl := range map[string]time.Duration{"kept": 0, "hour": time.Hour} {
		if err := kv.Set(ctx, f.fn.Tenant, "n", key, []byte("1"), ttl); err != nil {
			t.Fatalf("Set: %v", err)
		}
	}

	const day, week, ever = 24 * time.Hour, 7 * 24 * time.Hour, time.Duration(-1)
	function := "cs:fn:" + f.fn.Tenant + ":" + f.fn.Namespace + ":" + f.fn.Name
	activation, log := "cs:act:"+f.fn.Tenant+":", "cs:log:"+f.fn.Tenant+":"+running.ActivationID
	want := map[string]time.Duration{
		"cs:tenants": ever,
		"cs:tenant:" + f.fn.Tenant + ":namespaces":                                  ever,
		"cs:fn:" + f.fn.Tenant + ":" + f.fn.Namespace + ":index":                    ever,
		"cs:act:" + f.fn.Tenant + ":" + f.fn.Namespace + ":" + f.fn.Name + ":index": ever,
		function + ":meta": ever, function + ":version_seq": ever, function + ":versions": ever,
		function + ":ver:1:meta": ever, function + ":ver:1:bundle": ever,
		function + ":aliases": ever, function + ":alias:prod": ever,
		function + ":draft:" + draft: day, function + ":draft:" + consumed: day,
		activation + running.ActivationID + ":meta": week, activation + inline.ActivationID + ":meta": week,
		activation + large.ActivationID + ":meta": week, activation + large.ActivationID + ":result": week,
		log + ":0": week, log + ":chunks": week,
		"cs:kv:" + f.fn.Tenant + ":n:kept": ever, "cs:kv:" + f.fn.Tenant + ":n:hour": time.Hour,
		"cs:kvindex:" + f.fn.Tenant + ":n": ever, "cs:kvindex:" + f.fn.Tenant + ":n:expiry": ever,
		"cs:kvindex:" + f.fn.Tenant + ":n:sizes": ever, "cs:kvusage:" + f.fn.Tenant: ever,
		"cs:events:" + f.fn.Tenant: day + time.Minute,
	}
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("redis.ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatalf("client.Keys: %v", err)
	}
	for _, key := range keys {
		ttl, known := want[key]
		delete(want, key)
		got, err := client.PTTL(ctx, key).Result()
		if err != nil {
			t.Fatalf("client.PTTL: %v", err)
		}
		if !known || got > ttl || got < ttl-time.Minute {
			t.Errorf("%s lives %v, want %v (known: %v)", key, got, ttl, known)
		}
	}
	for key := range want {
		t.Errorf("%s: got no such key, want it", key)
	}
}
