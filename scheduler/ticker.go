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
	"github.com/codesous/sous/tracing"
)

const (
	// tickClaimMS is for how long a due tenant is one replica's to look after: if that
	// dies, another one does when it has passed.
	tickClaimMS = 5_000
	// tickPutOffMS is when a schedule that cannot be read is looked at again: the others of
	// its tenant are not to stand behind it.
	tickPutOffMS = 30_000
	// tickTime bounds one visit of due tenants: what is left is done at the next.
	tickTime = 2 * time.Second
	// firstPage is how many schedules of a tenant are read at first: most have one that
	// is due. tickPage bounds those that one script moves on, and tickTenants the tenants
	// that are looked after at once.
	firstPage   = 4
	tickPage    = 64
	tickTenants = 100
	// movePage bounds the schedules whose records are in memory at once: their payloads
	// may be large.
	movePage = 500
)

// Ticker fires schedules. Any number may work on one store: a tick is fired once.
type Ticker struct {
	store     *storage.Store
	schedules *storage.Schedules
	broker    *queue.Broker
	floors    storage.Floors
	metrics   *tickerMetrics
	tracer    trace.Tracer // nil for none
	logger    *zap.Logger
}

// NewTicker makes a ticker whose Tend is to be the broker's OnSchedulesDue. A registry
// that has a ticker's metrics is refused.
func NewTicker(store *storage.Store, broker *queue.Broker, reg prometheus.Registerer, logger *zap.Logger) (*Ticker, error) {
	measured := newTickerMetrics()
	if err := measured.register(reg); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Ticker{
		store: store, schedules: storage.NewSchedules(store), broker: broker, metrics: measured, logger: logger,
	}, nil
}

// Trace gives the spans of ticks to provider. It is called before the ticker works.
func (t *Ticker) Trace(provider trace.TracerProvider) { t.tracer = tracing.New(provider, "scheduler") }

// Tend fires what is due at now in the tenants that due names, and gives the moment of
// their next tick; it is a queue.DueWork.
func (t *Ticker) Tend(ctx context.Context, due []storage.DueMember, now int64) (next int64, err error) {
	began := time.Now()
	defer func() { t.metrics.loop.Round(began, err) }()
	var errs []error
	for part := range slices.Chunk(due, tickTenants) {
		soonest, err := t.visit(ctx, part, max(now, t.store.NowMS())) // those before took their time
		if errs = append(errs, err); soonest > 0 && (next == 0 || soonest < next) {
			next = soonest
		}
	}
	return next, errors.Join(errs...)
}

