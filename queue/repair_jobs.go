package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

const (
	// jobPage is how many jobs are looked at in one round trip.
	jobPage = 200
	// jobReads is what a look at a job costs that is where it says.
	jobReads = 2
)

func (k jobKey) compare(o jobKey) int {
	return cmp.Or(strings.Compare(k.tenant, o.tenant), strings.Compare(k.id, o.id))
}

// Jobs looks at the next jobs and batches of the whole store, for about so many reads:
// whether each job is in the index of its state, whether those that wait have
// something to wait for, and whether what follows batches was made. It goes on where
// the last call stopped, until End.
func (r *Repairer) Jobs(ctx context.Context, now int64, reads int) (look Look, err error) {
	err = r.batchesAgain(ctx, now, &look)
	if fatal(ctx, err) {
		return look, err
	}
	errs := []error{err}
	for {
		if err := r.scanOn(ctx, &look, reads); err != nil {
			return look, err
		}
		page := r.scan.keys[:min(len(r.scan.keys), max(1, min(jobPage, (reads-look.Reads)/jobReads)))]
		if r.scan.prefix == 0 {
			err = r.jobs(ctx, page, now, &look)
		} else {
			err = r.batchPage(ctx, page, now, &look)
		}
		if fatal(ctx, err) {
			return look, err
		}
		errs = append(errs, err)
		r.scan.keys = r.scan.keys[len(page):]
		if r.scan.end() {
			r.scan, look.End = scan{}, true
		}
		if look.End || look.Reads >= reads {
			return look, errors.Join(errs...)
		}
	}
}

// jobPlace is a job that was read, and where it belongs.
type jobPlace struct {
	glance
	queue queueKey
	in    []*redis.FloatCmd // its score in each of the sets of its state, of which one has it
	of    *redis.BoolCmd    // whether its queue is in the tenant's list
}

