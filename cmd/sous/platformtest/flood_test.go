package platformtest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/platformtest"
)

// flood holds the connections of misbehaving clients.
type flood struct {
	t       *testing.T
	address string
	conns   []net.Conn
	mu      sync.Mutex
	done    chan struct{} // closed when the slow ones shall end
	slow    sync.WaitGroup
}

func newFlood(t *testing.T, server *platformtest.Server) *flood {
	f := &flood{t: t, address: strings.TrimPrefix(server.URL, "http://"), done: make(chan struct{})}
	t.Cleanup(func() {
		close(f.done)
		f.slow.Wait()
		for _, conn := range f.conns {
			conn.Close()
		}
	})
	return f
}

func (f *flood) dial() (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", f.address, 10*time.Second)
	if err == nil {
		f.mu.Lock()
		f.conns = append(f.conns, conn)
		f.mu.Unlock()
	}
	return conn, err
}

const healthRequest = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

// ask sends a request on conn and reads its answer.
func ask(conn net.Conn, request string) (status int, err error) {
	if _, err := io.WriteString(conn, request); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// idle opens n connections, each of which asked once and then keeps silent.
func (f *flood) idle(n int) {
	f.t.Helper()
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < n; i += 16 {
				conn, err := f.dial()
				if err == nil {
					_, err = ask(conn, healthRequest)
				}
				if err != nil {
					f.t.Errorf("idle connection %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if f.t.Failed() {
		f.t.FailNow()
	}
}

// drip opens n connections that send begin at once and then a byte every so
// often. A connection that the server ends is opened again, as an attacker would.
func (f *flood) drip(n int, begin string, every time.Duration) {
	for range n {
		f.slow.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			var conn net.Conn
			for {
				if conn == nil {
					var err error
					conn, err = f.dial()
					if err != nil {
						return // the server ended, or the test is over its own limit: the calls will show it
					}
					_, _ = io.WriteString(conn, begin)
				}
				select {
				case <-f.done:
					return
				case <-tick.C:
				}
				if _, err := conn.Write([]byte{'x'}); err != nil {
					conn = nil
				}
			}
		})
	}
}

// The beginnings of requests that never become whole.
const (
	slowHeader = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
	slowBody   = "POST /v1/web/t_platform/default/hello/prod HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
)

// calls calls the function n times, each time on a connection of its own, and returns
// the durations, the shortest first.
func (f *flood) calls(server *platformtest.Server, n int) []time.Duration {
	f.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	took := make([]time.Duration, n)
	for i := range took {
		begin := time.Now()
		response, err := client.Get(server.URL + "/v1/web/" + platformtest.Tenant + "/" + platformtest.Namespace + "/hello/prod")
		if err != nil {
			f.t.Fatalf("call %d: %v", i, err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			f.t.Fatalf("call %d = %s %s, %v, want 200", i, response.Status, body, err)
		}
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	return took
}

// resident is the server's memory in KiB.
func resident(t *testing.T, server *platformtest.Server) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Pid()))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatalf("strconv.Atoi: %v", err)
	}
	return kib
}

// descriptors is how many connections this process may hold beside its own work.
func descriptors(t *testing.T) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatalf("Getrlimit: %v", err)
	}
	return int(min(limit.Cur, 1<<20))
}

// Ten thousand idle connections and six hundred slow senders do not make others
// wait. It has the machine to itself: what it holds answers to is a time.
func TestFloodDoesNotSlowOthers(t *testing.T) {
	const headers, bodies, calls, within = 500, 100, 300, 100 * time.Millisecond
	idle := 10_000
	if room := descriptors(t)*3/4 - headers - bodies - 1000; room < idle {
		idle = room
		t.Logf("the limit of %d open files allows %d idle connections", descriptors(t), idle)
	}
	server := platformtest.Serve(t, redis(t))
	server.Publish(t, "hello", "", map[string]string{"function.js": `export default () => "hello";`})
	f := newFlood(t, server)
	f.calls(server, 50)
	before := resident(t, server)
	f.idle(idle)
	after := resident(t, server)
	t.Logf("%d idle connections: %d MiB resident before, %d MiB after, %.1f KiB each", idle, before>>10, after>>10, float64(after-before)/float64(idle))
	if each := (after - before) / idle; each > 64 {
		t.Errorf("an idle connection takes %d KiB, want less", each)
	}
	f.drip(headers, slowHeader, 500*time.Millisecond)
	f.drip(bodies, slowBody, 100*time.Millisecond)
	f.calls(server, 50)
	took := f.calls(server, calls)
	p99 := took[calls*99/100]
	t.Logf("%d calls: median %s, p99 %s, slowest %s", calls, took[calls/2], p99, took[calls-1])
	if p99 > within {
		t.Errorf("1 in 100 calls took %s, want at most %s", p99, within)
	}
}

