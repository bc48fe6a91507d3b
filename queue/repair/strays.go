package repair

import (
	"context"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// A script that moves a job writes the new entry before the run, and removes the old entry after
// it. A crash in between leaves the job in two sets; its run decides where it belongs. For a
// claim that was interrupted after the write of the run:
//
//	                   run                    pending             active
//	enqueued           pending 0 0 1000 - -   4503599628394496    —
//	interrupted claim  active 1 1 31000 - w1  4503599628394496    31000
//	strays             active 1 1 31000 - w1  removed             31000
//
// job_drop.lua removes the entry only if the run still is the one that was read. If w1 fails the
// job and it becomes pending again meanwhile, its run is another one, and the entry stays, now
// rightly. Had the claim been interrupted before the write of the run, the job would be pending,
// and the entry in active the stray.

const (
	// strayPage is how many members of one set a scan of its queue checks. The next scan
	// continues behind them.
	strayPage = 100
	// farMax is the maximum number of sets whose positions are kept.
	farMax = 10_000
)

// expirySet names the set of a queue's jobs that expire, which is read like the sets of states.
const expirySet api.JobState = "expiry"

// strays removes entries that do not belong in the sets of q's live jobs. The sets of ended jobs
// are cleaned when these are purged. A stray that is overdue is also found by maintenance, which
// drops it (queue.Counts.Repaired); strays finds the others.
func (r *Repairer) strays(ctx context.Context, q jobstore.Queue, findings *Findings) error {
	sets := append(slices.Clone(jobstore.LiveStates), expirySet)
	pipe := r.rdb.Pipeline()
	sizes := make([]func() int64, len(sets))
	for i, set := range sets {
		sizes[i] = r.jobs.Depth(ctx, pipe, q, set)
	}
	findings.Reads += pipe.Len()
	if _, err := pipe.Exec(ctx); err != nil {
		return jobstore.Failure(ctx, "look at a queue", err)
	}
	for i, set := range sets {
		if sizes[i]() == 0 {
			continue
		}
		findings.Busy = findings.Busy || set == api.JobActive
		if err := r.straysIn(ctx, q, set, findings); err != nil {
			return err
		}
	}
	return nil
}

// straysIn checks the next members of one set. It reads headers, not payloads. A pending job in
// the set of another priority than its score's is entered where it belongs first, and then
// treated as a stray.
func (r *Repairer) straysIn(ctx context.Context, q jobstore.Queue, set api.JobState, findings *Findings) error {
	key := r.jobs.Keys(q).Set(string(set))
	var from *jobstore.Position
	if p, known := r.far[key]; known {
		from = &p
	}
	members, end, err := r.jobs.Page(ctx, q, set, from, strayPage)
	if err != nil {
		return err
	}
	delete(r.far, key)
	if !end && len(members) > 0 && len(r.far) < farMax {
		r.far[key] = members[len(members)-1]
	}
	ids := make([]string, len(members))
	for i, p := range members {
		ids[i] = p.ID
	}
	found, err := r.jobs.Headers(ctx, q.Tenant, ids)
	findings.Reads += 1 + len(ids)
	if err != nil {
		return err
	}
	var strays []*jobstore.Record
	reasons := map[string]string{}
	for i, g := range found {
		if set == api.JobPending && members[i].Set != r.jobs.SetOf(q, set, members[i].Score) && !g.Unreadable && misplaced(&g, q, set) == "" {
			if err := r.enter(ctx, q, g.ID, findings); err != nil {
				return err
			}
			strays = append(strays, &jobstore.Record{ID: g.ID, Stored: g.Stored})
			reasons[g.ID] = "has another priority"
			continue
		}
		if g.Unreadable {
			findings.Unreadable = append(findings.Unreadable, g.ID)
		} else if reason := misplaced(&g, q, set); reason != "" {
			strays = append(strays, &jobstore.Record{ID: g.ID, Stored: g.Stored})
			reasons[g.ID] = reason
		}
	}
	if len(strays) == 0 {
		return nil
	}
	kind := KindStray
	if set == expirySet {
		kind = KindExpiry
	}
	dropped, err := r.jobs.DropFrom(ctx, q, members, strays)
	findings.Reads += len(strays)
	for _, id := range dropped {
		findings.addRepair(kind, q, id, "it was in the set "+string(set)+", but the job "+reasons[id])
	}
	return err
}

// enter adds a job to the index where it belongs, before its entry elsewhere is removed.
func (r *Repairer) enter(ctx context.Context, q jobstore.Queue, id string, findings *Findings) error {
	found, err := r.jobs.FindWith(ctx, q.Tenant, id)
	findings.Reads += 2
	if err != nil || found == nil {
		return err
	}
	_, err = r.jobs.Reindex(ctx, q.Tenant, found)
	return err
}

// misplaced returns why a job does not belong in a set of q, "" if it does.
func misplaced(g *jobstore.Header, q jobstore.Queue, set api.JobState) string {
	switch {
	case g.Stored == "":
		return "does not exist"
	case g.Prefix != jobstore.SpecPrefix(q):
		return "belongs to another queue"
	case set == expirySet && !g.Run.State.Terminal(), g.Run.State == set:
		return ""
	}
	return "is " + string(g.Run.State)
}
