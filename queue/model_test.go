package queue_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/codesous/sous/api"
)

// model is the state machine of the queue as plain data.
type model struct {
	tenant  string
	now     int64
	jobs    map[string]*modelJob
	gone    map[string]bool // purged or deleted
	queues  map[string]*modelQueue
	uniques map[string]string // queue/key → job
	batches map[string]*modelBatch
	// scoreOf reads the score that the queue assigned to a new job.
	scoreOf func(id string) int64
}

type modelJob struct {
	id, queue  string
	opts       api.JobOptions
	state      api.JobState
	attempt    int
	epoch      int64
	at         int64
	settled    string
	worker     string
	score      int64 // of its creation
	place      int64 // its score among the pending jobs
	errors     int
	dead       string
	dependents []string
	first      string // its run and mark when it was created, "" if it was not pending then
	after      bool   // its end has consequences
	marked     string // the queue where it waited, whose maintenance has to handle it
}

type modelQueue struct {
	paused, draining bool
	most, limit      int64
	window           int64
	cursors          [4]int64
	tenths           map[int64]modelTenth
}

// modelTenth has the claims of a tenth of the window, and the time of the last.
type modelTenth struct{ count, last int64 }

type modelBatch struct {
	sealed, finished        bool
	jobs, succeeded, failed map[string]bool
}

func newModel(tenant string, now int64, scoreOf func(string) int64) *model {
	return &model{
		tenant: tenant, now: now, scoreOf: scoreOf, jobs: map[string]*modelJob{}, gone: map[string]bool{},
		queues:  map[string]*modelQueue{"emails": {tenths: map[int64]modelTenth{}}, "others": {tenths: map[int64]modelTenth{}}},
		uniques: map[string]string{}, batches: map[string]*modelBatch{},
	}
}

func (j *modelJob) run() string {
	return fmt.Sprintf("%s %d %d %d %s %s", j.state, j.attempt, j.epoch, j.at, j.settled, j.worker)
}

// whole returns the run with the mark of a job whose end has consequences.
func (j *modelJob) whole() string { return fmt.Sprint(j.run(), " ", j.after) }

// add makes a job whose unique key, if it has one, is free.
func (m *model) add(id, queue string, opts api.JobOptions) *modelJob {
	j := &modelJob{id: id, queue: queue, opts: opts.WithDefaults(), at: m.now, settled: "-", worker: "-"}
	j.after = opts.Chain != nil || opts.BatchID != ""
	switch {
	case len(opts.DependsOn) > 0:
		j.state, j.marked = api.JobWaiting, queue
	case opts.Hold:
		j.state = api.JobHeld
	case opts.RunAtMS > m.now:
		j.state, j.at = api.JobScheduled, opts.RunAtMS
	default:
		j.state = api.JobPending
	}
	if opts.UniqueKey != "" {
		m.uniques[queue+"/"+opts.UniqueKey] = id
	}
	if opts.BatchID != "" {
		m.batches[opts.BatchID].jobs[id] = true
	}
	m.depend(opts.DependsOn)
	for _, d := range opts.DependsOn {
		if on := m.jobs[d]; on != nil {
			on.dependents = append(on.dependents, id)
		}
	}
	if j.state == api.JobPending {
		j.first = j.whole()
	}
	m.jobs[id] = j
	j.score = m.scoreOf(id)
	m.to(j, j.state, j.at)
	return j
}

// depend marks jobs that a new job waits for. They are marked before the new job is stored,
// and so even if its unique key turns out to be taken.
func (m *model) depend(on []string) {
	for _, id := range on {
		if j := m.jobs[id]; j != nil {
			j.after = true
		}
	}
}

// to moves a job to a state that is not terminal.
func (m *model) to(j *modelJob, state api.JobState, at int64) {
	j.state, j.at = state, at
	if state == api.JobPending {
		j.place = max(j.score, m.queues[j.queue].cursors[j.opts.Priority.Rank()])
	}
}

func (m *model) ready(j *modelJob) {
	if j.opts.RunAtMS > m.now {
		m.to(j, api.JobScheduled, j.opts.RunAtMS)
	} else {
		m.to(j, api.JobPending, m.now)
	}
}

