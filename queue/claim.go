package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// claimOK is the claim script's word for a queue that serves.
const claimOK = "ok"

// offer is a candidate, and what a claim makes of it.
type offer struct {
	candidate
	known  string // its run as the script must find it, "" for none
	spec   *api.JobSpec
	claim  run    // under the lease
	leased string // claim as it is stored, "" for a job that is not pending in the queue
	taken  bool   // answer: the worker has it
	// unreadable is why there is no spec. The job is leased all the same, so that it
	// does not keep the others of its queue from their turn.
	unreadable error
}

// unknownRun is no job's run.
const unknownRun = "?"

// claim hands out candidates in their order, at most want. after is -1 where the queue
// serves, else how long it will not (0: unknown). The spec of a job that was pending
// from the first tells its first run, which is then read by the script alone. From the
// first job on of which that does not hold, a second try reads both.
func (b *Broker) claim(ctx context.Context, f *Fetch, q queueKey, l *lane, found []candidate, want int) (jobs []api.FetchedJob, after time.Duration, err error) {
	now := b.store.NowMS()
	c := &claiming{q: q, lane: l, worker: f.WorkerID, now: now, expires: now + f.Lease.Milliseconds()}
	defer func() {
		if c.status != "" { // the script answered
			b.metrics.claimed(q, c.status, jobs, now)
		}
	}()
	offers, err := b.firstOffers(ctx, c, found)
	if err != nil {
		return nil, 0, err
	}
	if unknown := slices.IndexFunc(offers, func(o offer) bool { return o.known == unknownRun }); unknown >= 0 {
		offers = offers[:unknown]
	}
	if len(offers) > 0 {
		jobs, after, err = b.claimOffers(ctx, c, offers, want)
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
	if want -= len(jobs); want == 0 || len(others) == 0 || len(jobs) < taken {
		return jobs, -1, nil
	}
	if offers, err = b.readOffers(ctx, c, others); err != nil {
		return jobs, 0, err
	}
	more, after, err := b.claimOffers(ctx, c, offers, want)
	return append(jobs, more...), after, err
}

// claiming holds the values that the tries of one claim share.
type claiming struct {
	q            queueKey
	lane         *lane
	worker       string
	now, expires int64  // ms
	status       string // answer: of the last script
	room         int    // answer: how many jobs it allowed
}

// room is how many of want jobs the queue's limits allow now. after is as of claim.
func (b *Broker) room(ctx context.Context, q queueKey, l *lane, want int) (room int, after time.Duration, err error) {
	c := &claiming{q: q, lane: l, now: b.store.NowMS()}
	if _, after, err = b.claimOffers(ctx, c, nil, want); err != nil || after >= 0 {
		b.metrics.claimed(q, c.status, nil, c.now)
	}
	return c.room, after, err
}

// firstOffers reads the specs of candidates and makes offers of them as if they had
// never run.
func (b *Broker) firstOffers(ctx context.Context, c *claiming, found []candidate) ([]offer, error) {
	tenant, home := b.store.JobKeys(c.q.tenant), specBegin(c.q)
	keys := make([]string, len(found))
	for i := range found {
		keys[i] = tenant.Spec(found[i].id)
	}
	stored, err := b.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, b.failure(ctx, "read jobs", err)
	}
	offers := make([]offer, len(found))
	for i, text := range texts(stored) {
		o := &offers[i]
		o.candidate, o.known = found[i], unknownRun
		if text == "" {
			o.known = "" // no job: the entry leaves the index
		}
		if !strings.HasPrefix(text, home) {
			continue
		}
		if o.spec, err = decodeSpec(text); err != nil {
			continue // the second try tells
		}
		first := enqueueItem{spec: o.spec}
		first.begin(o.spec.CreatedAtMS)
		if first.state == api.JobPending {
			r := first.firstRun()
			o.known = r.String()
			o.lease(r, c.worker, c.expires)
		}
	}
	return offers, nil
}

// lease sets what the job's run r becomes when f's worker has the job.
func (o *offer) lease(r run, worker string, expires int64) {
	o.claim = r.to(api.JobActive, expires)
	o.claim.attempt++
	o.claim.epoch++
	o.claim.worker = worker
	o.leased = o.claim.String()
}

// readOffers reads the runs and specs of candidates. A job's run and spec belong
// together: one command reads both.
func (b *Broker) readOffers(ctx context.Context, c *claiming, found []candidate) ([]offer, error) {
	tenant, home := b.store.JobKeys(c.q.tenant), specBegin(c.q)
	keys := make([]string, 0, 2*len(found))
	for i := range found {
		keys = append(keys, tenant.Run(found[i].id), tenant.Spec(found[i].id))
	}
	reply, err := b.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, b.failure(ctx, "read jobs", err)
	}
	stored, offers := texts(reply), make([]offer, len(found))
	for i := range found {
		o, spec := &offers[i], stored[2*i+1]
		o.candidate, o.known = found[i], stored[2*i]
		if !strings.HasPrefix(o.known, string(api.JobPending)+" ") || !strings.HasPrefix(spec, home) {
			continue
		}
		r, err := parseRun(o.known)
		if err != nil {
			return nil, err
		}
		o.spec, o.unreadable = decodeSpec(spec)
		o.lease(r, c.worker, c.expires)
	}
	return offers, nil
}

