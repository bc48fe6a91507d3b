package platformtest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// attackerCall calls an endpoint of the attacker and returns its status, 0 without an answer.
func attackerCall(ctx context.Context, c *http.Client, server *platformtest.Server, name string) int {
	status, _ := getOf(ctx, c, server, attackerTenant, name)
	return status
}

// Functions with many large secrets that write as much as they can to their logs cost the server
// a bounded part of its processors and of its memory.
func TestNeighboursRedaction(t *testing.T) {
	const (
		loops, versions, values = 40, 24, 8
		most                    = 300 // MiB by which the server may grow; logs on their way are a part of it
	)
	server := platformtest.Serve(t, storagetest.Redis(t).URL, "--secrets-key-file", secretsKey(t))
	v := newGreeter(t, server, true)
	secrets := server.APIOf(t, attackerTenant).Namespace(platformtest.Namespace)
	var names []string
	for i := range versions + values {
		name := fmt.Sprintf("s%d", i)
		value := strings.Repeat(fmt.Sprintf("%d-%d ", i, i*i), 28<<10)[:28<<10]
		if _, err := secrets.Secret(name).Set(t.Context(), value, client.SecretCondition{}); err != nil {
			t.Fatalf("Set: %v", err)
		}
		names = append(names, `"`+name+`"`)
	}
	for i := range versions { // each has other values
		own := strings.Join(names[i:i+values], ", ")
		publishFor(t, server, attackerTenant, fmt.Sprintf("loop%d", i), `{"memory_mb": 64, "max_concurrency": 50, "capabilities": {"secrets": [`+own+`]}}`,
			`const line = "1-1 4-16 ".repeat(400);
			export default async () => {
				for (const name of [`+own+`]) await cs.secrets.get(name);
				for (let i = 0; i < 400; i++) console.log(line, i);
			};`)
	}
	quiet := v.calls(200)
	before := resident(t, server)
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	var ended atomic.Int64
	_, stop := attack(t, loops, func(ctx context.Context, i int) {
		switch status := attackerCall(ctx, c, server, fmt.Sprintf("loop%d", i%versions)); status {
		case http.StatusNoContent, http.StatusOK:
			ended.Add(1)
		case http.StatusTooManyRequests:
			pause(ctx, 100*time.Millisecond)
		}
	})
	platformtest.Eventually(t, time.Minute, "calls of the attacker have ended", func() error {
		if n := ended.Load(); n < loops/4 {
			return fmt.Errorf("%d have ended", n)
		}
		return nil
	})
	attacked := v.calls(300)
	grown := (resident(t, server) - before) >> 10
	stop()
	v.unharmed(quiet, attacked)
	t.Logf("%d calls of the attacker ended; the server grew by %d MiB", ended.Load(), grown)
	if grown > most {
		t.Errorf("the server grew by %d MiB under attack, want at most %d", grown, most)
	}
}

// A tenant whose fetches wait for answers that never come leaves the fetches of others their
// places and connections.
func TestNeighboursFetch(t *testing.T) {
	const loops = 30 // with 50 fetches each
	allowed := []string{"--egress-allow", "127.0.0.0/8"}
	server := platformtest.Serve(t, storagetest.Redis(t).URL, allowed...)
	var waiting atomic.Int64
	silent := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/answer" {
			_, _ = io.WriteString(w, "answer")
			return
		}
		waiting.Add(1)
		<-r.Context().Done()
		waiting.Add(-1)
	})}
	listener, err := net.Listen("tcp", "127.0.0.4:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	go func() { _ = silent.Serve(listener) }()
	t.Cleanup(func() { _ = silent.Close() })
	origin := "http://" + listener.Addr().String()
	capability := `{"memory_mb": 32, "max_concurrency": 40, "timeout_ms": 60000, "capabilities": {"http": {"allowHosts": ["` + listener.Addr().String() + `"], "timeoutMs": 60000}}}`
	publishFor(t, server, attackerTenant, "wait", capability,
		`export default () => Promise.all(Array.from({ length: 50 }, () => fetch("`+origin+`/never").catch(() => {})));`)
	v := newVictim(t, server, true, capability,
		`export default async () => { const r = await fetch("`+origin+`/answer"); return await r.text(); };`, allowed...)
	quiet := v.calls(200)
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	_, stop := attack(t, loops, func(ctx context.Context, _ int) {
		attackerCall(ctx, c, server, "wait")
		pause(ctx, 50*time.Millisecond)
	})
	// A tenant has at most 256 exchanges at once.
	platformtest.Eventually(t, 30*time.Second, "the attacker holds its share of exchanges", func() error {
		if n := waiting.Load(); n < 200 {
			return fmt.Errorf("%d exchanges wait", n)
		}
		return nil
	})
	attacked := v.calls(200)
	stop()
	v.unharmed(quiet, attacked)
}

// A key that may change nothing, with thousands of refused requests, displaces no event of the
// audit, and leaves a few events itself.
func TestNeighboursAudit(t *testing.T) {
	const requests, mostEvents = 3000, 100
	store := storagetest.Redis(t)
	server := platformtest.Config{Store: store.URL, Key: platformtest.Bootstrap(t, store.URL)}.Serve(t)
	tenant := server.APIOf(t, attackerTenant)
	viewer, err := tenant.CreateKey(t.Context(), client.NewKey{Name: "viewer", Roles: []string{"viewer"}})
	if err != nil {
		t.Fatalf("CreateKey: %v", err)
	}
	v := newGreeter(t, server, true)
	quiet := v.calls(200)
	flooder, err := client.New(server.URL, client.Config{MaxAttempts: 1, Key: viewer.Secret})
	if err != nil {
		t.Fatalf("client.New: %v", err)
	}
	functions := flooder.Tenant(attackerTenant).Namespace(platformtest.Namespace)
	var refused atomic.Int64
	_, stop := attack(t, 4, func(ctx context.Context, i int) {
		_, err := functions.CreateFunction(ctx, client.NewFunction{Name: fmt.Sprintf("f%d", i)})
		switch code := api.ErrorCode(err); {
		case ctx.Err() != nil:
		case code == api.CodeAuthzDenied:
			refused.Add(1)
		default:
			t.Errorf("a viewer creates a function: got %v, want code %s", err, api.CodeAuthzDenied)
		}
	})
	attacked := v.calls(300)
	platformtest.Eventually(t, time.Minute, "the viewer was refused often", func() error {
		if n := refused.Load(); n < requests {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	stop()
	v.unharmed(quiet, attacked)
	kept, err := tenant.Audit(t.Context(), client.AuditFilter{Action: "cs:key:create"}, client.PageOptions{})
	if err != nil || len(kept.Items) != 1 {
		t.Errorf("the audit has %d events of the creation of the key, %v, want 1", len(kept.Items), err)
	}
	// The further ones of a minute are counted, and leave an event for each action.
	yes := true
	events, err := tenant.Audit(t.Context(), client.AuditFilter{Refused: &yes}, client.PageOptions{Limit: 500})
	if err != nil || len(events.Items) == 0 || len(events.Items) > mostEvents {
		t.Errorf("%d refused requests left %d events, %v, want from 1 to %d", refused.Load(), len(events.Items), err, mostEvents)
	}
}
