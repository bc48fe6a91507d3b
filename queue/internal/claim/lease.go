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

// A lease assigns a job to one worker for a limited time. It is part of the job's run: the state
// active, the lease epoch, the worker, and the moment at which it expires. The epoch is a
// fencing token: it is incremented by each claim, and each call that settles or extends the
// lease must present it. For a job with a lease of 30 s, whose first worker loses its network:
//
//	 t        event                                       state    epoch  expires
//	 0 s      the job is enqueued                         pending  0
//	 0 s      w1 claims it                                active   1      30 s
//	10 s      w1's heartbeat (epoch 1) extends the lease  active   1      40 s
//	20 s      w1's heartbeat (epoch 1) extends the lease  active   1      50 s
//	25 s      w1 loses its network
//	50 s      the lease expires; maintenance reclaims     pending  1
//	51 s      w2 claims it, as attempt 2                  active   2      81 s
//	60 s      w1 is back and acks (epoch 1):              active   2      81 s
//	          CodeJobLeaseLost, nothing changes
//	70 s      w2 acks (epoch 2)                           completed
//	71 s      w2 repeats its ack (epoch 2): success       completed
//
// An expired lease remains valid until the job is reclaimed: an ack of w1 at 50.1 s, before
// maintenance reaches the job, succeeds, because the epoch still is 1. The fencing token
// protects the store only. Between 50 s and 60 s w1 may still run the job, so a job can run
// twice at the same time, and its other effects must be idempotent or carry the epoch.

// ClaimOK is the status with which the claim script replies for a queue that is neither
// paused nor at one of its limits.
const ClaimOK = "ok"

// offer is a candidate with the run that a claim would give it, and the result.
type offer struct {
	candidate
	known  string // the run that the script must find, "" for none
	owner  *share // whose worker gets it
	spec   *api.JobSpec
	claim  jobstore.Run // under the lease
	leased string       // the stored form of claim, "" for a job that is not pending in the queue
	taken  bool         // set by claimOffers: the worker has the lease
	// unreadable is the error of decoding the spec. The job is leased nevertheless, so
	// that it does not block the jobs behind it.
	unreadable error
}

// unknownRun stands for a run that has to be read. It equals no stored run.
const unknownRun = "?"

