package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
	"github.com/codesous/sous/storage/floors"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/tracing"
)

// ClaimMS is how long a replica may take to fire the schedules of a tenant that it
// claimed. When the replica dies, another one takes the tenant over after this time. It is below
// api.CatchupGraceMS, so that no tick is missed because of a takeover.
const ClaimMS = 5_000

const (
	// tickPutOffMS is how long a schedule that cannot be read is put off, so that it does not
	// delay the other schedules of its tenant.
	tickPutOffMS = 30_000
	// tickTime bounds one visit of due tenants. The ticks that are left are fired at the next.
	tickTime = 2 * time.Second
	// firstPage is the number of schedules of a tenant that are read first: most tenants have
	// one that is due. tickPage bounds the following pages.
	firstPage = 4
	tickPage  = 64
	// tickTenants bounds the tenants that are visited at once.
	tickTenants = 100
	// movePage bounds the schedules whose records are in memory at once: their payloads may be
	// large.
	movePage = 500
)

// Ticker fires schedules. Any number of them may work on one store: a tick is fired once. It is
// safe for concurrent use, except for Trace.
type Ticker struct {
	store     *storage.Store
	schedules *schedules.Repository
	broker    *queue.Broker
	floors    floors.Floors
	metrics   *tickerMetrics
	tracer    trace.Tracer // nil for none
	logger    *zap.Logger
}

// NewTicker returns a ticker of the schedules in store, whose jobs are in broker. It exports
// its metrics to reg, unless that is nil; its error means that reg has a ticker's metrics.
func NewTicker(store *storage.Store, broker *queue.Broker, reg prometheus.Registerer, logger *zap.Logger) (*Ticker, error) {
	measured := newTickerMetrics()
	if err := measured.register(reg); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Ticker{
		store: store, schedules: schedules.New(store), broker: broker, metrics: measured, logger: logger,
	}, nil
}

// Trace sends the spans of ticks to provider. Call it before the ticker is used.
func (t *Ticker) Trace(provider trace.TracerProvider) { t.tracer = tracing.New(provider, "scheduler") }

// Tend fires the ticks that are due at now in those tenants of due, members of the due sets,
// that no other replica has claimed. It returns the moment of their next tick, 0 if none is
// known. An error in one tenant does not stop the others; it is joined to the result.
func (t *Ticker) Tend(ctx context.Context, due []storage.DueMember, now int64) (next int64, err error) {
	var errs []error
	for chunk := range slices.Chunk(due, tickTenants) {
		// The chunks before took their time: with the old moment this claim could expire at once.
		at, err := t.visit(ctx, chunk, max(now, t.store.NowMS()))
		next, errs = duework.Sooner(next, at), append(errs, err)
	}
	return next, errors.Join(errs...)
}

// visit claims due tenants, fires their ticks, and settles when each is due next. A tenant in
// which something fails is due again when its claim expires.
func (t *Ticker) visit(ctx context.Context, due []storage.DueMember, now int64) (next int64, err error) {
	claims, err := duework.Claim(ctx, t.store, due, now+ClaimMS)
	if err != nil || len(claims.Members) == 0 {
		return 0, err
	}
	v := &tickVisit{t: t, now: now, claims: claims}
	settled, err := v.fire(ctx)
	if err != nil {
		return 0, err
	}
	if err := claims.Settle(ctx, settled); err != nil {
		return 0, err
	}
	_, again, err := v.heads(ctx, 1)
	if err != nil {
		return 0, err
	}
	next, err = claims.Recheck(ctx, again)
	return next, errors.Join(err, errors.Join(v.failed...))
}

// tickVisit is one visit of tenants that this replica has claimed.
type tickVisit struct {
	t      *Ticker
	now    int64
	claims *duework.Claims
	failed []error // of the tenants whose claims were abandoned
}

