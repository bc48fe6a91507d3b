package repair

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

const (
	// jobsAtOnce is how many jobs one round trip checks.
	jobsAtOnce = 200
	// jobReads is how many commands the check of a job takes that needs no repair.
	jobReads = 2
)

// Jobs checks the next jobs and batches of the whole store: whether each job is in the index of
// its state and its queue in the tenant's list, whether waiting jobs still have something to
// wait for, and whether complete batches were finished. One call takes about reads commands and
// continues where the last one stopped, until End. now is a Unix time in milliseconds. An error
// with one record does not stop the check of the others, unless the store is unavailable: the
// next call then repeats the page.
func (r *Repairer) Jobs(ctx context.Context, now int64, reads int) (findings Findings, err error) {
	err = r.batchesAgain(ctx, now, &findings)
	if storage.Fatal(ctx, err) {
		return findings, err
	}
	errs := []error{err}
	for {
		if err := r.scanOn(ctx, &findings, reads); err != nil {
			return findings, err
		}
		page := r.scan.keys[:min(len(r.scan.keys), max(1, min(jobsAtOnce, (reads-findings.Reads)/jobReads)))]
		if r.scan.prefix == 0 {
			err = r.jobPage(ctx, page, now, &findings)
		} else {
			err = r.batchPage(ctx, page, now, &findings)
		}
		if storage.Fatal(ctx, err) {
			return findings, err
		}
		errs = append(errs, err)
		r.scan.keys = r.scan.keys[len(page):]
		if r.scan.end() {
			r.scan, findings.End = scan{}, true
		}
		if findings.End || findings.Reads >= reads {
			return findings, errors.Join(errs...)
		}
	}
}

// indexedJob is a job that was read, and its index entries.
type indexedJob struct {
	jobstore.Header
	queue jobstore.Queue
	// scores has its score in each set of its state, one of which should have it.
	scores []*redis.FloatCmd
	// listed is whether its queue is in the tenant's list; nil for ended jobs.
	listed *redis.BoolCmd
}