// visit looks after those of due that no other replica does.
func (t *Ticker) visit(ctx context.Context, due []storage.DueMember, now int64) (next int64, err error) {
	claims := make([]int64, len(due))
	for i := range claims {
		claims[i] = now + tickClaimMS
	}
	mine, err := t.store.SettleDue(ctx, due, claims)
	if err != nil {
		return 0, err
	}
	v := &tickVisit{t: t, now: now}
	for i, m := range due {
		if mine[i] {
			m.Score = claims[i]
			v.claimed, v.tenants = append(v.claimed, m), append(v.tenants, strings.TrimPrefix(m.Member, storage.DueSchedulePrefix))
		}
	}
	// What fails is due again when the claims have passed.
	if err := v.fire(ctx); err != nil {
		return 0, err
	}
	settled := v.next
	if mine, err = t.store.SettleDue(ctx, v.claimed, settled); err != nil {
		return 0, err
	}
	// Who made something due since the heads were read found the member in its place,
	// and left it: look again. Who touched it knows of nothing but its own.
	if _, err := v.heads(ctx, 1); err != nil {
		return 0, err
	}
	pipe := t.store.Client().Pipeline()
	for i, at := range v.next {
		if at > 0 && (!mine[i] || at != settled[i]) {
			storage.MarkDue(ctx, pipe, v.claimed[i].Member, at)
		}
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if pipe.Len() > 0 {
		_, err = pipe.Exec(ctx)
	}
	return next, errors.Join(storage.Failure(ctx, "mark tenants", err), errors.Join(v.failed...))
}

// tickVisit is one visit of tenants that this replica has claimed.
type tickVisit struct {
	t       *Ticker
	now     int64
	claimed []storage.DueMember
	tenants []string
	next    []int64 // when each tenant's next tick is, 0 for never
	failed  []error
}

// heads reads the moment of each tenant's next tick, and gives the schedules that are due,
// up to page of each.
func (v *tickVisit) heads(ctx context.Context, page int) (due []storage.SchedulePath, err error) {
	found, err := v.t.schedules.Due(ctx, &v.t.floors, v.tenants, v.now, page)
	if err != nil {
		return nil, err
	}
	v.next = make([]int64, len(v.tenants))
	for i, list := range found {
		for k, s := range list {
			if k == 0 {
				v.next[i] = s.AtMS
			}
			if s.AtMS > v.now {
				break
			}
			due = append(due, s.Path)
		}
	}
	return due, nil
}

// fire moves what is due on until nothing is, or its time is over. Tenants in which
// something fails leave the visit.
func (v *tickVisit) fire(ctx context.Context) error {
	until := time.Now().Add(tickTime)
	for page := firstPage; ; page = min(4*page, tickPage) {
		due, err := v.heads(ctx, page)
		if err != nil || len(due) == 0 || time.Now().After(until) {
			return err
		}
		for part := range slices.Chunk(due, movePage) {
			stuck, err := v.t.move(ctx, part, v.now)
			if api.ErrorCode(err) == api.CodeStoreUnavailable {
				return err
			}
			if err != nil {
				v.failed = append(v.failed, err)
				v.leave(stuck)
			}
		}
	}
}

// leave takes tenants out of the visit: their claims pass.
func (v *tickVisit) leave(stuck map[string]bool) {
	var claimed []storage.DueMember
	var tenants []string
	for i, tenant := range v.tenants {
		if !stuck[tenant] {
			claimed, tenants = append(claimed, v.claimed[i]), append(tenants, tenant)
		}
	}
	v.claimed, v.tenants = claimed, tenants
}

// move moves each schedule on by one tick, or mends it. One that cannot be read is put off;
// stuck are the tenants of others that err tells of.
func (t *Ticker) move(ctx context.Context, paths []storage.SchedulePath, now int64) (stuck map[string]bool, err error) {
	loaded, err := t.schedules.LoadMany(ctx, paths)
	if err != nil {
		return nil, err
	}
	now = max(now, t.store.NowMS()) // what is fired late says so
	stuck = map[string]bool{}
	var errs []error
	var moves []*tickMove
	var unread []storage.SchedulePath
	for i := range loaded {
		m, err := t.decide(ctx, &loaded[i], now)
		if fatal(ctx, err) {
			return stuck, err
		}
		if err != nil {
			unread, errs = append(unread, loaded[i].Path), append(errs, err)
			continue
		}
		moves = append(moves, m)
	}
	if err := t.schedules.PutOff(ctx, unread, now+tickPutOffMS); err != nil {
		return stuck, errors.Join(append(errs, err)...)
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
				stuck[m.path.Tenant] = true
			} // else another replica, or a change, was faster: the next look finds what is so
		}
		moves = refused
	}
	return stuck, errors.Join(errs...)
}

// did counts a move that was made, and logs what nobody else tells.
func (t *Ticker) did(m *tickMove) {
	t.metrics.moved(m, t.store.NowMS())
	switch m.kind {
	case moveMiss:
		t.logger.Warn("ticks that nobody fired in time are left out", zap.String("tenant", m.path.Tenant), zap.String("namespace", m.path.Namespace),
			zap.String("schedule", m.path.Name), zap.Int64("ticks", m.missed))
	case moveMend:
		t.logger.Warn("a schedule that a crash left half-written was mended", zap.String("tenant", m.path.Tenant), zap.String("namespace", m.path.Namespace),
			zap.String("schedule", m.path.Name), zap.String("reason", m.reason))
	}
}

// Run fires a schedule by hand, as job id, whatever its timing says and whether or not
// it is enabled; a repeat with the same id changes nothing. Its overlap policy holds,
// and may is asked about the schedule that is fired. Errors: what may says,
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
			return nil, api.Errorf(api.CodeScheduleBusy, "%d runs of schedule %q are under way or wait, as many as its queue_limit allows", s.Meta.QueueLimit, path.Name)
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
			return run, nil // a notice that was not sent is not the caller's concern
		case err != nil:
			return nil, err
		case outcomes[0] == queue.TickDraining:
			return nil, api.Errorf(api.CodeQueueDraining, "the queue is draining and takes no new jobs")
		case outcomes[0] == queue.TickDuplicate:
			return nil, api.Errorf(api.CodeScheduleBusy, "a job that has not ended holds the unique key")
		}
	}
	return nil, api.Errorf(api.CodeStoreConflict, "schedule %q changed again and again meanwhile", path.Name)
}

// runTries bounds how often a run by hand is tried against changes of the schedule.
const runTries = 20
