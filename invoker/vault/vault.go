// Package vault keeps the secrets that function versions name, opened, for as long as the
// versions are in use. It writes every reading into the audit, and finds the values in logs
// and errors, where they must not appear.
//
// vault.go reads and keeps the secrets of each version, run.go hands them to an activation,
// redact.go finds them in text, and audit.go gathers the readings into events. Package
// secrets seals, stores and opens them.
//
// Each read of a version's secrets makes a generation. An activation uses the generation
// that is current when it asks, and keeps finding the values of all generations that it has
// used: a function that read a token before its rotation still must not log the old one. A
// generation's values are overwritten when the vault and all activations have dropped it.
//
// A value that changes while a function runs:
//
//	Begin              generation 1 {TOKEN: "old-1234"}      the run finds old-1234
//	cs.secrets.get     "old-1234"
//	                   PUT TOKEN "new-5678"; the notice arrives: generation 1 is out of date
//	cs.secrets.get     generation 2, "new-5678"              the run finds both
//	                   generation 1 has no holder any more: its values are overwritten
//	console.log(both)  "*** ***"
//
// A rotation of the key file changes no value. A resealed secret has another sealed form,
// so the next read opens it again, with the key that the file then has; the values are the
// same, and the new generation shares the redactor of the old one, as all versions with the same
// values do. A secret whose key the
// file does not have yet is unreadable, and is tried again after secretsRetry.
//
// Invariants: a value reaches a function only after its run finds it; every opening and
// every reading by a function is noted in the audit; after Close, no value is held.
package vault

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/turns"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
)

// How long opened secrets are kept and used. A notice announces a change; if the notice is
// lost, the change is seen after secretsTTL at the latest, because older values are not
// used. Versions in use are read again in the background when half of that has passed, so a
// function waits for the store only at the first call and after a change.
const (
	secretsTTL     = 30 * time.Second
	secretsRetry   = 5 * time.Second // where some could not be opened
	secretsIdle    = 10 * time.Minute
	secretsTimeout = 5 * time.Second // of one read
	maxEntries     = 1000            // versions
	// maxVersionSecretBytes bounds the values of one version together: the patterns that
	// find them in text are several times as long.
	maxVersionSecretBytes = 256 << 10
	// maxHeldBytes bounds the values of all versions together, with the redactors that find
	// them. What exceeds it is removed, first from the tenant that holds the most.
	maxHeldBytes = 64 << 20
)

// Vault keeps the secrets that versions name, opened, while the versions are in use. It
// is safe for concurrent use.
type Vault struct {
	source  *secrets.Secrets
	audit   *auditLog
	metrics *counters
	shared  *sharedRedactors
	turns   *turns.Turns
	budget  int64
	ttl     time.Duration
	life    context.Context // the engine's
	reads   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	entries map[Version]*entry
	janitor *time.Timer // while there are entries
}

// Version names a version of a function. It is the key of an entry: two versions of a
// function may name different secrets.
type Version struct {
	Tenant, Namespace, Function string
	Version                     int64
}

// entry holds the secrets of a version. The vault's mutex guards it. The generation now is
// current as long as seen equals changes: every notice increments changes, and a read
// stores in seen the number at its beginning, so a change during the read makes its result
// out of date.
type entry struct {
	names   []string
	now     *generation // nil before the first read
	readAt  time.Time   // when the read of now began
	used    time.Time
	changes int           // notices
	seen    int           // the notices that now includes
	reading chan struct{} // closed when the read under way is done
	err     error         // why the last one failed
}

// generation is the result of one read of a version's secrets. Runs that still use it keep
// it after a newer one was read.
//
// Its values are not changed until the last holder drops it, so holders read them without
// the mutex.
type generation struct {
	values   []secrets.Value
	redactor *redactor
	shared   *sharedRedactor // of which redactor is; nil without values
	holders  int             // guarded by the vault's mutex; the entry is one
	retry    bool            // some could not be opened
}

// Config configures a Vault. Zero values mean the documented default.
type Config struct {
	// Secrets reads the secrets (default: the store's, without a key, so that none can be
	// opened).
	Secrets *secrets.Secrets
	// TTL is how long a secret is used before it is read again, where no change notice
	// arrives (default 30 s).
	TTL time.Duration
	// Window is how long readings are gathered for one event of the audit (default 50 s).
	Window time.Duration
	// Logger gets the audit events that could not be written.
	Logger *zap.Logger
	// Turns shares the time of making redactors (default: no bound).
	Turns *turns.Turns
	// HeldBytes bounds the memory of opened secrets and of what finds them (default 64 MiB).
	HeldBytes int64
}