// jobPage checks the jobs of a page.
func (r *Repairer) jobPage(ctx context.Context, page []jobstore.Key, now int64, findings *Findings) error {
	found, err := r.headers(ctx, page, findings)
	if err != nil {
		return err
	}
	indexed := make([]*indexedJob, 0, len(page))
	pipe := r.rdb.Pipeline()
	for i, g := range found {
		if g.Stored == "" && g.Prefix == "" {
			continue // it was deleted after the scan
		}
		q, ok := g.Queue(page[i].Tenant)
		if g.Unreadable || !ok || g.Stored == "" {
			findings.Unreadable = append(findings.Unreadable, page[i].Tenant+"/"+g.ID)
			continue
		}
		p := &indexedJob{Header: g, queue: q}
		for _, set := range r.jobs.Sets(q, g.Run.State) {
			p.scores = append(p.scores, pipe.ZScore(ctx, set, g.ID))
		}
		findings.Reads += len(p.scores)
		if !g.Run.State.Terminal() { // ended jobs are purged without it
			p.listed = pipe.SIsMember(ctx, r.store.JobKeys(q.Tenant).Queues(), q.Path())
			findings.Reads++
		}
		indexed = append(indexed, p)
	}
	if len(indexed) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); jobstore.Failure(ctx, "look at jobs", err) != nil {
		return jobstore.Failure(ctx, "look at jobs", err)
	}
	var errs []error
	for _, p := range indexed {
		err := r.job(ctx, p, now, findings)
		if storage.Fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// headers reads the headers of a page of jobs. It converts jobs of the previous storage layout,
// which kept run and spec in the hash, to the present one, and then reads the page again.
func (r *Repairer) headers(ctx context.Context, page []jobstore.Key, findings *Findings) ([]jobstore.Header, error) {
	found, err := r.jobs.HeadersOf(ctx, page)
	findings.Reads += len(page)
	if err != nil {
		return nil, err
	}
	moved := false
	for i, g := range found {
		if g.Stored != "" || g.Prefix != "" {
			continue
		}
		// The job was deleted after the scan, or has the previous layout.
		keys := r.store.JobKeys(page[i].Tenant)
		findings.Reads++
		reply, err := r.store.Script(ctx, storage.ScriptJobRelayout, []string{keys.Meta(g.ID), keys.Run(g.ID), keys.Spec(g.ID)}, 1)
		if err != nil {
			return nil, err
		}
		moved = moved || reply == int64(1)
	}
	if !moved {
		return found, nil
	}
	findings.Reads += len(page)
	return r.jobs.HeadersOf(ctx, page)
}

// lost reports whether the job is in none of the sets of its state.
func (p *indexedJob) lost() bool {
	return !slices.ContainsFunc(p.scores, func(score *redis.FloatCmd) bool { return !errors.Is(score.Err(), redis.Nil) })
}

// job checks one job closely if something seems to be missing. The sets were read after the run,
// so a job that moved in between seems to be in none; reading it again and comparing its run
// (jobstore.Store.Reindex) shows that. A job younger than the grace is left to its enqueue.
func (r *Repairer) job(ctx context.Context, p *indexedJob, now int64, findings *Findings) error {
	findings.Busy = findings.Busy || p.Run.State == api.JobActive
	lost, unlisted := p.lost(), p.listed != nil && !p.listed.Val()
	waits := p.Run.State == api.JobWaiting && p.Run.At <= now-repairGraceMS
	if !lost && !unlisted && !waits {
		return nil
	}
	job, err := r.jobs.FindWith(ctx, p.queue.Tenant, p.ID)
	findings.Reads++
	if err != nil || job == nil || job.Spec.CreatedAtMS > now-repairGraceMS {
		return err // the call that makes it may be under way
	}
	if unlisted && !job.Run.State.Terminal() {
		q := job.Queue(p.queue.Tenant)
		findings.Reads++
		made, err := added(ctx, r.rdb.SAdd(ctx, r.store.JobKeys(q.Tenant).Queues(), q.Path()))
		if err != nil {
			return err
		}
		if made {
			findings.addRepair(KindUnlisted, q, p.ID, "its queue was not in the tenant's list")
		}
	}
	if lost {
		findings.Reads += 2
		entered, err := r.jobs.Reindex(ctx, p.queue.Tenant, job)
		if entered {
			findings.addRepair(KindOrphan, job.Queue(p.queue.Tenant), p.ID, "it was "+string(job.Run.State)+", but in no index")
		}
		return err
	}
	if waits {
		return r.waiting(ctx, p.queue.Tenant, job, now, findings)
	}
	return nil
}

// waiting marks a waiting job for release if all jobs that it depends on have ended at least
// repairGraceMS ago, or do not exist. The marker and the due mark of the queue make maintenance
// release it, which decides by OnDependencyFailure.
func (r *Repairer) waiting(ctx context.Context, tenant string, job *jobstore.Record, now int64, findings *Findings) error {
	if job.Run.State != api.JobWaiting {
		return nil
	}
	others, err := r.jobs.Headers(ctx, tenant, job.Spec.DependsOn)
	findings.Reads += len(job.Spec.DependsOn)
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.Stored != "" && (!o.Run.State.Terminal() || o.Run.At > now-repairGraceMS) {
			return nil
		}
	}
	q := job.Queue(tenant)
	findings.Reads += 2
	made, err := added(ctx, r.rdb.ZAddNX(ctx, r.jobs.Keys(q).After(), redis.Z{Score: float64(now), Member: job.ID}))
	if err != nil || !made {
		return err // it is marked already; Queues checks whether its queue is due
	}
	findings.addRepair(KindWaiting, q, job.ID, "all that it depends on has ended")
	pipe := r.rdb.Pipeline()
	r.jobs.MarkDue(ctx, pipe, q, now)
	_, err = pipe.Exec(ctx)
	return jobstore.Failure(ctx, "mark a queue", err)
}
