package queue

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// repairGraceMS is how long a call may be under way: what looks as if a crash had cut
// it is left alone until it has looked so for this long.
const repairGraceMS = 60_000

// The kinds of repairs, as metrics name them.
const (
	RepairDue        = "due"        // a queue in which something is due was in no due set, or too late
	RepairReady      = "ready"      // an fn queue with jobs to begin was in no ready set
	RepairStray      = "stray"      // an index held a job that is elsewhere, or is not
	RepairExpiry     = "expiry"     // an ended job was still to expire
	RepairOrphan     = "orphan"     // a job was in no index
	RepairUnlisted   = "unlisted"   // a queue with jobs was not in its tenant's list
	RepairWaiting    = "waiting"    // a job waited for jobs that have all ended
	RepairBatch      = "batch"      // a batch was done, and its callback not made
	RepairJobless    = "jobless"    // an activation's job was gone
	RepairUnfinished = "unfinished" // an activation's job had ended, and it had not
)

// Repair is a leftover of a crash that was mended.
type Repair struct {
	Kind                     string
	Tenant, Namespace, Queue string
	ID                       string // of the job, activation or batch; "" for a queue
	Reason                   string
}

// Look is what a look at part of the store cost and found.
type Look struct {
	// Reads are the commands that it took.
	Reads int
	// Busy: jobs run there, or something is to be looked at once more soon.
	Busy bool
	// End: there is no more of it.
	End bool
	// Repairs were made, each by this call alone.
	Repairs []Repair
	// Unreadable are keys or ids of records that cannot be read.
	Unreadable []string
}

func (l *Look) mended(kind string, q queueKey, id, reason string) {
	l.Repairs = append(l.Repairs, Repair{kind, q.tenant, q.namespace, q.queue, id, reason})
}

// Repairer finds what crashes left in a broker's store, where no call and no
// maintenance would come upon it, and mends it. Any number may work at once; one is
// not safe for concurrent use. It takes what it looks at as if calls were under way:
// every repair is made only if it still applies, by the store's own word.
type Repairer struct {
	b       *Broker
	queues  Suspects[queueSuspect]
	batches Suspects[jobKey]
	list    queueList
	far     map[string]position // how far sets of more than strayPage have been looked through
	scan    scan
}

// NewRepairer makes a repairer of what b keeps.
func (b *Broker) NewRepairer() *Repairer {
	return &Repairer{b: b, far: map[string]position{}}
}

// glance is where a job stands, read without its payload.
type glance struct {
	id   string
	text string // of run, "" where there is no such job
	home string // how its spec begins
	run  run
	bad  bool // it is there, and cannot be read
}

// glances reads where jobs stand.
func (b *Broker) glances(ctx context.Context, tenant string, ids []string) ([]glance, error) {
	jobs := make([]jobKey, len(ids))
	for i, id := range ids {
		jobs[i] = jobKey{tenant, id}
	}
	return b.glancesOf(ctx, jobs)
}

// glancesOf reads where jobs of any tenants stand. Neighbours of one tenant are read
// by one script.
func (b *Broker) glancesOf(ctx context.Context, jobs []jobKey) ([]glance, error) {
	var calls []storage.ScriptCall
	for from := 0; from < len(jobs); {
		to := from + 1
		for to < len(jobs) && to-from < loadPage && jobs[to].tenant == jobs[from].tenant {
			to++
		}
		call := storage.ScriptCall{Args: []any{to - from}}
		for _, j := range jobs[from:to] {
			call.Keys = append(call.Keys, b.store.JobKeys(j.tenant).Run(j.id))
		}
		for _, j := range jobs[from:to] {
			call.Keys = append(call.Keys, b.store.JobKeys(j.tenant).Spec(j.id))
		}
		calls, from = append(calls, call), to
	}
	replies, errs := b.store.ScriptEach(ctx, storage.ScriptJobSummary, calls)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := make([]glance, 0, len(jobs))
	for _, reply := range replies {
		words := texts(reply)
		for i := 0; i+1 < len(words); i += 2 {
			g := glance{id: jobs[len(out)].id, text: words[i], home: words[i+1]}
			if g.text != "" {
				var err error
				g.run, err = parseRun(g.text)
				_, known := g.key("")
				g.bad = err != nil || !known
			}
			out = append(out, g)
		}
	}
	return out, nil
}

// key is the queue that the job names.
func (g *glance) key(tenant string) (queueKey, bool) {
	words := strings.Split(g.home, `"`)
	if len(words) != 9 { // {"namespace":"ns","queue":"q",
		return queueKey{}, false
	}
	q := queueKey{tenant, words[3], words[7]}
	return q, specBegin(q) == g.home
}

// added says whether one entry of a set was made by this command.
func (b *Broker) added(ctx context.Context, cmd *redis.IntCmd) (bool, error) {
	return cmd.Val() == 1, b.failure(ctx, "repair", cmd.Err())
}

// fatal says whether an error is no single record's.
func fatal(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || api.ErrorCode(err) == api.CodeStoreUnavailable)
}