// New makes a vault over a store. life bounds its reads and its writes of the audit; it
// should be the life of the process, since a read serves several activations.
func New(life context.Context, store *storage.Store, cfg Config) *Vault {
	if cfg.Secrets == nil {
		cfg.Secrets = secrets.New(store, nil)
	}
	if cfg.TTL <= 0 {
		cfg.TTL = secretsTTL
	}
	if cfg.HeldBytes <= 0 {
		cfg.HeldBytes = maxHeldBytes
	}
	return &Vault{
		source: cfg.Secrets, audit: newAuditLog(life, store, cfg.Window, cfg.Logger), metrics: newCounters(), ttl: cfg.TTL,
		shared: newSharedRedactors(), turns: cfg.Turns, budget: cfg.HeldBytes,
		life: life, entries: map[Version]*entry{},
	}
}

// hold returns the current secrets of a version: not older than the last notice that
// arrived, nor than the vault's TTL. The caller releases them. The audit names who as the
// reader. Errors: the store's, CodeShuttingDown.
//
// Concurrent callers of one version share one read. It starts a read even if ctx has ended;
// the next caller profits.
func (v *Vault) hold(ctx context.Context, name Version, names []string, who *reader) (*generation, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		e := v.find(name, names)
		if e == nil {
			return nil, api.Errorf(api.CodeShuttingDown, "this replica is shutting down")
		}
		if e.fresh(v.ttl) {
			if e.reading == nil && time.Since(e.readAt) > v.ttl/2 {
				v.read(name, e, who)
			}
			e.now.holders++
			return e.now, nil
		}
		if e.reading == nil {
			v.read(name, e, who)
		}
		done, began := e.reading, e.changes
		v.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		v.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// A change during the read leads to another read.
		if e.err != nil && e.changes == began {
			return nil, e.err
		}
	}
}

// last returns the secrets of a version as they were read last, however old, nil if they
// were not read. They serve to find the values in text, never as values. The caller
// releases them.
func (v *Vault) last(name Version) *generation {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[name]; e != nil && e.now != nil {
		e.now.holders++
		return e.now
	}
	return nil
}

// find finds or makes a version's entry; nil once the vault is closed. Beyond maxEntries
// another entry is removed (evictOne). The caller holds the mutex.
func (v *Vault) find(name Version, names []string) *entry {
	if v.closed {
		return nil
	}
	e := v.entries[name]
	if e == nil {
		if len(v.entries) >= maxEntries {
			v.evictOne(name)
		}
		e = &entry{names: names}
		v.entries[name] = e
		if v.janitor == nil {
			v.janitor = time.AfterFunc(secretsIdle/2, v.clean)
		}
	}
	e.used = time.Now()
	return e
}

// fresh reports whether the current generation may be used: read less than ttl ago, with no
// notice since. One with values that could not be opened is used for secretsRetry at most.
func (e *entry) fresh(ttl time.Duration) bool {
	if e.now != nil && e.now.retry {
		ttl = min(ttl, secretsRetry)
	}
	return e.now != nil && e.seen == e.changes && time.Since(e.readAt) < ttl
}

// read reads an entry again in the background, and closes e.reading when it is done; e.err
// is nil or the reason why now is still the previous generation. At most one read of an
// entry is in progress. The caller holds the mutex.
func (v *Vault) read(name Version, e *entry, who *reader) {
	done, began, changes := make(chan struct{}), time.Now(), e.changes
	e.reading = done
	known := e.now
	if known != nil {
		known.holders++
	}
	v.reads.Go(func() {
		ctx, cancel := context.WithTimeout(v.life, secretsTimeout)
		defer cancel()
		next, err := v.open(ctx, name, e.names, known, who)
		v.mu.Lock()
		defer v.mu.Unlock()
		defer close(done)
		if known != nil {
			known.drop()
		}
		e.reading, e.err = nil, err
		if err != nil {
			return
		}
		if v.entries[name] != e { // it was evicted meanwhile
			next.holders = 1
			next.drop()
			return // a waiting caller makes another entry and reads again
		}
		if e.now != nil {
			e.now.drop()
		}
		next.holders = 1
		e.now, e.readAt, e.seen = next, began, changes
		v.trim(name)
	})
}

