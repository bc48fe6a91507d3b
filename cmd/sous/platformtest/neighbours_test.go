package platformtest_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// The addresses and tenants of the tests of neighbours. All of 127.0.0.0/8 is this machine.
const (
	attackerAddress = "127.0.0.2"
	secondAddress   = "127.0.0.4" // of a second attacker
	victimAddress   = "127.0.0.3"
	attackerTenant  = "t_attacker"
	secondTenant    = "t_attacker2"
	victimTenant    = "t_victim"
)

// publishFor publishes the module function.js of a tenant as prod; config "" is the default.
func publishFor(t *testing.T, server *platformtest.Server, tenant, name, config, source string) {
	t.Helper()
	server.PublishTo(t, server.APIOf(t, tenant), name, config, map[string]string{"function.js": source})
}

// p99 returns the 99th percentile of durations, by nearest rank. It sorts them.
func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[(len(took)*99+99)/100-1]
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func dialFrom(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 10 * time.Second}
}

// victim calls a function steadily, from an address of its own, on the attacked server and on a
// control, which runs the same function and is not attacked. The attackers' processes slow
// both on a small machine, and other tests do. What slows only the first is the attack.
type victim struct {
	t       *testing.T
	server  *platformtest.Server
	control *platformtest.Server
	path    string // of the function
	client  *http.Client
}

// latency is the 99th percentile of calls on the two servers.
type latency struct{ server, control time.Duration }

// newVictim publishes a function on both servers. args are those of the control.
func newVictim(t *testing.T, server *platformtest.Server, keepAlive bool, config, source string, args ...string) *victim {
	t.Helper()
	transport := &http.Transport{DialContext: dialFrom(victimAddress).DialContext, DisableKeepAlives: !keepAlive}
	t.Cleanup(transport.CloseIdleConnections)
	v := &victim{
		t: t, server: server, control: platformtest.Serve(t, storagetest.Redis(t).URL, args...),
		path: "/v1/web/" + victimTenant + "/default/victim/prod", client: &http.Client{Transport: transport, Timeout: 20 * time.Second},
	}
	for _, s := range []*platformtest.Server{v.server, v.control} {
		publishFor(t, s, victimTenant, "victim", config, source)
	}
	v.calls(50) // until the sandboxes and connections are there
	return v
}

// newGreeter is newVictim with a function that says hello.
func newGreeter(t *testing.T, server *platformtest.Server, keepAlive bool) *victim {
	t.Helper()
	return newVictim(t, server, keepAlive, `{"authz": {"invoke_http_roles": ["*"]}}`, `export default () => "hello";`)
}

// get returns the status of an answer to a GET.
func (v *victim) get(server *platformtest.Server, path string) (int, error) {
	response, err := v.client.Get(server.URL + path)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// calls calls both servers n times, one after the other. Each call must succeed.
func (v *victim) calls(n int) latency {
	v.t.Helper()
	call := func(server *platformtest.Server) time.Duration {
		v.t.Helper()
		begin := time.Now()
		status, err := v.get(server, v.path)
		took := time.Since(begin)
		if err != nil || status != http.StatusOK {
			v.t.Fatalf("a call of the victim after %s: status %d, %v, want 200", took, status, err)
		}
		return took
	}
	onServer, onControl := make([]time.Duration, n), make([]time.Duration, n)
	for i := range n {
		onServer[i], onControl[i] = call(v.server), call(v.control)
		time.Sleep(5 * time.Millisecond) // the pace of its clients
	}
	return latency{p99(onServer), p99(onControl)}
}

// serverNoise is added to three times the latency: a call shares the processors of the server with
// the attackers' calls, and waits for the collector of garbage beside them.
const serverNoise = 50 * time.Millisecond

// unharmed fails the test if the calls during an attack are more than three times as slow as before
// it, or as those of the control.
func (v *victim) unharmed(quiet, attacked latency) {
	v.t.Helper()
	v.t.Logf("p99 of the victim: %s in quiet, %s under attack, when the control takes %s", quiet.server, attacked.server, attacked.control)
	if most := 3*max(quiet.server, attacked.control) + serverNoise; attacked.server > most {
		v.t.Errorf("p99 of the victim under attack: got %s, want at most %s (it was %s in quiet, and that of the control is %s)",
			attacked.server, most, quiet.server, attacked.control)
	}
}
