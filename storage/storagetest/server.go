// Package storagetest runs tests against real stores: the embedded one, a store server
// that the test process starts, and a cluster of three. Each test takes a random tenant, so
// that tests share a server and run in parallel. The server is redis-server, or the binary
// that StoreServerEnv names.
//
// Its preludes precede every script of a Store: StrictKeys finds undeclared keys, CutAfter
// interrupts a script after a write, and ExpireBefore lets keys expire within it. A prelude is
// Lua on one line that shadows the variable redis, so that every redis.call of the script
// passes through it. A test of an operation that runs one script interrupts it like this:
//
//	for k := 0; ; k++ {
//		cut := storagetest.Open(t, storage.Config{URL: url, ScriptPrelude: storagetest.CutAfter(k)})
//		err := operation(cut)           // the script makes k writes and fails
//		if err == nil {
//			break                   // it has no more than k writes
//		}
//		// Check that the records are sound, and repeat the operation on a whole store.
//	}
//
// Where the server is not KVRocks, a hook and a prelude make it answer like KVRocks, so that
// most differences between the servers show up in every test run.
//
// Files: storagetest.go opens stores and has helpers, server.go and cluster.go start servers,
// prelude.go and the .lua files are the preludes, hook.go imitates KVRocks, and look.go reads
// keys of any type.
package storagetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/storage/storeserver"
)

// StoreServerEnv names the environment variable with the path of the store server
// to test on, a KVRocks or another redis-server. Without it the tests use the
// redis-server of the PATH.
const StoreServerEnv = "SOUS_TEST_STORE_SERVER"

// binary is the store server that all tests of this process start. It is looked up once.
var binary = sync.OnceValues(func() (storeserver.Binary, error) {
	return storeserver.Find(context.Background(), os.Getenv(StoreServerEnv))
})

// Server is a store server process of a test. It can be killed and started again on the same
// port with its data. It is not safe for concurrent use.
type Server struct {
	URL  string // redis://127.0.0.1:port
	Port int

	binary  storeserver.Binary
	dir     string
	owned   bool     // the guard removes dir when the server ends
	cluster bool     // it is a node of a cluster
	args    []string // further arguments for redis-server
	without string   // a command that it does not know
	guard   *exec.Cmd
	hold    io.WriteCloser // the guard kills the server when this closes
	pid     int            // of the server, not of the guard
}

// guardScript starts the server and outlives this process by a moment: when its
// standard input ends, however the test process ended, it kills the server.
// Its first argument is a directory to remove after that, or "".
const guardScript = `remove=$1; shift; "$@" >/dev/null 2>&1 & echo $!; read -r _; kill -9 $! 2>/dev/null; wait; [ -z "$remove" ] || rm -rf "$remove"`

// Redis starts a store server on a free port and stops it when the test ends.
// args are for redis-server only, which keeps no data without them; KVRocks always
// keeps its data.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	return launch(t, &Server{dir: t.TempDir(), args: args})
}

// launch starts s, and stops it when the test ends.
func launch(t testing.TB, s *Server) *Server {
	t.Helper()
	s, err := newServer(s)
	if err != nil {
		t.Fatalf("newServer: %v", err)
	}
	t.Cleanup(s.Kill)
	return s
}

// RedisWithout is Redis with a server that does not know a command.
func RedisWithout(t testing.TB, command string) *Server {
	t.Helper()
	return launch(t, &Server{dir: t.TempDir(), without: command})
}

// DurableServer is Redis with a server that keeps every write that it has answered,
// however it ends. Tests that kill the server and start it again use it.
func DurableServer(t testing.TB) *Server {
	t.Helper()
	return Redis(t, "--appendonly", "yes", "--appendfsync", "always")
}

// Kills returns how often a test that kills the store at random does so: more often
// on KVRocks, which keeps what a killed script has written. Others undo it.
func Kills() int {
	if OnKVRocks() {
		return 20
	}
	return 8
}

// newServer starts s, of which the caller has set the directory and the kind. It tries a few
// ports: another process may take one between the check and the start.
func newServer(s *Server) (*Server, error) {
	var err error
	s.binary, err = binary()
	if err != nil {
		return nil, err
	}
	for range 5 {
		s.Port, err = storeserver.FreePort(context.Background())
		if err != nil {
			return nil, err
		}
		err = os.MkdirAll(s.dir, 0o700)
		if err != nil { // a try that failed may have removed it
			return nil, err
		}
		s.URL = "redis://" + s.addr()
		err = s.start()
		if err == nil {
			return s, nil
		}
	}
	return nil, err
}

// Start starts the server again, on the same port and with its data.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatalf("start: %v", err)
	}
}

// start starts the server under its guard and waits until it answers. The guard prints the
// process id of the server.
func (s *Server) start() error {
	args, err := s.binary.Args(storeserver.Config{Port: s.Port, Dir: s.dir, Cluster: s.cluster, Without: s.without, RedisArgs: s.args})
	if err != nil {
		return err
	}
	remove := ""
	if s.owned {
		remove = s.dir
	}
	args = append([]string{"-c", guardScript, "store-guard", remove, s.binary.Path}, args...)
	s.guard = exec.CommandContext(context.Background(), "/bin/sh", args...)
	s.hold, err = s.guard.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.binary.Path, err)
	}
	out, err := s.guard.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.binary.Path, err)
	}
	if err := s.guard.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.binary.Path, err)
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
		return fmt.Errorf("start %s: %w", s.binary.Path, err)
	}
	return nil
}

// awaitReady polls the server until it answers.
func (s *Server) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		err := storeserver.Ready(ctx, s.Port, s.pid)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, storeserver.ErrOtherServer), ctx.Err() != nil, !s.runs():
			return fmt.Errorf("wait for the server on port %d: %w", s.Port, err)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// addr returns host and port.
func (s *Server) addr() string { return storeserver.Addr(s.Port) }

// Files returns the contents of all files that the server has written, one after another, for
// tests that look for a text which must not be on the disk.
func (s *Server) Files(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // replaced by another file meanwhile
		}
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatalf("filepath.WalkDir: %v", err)
	}
	return all.String()
}

// Kill ends the server immediately, as kill -9 does. A second call does nothing.
func (s *Server) Kill() {
	if s.guard == nil {
		return
	}
	_ = s.hold.Close() // the guard may have ended by itself
	_ = s.guard.Wait()
	s.guard = nil
}

// Stop ends the server after it has written its data to disk, if it persists any.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(s.pid, syscall.SIGTERM); err != nil {
		t.Fatalf("stop the store server: %v", err)
	}
	for s.runs() {
		time.Sleep(time.Millisecond)
	}
	s.Kill()
}

// runs reports whether the server's process runs. The guard collects its exit status only
// at its own end, so a zombie does not count.
func (s *Server) runs() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// newShared starts a server that lasts as long as this process.
func newShared(cluster bool) (*Server, error) {
	dir, err := os.MkdirTemp("", "sous-store-")
	if err != nil {
		return nil, err
	}
	return newServer(&Server{dir: dir, owned: true, cluster: cluster})
}

// shared is the server that the tests of this process have in common. The guard stops it and
// removes its directory when this process ends.
var shared = sync.OnceValues(func() (*Server, error) { return newShared(false) })
