package controlplane_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestRefusedBodiesAreNotWaitedFor sends requests that are refused whatever their
// body is, and the body a byte at a time: the refusal comes within seconds, and
// ends the connection. Nothing but a deadline makes net/http stop to read.
func TestRefusedBodiesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	h := start(t)
	for name, target := range map[string]string{
		"no such route":  "POST /nothing",
		"no such method": "POST /healthz",
		"too large":      "POST " + h.web("/"),
	} {
		for length, size := range map[string]string{"announced": "Content-Length: %d\r\n\r\n", "chunked": "Transfer-Encoding: chunked\r\n\r\n%x\r\n"} {
			t.Run(name+" "+length, func(t *testing.T) {
				t.Parallel()
				conn, err := net.Dial("tcp", h.Listener.Addr().String())
				if err != nil {
					t.Fatalf("Dial: %v", err)
				}
				defer conn.Close()
				body := 100_000
				if name == "too large" {
					body = 16 << 20
				}
				if _, err := io.WriteString(conn, target+" HTTP/1.1\r\nHost: localhost\r\n"+fmt.Sprintf(size, body)); err != nil {
					t.Fatalf("WriteString: %v", err)
				}
				if name == "too large" && length == "chunked" { // which only the body tells
					if _, err := io.CopyN(conn, zeroes{}, 8<<20); err != nil {
						t.Fatalf("CopyN: %v", err)
					}
				}
				stop := make(chan struct{})
				defer close(stop)
				go drip(conn, stop)
				begin := time.Now()
				_ = conn.SetReadDeadline(begin.Add(15 * time.Second))
				answer, err := io.ReadAll(bufio.NewReader(conn))
				if !strings.HasPrefix(string(answer), "HTTP/1.1 4") || time.Since(begin) > 12*time.Second {
					t.Errorf("got answer %q and error %v after %s, want a status 4xx within 12s", answer, err, time.Since(begin))
				}
			})
		}
	}
}

// drip sends a byte every so often until stop is closed.
func drip(conn net.Conn, stop <-chan struct{}) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			_, _ = conn.Write([]byte{'x'}) // it ends when it ends
		}
	}
}
