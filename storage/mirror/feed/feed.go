// Package feed fills the mirror from the store, and keeps it up to date. Nothing in the store refers
// to it: it only reads.
//
//	feed.go     Feed.Run: opens the file, tries again after failures
//	session.go  the loop while the file is open
//	follow.go   reads the logs of events of all tenants, and the records that they name
//	batch.go    reads records, and divides them into transactions
//	visit.go    visits queues and functions that changed a moment ago: not all changes are events
//	hot.go      which of them, and when
//	pass.go     goes over everything: to rebuild, after a gap in the log, and slowly for ever
//	pass_rows.go  the part of a pass that begins with the rows
//	room.go     makes room in a file that has its largest size
//	budget.go   how many commands the visits and the passes may send
//	compare.go  Compare, for tests: the rows equal the records
//
// The records decide. An event, a visit and a pass only find ids; the row of an id is written as the
// store has its record, or removed if the record is gone. So each may be repeated, and the order
// among them does not matter.
package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/activity"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/mirror"
)

// Jobs reads the jobs of the store. It is records.Reader of package queue.
type Jobs interface {
	Read(ctx context.Context, tenant string, ids []string, each func([]mirror.Job) error) error
	Runs(ctx context.Context, rows []mirror.Row) (runs []string, commands int, err error)
	Queues(ctx context.Context, tenant string) (queues []string, commands int, err error)
	Sets(tenant, namespace, queue string, state api.JobState) []string
	Before(ctx context.Context, set, from string, limit int) (ids []string, next string, err error)
}

// Config configures a Feed. Zero values mean the documented defaults.
type Config struct {
	Logger  *zap.Logger           // default: none
	Metrics prometheus.Registerer // default: nowhere
	// Watch calls heard with each queue that got work, until stop (default: no notices). It is that
	// of a queue.Broker.
	Watch func(heard func(tenant, namespace, queue string)) (stop func())
	// Poll is the time between two reads of a log that has events (default 100 ms), and IdlePoll
	// that between two looks for such logs (default 3 s).
	Poll, IdlePoll time.Duration
	// RebuildRate is how many commands a second a rebuild sends (default 20,000), VisitRate those of
	// visits of changed queues and functions (default 500), BusyRate those of the pass over
	// everything while there are changes (default 100), and IdleRate those while there are none
	// (default 0.25).
	RebuildRate, VisitRate, BusyRate, IdleRate float64
	// Retry is the time before the second attempt to open the file or to reach the store (default
	// 1 s). It doubles up to a minute.
	Retry time.Duration
}

// Feed fills a mirror.
type Feed struct {
	store       *storage.Store
	mirror      *mirror.Mirror
	jobs        Jobs
	activations *activations.Repository
	tenants     *storage.Tenants
	log         *events.Log
	cfg         Config
	m           *feedMetrics
	hot         *hot
	trimmed     cursor // how far a full file was trimmed
	logged      string // the kind of the failure that was logged last, "" while the mirror works
}

