// Package consent decides when jobs are held for approval, and what votes and expiries do. Package queue
// makes the changes.
//
//	consent.go  Keeper: the policies that hold jobs
//	ballot.go   Ballot: a vote
//	end.go      the expiry of a request, and the retry of a job that was not approved
//
// A request is part of the spec of its job, so that each vote is a move of the job that writes run and
// spec by one command, and that is refused if the run has changed: of two votes at the same time, one is
// counted again on what the other has left.
package consent

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/approval/policy"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/approvals"
)

// Keeper holds jobs as the policies of their tenants say.
type Keeper struct {
	store    *storage.Store
	policies *approvals.Repository
}

// New returns a Keeper of the policies in repository.
func New(store *storage.Store, repository *approvals.Repository) *Keeper {
	return &Keeper{store: store, policies: repository}
}

// jobOf returns what policies compare of a job.
func jobOf(namespace, queue string, spec *api.JobSpec) *policy.Job {
	j := &policy.Job{Namespace: namespace, Queue: queue, Function: event.FunctionOf(queue), Tags: spec.Tags}
	if spec.Target != nil {
		j.Function = spec.Target.Function
	}
	return j
}

// Admit holds those of specs, new jobs of q, that a policy selects, until the policies approve. Errors:
// CodeStoreUnavailable.
func (k *Keeper) Admit(ctx context.Context, q jobstore.Queue, specs []*api.JobSpec) error {
	records, err := k.policies.Of(ctx, q.Tenant)
	if err != nil || len(records) == 0 {
		return err
	}
	for _, spec := range specs {
		j, by := jobOf(q.Namespace, q.Name, spec), cmp.Or(author(spec), event.ActorOf(ctx))
		if asked := ask(nil, records, j, by); asked != nil {
			spec.Approval, spec.Hold = asked, true
		} else if slices.ContainsFunc(records, func(r approvals.Record) bool { return r.Match.MinCostUSD != nil && r.Covers(j) }) {
			spec.Approval = &approval.Request{Requester: by} // for when it has spent so much
		}
	}
	return nil
}

// author returns the key for which a job runs functions, "" if it is unknown.
func author(spec *api.JobSpec) string {
	sub := ""
	if spec.By != nil {
		sub = spec.By.Principal.Sub
	}
	if spec.Activation != nil {
		sub = cmp.Or(sub, spec.Activation.Principal.Sub)
	}
	return sub
}

// ask returns held with the rules of those policies that select a job at its enqueue and have not asked
// yet, nil if there are none.
func ask(held *approval.Request, records []approvals.Record, j *policy.Job, by string) *approval.Request {
	var rules []approval.Rule
	for i := range records {
		if r := &records[i]; r.Match.MinCostUSD == nil && r.Covers(j) && !held.Has(r.ID) {
			rules = append(rules, r.Rule(r.ID, r.Name))
		}
	}
	if len(rules) == 0 {
		return nil
	}
	out := held.Clone()
	out.Requester = cmp.Or(out.Requester, by)
	return add(out, rules)
}

// add returns r, which it changes, with further rules, the first of which is asked for unless another one
// is.
func add(r *approval.Request, rules []approval.Rule) *approval.Request {
	if r.State != approval.Pending {
		r.Step, r.Round, r.State, r.Approved, r.DecidedMS, r.DecidedBy, r.SinceMS = len(r.Rules), r.Round+1, approval.Pending, false, 0, "", 0
	}
	r.Rules = append(r.Rules, rules...)
	return r
}

// Moved returns the request of r, a job that is going to another queue, and whether policies of that queue
// ask for it. Errors: CodeStoreUnavailable.
func (k *Keeper) Moved(ctx context.Context, r *jobstore.Record, to jobstore.Queue) (*approval.Request, error) {
	records, err := k.policies.Of(ctx, to.Tenant)
	if err != nil {
		return nil, err
	}
	return ask(r.Spec.Approval, records, jobOf(to.Namespace, to.Name, r.Spec), ""), nil
}