// lease is the second step of a claim. It claims candidates in their order, at most want, for the
// shares, and returns how many. after is -1 if the queue serves, or how long it does not, 0 if
// unknown.
//
// The first try reads only specs. A job that was pending when it was created has a first run
// that follows from its spec, and only the script reads the stored run to compare it. The
// second try reads run and spec of the candidates from the first one on of which that does
// not hold, for example jobs that were retried.
func (c *Claimer) lease(ctx context.Context, key shareKey, s *queueState, shares []*share, found []candidate, want int) (got int, after time.Duration, err error) {
	now := c.store.NowMS()
	a := &attempt{q: key.q, state: s, shares: shares, now: now, expires: now + key.leaseMS}
	var jobs []api.FetchedJob
	defer func() {
		s.note(jobs)
		if a.status != "" { // the script replied
			c.hooks.Claimed(key.q, a.status, jobs, now)
		}
	}()
	offers, err := c.firstOffers(ctx, a, found)
	if err != nil {
		return 0, 0, err
	}
	if unknown := slices.IndexFunc(offers, func(o offer) bool { return o.known == unknownRun }); unknown >= 0 {
		offers = offers[:unknown]
	}
	if len(offers) > 0 {
		jobs, after, err = c.claimOffers(ctx, a, offers, want)
		if err != nil || after >= 0 {
			return len(jobs), after, err
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
	// Ending an expired job may have created another one, which has to be served first.
	want -= len(jobs)
	if want == 0 || len(others) == 0 || len(jobs) < taken {
		return len(jobs), -1, nil
	}
	offers, err = c.readOffers(ctx, a, others)
	if err != nil {
		return len(jobs), 0, err
	}
	more, after, err := c.claimOffers(ctx, a, offers, want)
	jobs = append(jobs, more...)
	return len(jobs), after, err
}

// attempt holds the values that the tries of one claim share, and the results of the last.
type attempt struct {
	q            jobstore.Queue
	state        *queueState
	shares       []*share
	now, expires int64  // Unix times in milliseconds
	status       string // set by claimOffers: the script's status
	room         int    // set by claimOffers: how many jobs the limits allowed
}

// room returns how many of want jobs the queue's limits allow now. after is as in lease.
func (c *Claimer) room(ctx context.Context, q jobstore.Queue, s *queueState, want int) (room int, after time.Duration, err error) {
	a := &attempt{q: q, state: s, now: c.store.NowMS()}
	_, after, err = c.claimOffers(ctx, a, nil, want)
	if err != nil || after >= 0 {
		c.hooks.Claimed(q, a.status, nil, a.now)
	}
	return a.room, after, err
}

// firstOffers reads the specs of candidates and returns offers of them as if they had never
// run.
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
	reassign(a.shares)
	for i, text := range jobstore.Words(stored) {
		o := &offers[i]
		o.candidate, o.known = found[i], unknownRun
		if text == "" {
			o.known = "" // the job does not exist: the script removes the entry
		}
		if !strings.HasPrefix(text, home) {
			continue
		}
		o.spec, err = jobstore.DecodeSpec(text)
		if err != nil {
			continue // the second try reports the error
		}
		if r := jobstore.NewRun(o.spec, o.spec.CreatedAtMS); r.State == api.JobPending {
			o.known = r.String()
			o.lease(r, a)
		}
	}
	return offers, nil
}

// lease assigns the offer to a share of a, and sets the run that the job, whose run is r, has once
// the worker of the share has leased it.
func (o *offer) lease(r jobstore.Run, a *attempt) {
	o.owner = assign(a.shares)
	o.claim = r.To(api.JobActive, a.expires)
	o.claim.Attempt++
	o.claim.Epoch++
	o.claim.Worker, o.claim.Started, o.claim.Host = o.owner.WorkerID, a.now, o.owner.Host
	o.leased = o.claim.String()
}

// readOffers reads the runs and specs of candidates by one command, so that run and spec of
// a job belong together, and returns offers of them.
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
	reassign(a.shares)
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
		o.lease(r, a)
	}
	return offers, nil
}

// claimOffers runs the claim script on offers, which are ordered by rank, marks those that it
// granted and delivers their jobs. Without offers it reads the room under the limits. after
// is as in lease; jobs are also added to their shares.
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
	positions, err := jobstore.Indexes(storage.ScriptJobClaim, words[7:], len(offers))
	if err != nil {
		return nil, 0, err
	}
	for _, at := range positions {
		offers[at].taken = true
	}
	jobs, owners, err := c.deliver(ctx, a, offers)
	if err == nil {
		err = c.readCheckpoints(ctx, a.q.Tenant, jobs)
	}
	for i, s := range owners {
		s.jobs = append(s.jobs, jobs[i])
	}
	return jobs, -1, err
}

// claimArguments returns the keys and arguments of job_claim.lua.
func (c *Claimer) claimArguments(a *attempt, offers []offer, want int) (keys []string, args []any) {
	k, tenant := c.jobs.Keys(a.q), c.store.JobKeys(a.q.Tenant)
	keys = append(make([]string, 0, 9+len(offers)), k.Config(), k.Cursor(), k.Rate(), k.Set(string(api.JobActive)))
	keys = append(append(keys, c.jobs.Sets(a.q, api.JobPending)...), tenant.Events())
	var last [4]int64
	for i := range offers {
		last[jobstore.RankOf(offers[i].score)] = offers[i].score
		keys = append(keys, tenant.Run(offers[i].id))
	}
	args = append(make([]any, 0, 17+2*len(offers)), a.now, a.expires, want, len(offers), last[0], last[1], last[2], last[3], a.q.Path())
	for from := 0; from < len(offers); {
		first, to := &offers[from], from+1
		for to < len(offers) && first.alike(&offers[to]) {
			to++
		}
		args = append(args, jobstore.RankOf(first.score)+1, to-from, first.known, first.leased, first.claim.EventDetail("", "", ""))
		for ; from < to; from++ {
			args = append(args, offers[from].id)
		}
	}
	return keys, args
}

// alike reports whether two offers can be in one group of the script's arguments.
func (o *offer) alike(p *offer) bool {
	return o.known == p.known && o.leased == p.leased && jobstore.RankOf(o.score) == jobstore.RankOf(p.score)
}