// New returns a Feed of m from store. It fails if the metrics cannot be registered.
func New(store *storage.Store, m *mirror.Mirror, jobs Jobs, cfg Config) (*Feed, error) {
	if store == nil || m == nil || jobs == nil {
		return nil, errors.New("mirror: a store, a mirror and a reader of jobs are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	for value, fallback := range map[*time.Duration]time.Duration{
		&cfg.Poll: 100 * time.Millisecond, &cfg.IdlePoll: 3 * time.Second, &cfg.Retry: time.Second,
	} {
		if *value <= 0 {
			*value = fallback
		}
	}
	for value, fallback := range map[*float64]float64{&cfg.RebuildRate: 20_000, &cfg.VisitRate: 500, &cfg.BusyRate: 100, &cfg.IdleRate: 0.25} {
		if *value <= 0 {
			*value = fallback
		}
	}
	f := &Feed{
		store: store, mirror: m, jobs: jobs, activations: activations.New(store), tenants: storage.NewTenants(store), log: events.New(store), cfg: cfg,
		m: newMetrics(m), hot: newHot(),
	}
	return f, f.m.register(cfg.Metrics)
}

// maxRetry bounds the time between two attempts to open the file.
const maxRetry = time.Minute

// Run fills the mirror until ctx ends. Whatever fails, a full disk included, ends neither Run nor
// anything outside of it: the mirror is stopped meanwhile, and Run tries again. Call it once.
func (f *Feed) Run(ctx context.Context) {
	if f.cfg.Watch != nil {
		defer f.cfg.Watch(f.hear)()
	}
	if err := f.store.Subscribe(ctx, f.hearChange); err != nil {
		return // ctx has ended
	}
	for pause := f.cfg.Retry; ctx.Err() == nil; {
		began := time.Now()
		err := f.serve(ctx, pause)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > maxRetry { // it worked for some time
			pause, f.logged = f.cfg.Retry, ""
		}
		f.m.failures.WithLabelValues(kindOf(err)).Inc()
		if kindOf(err) == failDamaged && pause == f.cfg.Retry {
			f.cfg.Logger.Warn("the file of the mirror is damaged or gone; it is rebuilt", zap.Error(err))
			pause *= 2 // if it is damaged again at once, the disk is at fault
			continue
		}
		f.mirror.SetStopped(err.Error())
		f.logStopped(err)
		_ = sleep.For(ctx, pause) // the loop ends with ctx
		pause = min(2*pause, maxRetry)
	}
	f.mirror.SetStopped("the server is being closed")
	_ = f.mirror.Close()
}

// logStopped logs a failure, unless the mirror has not worked since the last one of its kind.
func (f *Feed) logStopped(err error) {
	if f.logged == kindOf(err) {
		return
	}
	f.logged = kindOf(err)
	f.cfg.Logger.Warn("the mirror is stopped: searches are not up to date; the rest of the server is not affected. It is tried again at least once a minute", zap.Error(err))
}

// logResumed logs that a mirror works that was stopped.
func (f *Feed) logResumed() {
	if f.logged != "" {
		f.logged = ""
		f.cfg.Logger.Info("the mirror is no longer stopped")
	}
}

// hear notes a queue that got work.
func (f *Feed) hear(tenant, namespace, queue string) {
	f.hot.notice(place{tenant: tenant, namespace: namespace, name: queue, kind: kindQueue}, time.Now())
}

// hearChange notes the functions that ran on a replica.
func (f *Feed) hearChange(c storage.Change) {
	if c.Kind != storage.ChangeRan {
		return
	}
	var places []place
	for _, ran := range activity.Parse(c) {
		places = append(places, place{tenant: ran.Tenant, namespace: ran.Namespace, name: ran.Name, kind: kindFunction})
	}
	f.hot.events(nil, places, time.Now())
}

// The kinds of failures, the label of their metric.
const (
	failDamaged = "damaged" // the file is damaged or gone
	failFull    = "full"    // the disk is full, or the file has its largest size
	failInUse   = "in_use"  // another process has the folder
	failStore   = "store"   // the store does not answer
	failOther   = "other"   // the folder cannot be written to, or another failure
)

func kindOf(err error) string {
	switch {
	case mirror.Damaged(err):
		return failDamaged
	case mirror.Full(err):
		return failFull
	case errors.Is(err, mirror.ErrInUse):
		return failInUse
	case api.ErrorCode(err) == api.CodeStoreUnavailable:
		return failStore
	}
	return failOther
}

// serve opens the file and fills it until a failure. When it returns, it has removed the file if it
// is damaged, and closed it if its disk or its folder failed. After other failures, such as of the
// store, the file stays open, so that its rows can be read. pause is the time since the last attempt.
func (f *Feed) serve(ctx context.Context, pause time.Duration) error {
	if f.mirror.Reader() == nil {
		fresh, why, err := f.mirror.Open(ctx)
		if err != nil {
			return err
		}
		if fresh {
			f.cfg.Logger.Info("the mirror is rebuilt", zap.String("reason", why))
		}
	}
	err := f.fill(ctx, pause)
	switch {
	case mirror.Damaged(err):
		err = errors.Join(err, f.mirror.Discard())
	case mirror.Full(err): // although its disk failed
	case mirror.Broken(err):
		err = errors.Join(err, f.mirror.Close())
	}
	return fmt.Errorf("mirror: %w", err)
}

// fill fills the open file until a failure.
func (f *Feed) fill(ctx context.Context, pause time.Duration) error {
	if err := f.room(ctx, pause); err != nil {
		return err
	}
	s, err := f.begin(ctx)
	if err != nil {
		return err
	}
	defer s.end()
	return s.run(ctx)
}
