package claim

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// ClaimOK is the claim script's word for a queue that serves.
const ClaimOK = "ok"

// offer is a candidate, and what a claim makes of it.
type offer struct {
	candidate
	known  string // its run as the script must find it, "" for none
	spec   *api.JobSpec
	claim  jobstore.Run // under the lease
	leased string       // claim as it is stored, "" for a job that is not pending in the queue
	taken  bool         // answer: the worker has it
	// unreadable is why there is no spec. The job is leased all the same, so that it
	// does not keep the others of its queue from their turn.
	unreadable error
}

// unknownRun is no job's run.
const unknownRun = "?"

// lease is the second step of a claim. It hands out candidates in their order, at most want. after is -1 where the queue
// serves, else how long it will not (0: unknown). The spec of a job that was pending
// from the first tells its first run, which is then read by the script alone. From the
// first job on of which that does not hold, a second try reads both.
func (c *Claimer) lease(ctx context.Context, r Request, q jobstore.Queue, s *queueState, found []candidate, want int) (jobs []api.FetchedJob, after time.Duration, err error) {
	now := c.store.NowMS()
	a := &attempt{q: q, state: s, worker: r.WorkerID, now: now, expires: now + r.Lease.Milliseconds()}
	defer func() {
		if a.status != "" { // the script answered
			c.hooks.Claimed(q, a.status, jobs, now)
		}
	}()
	offers, err := c.firstOffers(ctx, a, found)
	if err != nil {
		return nil, 0, err
	}
	if unknown := slices.IndexFunc(offers, func(o offer) bool { return o.known == unknownRun }); unknown >= 0 {
		offers = offers[:unknown]
	}
	if len(offers) > 0 {
		jobs, after, err = c.claimOffers(ctx, a, offers, want)
		if err != nil || after >= 0 {
			return jobs, after, err
		}
	}
	var others []candidate
	for i := range offers {
		if !offers[i].taken {
			others = append(others, offers[i].candidate)
		}
	}
	taken := len(offers) - len(others)
	others = append(others, found[len(offers):]...)
	// A job that had expired may have created another one, whose turn is nearer.
	want -= len(jobs)
	if want == 0 || len(others) == 0 || len(jobs) < taken {
		return jobs, -1, nil
	}
	offers, err = c.readOffers(ctx, a, others)
	if err != nil {
		return jobs, 0, err
	}
	more, after, err := c.claimOffers(ctx, a, offers, want)
	return append(jobs, more...), after, err
}

// attempt holds the values that the tries of one claim share.
type attempt struct {
	q            jobstore.Queue
	state        *queueState
	worker       string
	now, expires int64  // ms
	status       string // answer: of the last script
	room         int    // answer: how many jobs it allowed
}

// room is how many of want jobs the queue's limits allow now. after is as of claim.
func (c *Claimer) room(ctx context.Context, q jobstore.Queue, s *queueState, want int) (room int, after time.Duration, err error) {
	a := &attempt{q: q, state: s, now: c.store.NowMS()}
	_, after, err = c.claimOffers(ctx, a, nil, want)
	if err != nil || after >= 0 {
		c.hooks.Claimed(q, a.status, nil, a.now)
	}
	return a.room, after, err
}

// firstOffers reads the specs of candidates and makes offers of them as if they had
// never run.
func (c *Claimer) firstOffers(ctx context.Context, a *attempt, found []candidate) ([]offer, error) {
	tenant, home := c.store.JobKeys(a.q.Tenant), jobstore.SpecPrefix(a.q)
	keys := make([]string, len(found))
	for i := range found {
		keys[i] = tenant.Spec(found[i].id)
	}
	stored, err := c.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "read jobs", err)
	}
	offers := make([]offer, len(found))
	for i, text := range jobstore.Words(stored) {
		o := &offers[i]
		o.candidate, o.known = found[i], unknownRun
		if text == "" {
			o.known = "" // no job: the entry leaves the index
		}
		if !strings.HasPrefix(text, home) {
			continue
		}
		o.spec, err = jobstore.DecodeSpec(text)
		if err != nil {
			continue // the second try tells
		}
		if r := jobstore.NewRun(o.spec, o.spec.CreatedAtMS); r.State == api.JobPending {
			o.known = r.String()
			o.lease(r, a.worker, a.expires)
		}
	}
	return offers, nil
}

