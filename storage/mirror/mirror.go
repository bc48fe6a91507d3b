package mirror

import (
	"database/sql"
	"errors"
	"sync"
	"time"

	status "github.com/codesous/sous/api/mirror"
)

// The states of a mirror, see package api/mirror.
const (
	StateServing    = status.StateServing
	StateRebuilding = status.StateRebuilding
	StateStopped    = status.StateStopped
)

// Status describes a mirror at a moment.
type Status = status.Status

// Mirror is the view of one replica. It is safe for concurrent use; only one goroutine may write. All
// methods of a nil *Mirror that read may be called: it is the mirror of a replica without one.
type Mirror struct {
	cfg Config

	mu      sync.Mutex
	status  Status
	file    *file // nil while there is none
	damaged error // that a reader met
	rebuild bool  // it was asked for
	full    bool  // a batch found no room, see Room
	wake    chan struct{}
}

// Config configures a Mirror.
type Config struct {
	// Dir is the folder of the file, which is created. It is required.
	Dir string
	// Store identifies the store that the mirror is of. A file of another store is replaced.
	Store string
	// MaxBytes bounds the size of the file with its write-ahead log, 0 for no bound. A file that has
	// reached it is like one on a full disk.
	MaxBytes int64
	// MinFree is the free space of the disk, in bytes, below which nothing is written.
	MinFree int64
}

// New returns a mirror without a file. It fails without a folder.
func New(cfg Config) (*Mirror, error) {
	if cfg.Dir == "" {
		return nil, errors.New("mirror: a folder is required")
	}
	m := &Mirror{cfg: cfg, wake: make(chan struct{}, 1)}
	m.status = Status{State: StateStopped, Reason: "the file is not open yet", SinceMS: time.Now().UnixMilli()}
	return m, nil
}

// Reader returns a pool of connections that only read. It is nil while the mirror serves nothing. A
// pool may be closed at any time, since the file is replaced when it is damaged; its queries fail then,
// and the next Reader is another pool.
func (m *Mirror) Reader() *sql.DB {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil
	}
	return m.file.readers
}

// Status returns the present status. That of a nil Mirror is stopped.
func (m *Mirror) Status() Status {
	if m == nil {
		return Status{State: StateStopped, Reason: "this replica does not run the role mirror"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.status
	out.Serves = m.file != nil
	return out
}

// Report takes the error of a query. If it means that the file is damaged, the file is replaced soon.
func (m *Mirror) Report(err error) {
	if m == nil || !Damaged(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.damaged = err
	m.ring()
}

// Rebuild asks for a rebuild. It returns without waiting for it.
func (m *Mirror) Rebuild() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rebuild = true
	m.ring()
}

// ring wakes the feed.
func (m *Mirror) ring() {
	select {
	case m.wake <- struct{}{}:
	default: // it is awake
	}
}

// Wake returns a channel that has a token when the feed should look at Asked.
func (m *Mirror) Wake() <-chan struct{} { return m.wake }

// Asked returns whether a rebuild was asked for since the last call, and the error of a damaged file
// that a reader has met.
func (m *Mirror) Asked() (rebuild bool, damaged error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rebuild, damaged = m.rebuild, m.damaged
	m.rebuild, m.damaged = false, nil
	return rebuild, damaged
}

// SetLag sets the lag of the status.
func (m *Mirror) SetLag(lag time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.LagMS = max(0, lag.Milliseconds())
}

// SetRebuilding sets the progress of a rebuild, from 0 to 1, and its reason.
func (m *Mirror) SetRebuilding(reason string, progress float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.become(StateRebuilding, reason)
	m.status.Rebuilding, m.status.Progress = true, progress
}

// SetServing ends a rebuild.
func (m *Mirror) SetServing() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.become(StateServing, "")
	m.status.Rebuilding, m.status.Progress = false, 1
}

// SetStopped notes why nothing can be written now. The file, if there is one, serves its rows.
func (m *Mirror) SetStopped(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.become(StateStopped, reason)
	m.status.Rebuilding, m.status.Progress = false, 0
}

// become sets the state. The caller holds the lock.
func (m *Mirror) become(state, reason string) {
	if m.status.State != state {
		m.status.SinceMS = time.Now().UnixMilli()
	}
	m.status.State, m.status.Reason = state, reason
}

// Measure reads the size of the file, and takes the numbers of rows, for the status.
func (m *Mirror) Measure() {
	f := m.opened()
	if f == nil {
		return
	}
	bytes := f.bytes()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Jobs, m.status.Activations, m.status.Bytes = f.rows.jobs, f.rows.activations, bytes
}

// opened returns the file, nil if there is none.
func (m *Mirror) opened() *file {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file
}