// jobs looks at some jobs.
func (r *Repairer) jobs(ctx context.Context, page []jobKey, now int64, look *Look) error {
	found, err := r.glances(ctx, page, look)
	if err != nil {
		return err
	}
	places := make([]*jobPlace, 0, len(page))
	pipe := r.b.rdb.Pipeline()
	for i, g := range found {
		if g.text == "" && g.home == "" {
			continue // it was deleted meanwhile
		}
		q, ok := g.key(page[i].tenant)
		if g.bad || !ok || g.text == "" {
			look.Unreadable = append(look.Unreadable, page[i].tenant+"/"+g.id)
			continue
		}
		p := &jobPlace{glance: g, queue: q}
		for _, set := range r.b.setsOf(q, g.run.state) {
			p.in = append(p.in, pipe.ZScore(ctx, set, g.id))
		}
		look.Reads += len(p.in)
		if !g.run.state.Terminal() { // an ended one is purged without it
			p.of = pipe.SIsMember(ctx, r.b.store.JobKeys(q.tenant).Queues(), q.name())
			look.Reads++
		}
		places = append(places, p)
	}
	if len(places) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); r.b.failure(ctx, "look at jobs", err) != nil {
		return r.b.failure(ctx, "look at jobs", err)
	}
	var errs []error
	for _, p := range places {
		err := r.job(ctx, p, now, look)
		if fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// glances reads where the jobs of a page stand, those of the older layout too.
func (r *Repairer) glances(ctx context.Context, page []jobKey, look *Look) ([]glance, error) {
	found, err := r.b.glancesOf(ctx, page)
	look.Reads += len(page)
	if err != nil {
		return nil, err
	}
	moved := false
	for i, g := range found {
		if g.text != "" || g.home != "" {
			continue
		}
		// It was deleted meanwhile, or it is of the older layout.
		keys := r.b.store.JobKeys(page[i].tenant)
		look.Reads++
		reply, err := r.b.store.Script(ctx, storage.ScriptJobRelayout, []string{keys.Meta(g.id), keys.Run(g.id), keys.Spec(g.id)}, 1)
		if err != nil {
			return nil, err
		}
		moved = moved || reply == int64(1)
	}
	if !moved {
		return found, nil
	}
	look.Reads += len(page)
	return r.b.glancesOf(ctx, page)
}

// lost reports that the job is in none of the sets of its state.
func (p *jobPlace) lost() bool {
	return !slices.ContainsFunc(p.in, func(score *redis.FloatCmd) bool { return !errors.Is(score.Err(), redis.Nil) })
}

// job looks closely at one job where something seems to be missing.
func (r *Repairer) job(ctx context.Context, p *jobPlace, now int64, look *Look) error {
	look.Busy = look.Busy || p.run.state == api.JobActive
	lost, unlisted := p.lost(), p.of != nil && !p.of.Val()
	waits := p.run.state == api.JobWaiting && p.run.at <= now-repairGraceMS
	if !lost && !unlisted && !waits {
		return nil
	}
	found, err := r.b.load(ctx, p.queue.tenant, []string{p.id})
	look.Reads++
	if err != nil || found[0] == nil || found[0].spec.CreatedAtMS > now-repairGraceMS {
		return err // its enqueue may be under way
	}
	job := found[0]
	if unlisted && !job.run.state.Terminal() {
		q := job.key(p.queue.tenant)
		look.Reads++
		made, err := r.b.added(ctx, r.b.rdb.SAdd(ctx, r.b.store.JobKeys(q.tenant).Queues(), q.name()))
		if err != nil {
			return err
		}
		if made {
			look.mended(RepairUnlisted, q, p.id, "its queue was in no list")
		}
	}
	if lost {
		look.Reads += 2
		entered, err := r.b.reindex(ctx, p.queue.tenant, job)
		if entered {
			look.mended(RepairOrphan, job.key(p.queue.tenant), p.id, "it was "+string(job.run.state)+" and in no index")
		}
		return err
	}
	if waits {
		return r.waiting(ctx, p.queue.tenant, job, now, look)
	}
	return nil
}

// waiting lets a job be looked at whose wait has been over for some time.
func (r *Repairer) waiting(ctx context.Context, tenant string, job *record, now int64, look *Look) error {
	if job.run.state != api.JobWaiting {
		return nil
	}
	others, err := r.b.glances(ctx, tenant, job.spec.DependsOn)
	look.Reads += len(job.spec.DependsOn)
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.text != "" && (!o.run.state.Terminal() || o.run.at > now-repairGraceMS) {
			return nil
		}
	}
	q := job.key(tenant)
	look.Reads += 2
	made, err := r.b.added(ctx, r.b.rdb.ZAddNX(ctx, r.b.keys(q).After(), redis.Z{Score: float64(now), Member: job.id}))
	if err != nil || !made {
		return err // it is marked; that the queue is due is looked at with the queue
	}
	look.mended(RepairWaiting, q, job.id, "all that it depends on has ended")
	pipe := r.b.rdb.Pipeline()
	r.b.markDue(ctx, pipe, q, now)
	_, err = pipe.Exec(ctx)
	return r.b.failure(ctx, "mark a queue", err)
}

// reindex enters a job in the index of its state if it is not there: its own enqueue
// was cut short, and nobody knows it but its unique key, or a scan. It says whether
// this call did.
func (b *Broker) reindex(ctx context.Context, tenant string, r *record) (bool, error) {
	q := r.key(tenant)
	k, rank, at, expire, waits := b.keys(q), -1, r.run.at, int64(0), ""
	due := int64(0)
	switch state := r.run.state; {
	case state.Terminal():
		due = at + b.keepMS
	case state == api.JobPending:
		rank, at = rankOf(r.spec.Score), r.spec.Score
	case state == api.JobWaiting: // what it waits for may have ended
		waits, due = "1", at
	case state != api.JobHeld:
		due = at
	}
	if !r.run.state.Terminal() {
		expire = r.spec.ExpireAtMS
		due = duework.Sooner(due, expire)
	}
	reply, err := b.store.Script(ctx, storage.ScriptJobReindex, []string{
		b.store.JobKeys(tenant).Run(r.id), b.setOf(q, r.run.state, r.spec.Score), k.Cursor(), k.After(), k.Expiry(), b.store.JobKeys(tenant).Queues(),
	}, r.id, r.text, q.name(), scoreText(at), rank, expire, waits)
	if err != nil || reply != moved {
		return false, err
	}
	pipe := b.rdb.Pipeline()
	if due > 0 {
		b.markDue(ctx, pipe, q, due)
	}
	if r.run.state == api.JobPending {
		if isFunctionQueue(q.queue) {
			b.markReady(ctx, pipe, q, b.store.NowMS())
		}
		defer b.wakes.wake(q)
	}
	if pipe.Len() == 0 {
		return true, nil
	}
	_, err = pipe.Exec(ctx)
	return true, b.failure(ctx, "mark a queue", err)
}
