package controlplane_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// replicas are two servers of one tenant on one redis-server, on a clock that
// moves only by advance.
type replicas struct {
	one, two *keyed
	clock    *clock
	client   *redis.Client
}

func startReplicas(t *testing.T) *replicas {
	t.Helper()
	server := storagetest.Redis(t)
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	r := &replicas{clock: newClock(), client: redis.NewClient(options)}
	t.Cleanup(func() { r.client.Close() })
	r.one = startKeyed(t, storagetest.Open(t, storage.Config{URL: server.URL}), onClock(r.clock))
	r.two = startKeyed(t, storagetest.Open(t, storage.Config{URL: server.URL}), onClock(r.clock))
	r.two.tenant = r.one.tenant
	r.one.publish(t, "payments", "hello", "{}")
	return r
}

// status is what a key is answered.
func (k *keyed) status(t *testing.T, key string) int {
	t.Helper()
	return k.as(t, key, "GET", "/v1/limits", "").status
}

// refuses waits until a key is refused, which must not need the server's clock.
func (k *keyed) refuses(t *testing.T, key string) {
	t.Helper()
	for begin := time.Now(); k.status(t, key) != http.StatusUnauthorized; {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("the key still works, want it refused")
		}
		time.Sleep(time.Millisecond)
	}
}

// cut ends a key in the store alone, of which no replica is told.
func (r *replicas) cut(t *testing.T, key string) {
	t.Helper()
	if n, err := r.client.Del(t.Context(), "cs:key:"+api.KeyDigest(key)).Result(); err != nil || n != 1 {
		t.Fatalf("DEL: got %d keys and error %v, want 1 and no error", n, err)
	}
}

func TestRevokedKeysStopAtOnceWhereTheNoticeArrives(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	admin, _ := r.one.key(t, api.RoleAdmin)
	key, record := r.one.key(t, api.RoleViewer)
	other, _ := r.one.key(t, api.RoleViewer)
	for _, k := range []*keyed{r.one, r.two} {
		if k.status(t, key) != 200 || k.status(t, other) != 200 {
			t.Fatal("the key does not work, want it accepted")
		}
	}
	ok[any](t, r.one.as(t, admin, "DELETE", "/v1/tenants/"+r.one.tenant+"/keys/"+record.ID, ""), 204)
	if got := r.one.status(t, key); got != 401 {
		t.Errorf("revoked key on the replica that revoked it: got %d, want 401", got)
	}
	r.two.refuses(t, key)
	for _, k := range []*keyed{r.one, r.two} {
		if k.status(t, other) != 200 {
			t.Error("another key stopped with it")
		}
	}
}

func TestRevokedKeysStopWithin5SecondsUnheard(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	key, _ := r.one.key(t, api.RoleViewer)
	for _, k := range []*keyed{r.one, r.two} {
		if k.status(t, key) != 200 {
			t.Fatal("the key does not work, want it accepted")
		}
	}
	r.cut(t, key)
	r.clock.advance(time.Second)
	if r.one.status(t, key) != 200 {
		t.Error("it is read again and again: nothing is kept for a second")
	}
	r.clock.advance(3 * time.Second)
	for _, k := range []*keyed{r.one, r.two} {
		if got := k.status(t, key); got != 401 {
			t.Errorf("revoked key after 4 s: got %d, want 401", got)
		}
	}
}

// Steady traffic has keys read again before they must be, off the path.
func TestRevokedKeysStopWhenTheyAreReadAgain(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	key, _ := r.one.key(t, api.RoleViewer)
	if r.one.status(t, key) != 200 {
		t.Fatal("the key does not work, want it accepted")
	}
	r.cut(t, key)
	r.clock.advance(2100 * time.Millisecond)
	r.one.refuses(t, key)
}

func TestKeysEndByTheClock(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	key, _ := r.one.key(t, api.RoleViewer, until(r.clock.now().Add(time.Hour).UnixMilli()))
	r.clock.advance(time.Hour - time.Second)
	if got := r.one.status(t, key); got != 200 {
		t.Fatalf("key before it expires: got %d, want 200", got)
	}
	r.clock.advance(time.Second) // the cached record is younger than 4 s
	if got := r.one.status(t, key); got != 401 {
		t.Errorf("key when it expires: got %d, want 401", got)
	}
}

