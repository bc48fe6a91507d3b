package storage

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/codesous/sous/api"
)

// The embedded store's files in its data directory.
const (
	snapshotFile = "store.snapshot"
	lockFile     = "store.lock"
)

// How often the embedded store expires keys and writes its snapshot. Both walk
// over all keys while the store stands still, so they keep to one part in
// standstillShare of the time where there are many.
const (
	expiryInterval   = 100 * time.Millisecond
	snapshotInterval = time.Second
	standstillShare  = 20
)

// Embedded is a store inside this process, for development: one process on one
// machine, everything in memory, a snapshot in the data directory every second
// when something changed and when it closes. A killed process loses the last
// second or so; a power failure may lose more of it.
type Embedded struct {
	redis  *miniredis.Miniredis
	server *server.Server
	dir    string
	log    *zap.Logger
	lock   *os.File
	still  standstill
	dirty  atomic.Bool
	stop   chan struct{}
	actors sync.WaitGroup
	close  func() error

	dialing sync.Mutex // a connection is served either before closed is set, or never
	closed  bool
}

// OpenEmbedded loads the snapshot in dir, which it makes if need be, and serves
// it. It refuses a directory that another process uses, and a snapshot that is
// damaged: nothing is lost silently.
func OpenEmbedded(dir string, log *zap.Logger) (*Embedded, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	e := &Embedded{redis: miniredis.NewMiniRedis(), dir: dir, log: log, lock: lock, stop: make(chan struct{})}
	e.close = sync.OnceValue(e.shutdown)
	if err := e.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	// The first connection starts the server, without a port.
	first, err := e.redis.Dial()
	if err == nil {
		err = first.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start embedded store: %w", err), lock.Close())
	}
	e.server = e.redis.Server()
	e.server.SetPreHook(e.still.command(e.server, func(command string) {
		if !e.server.IsReadOnlyCommand(command) {
			e.dirty.Store(true)
		}
	}))
	e.actors.Go(e.expire)
	e.actors.Go(e.save)
	log.Info("embedded store: for one process on one machine; production needs --store", zap.String("data_dir", dir))
	return e, nil
}

// lockDir keeps a second process out. The lock goes with this process, however
// it ends.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		err = api.Wrap(api.CodeValidation, err, fmt.Sprintf("the data directory %s is in use by another process", dir))
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close serves no more, writes what changed, and lets go of the directory.
func (e *Embedded) Close() error { return e.close() }

func (e *Embedded) shutdown() error {
	close(e.stop)
	e.actors.Wait()
	e.dialing.Lock()
	e.closed = true
	e.dialing.Unlock()
	e.still.end()
	e.redis.Close()
	err := e.snapshot()
	return errors.Join(err, e.lock.Close())
}

// dial connects by a socket pair: unlike net.Pipe it buffers, so that a client
// may write a whole pipeline before it reads the first reply.
func (e *Embedded) dial() (net.Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	client, err := fileConn(fds[0], "store-client")
	if err != nil {
		return nil, errors.Join(err, unix.Close(fds[1]))
	}
	served, err := fileConn(fds[1], "store-server")
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	e.dialing.Lock()
	defer e.dialing.Unlock()
	if e.closed {
		return nil, errors.Join(errors.New("the embedded store is closed"), client.Close(), served.Close())
	}
	e.server.ServeConn(served)
	return client, nil
}

func fileConn(fd int, name string) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), name)
	conn, err := net.FileConn(f) // has a descriptor of its own
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	return conn, nil
}

// expire makes the clock run: miniredis moves its times-to-live only when told.
func (e *Embedded) expire() {
	last := time.Now()
	e.every(expiryInterval, func() {
		now := time.Now()
		e.redis.FastForward(now.Sub(last))
		last = now
	})
}

func (e *Embedded) save() {
	e.every(snapshotInterval, func() {
		if err := e.snapshot(); err != nil {
			e.log.Error("embedded store: snapshot not written", zap.Error(err))
		}
	})
}

// every calls do with pauses of at least interval, until the store closes.
func (e *Embedded) every(interval time.Duration, do func()) {
	wait := time.NewTimer(interval)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-e.stop:
			return
		}
		began := time.Now()
		do()
		wait.Reset(max(interval, standstillShare*time.Since(began)))
	}
}

// standstill lets commands run beside each other, or nothing but a snapshot.
type standstill struct {
	mu    sync.RWMutex
	ended bool
	peers sync.Map // *server.Peer of a connection → whether it is within a command
}

// end refuses every further command. It waits for those that run: a script would
// not survive the server that it calls.
func (s *standstill) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// command wraps every command that a connection sends: it holds the read lock
// while it runs, and seen hears of it. miniredis calls the hook before each
// command, those within scripts included, and offers nothing after it; so the
// hook runs the command itself, by dispatching it once more.
func (s *standstill) command(srv *server.Server, seen func(command string)) server.Hook {
	return func(p *server.Peer, command string, args ...string) bool {
		within, known := s.peers.Load(p)
		switch {
		case !known && p.Ctx != nil:
			return false // a script's own peer: its EVAL holds the lock
		case !known:
			p.OnDisconnect(func() { s.peers.Delete(p) })
		case within.(bool):
			return false // dispatched below
		}
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.ended {
			p.WriteError("LOADING the embedded store is closed")
			return true
		}
		s.peers.Store(p, true)
		srv.Dispatch(p, append([]string{command}, args...))
		s.peers.Store(p, false)
		seen(command)
		return true
	}
}
