package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
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

// Server is a store inside this process, for development: one process on one
// machine, everything in memory. The data directory holds a snapshot, written
// every second when something changed and when the store closes, and a journal
// of the writes since. A killed process loses nothing that it had answered; a
// power failure may lose the last moments.
type Server struct {
	redis  *miniredis.Miniredis
	server *server.Server
	dir    string
	log    *zap.Logger
	lock   *os.File
	still  standstill
	// journal is changed while commands stand still.
	journal *journal
	dirty   atomic.Bool
	stop    chan struct{}
	actors  sync.WaitGroup
	// How the two loops get on.
	saving, expiring *metrics.Loop
	close            func() error

	dialing sync.Mutex // a connection is served either before closed is set, or never
	closed  bool
}

// Open loads the snapshot in dir, which it makes if need be, and serves
// it. It refuses a directory that another process uses, and a snapshot that is
// damaged: nothing is lost silently.
func Open(dir string, log *zap.Logger) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	e := &Server{
		redis: miniredis.NewMiniRedis(), dir: dir, log: log, lock: lock, stop: make(chan struct{}),
		journal: &journal{scripts: map[string]string{}},
		saving:  metrics.NewLoop("store_snapshot"), expiring: metrics.NewLoop("store_expiry"),
	}
	e.close = sync.OnceValue(e.shutdown)
	if err := e.start(); err != nil {
		e.redis.Close()
		return nil, errors.Join(err, lock.Close())
	}
	e.actors.Go(e.expire)
	e.actors.Go(e.save)
	log.Info("embedded store: for one process on one machine; production needs --store", zap.String("data_dir", dir))
	return e, nil
}

// start serves, without a port, what the data directory holds.
func (e *Server) start() error {
	first, err := e.redis.Dial() // the first connection starts the server
	if err == nil {
		err = first.Close()
	}
	if err != nil {
		return fmt.Errorf("start embedded store: %w", err)
	}
	e.server = e.redis.Server()
	if err := e.load(e.server); err != nil {
		return err
	}
	e.server.SetPreHook(e.still.command(e.server, e.wrote))
	return nil
}

// wrote hears of each command that changed something, one at a time.
func (e *Server) wrote(args []string) {
	e.dirty.Store(true)
	if err := e.journal.append(e.withStreamID(args), time.Now()); err != nil {
		e.log.Error("embedded store: a write is not safe until the next snapshot", zap.Error(err))
	}
}

// withStreamID gives an XADD the id that its entry got: repeated as it came, it
// would get another.
func (e *Server) withStreamID(args []string) []string {
	const options = 2 // where those of an XADD begin, behind its key
	if !strings.EqualFold(args[0], "XADD") || len(args) < options {
		return args
	}
	star := slices.Index(args[options:], "*") // none of the options is one
	entries, err := e.redis.DB(0).Stream(args[1])
	if star < 0 || err != nil || len(entries) == 0 {
		return args // nothing was added
	}
	args = slices.Clone(args)
	args[options+star] = entries[len(entries)-1].ID
	return args
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

// Collectors returns the metrics of the two loops that write snapshots and expire keys.
func (e *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{e.saving, e.expiring}
}

// Close serves no more, writes what changed, and lets go of the directory.
func (e *Server) Close() error { return e.close() }

func (e *Server) shutdown() error {
	close(e.stop)
	e.actors.Wait()
	e.dialing.Lock()
	e.closed = true
	e.dialing.Unlock()
	e.still.end()
	e.redis.Close()
	err := e.snapshot()
	return errors.Join(err, e.journal.file.Close(), e.lock.Close())
}

// Dial connects to the server by a socket pair: unlike net.Pipe it buffers, so that a
// client may write a whole pipeline before it reads the first reply. It never blocks. It
// fails once the server is closed.
func (e *Server) Dial(context.Context) (net.Conn, error) {
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
func (e *Server) expire() {
	last := time.Now()
	e.every(expiryInterval, e.expiring, func() error {
		// Not within a snapshot's copy: a key would go between two looks at it.
		e.still.mu.Lock()
		defer e.still.mu.Unlock()
		now := time.Now()
		e.redis.FastForward(now.Sub(last))
		last = now
		return nil
	})
}

func (e *Server) save() {
	e.every(snapshotInterval, e.saving, func() error {
		err := e.snapshot()
		if err != nil {
			e.log.Error("embedded store: snapshot not written", zap.Error(err))
		}
		return err
	})
}

// every makes a round of the loop by do with pauses of at least interval, until the store closes.
func (e *Server) every(interval time.Duration, loop *metrics.Loop, do func() error) {
	wait := time.NewTimer(interval)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-e.stop:
			return
		}
		began := time.Now()
		loop.Round(began, do())
		wait.Reset(max(interval, standstillShare*time.Since(began)))
	}
}
