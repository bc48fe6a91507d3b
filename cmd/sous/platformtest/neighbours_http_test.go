package platformtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// attackHTTP runs n attackers until the test ends, each on connections of an address, one after the
// other. one uses a connection until it ends.
func attackHTTP(t *testing.T, server *platformtest.Server, address string, n int, one func(ctx context.Context, conn net.Conn)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				conn, err := dialFrom(address).DialContext(ctx, "tcp", strings.TrimPrefix(server.URL, "http://"))
				if err != nil {
					continue // it is refused: try again
				}
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				one(ctx, conn)
				stop()
				conn.Close()
				pause(ctx, 50*time.Millisecond) // the attackers share the processors with the server
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// answered returns the status of the answer on a connection, 0 for none.
func answered(conn net.Conn) int {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	return response.StatusCode // the body may have no end
}

// Callers that send large bodies and hold them back, and callers that do not read large answers,
// hold no more memory than their share of the budget.
func TestNeighboursBodies(t *testing.T) {
	const bodyBudget, most = 64, 300 // MiB; most is of the whole process, above its size before
	server := platformtest.Serve(t, storagetest.Redis(t).URL, "--body-budget", fmt.Sprint(bodyBudget), "--memory-limit", "192", "--sandbox-max", "16")
	v := newGreeter(t, server, true)
	for _, tenant := range []string{attackerTenant, secondTenant} {
		publishFor(t, server, tenant, "large", `{"memory_mb": 128}`, `export default () => ({ statusCode: 200, headers: { "content-type": "image/png" }, body: "x".repeat(4 << 20) });`)
	}
	quiet := v.calls(200)
	before := resident(t, server)

	// ifRefused counts an answer that refuses the request.
	ifRefused := func(ctx context.Context, status int, refused *atomic.Int64) {
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			refused.Add(1)
			pause(ctx, 3*time.Second) // the test measures memory, not the rate of sent bytes
		}
	}
	var refusedBodies, refusedAnswers, unread atomic.Int64
	part := make([]byte, 3<<20)
	attackHTTP(t, server, attackerAddress, 150, func(ctx context.Context, conn net.Conn) {
		_, _ = io.WriteString(conn, "POST /v1/web/"+attackerTenant+"/default/large/prod HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6291456\r\n\r\n")
		_, _ = conn.Write(part) // it stops here; the server ends it
		ifRefused(ctx, answered(conn), &refusedBodies)
	})
	// These have another tenant and address: the held bodies would take the share of both.
	attackHTTP(t, server, secondAddress, 100, func(ctx context.Context, conn net.Conn) {
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // otherwise the kernel would take the answer
		_, _ = io.WriteString(conn, "GET /v1/web/"+secondTenant+"/default/large/prod HTTP/1.1\r\nHost: localhost\r\n\r\n")
		status := answered(conn)
		ifRefused(ctx, status, &refusedAnswers)
		if status == http.StatusOK {
			unread.Add(1)
			pause(ctx, 5*time.Second) // it reads no more than the headers
			unread.Add(-1)
		}
	})
	platformtest.Eventually(t, 20*time.Second, "the attack is at full force", func() error {
		if bodies, answers, n := refusedBodies.Load(), refusedAnswers.Load(), unread.Load(); bodies < 100 || answers < 100 || n == 0 {
			return fmt.Errorf("%d bodies and %d answers were refused, and %d answers are unread", bodies, answers, n)
		}
		return nil
	})
	largest := 0
	watched := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			largest = max(largest, resident(t, server))
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond): // the pace of the samples
			}
		}
	}()
	attacked := v.calls(300)
	close(stop)
	<-watched
	v.unharmed(quiet, attacked)
	t.Logf("resident: %d MiB before, at most %d MiB under attack; %d bodies and %d answers were refused", before>>10, largest>>10, refusedBodies.Load(), refusedAnswers.Load())
	if grown := (largest - before) >> 10; grown > most {
		t.Errorf("the server grew by %d MiB under attack, want at most %d", grown, most)
	}
}

// A client that holds connections with half-sent bodies takes none from the others, nor from
// the probes.
func TestNeighboursConnections(t *testing.T) {
	const most = 64
	server := platformtest.Serve(t, storagetest.Redis(t).URL, "--max-connections", fmt.Sprint(most))
	v := newGreeter(t, server, false)
	publishFor(t, server, attackerTenant, "hello", "", `export default () => "hello";`)
	quiet := v.calls(200)

	var open atomic.Int64
	attackHTTP(t, server, attackerAddress, 3*most, func(_ context.Context, conn net.Conn) {
		_, err := io.WriteString(conn, "POST /v1/web/"+attackerTenant+"/default/hello/prod HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nhalf")
		if err != nil {
			return
		}
		open.Add(1)
		_ = answered(conn) // after the window, or when the connection is closed for another
		open.Add(-1)
	})
	platformtest.Eventually(t, 20*time.Second, "the attacker holds its share of connections", func() error {
		if n := open.Load(); n < most*3/4 {
			return fmt.Errorf("it holds %d", n)
		}
		return nil
	})
	attacked := v.calls(200)
	v.unharmed(quiet, attacked)
	for range 20 {
		if status, err := v.get(server, "/readyz"); err != nil || status != http.StatusOK {
			t.Fatalf("GET /readyz under attack: status %d, %v, want 200", status, err)
		}
	}
}