// heads reads the first schedules of each tenant, up to page of each, in one round trip. It
// returns those that are due, and for each claimed tenant the moment of its next tick, 0 for
// never. That moment is in the past while a tenant has due schedules left.
func (v *tickVisit) heads(ctx context.Context, page int) (due []storage.SchedulePath, next []int64, err error) {
	tenants := make([]string, len(v.claims.Members))
	for i, m := range v.claims.Members {
		tenants[i] = strings.TrimPrefix(m.Member, storage.DueSchedulePrefix)
	}
	found, err := v.t.schedules.Due(ctx, &v.t.floors, tenants, v.now, page)
	if err != nil {
		return nil, nil, err
	}
	next = make([]int64, len(tenants))
	for i, list := range found {
		for k, s := range list {
			if k == 0 {
				next[i] = s.AtMS
			}
			if s.AtMS > v.now {
				break
			}
			due = append(due, s.Path)
		}
	}
	return due, next, nil
}

// fire moves due schedules on until none is due, or the visit's time is over. It returns the
// moment of each claimed tenant's next tick. Tenants in which something fails leave the visit.
//
// Each round moves a schedule by one tick, so that a schedule with many late ticks does not
// delay the others of its tenant. Late ticks of one schedule are fired in their order.
func (v *tickVisit) fire(ctx context.Context) (next []int64, err error) {
	until := time.Now().Add(tickTime)
	for page := firstPage; ; page = min(4*page, tickPage) {
		due, next, err := v.heads(ctx, page)
		if err != nil || len(due) == 0 || time.Now().After(until) {
			return next, err
		}
		for chunk := range slices.Chunk(due, movePage) {
			failed, err := v.t.move(ctx, chunk, v.now)
			if api.ErrorCode(err) == api.CodeStoreUnavailable {
				return nil, err
			}
			if err != nil {
				v.failed = append(v.failed, err)
				v.claims.Abandon(func(m string) bool { return failed[strings.TrimPrefix(m, storage.DueSchedulePrefix)] })
			}
		}
	}
}

// move moves each schedule on by one tick, or repairs it. A schedule that cannot be read is put
// off. failed are the tenants in which another error occurred; err joins all errors. A tick that
// the queue refuses is tried once more as a skip: with the same turn, and without a job.
func (t *Ticker) move(ctx context.Context, paths []storage.SchedulePath, now int64) (failed map[string]bool, err error) {
	loaded, err := t.schedules.LoadMany(ctx, paths)
	if err != nil {
		return nil, err
	}
	now = max(now, t.store.NowMS()) // a late tick is recorded as late
	failed = map[string]bool{}
	var errs []error
	var moves []*tickMove
	var unread []storage.SchedulePath
	for i := range loaded {
		m, err := t.decide(ctx, &loaded[i], now)
		if storage.Fatal(ctx, err) {
			return failed, err
		}
		if err != nil {
			unread, errs = append(unread, loaded[i].Path), append(errs, err)
			continue
		}
		moves = append(moves, m)
	}
	if err := t.schedules.PutOff(ctx, unread, now+tickPutOffMS); err != nil {
		return failed, errors.Join(append(errs, err)...)
	}
	for len(moves) > 0 {
		ticks := make([]*queue.Tick, len(moves))
		for i, m := range moves {
			ticks[i] = m.tick
		}
		end := t.trace(ctx, moves)
		outcomes, err := t.broker.Tick(ctx, ticks)
		end(outcomes)
		errs = append(errs, err)
		var refused []*tickMove
		for i, m := range moves {
			switch outcomes[i] {
			case queue.TickDone:
				t.did(m)
			case queue.TickDraining:
				refused = append(refused, m.skip(api.SkipDraining))
			case queue.TickDuplicate:
				refused = append(refused, m.skip(api.SkipDuplicate))
			case queue.TickFailed:
				failed[m.path.Tenant] = true
			} // queue.TickMoved: another replica fired the tick, or the schedule was changed
		}
		moves = refused
	}
	return failed, errors.Join(errs...)
}

// Mend moves one schedule on whose records do not agree after a crash, and marks its tenant
// as due at the schedule's next tick. The tenant's other schedules are not touched. The sweeper
// calls it; it decides again by the stored records, so a needless call does no harm.
func (t *Ticker) Mend(ctx context.Context, path storage.SchedulePath, now int64) error {
	if _, err := t.move(ctx, []storage.SchedulePath{path}, now); err != nil {
		return err
	}
	// The next tick may be sooner than the moment at which the tenant is due.
	after, err := t.schedules.Load(ctx, path)
	if err != nil || after.State.NextTickMS == 0 {
		return err
	}
	pipe := t.store.Client().Pipeline()
	storage.MarkDue(ctx, pipe, storage.DueSchedulePrefix+path.Tenant, after.State.NextTickMS)
	_, err = pipe.Exec(ctx)
	return storage.Failure(ctx, "mark a tenant", err)
}

