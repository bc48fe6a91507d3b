// Package duework is the protocol by which replicas share work that falls due at a moment:
// the maintenance of queues, and the ticks of schedules.
//
// A due set holds members, each with the moment at which something is due there: a queue, or
// a tenant that has schedules. Any replica may find a due member; one of them does its work:
//
//  1. Claim moves the member's moment ahead by compare-and-set, to the end of the claim. The
//     replica whose call succeeds holds the member. If the replica dies, the member is due
//     again at that moment.
//  2. The holder does the due work, and reads when something is due next.
//  3. Claims.Settle sets the member to that moment, by compare-and-set again.
//  4. The holder reads once more when something is due next, and Claims.Recheck compares.
//
// Step 4 is needed because a writer only ever brings a member's moment nearer. A writer that
// adds later work between the reading of step 2 and the write of step 3 finds a nearer moment
// and leaves it; step 3 then replaces that moment, and the new work would be forgotten. Two
// replicas and the queue mail, with times in seconds:
//
//	0.0  the member is due at 0
//	0.1  A reads it and claims it until 10; B reads it, too, and its claim is refused
//	0.2  A does the work; the next work that it reads is due at 60
//	0.3  a client adds a job for 30: it writes the job, then MarkDue(30), which leaves the
//	     nearer moment 10
//	0.4  A settles the member at 60
//	0.5  A reads the queue again, finds 30, and Recheck marks it: the member is due at 30
//
// If the client calls MarkDue(5) instead, the moment is 5 and no longer A's 10: Settle leaves
// it. Recheck marks the member at what A has read, which is a no-op where that is later.
//
// A crash between the steps: after step 1 or 2 the claim expires and another replica does the
// work again, so work must be safe to repeat. Between steps 3 and 4 new work may lack its
// mark; the sweeper finds queues and tenants whose mark is missing or too late.
//
// Moments are milliseconds since 1970, by the clocks of the replicas; 0 is never. The sets and
// their members are described in storage/due.go. The files: reader.go reads due members,
// claims.go claims and settles, alarm.go wakes the loop of this process early.
package duework

import (
	"context"
	"slices"

	"github.com/codesous/sous/storage"
)

// Claims are the due members that this process holds. They are not safe for concurrent use.
type Claims struct {
	// Members are the members that are held; their scores are the moment at which the claim
	// expires.
	Members []storage.DueMember

	store   *storage.Store
	settled []settled // set by Settle, one for each of Members
}

// settled is the result of Settle for one member.
type settled struct {
	next int64 // the moment to which Settle was to set it, 0 for never
	held bool  // whether it did; otherwise another process had changed the moment meanwhile
}

// Claim holds those of due for this process that no other process has claimed or changed
// since they were read, until untilMS. Members that another process holds are left out; they
// are no error. The work and Settle must be done before untilMS. An error
// (api.CodeStoreUnavailable) means that some of them may be held all the same: they are due
// again at untilMS.
func Claim(ctx context.Context, store *storage.Store, due []storage.DueMember, untilMS int64) (*Claims, error) {
	mine, err := store.SettleDue(ctx, due, slices.Repeat([]int64{untilMS}, len(due)))
	if err != nil {
		return nil, err
	}
	c := &Claims{store: store}
	for i, m := range due {
		if mine[i] {
			m.Score = untilMS
			c.Members = append(c.Members, m)
		}
	}
	return c, nil
}

// Abandon drops the members for which failed reports true: they are due again when the claim
// expires.
func (c *Claims) Abandon(failed func(member string) bool) {
	c.Members = slices.DeleteFunc(c.Members, func(m storage.DueMember) bool { return failed(m.Member) })
}

// Settle sets each of Members to the moment at which something is due there next, 0 for never.
// A member whose moment another process has changed meanwhile keeps that one. Recheck must
// follow.
func (c *Claims) Settle(ctx context.Context, next []int64) error {
	held, err := c.store.SettleDue(ctx, c.Members, next)
	if err != nil {
		return err
	}
	c.settled = make([]settled, len(next))
	for i := range next {
		c.settled[i] = settled{next[i], held[i]}
	}
	return nil
}

// Recheck compares next, which was read after Settle, with what Settle wrote, and marks the
// members that are due sooner. next has one moment for each of Members, in their order. It
// returns the soonest moment of next, 0 for never: the caller's loop need not read earlier.
func (c *Claims) Recheck(ctx context.Context, next []int64) (soonest int64, err error) {
	pipe := c.store.Client().Pipeline()
	for i, at := range next {
		if at == 0 {
			continue
		}
		soonest = Sooner(soonest, at)
		// The process that changed a held member knows only of its own work.
		if s := c.settled[i]; !s.held || s.next == 0 || at < s.next {
			storage.MarkDue(ctx, pipe, c.Members[i].Member, at)
		}
	}
	if pipe.Len() > 0 {
		_, err = pipe.Exec(ctx)
	}
	return soonest, storage.Failure(ctx, "mark due members", err)
}

// Sooner returns the earlier of two moments, of which 0 is never.
func Sooner(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
