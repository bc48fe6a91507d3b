package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

const (
	// idleMS is how often the due sets are read where nothing is known to be due:
	// it finds what another replica left when it died.
	idleMS = 5_000
	// nearMS is up to when a moment is near enough to look sooner than that.
	nearMS = idleMS
	// restMS is the least time between two rounds.
	restMS = 100
	// duePage bounds the members of a shard that one round takes.
	duePage = 100
)

// DueWork looks after members of the due sets that were due at now, and says at what
// moment the next of theirs is, as far as it learned it, 0 if it did not.
type DueWork func(ctx context.Context, due []storage.DueMember, now int64) (next int64, err error)

// OnSchedulesDue has work look after the due sets' schedules, beside queues: one
// reading finds both. idle is told of each in which no schedule was due. It is called
// before Maintain and RunOnce.
func (b *Broker) OnSchedulesDue(work DueWork, idle func()) {
	b.schedulesDue, b.schedulesIdle = work, idle
}

// The kinds of due work.
const (
	dueQueues = iota
	dueSchedules
	dueKinds
)

// dueNow is what a reading of the due sets found, by kind.
type dueNow [dueKinds][]storage.DueMember

// crew is who does one kind of due work.
type crew struct {
	work DueWork
	busy bool
	// again: something was due while it was busy.
	again bool
}

// shift is one crew's work that ended.
type shift struct {
	kind int
	next int64
	err  error
}

// Maintain looks after all queues, and schedules, until ctx ends. Any number of
// replicas may. A slow queue delays no schedule.
func (b *Broker) Maintain(ctx context.Context) {
	b.maintaining.Store(true)
	defer b.maintaining.Store(false)
	var working sync.WaitGroup
	defer working.Wait()
	crews := [dueKinds]crew{dueQueues: {work: b.visitAll}, dueSchedules: {work: b.schedulesDue}}
	ended := make(chan shift, dueKinds) // a place for each crew: none waits to say that it ended
	for ctx.Err() == nil {
		now := b.store.NowMS()
		next := now + idleMS
		began := time.Now()
		due, soonest, err := b.readDue(ctx, now)
		if err != nil || len(due[dueQueues]) == 0 { // else visitAll's is the round
			b.metrics.loop.Round(began, err)
		}
		if err != nil && ctx.Err() == nil {
			b.log.Warn("what is due cannot be read; it is tried again", zap.Error(err))
		} else if soonest > 0 {
			next = min(next, soonest)
		}
		for kind, members := range due {
			switch c := &crews[kind]; {
			case len(members) == 0:
				if kind == dueSchedules && c.work != nil && !c.busy && err == nil {
					b.schedulesIdle()
				}
			case c.busy:
				c.again = true
			default:
				c.busy = true
				working.Go(func() {
					next, err := c.work(ctx, members, now)
					ended <- shift{kind, next, err}
				})
			}
		}
		b.restUntil(ctx, next, &crews, ended)
	}
}

// restUntil waits until next, or until there is a reason to look sooner, restMS at the
// least: what is due in a second would be looked at ten times else.
func (b *Broker) restUntil(ctx context.Context, next int64, crews *[dueKinds]crew, ended <-chan shift) {
	jitter := rand.N(restMS * time.Millisecond) // keeps replicas from asking at the same moments
	least := time.Now().Add(restMS*time.Millisecond + jitter)
	in := func(moment int64) time.Time {
		at := time.Now().Add(time.Duration(moment-b.store.NowMS())*time.Millisecond + jitter)
		if at.Before(least) {
			return least
		}
		return at
	}
	until := in(next)
	bringTo := func(at time.Time) {
		if at.Before(until) {
			until = at
		}
	}
	for {
		timer := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			return
		case <-b.dueSoon:
			bringTo(least)
		case s := <-ended:
			if s.err != nil && ctx.Err() == nil {
				b.log.Warn("what was due is not all done; it goes on", zap.Error(s.err))
			}
			c := &crews[s.kind]
			if c.again {
				bringTo(least)
			} else if s.next > 0 {
				bringTo(in(s.next))
			}
			c.busy, c.again = false, false
		}
		timer.Stop()
	}
}

// RunOnce looks after every queue, and schedule, that is due at now, and says at
// what moment the next one is, 0 if none is known.
func (b *Broker) RunOnce(ctx context.Context, now int64) (Counts, int64, error) {
	due, soonest, err := b.readDue(ctx, now)
	if err != nil {
		return Counts{}, 0, err
	}
	var of error
	if len(due[dueSchedules]) > 0 {
		next, err := b.schedulesDue(ctx, due[dueSchedules], now)
		soonest, of = sooner(soonest, next), err
	}
	done, next, err := b.visitEach(ctx, due[dueQueues], now)
	if err := errors.Join(of, err); err != nil {
		return done, 0, err
	}
	return done, sooner(soonest, next), nil
}

// sooner is the earlier of two moments, where 0 is none.
func sooner(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// readDue reads what is due at now, at most duePage members of a shard, and at what
// moment the next member is: at once where there are more.
func (b *Broker) readDue(ctx context.Context, now int64) (due dueNow, soonest int64, err error) {
	pipe := b.rdb.Pipeline()
	heads := make([]*redis.ZSliceCmd, storage.DueShards)
	for shard := range heads {
		key := storage.KeyDue(shard)
		heads[shard] = b.dueIn(ctx, pipe, key, b.floors.From(key, now), duePage)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return due, 0, b.failure(ctx, "read what is due", err)
	}
	first := rand.N(storage.DueShards)
	for i := range heads {
		shard := (first + i) % storage.DueShards // replicas begin at different ones
		key, consumed := storage.KeyDue(shard), now
		for k, z := range heads[shard].Val() {
			m, _ := z.Member.(string)
			at := int64(z.Score)
			if at > now {
				soonest = sooner(soonest, at)
				break
			}
			if k == 0 {
				consumed = at // what is due, and not taken yet, has to be found again
			}
			if k == duePage-1 {
				soonest = now
			}
			switch {
			case strings.HasPrefix(m, storage.DueQueuePrefix):
				due[dueQueues] = append(due[dueQueues], storage.DueMember{Key: key, Member: m, Score: at})
			case b.schedulesDue != nil && strings.HasPrefix(m, storage.DueSchedulePrefix):
				due[dueSchedules] = append(due[dueSchedules], storage.DueMember{Key: key, Member: m, Score: at})
			} // else a newer release's
		}
		b.floors.Consumed(key, consumed, now)
	}
	return due, soonest, nil
}

// visitAll is the DueWork of queues.
func (b *Broker) visitAll(ctx context.Context, due []storage.DueMember, now int64) (int64, error) {
	began := time.Now()
	_, next, err := b.visitEach(ctx, due, now)
	b.metrics.loop.Round(began, err)
	return next, err
}

// visitEach looks after queues that are due.
func (b *Broker) visitEach(ctx context.Context, due []storage.DueMember, now int64) (total Counts, soonest int64, err error) {
	var errs []error
	for _, m := range due {
		q, ok := queueOf(m.Member)
		if !ok {
			continue
		}
		done, next, err := b.visit(ctx, m, q, now)
		total.add(done)
		if err != nil { // one queue's trouble is no other's
			errs = append(errs, fmt.Errorf("queue %s: %w", m.Member, err))
			if ctx.Err() != nil || api.ErrorCode(err) == api.CodeStoreUnavailable {
				break
			}
			continue
		}
		soonest = sooner(soonest, next)
	}
	return total, soonest, errors.Join(errs...)
}
