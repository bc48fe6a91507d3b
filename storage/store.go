package storage

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/coalesce"
	"github.com/codesous/sous/storage/keyedmutex"
	"github.com/codesous/sous/storage/listeners"
)

// Config selects the store. One of URL and Embedded is required; every other field has a
// default, which its zero value stands for.
type Config struct {
	// URL is redis://, rediss://, unix://, redis-cluster://host:port,host:port
	// or redis-sentinel://host:port,host:port/master.
	URL string
	// Embedded is a server inside this process, used where URL is empty: see package
	// storage/embedded. The Store does not close it.
	Embedded EmbeddedServer
	// HashTags wraps tenants in braces, so that a cluster keeps a tenant in one
	// slot. It must not change while data exists: it is part of every key, and the data
	// under the other keys would not be found. Default: on for a cluster.
	HashTags *bool
	// Clock returns the time for records (see Store.Now). Expiry of keys follows the
	// server's clock instead. Default: time.Now.
	Clock func() time.Time
	// PoolSize is the largest number of connections to each node, at least 3: the group
	// commits may occupy commitStripes of them. Subscriptions have connections of their
	// own. Default: 64.
	PoolSize int
	// Activations is how long ended activations are kept, with their results and logs.
	// Default: api.ActivationTTLMS.
	Activations Retention
	// Audit is how long events of the audit are kept. Zero means api.AuditTTLMS for all
	// tenants.
	Audit Retention
	// Metrics registers the metrics of the Store. Default: none.
	Metrics prometheus.Registerer
	// ScriptPrelude is Lua text that precedes every script, for tests that watch
	// scripts. Default: none.
	ScriptPrelude string
	// Hook is called with the client before its first command, for tests that add
	// hooks to it. Default: none.
	Hook func(redis.UniversalClient)
}

// EmbeddedServer is a store server inside this process.
type EmbeddedServer interface {
	// Dial opens a connection to the server. It fails once the server is closed.
	Dial(ctx context.Context) (net.Conn, error)
	// Collectors returns the server's own metrics, which the Store registers with its
	// own.
	Collectors() []prometheus.Collector
}

// Store is a connection to the store, safe for concurrent use. A process opens one and
// shares it; Close ends it.
type Store struct {
	rdb redis.UniversalClient
	// embedded is set where the server is in this process.
	embedded bool
	// transactions is set where group commits are transactions; see transacts.
	transactions bool

	keys Keys
	// activations is how long ended activations are kept.
	activations Retention
	audit       Retention // how long events of the audit are kept
	scripts     map[string]*redis.Script
	clock       func() time.Time
	// commits has the writes of the next group commits, by stripe.
	commits *coalesce.Coalescer[uint64, Write]
	stripes maphash.Seed // of the hash from a write's key to its stripe
	metrics *storeMetrics
	// publishing makes publishes of one function queue up in this process: a
	// conflict between them would send up to 16 MiB again.
	publishing *keyedmutex.Mutex
	quotas     Quotas // nil: nothing is limited; see LimitBy
	// listeners hear of changes, which are received from the first call of Subscribe on.
	listeners *listeners.Set[Change]
	listening sync.Once
	// life ends with Close; work that outlives its caller runs under it.
	life    context.Context // the Store's own lifetime, not a caller's
	end     context.CancelCauseFunc
	actors  sync.WaitGroup
	closing sync.Once
}

// Open connects to the store and verifies that it answers. ctx applies to that first
// contact only; it is not retained. An invalid Config is api.CodeInvalid; a store that
// does not answer is api.CodeStoreUnavailable.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if (cfg.URL == "") == (cfg.Embedded == nil) {
		return nil, api.Errorf(api.CodeInvalid, "a store needs either a URL or the embedded store")
	}
	if cfg.PoolSize == 0 {
		cfg.PoolSize = defaultPoolSize
	}
	if cfg.PoolSize < commitStripes+1 {
		return nil, api.Errorf(api.CodeInvalid, "a store needs a pool of at least %d connections", commitStripes+1)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	scripts, texts, err := loadScripts(cfg.ScriptPrelude)
	if err != nil {
		return nil, err
	}
	rdb, cluster, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	hashTags := cluster
	if cfg.HashTags != nil {
		hashTags = *cfg.HashTags
	}
	s := &Store{
		rdb: rdb, embedded: cfg.Embedded != nil, keys: Keys{hashTags: hashTags}, activations: cfg.Activations, audit: cfg.Audit, scripts: scripts, clock: cfg.Clock,
		stripes:    maphash.MakeSeed(),
		publishing: keyedmutex.New(),
		metrics:    newStoreMetrics(scripts, texts),
		listeners:  listeners.New[Change](),
	}
	rdb.AddHook(s.metrics)
	if cfg.Hook != nil {
		cfg.Hook(rdb)
	}
	s.life, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.commits = coalesce.New(s.life, coalesce.Config[Write]{Count: commitBatch, Yield: true}, s.flushCommits)
	err = errors.Join(s.metrics.register(cfg.Metrics, s, cfg.Embedded), s.Ping(ctx))
	if err == nil {
		s.transactions, err = s.transacts(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Client returns the connection, for plain commands and pipelines. A command whose answer
// was lost is sent once more, so it must be safe to repeat. Its errors are converted by
// Failure. Only keys of Keys and its siblings may be used.
func (s *Store) Client() redis.UniversalClient { return s.rdb }

// Embedded reports whether the store's server is in this process.
func (s *Store) Embedded() bool { return s.embedded }

// Go runs f in a goroutine that Close waits for: f must return when its context ends. Go
// reports whether it started f: it does not once the Store is closed.
func (s *Store) Go(f func(ctx context.Context)) bool {
	if s.life.Err() != nil {
		return false
	}
	s.actors.Go(func() { f(s.life) })
	return true
}

// Ping verifies that the store answers. api.CodeStoreUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	return Failure(ctx, "ping", s.rdb.Ping(ctx).Err())
}

// Close ends the goroutines and connections of the Store. Writes that wait fail with
// api.CodeStoreUnavailable. An embedded server stays open. Calls after the first return
// nil.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		s.end(redis.ErrClosed)
		s.commits.Wait()
		s.actors.Wait()
		err = s.rdb.Close()
		if err != nil {
			err = fmt.Errorf("close store: %w", err)
		}
	})
	return err
}

// Now returns the time of Config.Clock. Records get their times from it; scripts receive it
// as an argument.
func (s *Store) Now() time.Time { return s.clock() }

// NowMS returns Now in milliseconds since 1970.
func (s *Store) NowMS() int64 { return s.clock().UnixMilli() }

// commitStripes is the number of group commits that may be under way at the same time:
// enough that a large record delays few others, few enough that batches form under load.
const commitStripes = 2