// did counts a move that was made. It logs missed ticks and repairs, which no caller sees.
func (t *Ticker) did(m *tickMove) {
	t.metrics.moved(m, t.store.NowMS())
	switch m.kind {
	case moveMiss:
		t.logger.Warn("ticks that were not fired in time are skipped by the catch-up policy", zap.String("tenant", m.path.Tenant), zap.String("namespace", m.path.Namespace),
			zap.String("schedule", m.path.Name), zap.Int64("ticks", m.missed))
	case moveMend:
		t.logger.Warn("repaired a schedule that a crash left half-written", zap.String("tenant", m.path.Tenant), zap.String("namespace", m.path.Namespace),
			zap.String("schedule", m.path.Name), zap.String("reason", m.reason))
	}
}

// Run fires a schedule on demand, as job id, independently of its timing and whether or not it
// is enabled. A repeat with the same id changes nothing. The overlap policy applies, and may
// decides on the schedule that is fired. The next tick stays as it is. Errors: that of may,
// CodeScheduleNotFound, CodeScheduleBusy, CodeQueueDraining, CodeStoreConflict,
// CodeStoreUnavailable.
func (t *Ticker) Run(ctx context.Context, path storage.SchedulePath, id string, may May) (*api.ScheduleRun, error) {
	for range runTries {
		loaded, err := t.schedules.LoadMany(ctx, []storage.SchedulePath{path})
		if err != nil {
			return nil, err
		}
		s := &loaded[0]
		if s.Err != nil {
			return nil, s.Err
		}
		if s.Meta == nil {
			return nil, api.Errorf(api.CodeScheduleNotFound, "schedule %q does not exist", path.Name)
		}
		if err := may(ctx, &s.Meta.Schedule); err != nil {
			return nil, err
		}
		run := &api.ScheduleRun{TickMS: t.store.NowMS(), JobID: id}
		run.FiredMS = run.TickMS
		states, err := t.broker.Standing(ctx, path.Tenant, []string{id})
		if err != nil || states[0] != "" {
			run.State = states[0]
			return run, err
		}
		o, err := t.overlap(ctx, s, id)
		switch {
		case err != nil:
			return nil, err
		case o.refused == api.SkipQueueFull:
			return nil, api.Errorf(api.CodeScheduleBusy, "limit of %d runs of schedule %q that run or wait reached (queue_limit)", s.Meta.QueueLimit, path.Name)
		case o.refused != "":
			return nil, api.Errorf(api.CodeScheduleBusy, "a run of schedule %q is under way, and its overlap_policy is %s", path.Name, s.Meta.OverlapPolicy)
		}
		m := &tickMove{path: path, kind: moveFire, state: s.State, meta: s.Meta, tickMS: run.TickMS, nextMS: s.State.NextTickMS}
		m.run(run.FiredMS, m.next(m.nextMS, 0), 0, o, id)
		end := t.trace(ctx, []*tickMove{m})
		outcomes, err := t.broker.Tick(ctx, []*queue.Tick{m.tick})
		end(outcomes)
		switch {
		case outcomes[0] == queue.TickDone:
			t.metrics.moved(m, run.FiredMS)
			return run, nil // the job exists; err can only be that of a notice to workers, which poll as well
		case err != nil:
			return nil, err
		case outcomes[0] == queue.TickDraining:
			return nil, api.Errorf(api.CodeQueueDraining, "the queue is draining and takes no new jobs")
		case outcomes[0] == queue.TickDuplicate:
			return nil, api.Errorf(api.CodeScheduleBusy, "a job that has not ended holds the unique key")
		}
	}
	return nil, api.Errorf(api.CodeStoreConflict, "schedule %q keeps changing", path.Name)
}

// runTries bounds the attempts of a run on demand that conflicts with changes of the schedule.
const runTries = 20
