// Package account decides how calls change the ledgers of jobs: the usage that they report, the
// iterations that they end, and the limits that are reached. Package queue makes the changes.
package account

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/queue/internal/consent"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage/approvals"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/spending"
)

// CheckUsage checks a report, whose entries need a sequence if numbered is set. CodeInvalid.
func CheckUsage(report []agent.Usage, numbered bool) error {
	if path, rule := agent.CheckReport(report, numbered); rule != "" {
		return api.InvalidField(path, rule)
	}
	return nil
}

// CheckAck checks the parts of an ack that only jobs with agent have, and its usage. CodeInvalid,
// CodeBodyLimit.
func CheckAck(a *api.JobAck, known *jobstore.Summary) error {
	switch {
	case len(a.Trace) > 0 && known.Agent == nil:
		return api.InvalidField("trace", "needs a job with agent")
	case len(a.Trace) > agent.MaxTraceBytes:
		return api.Errorf(api.CodeBodyLimit, "the trace of job %s has %s, the limit is %s", a.ID, api.SizeText(len(a.Trace)), api.SizeText(agent.MaxTraceBytes))
	case known.Agent != nil && (a.Continue || a.Hold != "") && len(a.Result) > agent.MaxResultBytes:
		return api.Errorf(api.CodeBodyLimit, "the result of an iteration of job %s has %s, the limit is %s", a.ID, api.SizeText(len(a.Result)), api.SizeText(agent.MaxResultBytes))
	}
	for field, raw := range map[string]json.RawMessage{"trace": a.Trace, "result": a.Result, "checkpoint": a.Checkpoint} {
		if known.Agent != nil && len(raw) > 0 && !json.Valid(raw) { // the stream passes any bytes
			return api.InvalidField(field, "must be JSON")
		}
	}
	return CheckUsage(a.Usage, false)
}

// Changes reports whether an ack changes the ledger of the job.
func Changes(a *api.JobAck, known *jobstore.Summary) bool {
	return len(a.Usage) > 0 || known.Agent != nil && (a.Continue || a.Hold != "" || len(a.Trace) > 0)
}

// KindOf returns how an ack settles its lease.
func KindOf(a *api.JobAck) string {
	switch {
	case a.Hold != "":
		return jobstore.SettledHold
	case a.Continue:
		return jobstore.SettledContinue
	}
	return jobstore.SettledAck
}

// Call is a call that may change the ledger of one job. A decision sets Status if it ends the current
// iteration; Limit does so, too.
type Call struct {
	ID     string
	Epoch  int64
	Usage  []agent.Usage // with costs, as far as there are prices
	Ack    *api.JobAck   // nil for other calls
	Status string
	// Budgets are those of the tenant, nil for none.
	Budgets *budgets.Set

	// Policies are those of the tenant that hold jobs for what they have spent, nil for none.
	Policies []approvals.Record

	asked     bool
	limited   bool
	added     []agent.Usage
	change    *jobstore.Change
	covers    []budgets.Cover
	overspent string
}

// Begin adds the usage of c to the ledger of r, before a decision on r at now. Usage of a lease that
// the job never had is not counted. repeated is set if it has all been counted before.
func (c *Call) Begin(r *jobstore.Record, now int64) (repeated bool) {
	c.Status, c.limited, c.asked, c.added, c.covers, c.overspent = "", false, false, nil, nil, ""
	c.change = &jobstore.Change{Before: r.Ledger.Version(), Ledger: r.Ledger}
	if c.Epoch > r.Run.Epoch {
		return false
	}
	c.added = r.Ledger.Add(c.Epoch, c.Usage)
	c.Cover(r, now)
	if len(c.added) == 0 {
		return len(c.Usage) > 0
	}
	spent := *r.Ledger
	s := spending.Spender{Namespace: r.Spec.Namespace, Queue: r.Spec.Queue, Tags: r.Spec.Tags}
	if r.Spec.Target != nil {
		s.Function = r.Spec.Target.Function
	}
	c.change.Spent, c.change.Rows = &spent, spending.Rows(s, c.added)
	return false
}

// Added returns the usage that the last Begin added.
func (c *Call) Added() []agent.Usage { return c.added }

// Finish returns m, the decision on r, with the change of the ledger. m is nil for none: the move then
// changes only the ledger, and is nil if there is nothing to count.
func (c *Call) Finish(r *jobstore.Record, m *jobstore.Move) *jobstore.Move {
	if m == nil && len(c.added) > 0 {
		m = r.Same()
	}
	if m == nil || len(c.added) == 0 && c.Status == "" && !c.limited && !c.asked && c.overspent == "" {
		return m
	}
	if c.Status != "" {
		c.change.Ended = c.ended(m)
		r.Ledger.End(r.Run.Epoch)
	}
	if c.limited {
		r.Ledger.Restart()
	}
	m.Ledger = c.change
	return m
}