// Requests whose bodies no handler reads and do not arrive, and a storm of new connections of the same
// two addresses, keep no other address from connecting.
func TestNeighboursConnectionStorm(t *testing.T) {
	const most = 64
	server := platformtest.Serve(t, storagetest.Redis(t).URL, "--max-connections", fmt.Sprint(most))
	v := newGreeter(t, server, false)
	quiet := v.calls(200)

	ctx, cancel := context.WithCancel(context.Background())
	var attackers sync.WaitGroup
	var held, refused atomic.Int64
	attack := func(address, request string, counted *atomic.Int64) {
		for ctx.Err() == nil {
			conn, err := dialFrom(address).DialContext(ctx, "tcp", strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				pause(ctx, 10*time.Millisecond)
				continue
			}
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			_, _ = io.WriteString(conn, request)
			_, _ = io.Copy(io.Discard, conn) // until the server closes it
			counted.Add(1)
			stop()
			conn.Close()
			pause(ctx, 20*time.Millisecond) // the attackers share the processors with the server
		}
	}
	for _, address := range []string{attackerAddress, secondAddress} {
		for range most {
			attackers.Go(func() {
				attack(address, "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf", &held)
			})
		}
		for range most / 2 {
			attackers.Go(func() { attack(address, "", &refused) })
		}
	}
	t.Cleanup(func() { cancel(); attackers.Wait() })
	platformtest.Eventually(t, 20*time.Second, "the attack is at full force", func() error {
		if held.Load() < most || refused.Load() < most {
			return fmt.Errorf("%d connections with requests and %d without were closed", held.Load(), refused.Load())
		}
		return nil
	})
	attacked := v.calls(200)
	v.unharmed(quiet, attacked)
}

// Hundreds of streams of one log cost the store no more than one, and leave others room to
// follow theirs.
func TestNeighboursFollowers(t *testing.T) {
	// mostReads is per second. One stream reads the record, the index and the chunks of the log
	// 10 times a second, and the server's own work adds some. 512 streams that share nothing
	// would read more than 10,000 times.
	const streams, mostReads = 700, 100
	store := storagetest.Redis(t)
	server := platformtest.Serve(t, store.URL)
	v := newGreeter(t, server, true)
	chatty := `export default async () => { for (let i = 0; i < 550; i++) { console.log("line " + i); await new Promise((r) => setTimeout(r, 100)); } };`
	ids := map[string]string{}
	for _, tenant := range []string{attackerTenant, victimTenant} {
		publishFor(t, server, tenant, "chatty", `{"timeout_ms": 60000}`, chatty)
		ids[tenant] = startRun(t, server, tenant)
	}
	quiet := v.calls(200)

	var following, refused atomic.Int64
	path := "/v1/tenants/" + attackerTenant + "/activations/" + ids[attackerTenant] + "/logs?follow=true"
	attackHTTP(t, server, attackerAddress, streams, func(ctx context.Context, conn net.Conn) {
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if status := answered(conn); status != http.StatusOK {
			refused.Add(1)
			pause(ctx, time.Second)
			return
		}
		following.Add(1)
		_, _ = io.Copy(io.Discard, conn)
		following.Add(-1)
	})
	platformtest.Eventually(t, 30*time.Second, "the attacker follows as often as it may", func() error {
		if following.Load() < 500 || refused.Load() == 0 {
			return fmt.Errorf("%d streams, %d refused", following.Load(), refused.Load())
		}
		return nil
	})
	opened := storagetest.Open(t, storage.Config{URL: store.URL})
	reads := func() int64 {
		calls := storagetest.Calls(t, opened.Client())
		return calls["zrangebyscore"] + calls["mget"]
	}
	before, begin := reads(), time.Now()
	attacked := v.calls(200)
	perSecond := float64(reads()-before) / time.Since(begin).Seconds()
	v.unharmed(quiet, attacked)
	t.Logf("%d streams cost %.0f reads of the store a second", following.Load(), perSecond)
	if perSecond > mostReads {
		t.Errorf("%d streams of one log: got %.0f reads of the store a second, want at most %d", following.Load(), perSecond, mostReads)
	}
	response, err := v.client.Get(server.URL + "/v1/tenants/" + victimTenant + "/activations/" + ids[victimTenant] + "/logs?follow=true")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the victim follows its own log: %v, %v, want 200", response, err)
	}
	defer response.Body.Close()
	if err := seesLine(response.Body); err != nil {
		t.Errorf("the victim's stream: %v, want a line", err)
	}
}

// startRun starts the function chatty of a tenant and returns the id of the activation.
func startRun(t *testing.T, server *platformtest.Server, tenant string) string {
	t.Helper()
	response, err := http.Post(server.URL+"/v1/tenants/"+tenant+"/namespaces/default/functions/chatty:invoke", "application/json", strings.NewReader(`{"ref":{"alias":"prod"},"mode":"async"}`))
	if err != nil {
		t.Fatalf("invoke chatty: %v", err)
	}
	defer response.Body.Close()
	var queued struct {
		ID string `json:"activation_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&queued); err != nil || queued.ID == "" {
		t.Fatalf("invoke chatty: %s, %v, want an activation", response.Status, err)
	}
	return queued.ID
}

// seesLine reads a stream up to its first line of the log.
func seesLine(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: log") {
			return nil
		}
	}
	return fmt.Errorf("it ended: %w", lines.Err())
}