// lease sets what the job's run r becomes when f's worker has the job.
func (o *offer) lease(r jobstore.Run, worker string, expires int64) {
	o.claim = r.To(api.JobActive, expires)
	o.claim.Attempt++
	o.claim.Epoch++
	o.claim.Worker = worker
	o.leased = o.claim.String()
}

// readOffers reads the runs and specs of candidates. A job's run and spec belong
// together: one command reads both.
func (c *Claimer) readOffers(ctx context.Context, a *attempt, found []candidate) ([]offer, error) {
	tenant, home := c.store.JobKeys(a.q.Tenant), jobstore.SpecPrefix(a.q)
	keys := make([]string, 0, 2*len(found))
	for i := range found {
		keys = append(keys, tenant.Run(found[i].id), tenant.Spec(found[i].id))
	}
	reply, err := c.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "read jobs", err)
	}
	stored, offers := jobstore.Words(reply), make([]offer, len(found))
	for i := range found {
		o, spec := &offers[i], stored[2*i+1]
		o.candidate, o.known = found[i], stored[2*i]
		if !strings.HasPrefix(o.known, string(api.JobPending)+" ") || !strings.HasPrefix(spec, home) {
			continue
		}
		r, err := jobstore.ParseRun(o.known)
		if err != nil {
			return nil, err
		}
		o.spec, o.unreadable = jobstore.DecodeSpec(spec)
		o.lease(r, a.worker, a.expires)
	}
	return offers, nil
}

// claimOffers runs the script on offers, which are ordered by rank, and marks those that
// it took.
func (c *Claimer) claimOffers(ctx context.Context, a *attempt, offers []offer, want int) (jobs []api.FetchedJob, after time.Duration, err error) {
	keys, args := c.claimArguments(a, offers, want)
	reply, err := c.store.ScriptThen(ctx, storage.ScriptJobClaim, keys, args, func(pipe redis.Pipeliner) {
		if len(offers) > 0 {
			c.jobs.MarkDue(ctx, pipe, a.q, a.expires)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	words := jobstore.Words(reply)
	a.status = words[0]
	ms, err1 := strconv.ParseInt(words[1], 10, 64)
	room, err2 := strconv.Atoi(words[2])
	if err := cmp.Or(err1, err2); err != nil {
		return nil, 0, api.Wrap(api.CodeInternal, err, storage.ScriptJobClaim)
	}
	a.room = room
	if limited := room < want; limited || len(offers) == 0 {
		a.state.limited.Store(limited)
	}
	if a.status != ClaimOK {
		return nil, time.Duration(ms) * time.Millisecond, nil
	}
	if len(offers) == 0 {
		return nil, -1, nil
	}
	a.state.advance(words[3:7])
	places, err := jobstore.Indexes(storage.ScriptJobClaim, words[7:], len(offers))
	if err != nil {
		return nil, 0, err
	}
	for _, at := range places {
		offers[at].taken = true
	}
	jobs, err = c.deliver(ctx, a, offers)
	if err == nil {
		err = c.readCheckpoints(ctx, a.q.Tenant, jobs)
	}
	return jobs, -1, err
}

// claimArguments lays offers out as job_claim.lua reads them.
func (c *Claimer) claimArguments(a *attempt, offers []offer, want int) (keys []string, args []any) {
	k, tenant := c.jobs.Keys(a.q), c.store.JobKeys(a.q.Tenant)
	keys = append(make([]string, 0, 8+len(offers)), k.Config(), k.Cursor(), k.Rate(), k.Set(string(api.JobActive)))
	keys = append(keys, c.jobs.Sets(a.q, api.JobPending)...)
	var last [4]int64
	for i := range offers {
		last[jobstore.RankOf(offers[i].score)] = offers[i].score
		keys = append(keys, tenant.Run(offers[i].id))
	}
	args = append(make([]any, 0, 16+2*len(offers)), a.now, a.expires, want, len(offers), last[0], last[1], last[2], last[3])
	for from := 0; from < len(offers); {
		first, to := &offers[from], from+1
		for to < len(offers) && first.alike(&offers[to]) {
			to++
		}
		args = append(args, jobstore.RankOf(first.score)+1, to-from, first.known, first.leased)
		for ; from < to; from++ {
			args = append(args, offers[from].id)
		}
	}
	return keys, args
}

// alike reports whether two offers are told to the script together.
func (o *offer) alike(p *offer) bool {
	return o.known == p.known && o.leased == p.leased && jobstore.RankOf(o.score) == jobstore.RankOf(p.score)
}
