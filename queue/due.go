package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/codesous/sous/queue/internal/round"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

// claimMS is how long a replica may take to maintain a queue that it claimed. When the
// replica dies, another one takes the queue over after this time. It is well above
// round.VisitTime; two replicas in one queue would do no harm, but double the work.
const claimMS = 10_000

// Counts is the result of maintenance by this process: the number of queues visited, and of jobs
// by operation. Crashed jobs are counted as reclaimed, too. Repaired counts index entries.
type Counts struct {
	Queues, Promoted, Reclaimed, Crashed, Expired, Followed, Purged, Repaired int
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Queues += o.Queues
	c.Promoted += o.Promoted
	c.Reclaimed += o.Reclaimed
	c.Crashed += o.Crashed
	c.Expired += o.Expired
	c.Followed += o.Followed
	c.Purged += o.Purged
	c.Repaired += o.Repaired
}

// MaintainDue does the work due at now, a Unix time in milliseconds, in those queues of due,
// members of the due sets, that no other replica has claimed. The tenants take turns, see
// package round; queues for which a tenant has no time left stay due. It returns the counts of its
// work and the time at which something is due next in one of the queues, 0 if none is known. An
// error in one queue does not stop it, unless the store is unavailable. Members that are no
// queues are ignored.
func (b *Broker) MaintainDue(ctx context.Context, due []storage.DueMember, now int64) (total Counts, next int64, err error) {
	var mu sync.Mutex
	var errs []error
	left := round.New(due).Run(func(q round.Queue, limit time.Duration) bool {
		// Earlier visits took time. A claim from the old time could expire immediately.
		done, at, err := b.visit(ctx, q, limit, max(now, b.store.NowMS()))
		mu.Lock()
		defer mu.Unlock()
		total.Add(done)
		if err != nil {
			errs = append(errs, fmt.Errorf("queue %s: %w", q.Member.Member, err))
			return !storage.Fatal(ctx, err)
		}
		next = duework.Sooner(next, at)
		return true
	})
	if left {
		next = duework.Sooner(next, now)
	}
	return total, next, errors.Join(errs...)
}

// visit claims a due queue, maintains it for the given time at most, and writes the time of its
// next work. On an error the queue is due again when the claim expires. The score of the queue in
// the due set during a visit at 100000 (milliseconds):
//
//	99900   a delayed job is due                    read by all replicas
//	110000  Claim, by the replica that succeeds     others find another score and leave it
//	103000  an enqueue marks a nearer moment        MarkDue only brings moments nearer
//	103000  Settle: the score is not the claim's    so it stays
//
// Without that enqueue, Settle sets the moment of the next work, or removes the queue. Recheck
// then covers work that came between NextDue and Settle, see package duework.
func (b *Broker) visit(ctx context.Context, q round.Queue, limit time.Duration, now int64) (done Counts, next int64, err error) {
	claims, err := duework.Claim(ctx, b.store, []storage.DueMember{q.Member}, now+claimMS)
	if err != nil || len(claims.Members) == 0 {
		return done, 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done, err = b.tend(bounded, q.Queue, now)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return done, now + claimMS, nil // the other queues have their turn first
	}
	if err != nil {
		return done, 0, err
	}
	next, _, err = b.jobs.NextDue(ctx, q.Queue, now)
	if err != nil {
		return done, 0, err
	}
	if err := claims.Settle(ctx, []int64{next}); err != nil {
		return done, 0, err
	}
	next, _, err = b.jobs.NextDue(ctx, q.Queue, now)
	if err != nil {
		return done, 0, err
	}
	next, err = claims.Recheck(ctx, []int64{next})
	return done, next, err
}

// CountRound counts a round of maintenance that began at the given time and ends now with
// err, in the metrics of the loop "queues".
func (b *Broker) CountRound(began time.Time, err error) { b.metrics.loop.Round(began, err) }

// Alarm returns the alarm that rings when something in a queue, or a schedule, becomes due
// soon. The loop that calls MaintainDue listens to it.
func (b *Broker) Alarm() *duework.Alarm { return b.alarm }

// DueAt wakes a loop that reads the due sets, in this process or another, if at may come before
// its next regular read.
func (b *Broker) DueAt(at int64) {
	if at > b.store.NowMS()+duework.IdleMS {
		return
	}
	if !b.alarm.Ring() {
		b.notifier.DueSoon()
	}
}
