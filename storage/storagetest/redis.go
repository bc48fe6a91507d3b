// Package storagetest runs tests against real stores: the embedded one, a
// redis-server of the tests' own, and a cluster of three. Each test takes a
// random tenant, so that all of them share a server and run in parallel.
package storagetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server process of the tests' own.
type Server struct {
	URL  string // redis://127.0.0.1:port
	Port int

	dir   string
	owned bool // dir goes with the server
	args  []string
	guard *exec.Cmd
	hold  io.WriteCloser // the guard kills the server when this closes
	pid   int
}

// guardScript starts the server and outlives this process by a moment: when its
// standard input ends, however the test process ended, it kills the server.
// Its first argument is a directory to remove after that, or "".
const guardScript = `remove=$1; shift; "$@" >/dev/null 2>&1 & echo $!; read -r _; kill -9 $! 2>/dev/null; wait; [ -z "$remove" ] || rm -rf "$remove"`

// Redis starts a redis-server on a free port, with further arguments, and stops
// it when the test ends.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := newServer(&Server{dir: t.TempDir(), args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// newServer tries a few ports: another process may take one between the look
// and the start.
func newServer(s *Server) (*Server, error) {
	var err error
	for range 5 {
		if s.Port, err = freePort(); err != nil {
			return nil, err
		}
		if err = os.MkdirAll(s.dir, 0o700); err != nil { // a try that failed may have removed it
			return nil, err
		}
		s.URL = fmt.Sprintf("redis://127.0.0.1:%d", s.Port)
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// freePort is one whose cluster bus port, were it 10,000 higher, exists too.
func freePort() (int, error) {
	for {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		addr, ok := l.Addr().(*net.TCPAddr)
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if ok && addr.Port < 55_000 {
			return addr.Port, nil
		}
	}
}

// Start starts the server again, on the same port and with its data.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) start() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server is not installed; `make test` installs what the tests need: %w", err)
	}
	remove := ""
	if s.owned {
		remove = s.dir
	}
	args := append([]string{
		"-c", guardScript, "redis-guard", remove, path, "--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1",
		"--dir", s.dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, s.args...)
	s.guard = exec.CommandContext(context.Background(), "/bin/sh", args...)
	if s.hold, err = s.guard.StdinPipe(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	out, err := s.guard.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	if err := s.guard.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		s.pid, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err == nil {
		err = s.awaitReady()
	}
	if err != nil {
		s.Kill()
		return fmt.Errorf("start redis-server: %w", err)
	}
	return nil
}

// awaitReady asks until the server answers; a client waits for nothing itself.
func (s *Server) awaitReady() error {
	client := redis.NewClient(&redis.Options{Addr: s.addr(), Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = client.Close() }() // it only asked
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		info, err := client.InfoMap(ctx, "server").Result()
		if err == nil {
			if got := info["Server"]["process_id"]; got != strconv.Itoa(s.pid) {
				return fmt.Errorf("port %d belongs to another server", s.Port)
			}
			// INFO is answered while the data are still read.
			if err = client.Ping(ctx).Err(); err == nil {
				return nil
			}
		}
		if ctx.Err() != nil || syscall.Kill(s.pid, 0) != nil {
			return fmt.Errorf("the server on port %d does not come up: %w", s.Port, err)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (s *Server) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Kill ends the server at once, as kill -9 does.
func (s *Server) Kill() {
	if s.guard == nil {
		return
	}
	_ = s.hold.Close() // the guard may have ended by itself
	_ = s.guard.Wait()
	s.guard = nil
}

// Stop ends the server after it has written its data, if it keeps any.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(s.pid, syscall.SIGTERM); err != nil {
		t.Fatalf("stop redis-server: %v", err)
	}
	for s.runs() {
		time.Sleep(time.Millisecond)
	}
	s.Kill()
}

// runs says whether the server's process is there and not only its exit status,
// which the guard does not collect before its own end.
func (s *Server) runs() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// newShared starts a server that lasts as long as this process.
func newShared(args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "sous-redis-")
	if err != nil {
		return nil, err
	}
	return newServer(&Server{dir: dir, owned: true, args: args})
}

// shared is the server that the tests of this process have in common.
var shared = sync.OnceValues(func() (*Server, error) { return newShared() })
