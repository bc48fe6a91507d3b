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

// The files of a Server in its data directory.
const (
	snapshotFile = "store.snapshot"
	lockFile     = "store.lock"
)

// Intervals at which a Server expires keys and writes its snapshot. Both walk over all
// keys while no command runs, so with many keys they take at most one part in
// standstillShare of the time.
const (
	expiryInterval   = 100 * time.Millisecond
	snapshotInterval = time.Second
	standstillShare  = 20
)

// Server is a store inside this process, with all data in memory. The data directory holds
// a snapshot, written every second after a change and at Close, and a journal of the
// writes since. A killed process loses nothing that it had answered; a power failure may
// lose the last moments.
type Server struct {
	redis  *miniredis.Miniredis
	server *server.Server
	dir    string
	log    *zap.Logger
	lock   *os.File
	still  standstill
	// journal is replaced while no command runs.
	journal *journal
	dirty   atomic.Bool   // data has changed since the last snapshot
	stop    chan struct{} // closed by Close; ends the two loops
	actors  sync.WaitGroup
	// Metrics of the two loops.
	saving, expiring *metrics.Loop
	close            func() error

	dialing sync.Mutex // orders closed against Dial: no connection is served after closed is set
	closed  bool
}

// Open loads the snapshot and the journals in dir, which it creates if necessary, and
// serves them. It fails with api.CodeInvalid where another process uses the directory, and
// with api.CodeInternal where a file is damaged: no data is lost silently. The caller must
// Close the Server, which otherwise runs two goroutines for good.
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

// start serves the contents of the data directory, without a port.
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

// wrote is called with each command that may have changed data, one at a time, before its
// answer is sent. A journal that cannot be written does not fail the command, whose effect is
// in memory already: the next snapshot will hold it.
func (e *Server) wrote(args []string) {
	e.dirty.Store(true)
	if err := e.journal.append(e.withStreamID(args), time.Now()); err != nil {
		e.log.Error("embedded store: a write is not in the journal; a kill before the next snapshot loses it", zap.Error(err))
	}
}

// withStreamID replaces the star of an XADD by the id of the new entry, as in
//
//	XADD cs:audit:t_acme01 MAXLEN 10000 * at_ms 1767225600000 …
//	XADD cs:audit:t_acme01 MAXLEN 10000 1767225600000-0 at_ms 1767225600000 …
//
// Replayed with a star, the command would assign another id. Within scripts no XADD has one.
func (e *Server) withStreamID(args []string) []string {
	const options = 2 // the index of the first option of an XADD, after its key
	if !strings.EqualFold(args[0], "XADD") || len(args) < options {
		return args
	}
	star := slices.Index(args[options:], "*") // no option is a star
	entries, err := e.redis.DB(0).Stream(args[1])
	if star < 0 || err != nil || len(entries) == 0 {
		return args // nothing was added
	}
	args = slices.Clone(args)
	args[options+star] = entries[len(entries)-1].ID
	return args
}

// lockDir locks the directory against a second process. The lock ends with this process,
// however it ends.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = api.Errorf(api.CodeInvalid, "the data directory %s is in use by another server: stop that one, or name another directory (--data-dir)", dir)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Collectors returns the metrics of the two loops that write snapshots and expire keys.
func (e *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{e.saving, e.expiring}
}

// Close stops serving, writes a snapshot if data has changed, and unlocks the directory.
// Calls after the first return the same result.
func (e *Server) Close() error { return e.close() }

// shutdown ends the loops, then new connections and running commands, and then writes the last
// snapshot: nothing changes any more. The lock is released last.
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

// fileConn returns the connection of a socket's descriptor, which it closes.
func fileConn(fd int, name string) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), name)
	conn, err := net.FileConn(f) // duplicates the descriptor
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	return conn, nil
}

// expire advances the clock of miniredis every expiryInterval. miniredis expires keys only when
// it is passed the elapsed time, so a key lives up to that interval longer than it should.
func (e *Server) expire() {
	last := time.Now()
	e.every(expiryInterval, e.expiring, func() error {
		// Not during the copy of a snapshot: a key would vanish between two reads of it.
		e.still.mu.Lock()
		defer e.still.mu.Unlock()
		now := time.Now()
		e.redis.FastForward(now.Sub(last))
		last = now
		return nil
	})
}

// save writes the snapshot at each snapshotInterval in which data has changed. After a failure
// it tries again; the journal holds the data meanwhile.
func (e *Server) save() {
	e.every(snapshotInterval, e.saving, func() error {
		err := e.snapshot()
		if err != nil {
			e.log.Error("embedded store: snapshot not written", zap.Error(err))
		}
		return err
	})
}

// every calls do at least interval apart until the Server closes, and records each call in
// loop.
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