// A log that is followed ends with the key that follows it.
func TestFollowedLogsEndWithTheirKey(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *replicas, string, string){
		"revoked": func(t *testing.T, r *replicas, _, id string) {
			admin, _ := r.one.key(t, api.RoleAdmin)
			ok[any](t, r.one.as(t, admin, "DELETE", "/v1/tenants/"+r.one.tenant+"/keys/"+id, ""), 204)
		},
		"revoked unheard": func(t *testing.T, r *replicas, key, _ string) {
			r.cut(t, key)
			r.clock.advance(4 * time.Second)
		},
		"expired": func(_ *testing.T, r *replicas, _, _ string) { r.clock.advance(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startReplicas(t)
			key, record := r.one.key(t, api.RoleViewer, until(r.clock.now().Add(time.Hour).UnixMilli()))
			a := r.one.run(t, time.Now().UnixMilli())
			r.one.write(t, a, 0, `"one"`)
			seen, ended := 0, false
			events(t, r.two.harness, r.two.logs(a, "?follow=true"), func(e event) {
				switch e.name {
				case "log":
					seen++
					end(t, r, key, record.ID)
				case "end":
					ended = true
				}
			}, "Authorization", "Bearer "+key)
			if seen != 1 || ended {
				t.Errorf("got %d lines and the end of the activation: %v, want 1 line and no end", seen, ended)
			}
		})
	}
}

func TestWithoutTheStoreKnownKeysWorkFor4Seconds(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	now := newClock()
	k := startKeyed(t, storagetest.Open(t, storage.Config{URL: server.URL}), onClock(now))
	known, _ := k.key(t, api.RoleViewer)
	unseen, _ := k.key(t, api.RoleViewer)
	wrong := k.lost(t)
	if k.status(t, known) != 200 || k.status(t, wrong) != 401 {
		t.Fatal("the key does not work, want it accepted")
	}
	server.Stop(t)
	for name, tc := range map[string]struct {
		key    string
		status int
	}{"known": {known, 200}, "unseen": {unseen, 503}, "wrong": {wrong, 401}, "malformed": {"x", 401}, "none": {"", 401}} {
		if got := k.status(t, tc.key); got != tc.status {
			t.Errorf("%s: status: got %d, want %v", name, got, tc.status)
		}
	}
	now.advance(4 * time.Second)
	k.as(t, known, "GET", "/v1/limits", "").refused(t, 503, api.CodeStoreUnavailable)
}

// calls counts what a server was asked, but for what keeps connections.
func calls(t *testing.T, client *redis.Client) (n int64) {
	t.Helper()
	for command, count := range storagetest.Calls(t, client) {
		switch command {
		case "info", "ping", "subscribe", "hello", "client|setinfo", "select":
			continue
		}
		n += count
	}
	return n
}

// An unknown key costs the store one call, however often and by how many clients it is
// sent; a malformed key costs none.
func TestWrongKeysCostTheStoreNothing(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	k := startKeyed(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	good, _ := k.key(t, api.RoleViewer)
	for name, tc := range map[string]struct {
		key  string
		cost int64
	}{
		"wrong":     {k.lost(t), 1},
		"right":     {good, 1},
		"malformed": {good[:len(good)-1], 0},
		"too long":  {good + "A", 0},
		"none":      {"", 0},
	} {
		before := calls(t, client)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { k.status(t, tc.key) })
		}
		all.Wait()
		for range 20 {
			k.status(t, tc.key)
		}
		if cost := calls(t, client) - before; cost != tc.cost {
			t.Errorf("%s: 40 requests cost %d calls, want %d", name, cost, tc.cost)
		}
	}
}

// Nothing of a body is asked for from those who may not send it.
func TestRefusalsComeBeforeTheBody(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "hello", `{}`)
	viewer, _ := k.key(t, api.RoleViewer)
	for name, tc := range map[string]struct {
		line, key string
		status    int
	}{
		"no key, a route":      {"POST " + strings.TrimSuffix(k.fn(""), "/hello"), "", 401},
		"no key, a draft":      {"PUT " + k.fn("/draft"), "", 401},
		"no key, an invoke":    {"POST " + k.fn(":invoke"), "", 401},
		"no key, an endpoint":  {"POST " + k.web("/"), "", 401},
		"a viewer, a route":    {"POST " + strings.TrimSuffix(k.fn(""), "/hello"), viewer, 403},
		"a viewer, a draft":    {"PUT " + k.fn("/draft"), viewer, 403},
		"a viewer, an invoke":  {"POST " + k.fn(":invoke"), viewer, 403},
		"a viewer, a function": {"POST " + k.web("/"), viewer, 403},
	} {
		begin, authorization := time.Now(), ""
		if tc.key != "" {
			authorization = "Authorization: Bearer " + tc.key + "\r\n"
		}
		response := k.raw(t, tc.line+" HTTP/1.1\r\nHost: sous.example\r\nContent-Type: application/json\r\n"+
			authorization+"Content-Length: 1000000\r\n\r\n{")
		// net/http waits a moment for the rest of a small body, of a large one for nothing.
		if response.StatusCode != tc.status || time.Since(begin) > 4*time.Second {
			t.Errorf("%s: got %d after %s, want %d within 4s", name, response.StatusCode, time.Since(begin), tc.status)
		}
	}
}

func TestUnknownModesAreRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	if _, err := controlplane.New(t.Context(), h.store, h.engine, h.queue, controlplane.Config{Auth: 7}); err == nil {
		t.Error("started")
	}
}
