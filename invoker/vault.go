package invoker

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
)

// How long opened secrets are kept and believed. A change is told by a notice; one that
// is lost is found out by secretsTTL at the latest, since then nothing is believed that
// was not read again. A version that is busy is read again off the path before that.
const (
	secretsTTL      = 30 * time.Second
	secretsRetry    = 5 * time.Second // where some could not be opened
	secretsIdle     = 10 * time.Minute
	secretsTimeout  = 5 * time.Second // of one read
	maxVaultEntries = 1000            // versions
	// maxVersionSecretBytes bounds the values of one version together: what is kept to
	// find them in text is several times as much.
	maxVersionSecretBytes = 256 << 10
)

// vault keeps the secrets that versions name, opened, while these are in use.
type vault struct {
	source  *secrets.Secrets
	book    *readBook
	metrics *vaultMetrics
	ttl     time.Duration
	life    context.Context // the engine's
	reads   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	entries map[versionName]*vaultEntry
	janitor *time.Timer // while there are entries
}

// versionName names a version of a function.
type versionName struct {
	tenant, namespace, function string
	version                     int64
}

// vaultEntry is what is known of a version's secrets. The vault's mutex guards it.
type vaultEntry struct {
	names   []string
	now     *generation // nil before the first read
	readAt  time.Time   // when the read of now began
	used    time.Time
	changes int           // notices
	seen    int           // those that now has in it
	reading chan struct{} // closed when the read under way is done
	err     error         // why the last one failed
}

// generation is a version's secrets as they were read once. Who reads one of them when
// they change holds it on.
type generation struct {
	values   []secrets.Value
	redactor *redactor
	holders  int  // guarded by the vault's mutex; the entry is one
	retry    bool // some could not be opened
}

// openVault makes the vault of an engine.
func openVault(life context.Context, store *storage.Store, cfg *Config) *vault {
	source := cfg.Secrets
	if source == nil {
		source = secrets.New(store, nil)
	}
	return newVault(life, source, newReadBook(life, store, cfg.SecretsWindow, cfg.Logger), cfg.SecretsTTL)
}

func newVault(life context.Context, source *secrets.Secrets, book *readBook, ttl time.Duration) *vault {
	if ttl <= 0 {
		ttl = secretsTTL
	}
	return &vault{source: source, book: book, metrics: newVaultMetrics(), ttl: ttl, life: life, entries: map[versionName]*vaultEntry{}}
}

// hold gives the secrets of a version, which must be let go of, as they are now: not
// older than the last notice that arrived, nor than the vault's time to live. who
// reads stands in the audit. Errors: the store's, CodeShuttingDown.
func (v *vault) hold(ctx context.Context, name versionName, names []string, who *reader) (*generation, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		e := v.entry(name, names)
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
		// What changed while it was read is read again.
		if e.err != nil && e.changes == began {
			return nil, e.err
		}
	}
}

// last gives the secrets of a version as they were known last, however old; nil where
// they are not. It is to find them in text, not to give them away.
func (v *vault) last(name versionName) *generation {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[name]; e != nil && e.now != nil {
		e.now.holders++
		return e.now
	}
	return nil
}

// entry finds or makes a version's entry; nil once the vault is closed.
func (v *vault) entry(name versionName, names []string) *vaultEntry {
	if v.closed {
		return nil
	}
	e := v.entries[name]
	if e == nil {
		if len(v.entries) >= maxVaultEntries {
			v.evictOldest()
		}
		e = &vaultEntry{names: names}
		v.entries[name] = e
		if v.janitor == nil {
			v.janitor = time.AfterFunc(secretsIdle/2, v.clean)
		}
	}
	e.used = time.Now()
	return e
}

func (e *vaultEntry) fresh(ttl time.Duration) bool {
	if e.now != nil && e.now.retry {
		ttl = min(ttl, secretsRetry)
	}
	return e.now != nil && e.seen == e.changes && time.Since(e.readAt) < ttl
}

// read reads an entry anew, off the path. The caller holds the mutex.
func (v *vault) read(name versionName, e *vaultEntry, who *reader) {
	done, began, changes := make(chan struct{}), time.Now(), e.changes
	e.reading = done
	var known *generation
	if known = e.now; known != nil {
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
		if e.reading, e.err = nil, err; err != nil {
			return
		}
		if v.entries[name] != e { // it was evicted meanwhile
			next.holders = 1
			next.drop()
			return // who waits makes another
		}
		if e.now != nil {
			e.now.drop()
		}
		next.holders = 1
		e.now, e.readAt, e.seen = next, began, changes
	})
}

// open reads the secrets, and opens those that are not as they were.
func (v *vault) open(ctx context.Context, name versionName, names []string, known *generation, who *reader) (*generation, error) {
	var before []secrets.Value
	if known != nil {
		before = known.values
	}
	values, err := v.source.Reveal(ctx, secrets.Place{Tenant: name.tenant, Namespace: name.namespace}, names, before)
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
			v.book.note(who, readOpened, value.Name, value.Version, value.Err)
		}
		if total += len(value.Text); total > maxVersionSecretBytes && value.Err == nil {
			value.Clear()
			value.Text, value.Err = nil, api.Errorf(api.CodeSecretUnreadable, "the secrets that the version names exceed %d bytes together", maxVersionSecretBytes)
		}
		next.retry = next.retry || value.Err != nil && api.ErrorCode(value.Err) != api.CodeSecretNotFound
	}
	next.redactor = redactorOf(values, known)
	return next, nil
}

// redactorOf finds values: by what found those of known, where they are the same.
func redactorOf(values []secrets.Value, known *generation) *redactor {
	same := func(a, b secrets.Value) bool { return bytes.Equal(a.Text, b.Text) }
	if known != nil && slices.EqualFunc(values, known.values, same) {
		return known.redactor
	}
	texts := make([]string, len(values)) // "" for what could not be opened
	for i := range values {
		texts[i] = string(values[i].Text)
	}
	return newRedactor(texts)
}

// release lets go of what hold gave.
func (v *vault) release(g *generation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	g.drop()
}

// drop overwrites the values once nobody holds them. What finds them in text is left to
// the garbage collector: Go's strings cannot be overwritten. The caller holds the mutex.
func (g *generation) drop() {
	if g.holders--; g.holders > 0 {
		return
	}
	for i := range g.values {
		g.values[i].Clear()
	}
	g.redactor = nil
}

// changed makes the next who asks for a secret of that name read it again; name is ""
// for all of a tenant's namespace, and all three for whatever there is.
func (v *vault) changed(c storage.Change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, e := range v.entries {
		if c.Kind == storage.ChangeResubscribed ||
			name.tenant == c.Tenant && name.namespace == c.Namespace && slices.Contains(e.names, c.Secret) {
			e.changes++
		}
	}
}

// clean forgets what was not used for a while.
func (v *vault) clean() {
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

func (v *vault) evictOldest() {
	var oldest versionName
	var at time.Time
	for name, e := range v.entries {
		if at.IsZero() || e.used.Before(at) {
			oldest, at = name, e.used
		}
	}
	v.evict(oldest, v.entries[oldest])
}

func (v *vault) evict(name versionName, e *vaultEntry) {
	delete(v.entries, name)
	if e.now != nil {
		e.now.drop()
		e.now = nil
	}
}

func (v *vault) size() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.entries)
}

// close forgets everything; what runs must have ended.
func (v *vault) close() {
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
}