// end ends a job and handles the consequences.
func (m *model) end(j *modelJob, state api.JobState, reason string) {
	j.state, j.at = state, m.now
	if state == api.JobDead {
		j.dead = reason
	}
	if key := j.queue + "/" + j.opts.UniqueKey; m.uniques[key] == j.id {
		delete(m.uniques, key)
	}
}

func (m *model) finish(j *modelJob, state api.JobState, reason string) {
	m.end(j, state, reason)
	m.follow(j)
}

func (m *model) follow(j *modelJob) {
	if j.after && j.marked == j.queue {
		j.marked = ""
	}
	m.followChain(j)
	if b := m.batches[j.opts.BatchID]; b != nil {
		if j.state == api.JobCompleted {
			b.succeeded[j.id] = true
			delete(b.failed, j.id)
		} else {
			b.failed[j.id] = true
		}
		m.callback(j.opts.BatchID)
	}
	waiting := j.dependents
	j.dependents = nil
	for _, id := range waiting {
		if w := m.jobs[id]; w != nil && w.state == api.JobWaiting {
			m.release(w)
		}
	}
}

func (m *model) followChain(j *modelJob) {
	c := j.opts.Chain
	if c == nil {
		return
	}
	if j.state == api.JobCompleted && len(c.Steps) > 0 {
		rest := *c
		rest.Steps = c.Steps[1:]
		m.step(j, &c.Steps[0], &rest, "step")
		return
	}
	if j.state != api.JobCompleted {
		m.step(j, c.OnFailure, nil, "failure")
	}
	m.step(j, c.OnExit, nil, "exit")
}

func (m *model) step(j *modelJob, s *api.ChainStep, rest *api.Chain, kind string) {
	if s == nil {
		return
	}
	queue := cmp.Or(s.Queue, j.queue)
	opts := s.JobOptions
	opts.Chain = rest
	m.derive(api.DerivedJobID("chain", m.tenant, j.id, kind), queue, opts)
}

// derive makes a job of the platform, once.
func (m *model) derive(id, queue string, opts api.JobOptions) {
	if m.jobs[id] == nil {
		delete(m.gone, id)
		m.add(id, queue, opts)
	}
}

func (m *model) callback(batch string) {
	b := m.batches[batch]
	if b.sealed && !b.finished && len(b.jobs) == len(b.succeeded)+len(b.failed) {
		b.finished = true
		m.derive(api.DerivedJobID("callback", m.tenant, batch), "others", api.JobOptions{})
	}
}

// release moves a waiting job on if all jobs that it waits for have ended.
func (m *model) release(w *modelJob) {
	failed := false
	for _, d := range w.opts.DependsOn {
		switch on := m.jobs[d]; {
		case on == nil || on.state == api.JobCompleted:
		case on.state.Terminal():
			failed = true
		default:
			return
		}
	}
	switch policy := w.opts.OnDependencyFailure; {
	case failed && policy == api.DependencyHold:
		m.to(w, api.JobHeld, m.now)
	case !failed || policy == api.DependencyContinue:
		if w.opts.Hold {
			m.to(w, api.JobHeld, m.now)
		} else {
			m.ready(w)
		}
	default:
		m.finish(w, api.JobDead, api.DeadDependency)
	}
}

// in returns the jobs of a queue in a state, in the order of their index.
func (m *model) in(queue string, state api.JobState) (found []*modelJob) {
	for _, j := range m.jobs {
		if j.queue == queue && j.state == state {
			found = append(found, j)
		}
	}
	slices.SortFunc(found, func(a, b *modelJob) int {
		if state == api.JobPending {
			return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.id, b.id))
		}
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	})
	return found
}

// fetch claims up to n jobs of queues.
func (m *model) fetch(queues []string, worker string, n int, lease int64) (got []string) {
	for _, q := range queues {
		want := n - len(got)
		var from []string
		for try := 0; try < 8 && len(from) < want; try++ {
			pending := m.in(q, api.JobPending)
			pending = pending[:min(len(pending), (want-len(from))*(1+try))]
			room := m.room(q, want-len(from))
			if len(pending) == 0 || room == 0 {
				break
			}
			from = append(from, m.take(q, pending[:min(len(pending), room)], worker, lease)...)
		}
		got = append(got, from...)
		if len(got) == n {
			break
		}
	}
	return got
}