// claimOffers runs the script on offers, which are ordered by rank, and marks those that
// it took.
func (b *Broker) claimOffers(ctx context.Context, c *claiming, offers []offer, want int) (jobs []api.FetchedJob, after time.Duration, err error) {
	keys, args := b.claimArguments(c, offers, want)
	reply, err := b.store.ScriptThen(ctx, storage.ScriptJobClaim, keys, args, func(pipe redis.Pipeliner) {
		if len(offers) > 0 {
			b.markDue(ctx, pipe, c.q, c.expires)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	words := texts(reply)
	c.status = words[0]
	ms, err1 := strconv.ParseInt(words[1], 10, 64)
	room, err2 := strconv.Atoi(words[2])
	if err := cmp.Or(err1, err2); err != nil {
		return nil, 0, api.Wrap(api.CodeInternal, err, storage.ScriptJobClaim)
	}
	c.room = room
	if limited := room < want; limited || len(offers) == 0 {
		c.lane.limited.Store(limited)
	}
	if c.status != claimOK {
		return nil, time.Duration(ms) * time.Millisecond, nil
	}
	if len(offers) == 0 {
		return nil, -1, nil
	}
	c.lane.advance(words[3:7])
	places, err := placesOf(storage.ScriptJobClaim, words[7:], len(offers))
	if err != nil {
		return nil, 0, err
	}
	for _, at := range places {
		offers[at].taken = true
	}
	jobs, err = b.claimed(ctx, c, offers)
	if err == nil {
		err = b.readCheckpoints(ctx, c.q.tenant, jobs)
	}
	return jobs, -1, err
}

// placesOf reads the places, from 1, that a script answered of n, as indexes.
func placesOf(script string, words []string, n int) ([]int, error) {
	out := make([]int, len(words))
	for i, word := range words {
		at, err := strconv.Atoi(word)
		if err != nil || at < 1 || at > n {
			return nil, api.Errorf(api.CodeInternal, "%s answered with place %q", script, word)
		}
		out[i] = at - 1
	}
	return out, nil
}

// claimArguments lays offers out as job_claim.lua reads them.
func (b *Broker) claimArguments(c *claiming, offers []offer, want int) (keys []string, args []any) {
	k, tenant := b.keys(c.q), b.store.JobKeys(c.q.tenant)
	keys = append(make([]string, 0, 8+len(offers)), k.Config(), k.Cursor(), k.Rate(), k.Set(string(api.JobActive)))
	keys = append(keys, b.setsOf(c.q, api.JobPending)...)
	var last [4]int64
	for i := range offers {
		last[rankOf(offers[i].score)] = offers[i].score
		keys = append(keys, tenant.Run(offers[i].id))
	}
	args = append(make([]any, 0, 16+2*len(offers)), c.now, c.expires, want, len(offers), last[0], last[1], last[2], last[3])
	for from := 0; from < len(offers); {
		first, to := &offers[from], from+1
		for to < len(offers) && first.alike(&offers[to]) {
			to++
		}
		args = append(args, rankOf(first.score)+1, to-from, first.known, first.leased)
		for ; from < to; from++ {
			args = append(args, offers[from].id)
		}
	}
	return keys, args
}

// alike reports whether two offers are told to the script together.
func (o *offer) alike(p *offer) bool {
	return o.known == p.known && o.leased == p.leased && rankOf(o.score) == rankOf(p.score)
}

// claimed makes jobs of the offers that were taken. Those that have expired meanwhile
// are ended instead of being handed out.
func (b *Broker) claimed(ctx context.Context, c *claiming, offers []offer) (jobs []api.FetchedJob, err error) {
	jobs = make([]api.FetchedJob, 0, len(offers))
	for i := range offers {
		o := &offers[i]
		if !o.taken {
			continue
		}
		spec := o.spec
		if spec == nil {
			err = errors.Join(err, o.unreadable)
			continue
		}
		b.remember(jobKey{c.q.tenant, o.id}, briefOf(spec, o.claim, o.leased))
		if spec.ExpireAtMS > 0 && spec.ExpireAtMS <= c.now {
			if err := b.expireClaimed(ctx, c.q.tenant, o.id); err != nil {
				return jobs, err
			}
			continue
		}
		options := spec.WithDefaults()
		payload := spec.Payload
		if len(payload) == 0 {
			payload = []byte("null")
		}
		jobs = append(jobs, api.FetchedJob{
			ID: o.id, Namespace: c.q.namespace, Queue: c.q.queue, Payload: payload,
			Attempt: o.claim.attempt, MaxAttempts: options.MaxAttempts, LeaseEpoch: o.claim.epoch, LeaseExpiresMS: c.expires,
			Tags: spec.Tags, ParentID: spec.ParentID, CreatedAtMS: spec.CreatedAtMS,
			Spec: spec,
		})
	}
	return jobs, err
}

// readCheckpoints completes claimed jobs by the checkpoints of earlier attempts. Only
// the holder of a lease can write one, so they do not change meanwhile.
func (b *Broker) readCheckpoints(ctx context.Context, tenant string, jobs []api.FetchedJob) error {
	pipe := b.rdb.Pipeline()
	keys := b.store.JobKeys(tenant)
	replies := map[int]*redis.StringCmd{}
	for i := range jobs {
		if jobs[i].LeaseEpoch > 1 { // only a worker leaves a checkpoint
			replies[i] = pipe.HGet(ctx, keys.Meta(jobs[i].ID), fieldCheckpoint)
		}
	}
	if len(replies) == 0 {
		return nil
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return b.failure(ctx, "read checkpoints", err)
	}
	for i, reply := range replies {
		jobs[i].Checkpoint = rawOf(reply.Val())
	}
	return nil
}