// Screen holds those of jobs, which were just claimed from q, that a policy selects by the function that is
// going to run them: the function of a queue's trigger is not known when its jobs are enqueued. It returns
// the others. A job that could not be held is left out: it is claimed again when its lease ends.
func (k *Keeper) Screen(ctx context.Context, q jobstore.Queue, function string, jobs []api.FetchedJob, change Change) (kept []api.FetchedJob, err error) {
	records, err := k.policies.Of(ctx, q.Tenant)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(records, func(r approvals.Record) bool { return r.Match.Function == function }) {
		return jobs, nil
	}
	var errs []error
	for i := range jobs {
		j := &policy.Job{Namespace: q.Namespace, Queue: q.Name, Function: function, Tags: jobs[i].Tags}
		if ask(nil, records, j, "") == nil {
			kept = append(kept, jobs[i])
			continue
		}
		held, err := k.hold(ctx, q, j, &jobs[i], records, change)
		errs = append(errs, err)
		if !held && err == nil {
			kept = append(kept, jobs[i])
		}
	}
	return kept, errors.Join(errs...)
}

// hold holds a job that was just claimed, unless the policies that select it have approved it. gone reports
// whether the job must not run.
func (k *Keeper) hold(ctx context.Context, q jobstore.Queue, j *policy.Job, claimed *api.FetchedJob, records []approvals.Record, change Change) (gone bool, err error) {
	_, err = change(ctx, q.Tenant, claimed.ID, func(r *jobstore.Record) (*jobstore.Move, error) {
		gone = r.Run.State != api.JobActive || r.Run.Epoch != claimed.LeaseEpoch
		asked := ask(r.Spec.Approval, records, j, author(r.Spec))
		if gone || asked == nil {
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		}
		gone = true
		m := &jobstore.Move{Record: r, To: r.Run.To(api.JobHeld, k.store.NowMS())}
		m.To.Attempt--
		return withRequest(m, asked)
	})
	return gone, err
}

// Change makes the move that decide returns for a job: queue.Broker's method.
type Change = func(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (*jobstore.Record, error)

// Costly returns the policies of a tenant that hold jobs for what they have spent. Errors:
// CodeStoreUnavailable.
func (k *Keeper) Costly(ctx context.Context, tenant string) ([]approvals.Record, error) {
	records, err := k.policies.Of(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var out []approvals.Record
	for i := range records {
		if records[i].Match.MinCostUSD != nil {
			out = append(out, records[i])
		}
	}
	return out, nil
}

// Spent returns m, the decision on a call that reported usage, or the move that holds its job instead,
// and reports that, if policies of records ask for jobs that have spent so much.
func Spent(m *jobstore.Move, records []approvals.Record, total agent.USD, now int64) (*jobstore.Move, bool, error) {
	if m.To.State.Terminal() || m.To.State == api.JobHeld {
		return m, false, nil
	}
	r := m.Record
	j, held := jobOf(r.Spec.Namespace, r.Spec.Queue, r.Spec), r.Spec.Approval
	var rules []approval.Rule
	for i := range records {
		if rec := &records[i]; total >= *rec.Match.MinCostUSD && rec.Covers(j) && !held.Has(rec.ID) {
			rule := rec.Rule(rec.ID, rec.Name)
			rule.CostUSD = &total
			rules = append(rules, rule)
		}
	}
	if len(rules) == 0 {
		return m, false, nil
	}
	if m.To.State == api.JobActive && r.Spec.Target == nil {
		m.To.Attempt--
	}
	m.To = m.To.To(api.JobHeld, now)
	asked := held.Clone()
	asked.Requester = cmp.Or(asked.Requester, author(r.Spec))
	m.Field, m.Value = jobstore.FieldHoldReason, "approval: policy "+rules[0].Policy+": spent "+total.String()+" USD"
	m, err := withRequest(m, add(asked, rules))
	return m, true, err
}

// withRequest returns m, which writes the request, too.
func withRequest(m *jobstore.Move, request *approval.Request) (*jobstore.Move, error) {
	spec := *m.Record.Spec
	if m.Spec != "" {
		changed, err := jobstore.DecodeSpec(m.Spec)
		if err != nil {
			return nil, api.Wrap(api.CodeInternal, err, "decode a job")
		}
		spec = *changed
	}
	spec.Approval = request
	var err error
	m.Spec, err = jobstore.EncodeSpec(&spec)
	if err != nil {
		return nil, api.Wrap(api.CodeInternal, err, "encode a job")
	}
	return m, nil
}
