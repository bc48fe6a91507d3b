package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

const (
	// claimMS is how long a replica may take to maintain a queue that it claimed. When the
	// replica dies, another one takes the queue over after this time.
	claimMS = 10_000
	// visitTime bounds the maintenance of one queue, so that a large backlog does not delay
	// the other queues. The rest is done when the claim has expired.
	visitTime = 2 * time.Second
)

// Counts is what maintenance did: queues visited, and jobs by what became of them.
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

// MaintainDue does what is due at now in those queues of due, members of the due sets, that
// no other replica has claimed. It returns what it did, and the moment in milliseconds at
// which something is due next in one of them, 0 if none is known. An error in one queue does
// not keep it from the others, unless the store does not answer.
func (b *Broker) MaintainDue(ctx context.Context, due []storage.DueMember, now int64) (total Counts, next int64, err error) {
	var errs []error
	for _, m := range due {
		q, ok := queueOf(m.Member)
		if !ok {
			continue
		}
		done, at, err := b.visit(ctx, m, q, now)
		total.Add(done)
		if err != nil {
			errs = append(errs, fmt.Errorf("queue %s: %w", m.Member, err))
			if storage.Fatal(ctx, err) {
				break
			}
			continue
		}
		next = duework.Sooner(next, at)
	}
	return total, next, errors.Join(errs...)
}

// visit claims a due queue, maintains it, and settles when it is due next. On an error the
// queue is due again when the claim expires.
func (b *Broker) visit(ctx context.Context, m storage.DueMember, q queueKey, now int64) (done Counts, next int64, err error) {
	claims, err := duework.Claim(ctx, b.store, []storage.DueMember{m}, now+claimMS)
	if err != nil || len(claims.Members) == 0 {
		return done, 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, visitTime)
	defer cancel()
	done, err = b.tend(bounded, q, now)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return done, now + claimMS, nil // the other queues have their turn first
	}
	if err != nil {
		return done, 0, err
	}
	next, err = b.nextDue(ctx, q, now)
	if err != nil {
		return done, 0, err
	}
	if err := claims.Settle(ctx, []int64{next}); err != nil {
		return done, 0, err
	}
	next, err = b.nextDue(ctx, q, now)
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

// DueAt makes a loop that reads the due sets, here or in another process, read them soon, if
// at is nearer than its next regular reading may be.
func (b *Broker) DueAt(at int64) {
	if at > b.store.NowMS()+duework.IdleMS {
		return
	}
	if !b.alarm.Ring() {
		b.wakes.due()
	}
}

// member returns the queue's name in the due and ready sets.
func (q queueKey) member() string { return storage.DueQueuePrefix + q.tenant + "/" + q.name() }

// queueOf returns the queue that a member of the due and ready sets names.
func queueOf(member string) (queueKey, bool) {
	rest, ok := strings.CutPrefix(member, storage.DueQueuePrefix)
	if !ok {
		return queueKey{}, false
	}
	return parseQueue(rest)
}

// markDue brings the queue's next maintenance forward to at, unless it is nearer already.
func (b *Broker) markDue(ctx context.Context, pipe redis.Pipeliner, q queueKey, at int64) {
	storage.MarkDue(ctx, pipe, q.member(), at)
	b.DueAt(at)
}

// markReady enters the queue in the set of those from which a fetch may get work, from at on.
func (b *Broker) markReady(ctx context.Context, pipe redis.Pipeliner, q queueKey, at int64) {
	m := q.member()
	pipe.ZAddLT(ctx, storage.KeyReady(storage.DueShard(m)), redis.Z{Score: float64(at), Member: m})
}

// dueIn reads the first members of a set whose scores are at least floor, due or not.
func (b *Broker) dueIn(ctx context.Context, pipe redis.Pipeliner, key string, floor int64, limit int64) *redis.ZSliceCmd {
	return pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: strconv.FormatInt(floor, 10), Max: "+inf", Count: limit})
}

// settleDue gives one member its next moment; see storage.Store.SettleDue.
func (b *Broker) settleDue(ctx context.Context, m storage.DueMember, next int64) (bool, error) {
	mine, err := b.store.SettleDue(ctx, []storage.DueMember{m}, []int64{next})
	return mine[0], err
}
