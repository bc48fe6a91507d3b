package queue

import (
	"context"
	"slices"

	"github.com/codesous/sous/api"
)

const (
	// strayPage is how many members of one set a look takes: the next look at a longer
	// one goes on there.
	strayPage = 100
	// farMax bounds how many such places are remembered.
	farMax = 10_000
)

// expirySet is the set of a queue's jobs that expire, which is read as those of states.
const expirySet api.JobState = "expiry"

// strays drops what does not belong in the sets of q's jobs that have not ended. Those
// of ended jobs are cleaned as they are purged.
func (r *Repairer) strays(ctx context.Context, q queueKey, look *Look) error {
	sets := append(slices.Clone(liveStates), expirySet)
	pipe := r.b.rdb.Pipeline()
	sizes := make([]func() int64, len(sets))
	for i, set := range sets {
		sizes[i] = r.b.depth(ctx, pipe, q, set)
	}
	look.Reads += pipe.Len()
	if _, err := pipe.Exec(ctx); err != nil {
		return r.b.failure(ctx, "look at a queue", err)
	}
	for i, set := range sets {
		if sizes[i]() == 0 {
			continue
		}
		look.Busy = look.Busy || set == api.JobActive
		if err := r.straysIn(ctx, q, set, look); err != nil {
			return err
		}
	}
	return nil
}

// straysIn looks at the next members of one set.
func (r *Repairer) straysIn(ctx context.Context, q queueKey, set api.JobState, look *Look) error {
	key := r.b.keys(q).Set(string(set))
	var from *position
	if p, known := r.far[key]; known {
		from = &p
	}
	members, end, err := r.b.step(ctx, q, set, from, strayPage)
	if err != nil {
		return err
	}
	delete(r.far, key)
	if !end && len(members) > 0 && len(r.far) < farMax {
		r.far[key] = members[len(members)-1]
	}
	ids := make([]string, len(members))
	for i, p := range members {
		ids[i] = p.id
	}
	found, err := r.b.glances(ctx, q.tenant, ids)
	look.Reads += 1 + len(ids)
	if err != nil {
		return err
	}
	var strays []*record
	reasons := map[string]string{}
	for i, g := range found {
		if set == api.JobPending && members[i].set != r.b.setOf(q, set, members[i].score) && !g.bad && misplaced(&g, q, set) == "" {
			if err := r.enter(ctx, q, g.id, look); err != nil {
				return err
			}
			strays = append(strays, &record{id: g.id, text: g.text})
			reasons[g.id] = "of another priority"
			continue
		}
		if g.bad {
			look.Unreadable = append(look.Unreadable, g.id)
		} else if reason := misplaced(&g, q, set); reason != "" {
			strays = append(strays, &record{id: g.id, text: g.text})
			reasons[g.id] = reason
		}
	}
	if len(strays) == 0 {
		return nil
	}
	kind := RepairStray
	if set == expirySet {
		kind = RepairExpiry
	}
	dropped, err := r.b.dropFrom(ctx, q, members, strays)
	look.Reads += len(strays)
	for _, id := range dropped {
		look.mended(kind, q, id, "among the "+string(set)+" ones, and "+reasons[id])
	}
	return err
}

// enter enters a job in the index where it belongs, before its entry elsewhere goes.
func (r *Repairer) enter(ctx context.Context, q queueKey, id string, look *Look) error {
	found, err := r.b.load(ctx, q.tenant, []string{id})
	look.Reads += 2
	if err != nil || found[0] == nil {
		return err
	}
	_, err = r.b.reindex(ctx, q.tenant, found[0])
	return err
}

// misplaced says why a job is none of a set of q, "" if it is.
func misplaced(g *glance, q queueKey, set api.JobState) string {
	switch {
	case g.text == "":
		return "does not exist"
	case g.home != specBegin(q):
		return "of another queue"
	case set == expirySet && !g.run.state.Terminal(), g.run.state == set:
		return ""
	}
	return string(g.run.state)
}