// A flood of more connections than there may be takes neither the descriptors
// of store and sandboxes nor the place of who asks now.
func TestSurplusConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	const most = 200
	server := platformtest.Serve(t, redis(t), "--max-connections", strconv.Itoa(most))
	server.Publish(t, "hello", "", map[string]string{"function.js": `export default () => "hello";`})
	f := newFlood(t, server)
	f.idle(most)
	f.drip(most, slowHeader, time.Second)
	// The connection that published has waited longest: the server may close it at any
	// moment, also while a call is sent on it.
	http.DefaultClient.CloseIdleConnections()
	f.calls(server, 50)
	if n := openFiles(t, server); n > most+100 {
		t.Errorf("%d open files, want few more than the %d connections", n, most)
	}
	if !strings.Contains(server.Output(), "connection limit reached") {
		t.Error("the log has no line about the connection limit, want one")
	}
}

// openFiles counts the server's descriptors.
func openFiles(t *testing.T, server *platformtest.Server) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", server.Pid()))
	if err != nil {
		t.Fatalf("os.ReadDir: %v", err)
	}
	return len(files)
}

// If every connection has a request, a new one is refused immediately.
func TestSurplusConnectionIsClosed(t *testing.T) {
	t.Parallel()
	const most = 4
	server := platformtest.Serve(t, redis(t), "--max-connections", strconv.Itoa(most))
	f := newFlood(t, server)
	f.drip(most, "POST /v1/tenants/t_platform/namespaces/default/functions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", 100*time.Millisecond)
	platformtest.Eventually(t, 5*time.Second, "one connection too many is closed", func() error {
		conn, err := f.dial()
		if err != nil {
			return err
		}
		if status, err := ask(conn, healthRequest); err == nil {
			return fmt.Errorf("it was answered with %d", status)
		}
		return nil
	})
}

// A header has 10 seconds, and so has each 10 KiB of a body, however lively the bytes drip.
func TestSlowRequestsAreCut(t *testing.T) {
	t.Parallel()
	server := platformtest.Serve(t, redis(t))
	server.Publish(t, "hello", "", map[string]string{"function.js": `export default () => "hello";`})
	tests := []struct {
		name, begin string
		after       time.Duration
		answer      string // "" is none: there was no request to answer
	}{
		{"header", slowHeader, 10 * time.Second, ""},
		{"nothing", "", 10 * time.Second, ""},
		{"body", slowBody, 10 * time.Second, "408 Request Timeout"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				t.Fatalf("net.Dial: %v", err)
			}
			defer conn.Close()
			begin := time.Now()
			if _, err := io.WriteString(conn, test.begin); err != nil {
				t.Fatalf("io.WriteString: %v", err)
			}
			stop := make(chan struct{})
			defer close(stop)
			if test.begin != "" {
				go func() {
					tick := time.NewTicker(250 * time.Millisecond)
					defer tick.Stop()
					for {
						select {
						case <-stop:
							return
						case <-tick.C:
							_, _ = conn.Write([]byte{'x'}) // it ends when it ends
						}
					}
				}()
			}
			_ = conn.SetReadDeadline(begin.Add(test.after + 10*time.Second))
			line, err := bufio.NewReader(conn).ReadString('\n')
			took := time.Since(begin)
			if errors.Is(err, os.ErrDeadlineExceeded) || took < test.after-time.Second {
				t.Errorf("it ended after %s with %v, want %s", took, err, test.after)
			}
			if test.answer != "" && !strings.Contains(line, test.answer) || test.answer == "" && strings.Contains(line, "200") {
				t.Errorf("answered %q, want %q", line, test.answer)
			}
		})
	}
}
