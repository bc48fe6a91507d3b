package server

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ask sends a request on conn, or on a connection of its own.
func (d *drainTest) ask(conn net.Conn, path string) (*http.Response, error) {
	d.t.Helper()
	if conn == nil {
		var err error
		conn, err = net.Dial("tcp", strings.TrimPrefix(d.server.URL, "http://"))
		if err != nil {
			return nil, err
		}
		defer conn.Close()
	}
	request, err := http.NewRequest(http.MethodGet, d.server.URL+path, nil)
	if err != nil {
		d.t.Fatalf("http.NewRequest: %v", err)
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err == nil {
		err = response.Body.Close() // it is smaller than the buffer
	}
	return response, err
}

// awaitUnready returns once /readyz says no.
func (d *drainTest) awaitUnready() {
	d.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		response, err := d.ask(nil, "/readyz")
		if err != nil || time.Now().After(deadline) {
			d.t.Fatalf("GET /readyz: got error %v, want status 503 within %s\n%s", err, waitLimit, d.server.Output())
		}
		if response.StatusCode == http.StatusServiceUnavailable {
			return
		}
	}
}

// While a load balancer has not looked yet, everything is answered, and each
// answer closes its connection, so that the client connects elsewhere.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = 1500 * time.Millisecond
	d := startDrain(t, 2*delay, "--drain-delay", delay.String())
	kept, err := net.Dial("tcp", strings.TrimPrefix(d.server.URL, "http://"))
	if err != nil {
		t.Fatalf("net.Dial: %v", err)
	}
	defer kept.Close()
	if response, err := d.ask(kept, "/healthz"); err != nil || response.Close {
		t.Fatalf("GET /healthz before the signal = %+v, %v, want an answer that keeps the connection", response, err)
	}
	begin := time.Now()
	if err := d.server.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("Signal: %v", err)
	}
	d.awaitUnready()
	for name, conn := range map[string]net.Conn{"an idle connection": kept, "a fresh connection": nil} {
		response, err := d.ask(conn, "/healthz")
		if err != nil || response.StatusCode != http.StatusOK || !response.Close {
			t.Errorf("%s: %+v, %v, want an answer that ends the connection", name, response, err)
		}
	}
	if took := time.Since(begin); took > delay {
		t.Skipf("this machine took %s for what should take no time", took)
	}
	for _, err := d.ask(nil, "/healthz"); err == nil; _, err = d.ask(nil, "/healthz") {
		if time.Since(begin) > waitLimit {
			t.Fatalf("connections are still accepted after %s, want them refused", waitLimit)
		}
	}
	if took := time.Since(begin); took < delay {
		t.Errorf("connections were refused after %s, want %s", took, delay)
	}
	if err := <-d.answer; err != nil || string(d.got.Result) != `"done"` {
		t.Errorf("call in flight = %+v, %v, want the result done", d.got, err)
	}
	if err := d.server.Wait(); err != nil {
		t.Errorf("Wait: %v", err)
	}
}

func TestSecondSignalEndsTheDelay(t *testing.T) {
	t.Parallel()
	d := startDrain(t, time.Minute, "--drain-delay", "1m")
	if err := d.server.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("Signal: %v", err)
	}
	d.awaitUnready()
	begin := time.Now()
	if err := d.server.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("Signal: %v", err)
	}
	if err := d.server.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("got %v, want death by the signal", err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the end took %s, want at most 5s", took)
	}
	if err := <-d.answer; err == nil {
		t.Errorf("call in flight: got the answer %+v, want it interrupted", d.got)
	}
}