// room returns how many jobs the queue's limits allow.
func (m *model) room(q string, want int) int {
	c := m.queues[q]
	if c.paused {
		return 0
	}
	if c.most > 0 {
		want = min(want, int(c.most)-len(m.in(q, api.JobActive)))
	}
	if c.limit > 0 {
		used := int64(0)
		for tenth, n := range c.tenths {
			if n.last+c.window > m.now {
				used += n.count
			} else {
				delete(c.tenths, tenth)
			}
		}
		want = min(want, int(c.limit-used))
	}
	return max(0, want)
}

// take claims jobs as a broker does. It first claims those in front whose runs it knows
// from their specs, and then, with their runs read, the others. It leaves the others to the
// next try if it has ended an expired job: the end may have created a job that is served
// before them.
func (m *model) take(q string, jobs []*modelJob, worker string, lease int64) []string {
	known := slices.IndexFunc(jobs, func(j *modelJob) bool { return j.whole() != j.first })
	if known < 0 {
		return m.claim(q, jobs, worker, lease)
	}
	got := m.claim(q, jobs[:known], worker, lease)
	if len(got) == known {
		got = append(got, m.claim(q, jobs[known:], worker, lease)...)
	}
	return got
}

func (m *model) claim(q string, taken []*modelJob, worker string, lease int64) (got []string) {
	c := m.queues[q]
	touched := map[int]int64{}
	for _, j := range taken {
		touched[j.opts.Priority.Rank()] = j.place
		j.state, j.attempt, j.epoch, j.at, j.worker = api.JobActive, j.attempt+1, j.epoch+1, m.now+lease, fmt.Sprintf("%s@%d", worker, m.now)
	}
	if c.limit > 0 && len(taken) > 0 {
		tenth := m.now / (c.window / 10)
		c.tenths[tenth] = modelTenth{c.tenths[tenth].count + int64(len(taken)), m.now}
	}
	for rank, last := range touched {
		for _, j := range m.in(q, api.JobPending) {
			if j.opts.Priority.Rank() == rank {
				last = j.place
				break
			}
		}
		c.cursors[rank] = max(c.cursors[rank], last)
	}
	for _, j := range taken {
		if j.opts.ExpireAtMS > 0 && j.opts.ExpireAtMS <= m.now {
			j.attempt--
			m.finish(j, api.JobDead, api.DeadExpired)
			continue
		}
		got = append(got, j.id)
	}
	return got
}

// tend does the due work of a queue.
func (m *model) tend(q string) {
	for _, id := range m.ids() {
		j := m.jobs[id]
		if j.marked != q {
			continue
		}
		j.marked = ""
		switch {
		case j.state == api.JobWaiting:
			m.release(j)
		case j.state.Terminal():
			m.follow(j)
		}
	}
	for _, state := range []api.JobState{api.JobScheduled, api.JobRetrying} {
		for _, j := range m.in(q, state) {
			if j.at <= m.now {
				m.to(j, api.JobPending, m.now)
			}
		}
	}
	var ended []*modelJob
	for _, j := range m.in(q, api.JobActive) {
		if j.at > m.now {
			continue
		}
		j.errors++
		if j.attempt >= j.opts.MaxAttempts {
			m.end(j, api.JobDead, api.DeadCrashed)
			ended = append(ended, j)
		} else {
			m.to(j, api.JobPending, m.now)
		}
	}
	m.followAll(ended)
	m.expire(q)
	for _, state := range []api.JobState{api.JobCompleted, api.JobDead, api.JobCancelled} {
		for _, j := range m.in(q, state) {
			if j.at <= m.now-api.JobRetentionMS {
				m.remove(j)
			}
		}
	}
}

func (m *model) expire(q string) {
	var ended []*modelJob
	for _, state := range api.JobStates() {
		for _, j := range m.in(q, state) {
			if !state.Terminal() && state != api.JobActive && j.opts.ExpireAtMS > 0 && j.opts.ExpireAtMS <= m.now {
				m.end(j, api.JobDead, api.DeadExpired)
				ended = append(ended, j)
			}
		}
	}
	m.followAll(ended)
}

func (m *model) followAll(ended []*modelJob) {
	for _, j := range ended {
		m.follow(j)
	}
}

func (m *model) remove(j *modelJob) {
	delete(m.jobs, j.id)
	m.gone[j.id] = true
}

// ids returns the ids of all jobs, in an order that a seed reproduces.
func (m *model) ids() []string { return slices.Sorted(maps.Keys(m.jobs)) }