// ended returns the record of the iteration that m ends.
func (c *Call) ended(m *jobstore.Move) *agent.Iteration {
	it := m.Record.Ledger.Spent()
	describe(&it, &m.Record.Run)
	it.Status, it.EndedAtMS = c.Status, m.To.At
	if m.Field == jobstore.FieldHoldReason {
		it.HoldReason = m.Value
	}
	if c.Ack != nil {
		it.Checkpoint, it.Trace = c.Ack.Checkpoint, c.Ack.Trace
		if len(c.Ack.Result) <= agent.MaxResultBytes {
			it.Result = c.Ack.Result
		}
	}
	return &it
}

// describe sets the attempt of an iteration, which is that of a run.
func describe(it *agent.Iteration, run *jobstore.Run) {
	it.Attempt, it.LeaseEpoch, it.StartedAtMS, it.WorkerID = run.Attempt, run.Epoch, run.Started, run.WorkerID()
}

// Limit returns m, or the move that ends or holds its job instead, if a limit of the job is reached at
// now. ending is set if m ends the current iteration.
func (c *Call) Limit(m *jobstore.Move, now int64, ending bool) *jobstore.Move {
	a, run := m.Record.Spec.Agent, &m.Record.Run
	if a == nil {
		return m
	}
	reason, words := m.Record.Ledger.Limit(a, ending)
	if reason == "" && TimedOut(m.Record, now) {
		reason, words = agent.DeadTimeout, fmt.Sprintf("the iteration took longer than %d ms", a.IterationTimeoutMS)
	}
	if reason == "" {
		return m
	}
	c.limited = true
	if m.Failure == nil && !ending {
		m.Failure = &api.JobError{Attempt: run.Attempt, AtMS: now, Error: words}
	}
	if a.OnLimit != agent.OnLimitHold {
		m.To.Attempt = run.Attempt
		return m.Dead(reason, now)
	}
	c.Status = cmp.Or(c.Status, agent.IterationHeld)
	m.To = m.To.To(api.JobHeld, now)
	if m.Record.Spec.Target == nil { // the record of an activation has the number of its attempt
		m.To.Attempt = 0
	}
	m.Field, m.Value = jobstore.FieldHoldReason, "agent: "+words
	return m
}

// TimedOut reports whether the attempt that runs takes longer than an iteration may.
func TimedOut(r *jobstore.Record, now int64) bool {
	end := timeoutOf(r)
	return r.Run.State == api.JobActive && end > 0 && now >= end
}

// timeoutOf returns when the attempt that runs has to end, in Unix milliseconds, 0 for never.
func timeoutOf(r *jobstore.Record) int64 {
	if a := r.Spec.Agent; a != nil && a.IterationTimeoutMS > 0 && r.Run.Started > 0 {
		return r.Run.Started + a.IterationTimeoutMS
	}
	return 0
}

// Extended returns the move that a heartbeat at now makes: it extends the lease of r, but not beyond the
// iteration's timeout.
func Extended(r *jobstore.Record, h *api.JobHeartbeat, now int64) (*jobstore.Move, error) {
	progress := ""
	if h.Progress != nil {
		raw, err := api.EncodeJSON(h.Progress)
		if err != nil {
			return nil, api.Wrap(api.CodeInternal, err, "encode progress")
		}
		progress = string(raw)
	}
	end := now + cmp.Or(h.LeaseMS, api.DefaultLeaseMS)
	if most := timeoutOf(r); most > 0 {
		end = min(end, most)
	}
	return r.Extended(end, progress, string(h.Checkpoint)), nil
}

// Shorter returns the heartbeats that end the leases of jobs, which were claimed for lease milliseconds,
// with their iterations, and the positions of those jobs. now is a Unix time in milliseconds.
func Shorter(jobs []api.FetchedJob, lease, now int64) (beats []*api.JobHeartbeat, at []int) {
	for i := range jobs {
		j := &jobs[i]
		if a := j.Spec.Agent; a != nil && a.IterationTimeoutMS > 0 && a.IterationTimeoutMS < lease {
			end := j.LeaseExpiresMS - lease + a.IterationTimeoutMS
			beats, at = append(beats, &api.JobHeartbeat{ID: j.ID, LeaseEpoch: j.LeaseEpoch, LeaseMS: end - now}), append(at, i)
		}
	}
	return beats, at
}

// Bounded returns m, or the move that ends or holds its job instead, if a policy asks for the approval of
// jobs that have spent so much, or a budget is exceeded at now. A policy comes first: the budgets are
// compared again when the job continues.
func (c *Call) Bounded(m *jobstore.Move, now int64) (*jobstore.Move, error) {
	if len(c.Policies) == 0 {
		return c.Overspent(m, now), nil
	}
	m, asked, err := consent.Spent(m, c.Policies, m.Record.Ledger.Total.CostUSD, now)
	if err != nil || asked {
		c.asked = asked
		return m, err
	}
	return c.Overspent(m, now), nil
}