// open reads the secrets, and opens those that changed since known. A secret that cannot be
// opened, or that exceeds maxVersionSecretBytes together with those before it, has its
// error in its Value. The error of open itself is the store's.
func (v *Vault) open(ctx context.Context, name Version, names []string, known *generation, who *reader) (*generation, error) {
	var before []secrets.Value
	if known != nil {
		before = known.values
	}
	values, err := v.source.Reveal(ctx, secrets.Place{Tenant: name.Tenant, Namespace: name.Namespace}, names, before)
	v.metrics.resolved(err)
	if err != nil {
		return nil, err
	}
	next := &generation{values: values}
	total := 0
	for i := range values {
		value := &values[i]
		if value.Opened {
			v.metrics.opened(value.Err)
			v.audit.note(who, readOpened, value.Name, value.Version, value.Err)
		}
		total += len(value.Text)
		if total > maxVersionSecretBytes && value.Err == nil {
			value.Clear()
			value.Text, value.Err = nil, api.Errorf(api.CodeSecretUnreadable, "the secrets that the version names exceed %s together", api.SizeText(maxVersionSecretBytes))
		}
		next.retry = next.retry || value.Err != nil && api.ErrorCode(value.Err) != api.CodeSecretNotFound
	}
	next.shared = v.shared.of(values, func(texts []string) *redactor {
		turn := v.turns.Await(name.Tenant, time.Second)
		defer turn.End()
		return newRedactor(texts, turn.Pause)
	})
	next.redactor = next.shared.redactor
	return next, nil
}

// release ends the use of a generation that hold returned.
func (v *Vault) release(g *generation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	g.drop()
}

// drop ends one use of g, and overwrites the values with the last one. Their redactor is
// left to the garbage collector: Go's strings cannot be overwritten. The caller holds the
// mutex.
func (g *generation) drop() {
	g.holders--
	if g.holders > 0 {
		return
	}
	for i := range g.values {
		g.values[i].Clear()
	}
	g.redactor = nil
	g.shared.release()
}

// Changed makes the next reader of a changed secret read it from the store again. A
// ChangeResubscribed, after which notices may have been missed, concerns all secrets.
func (v *Vault) Changed(c storage.Change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, e := range v.entries {
		if c.Kind == storage.ChangeResubscribed ||
			name.Tenant == c.Tenant && name.Namespace == c.Namespace && slices.Contains(e.names, c.Secret) {
			e.changes++
		}
	}
}

// clean removes the entries that were not used for secretsIdle.
func (v *Vault) clean() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, e := range v.entries {
		if time.Since(e.used) >= secretsIdle {
			v.evict(name, e)
		}
	}
	v.janitor = nil
	if len(v.entries) > 0 && !v.closed {
		v.janitor = time.AfterFunc(secretsIdle/2, v.clean)
	}
}

// trim removes entries until the values and redactors are within the budget, but not the one named keep.
// The caller holds the mutex.
func (v *Vault) trim(keep Version) {
	for v.heldBytes() > v.budget && v.evictOne(keep) {
	}
}

// heldBytes returns the size of all values and redactors. The caller holds the mutex.
func (v *Vault) heldBytes() int64 {
	held := v.shared.size()
	for _, e := range v.entries {
		held += e.now.valueBytes()
	}
	return held
}

// evictOne removes an entry, but not the one named keep, and reports whether there was one: of
// the tenant that holds the most, the entry that was used least recently. So a tenant with many
// versions displaces its own. The caller holds the mutex.
func (v *Vault) evictOne(keep Version) bool {
	const each = 4 << 10 // what an entry takes beside its values
	holds, most := map[string]int64{}, ""
	for name, e := range v.entries {
		holds[name.Tenant] += each + e.now.valueBytes()
		if e.now != nil {
			holds[name.Tenant] += int64(e.now.redactor.size())
		}
	}
	for name := range v.entries {
		if name != keep && (most == "" || holds[name.Tenant] > holds[most]) {
			most = name.Tenant
		}
	}
	var oldest Version
	var at time.Time
	for name, e := range v.entries {
		if name.Tenant == most && name != keep && (at.IsZero() || e.used.Before(at)) {
			oldest, at = name, e.used
		}
	}
	if at.IsZero() {
		return false
	}
	v.evict(oldest, v.entries[oldest])
	return true
}

// evict removes an entry. Runs that hold its generation keep it until they release it. The
// caller holds the mutex.
func (v *Vault) evict(name Version, e *entry) {
	delete(v.entries, name)
	if e.now != nil {
		e.now.drop()
		e.now = nil
	}
}

// size returns the number of versions whose secrets are held, for the metrics.
func (v *Vault) size() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.entries)
}

// bytes returns the memory of values and redactors, for the metrics.
func (v *Vault) bytes() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.heldBytes()
}

// Close removes all entries and writes the last audit events. All runs must have ended.
// ctx applies to the writes, of which each is bounded by readTimeout.
func (v *Vault) Close(ctx context.Context) {
	v.mu.Lock()
	v.closed = true
	if v.janitor != nil {
		v.janitor.Stop()
	}
	for name, e := range v.entries {
		v.evict(name, e)
	}
	v.mu.Unlock()
	v.reads.Wait()
	v.audit.close(ctx)
}
