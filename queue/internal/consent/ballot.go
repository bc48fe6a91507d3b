package consent

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Standing is a key in whose name a vote may be cast: the voter itself, or one that delegated its vote.
type Standing struct {
	Key       string
	Roles     []string
	Namespace string // the only one in which it has a vote, "" for all
	// Of is the key or the role that delegated the vote, "" for the voter itself. A role that was
	// delegated is the only one in Roles.
	Of string
}

// Ballot is a vote on the approval of a job.
type Ballot struct {
	Approved  bool
	Comment   string
	Key, Name string // of the voter
	Standings []Standing
	// Steers is set if the voter may decide on jobs that no policy holds.
	Steers bool
	// Unrestricted is set where callers cannot be told apart: rules do not restrict them.
	Unrestricted bool
	// Payload replaces that of the job, nil keeps it. Patch has it merged (RFC 7396) instead.
	Payload json.RawMessage
	Patch   bool
	// Check checks the payload that an approval has changed, and whether the voter may enqueue it.
	Check func(r *jobstore.Record, payload json.RawMessage) error
	// Round is that of the vote, 0 for the present one.
	Round int
	Link  string // for whom the link was made by which the vote came, "" for none
}

// decision returns the word of the ballot.
func (b *Ballot) decision() string {
	if b.Approved {
		return approval.VoteApprove
	}
	return approval.VoteReject
}

// Move returns the move that counts b for r at now, nil if the same key has cast the same vote before.
// Errors: CodeJobState if nothing is to be decided, CodeApprovalDenied, CodeInvalid.
func (b *Ballot) Move(r *jobstore.Record, now int64) (*jobstore.Move, error) {
	asked := r.Spec.Approval
	if r.Run.State != api.JobHeld {
		return nil, b.repeated(r)
	}
	if !asked.Waits() { // no policy asks
		asked = asked.Clone()
		asked.State, asked.Step, asked.Round = approval.Pending, len(asked.Rules), asked.Round+1
		asked.Approved, asked.DecidedMS, asked.DecidedBy, asked.Changed = false, 0, "", false
	} else {
		asked = asked.Clone()
	}
	if b.Round != 0 && b.Round != asked.Round {
		return nil, api.Errorf(api.CodeJobState, "the approval of job %s was decided: it is asked for again", r.ID)
	}
	if earlier := asked.Own(b.Key); earlier != nil && b.Key != "" {
		if earlier.Decision == b.decision() {
			return nil, nil //nolint:nilnil // documented: a repeat
		}
		return nil, api.Errorf(api.CodeJobState, "the key %s has voted to %s job %s", b.Key, earlier.Decision, r.ID)
	}
	vote, err := b.vote(r, asked, now)
	if err != nil {
		return nil, err
	}
	if len(b.Payload) > 0 && !b.Approved {
		return nil, api.InvalidField("payload", "must be left out of a rejection")
	}
	asked.Add(vote)
	return b.count(r, asked, now)
}

// repeated returns nil for a vote that was counted, and that decided.
func (b *Ballot) repeated(r *jobstore.Record) error {
	asked := r.Spec.Approval
	if asked != nil && b.Key != "" && asked.State != approval.Pending && (b.Round == 0 || b.Round == asked.Round) && len(b.Standings) > 0 {
		if earlier := asked.Own(b.Key); earlier != nil && earlier.Decision == b.decision() {
			return nil
		}
	}
	word := "approved"
	if !b.Approved {
		word = "rejected"
	}
	return api.Errorf(api.CodeJobState, "job %s is %s: it cannot be %s", r.ID, r.Run.State, word)
}

// vote returns the vote of b, in the name of the first standing that has one. Errors: CodeApprovalDenied.
func (b *Ballot) vote(r *jobstore.Record, asked *approval.Request, now int64) (*approval.Vote, error) {
	rule := asked.Rule()
	out := &approval.Vote{Round: asked.Round, Key: b.Key, Name: b.Name, Decision: b.decision(), Comment: b.Comment, AtMS: now, Link: b.Link}
	switch {
	case b.Unrestricted:
		if rule != nil {
			out.As = rule.Approvers
		}
		return out, nil
	case rule == nil || len(rule.Approvers) == 0:
		if !b.Steers && rule == nil {
			return nil, api.Errorf(api.CodeApprovalDenied, "job %s is held by no policy: its approval needs the action cs:job:steer", r.ID)
		}
		if rule == nil || !rule.Separate || asked.Requester == "" || asked.Requester != b.Key {
			if len(b.Standings) > 0 || rule == nil {
				return out, nil
			}
			return nil, denied(r, rule)
		}
		return nil, selfApproval(r, rule)
	}
	var refusal error
	for i := range b.Standings {
		s := &b.Standings[i]
		if s.Namespace != "" && s.Namespace != r.Spec.Namespace {
			continue
		}
		as := slices.DeleteFunc(slices.Clone(rule.Approvers), func(name string) bool {
			return name != s.Key && !slices.Contains(s.Roles, name)
		})
		switch {
		case len(as) == 0:
			continue
		case rule.Separate && asked.Requester != "" && (asked.Requester == b.Key || asked.Requester == s.Key):
			refusal = selfApproval(r, rule)
			continue
		case asked.Taken(cmp.Or(s.Of, b.Key)):
			refusal = api.Errorf(api.CodeJobState, "the vote of %s on job %s has been cast", cmp.Or(s.Of, b.Key), r.ID)
			continue
		}
		out.As, out.OnBehalfOf = as, s.Of
		return out, nil
	}
	if refusal != nil {
		return nil, refusal
	}
	return nil, denied(r, rule)
}

func denied(r *jobstore.Record, rule *approval.Rule) error {
	return api.Errorf(api.CodeApprovalDenied, "the key is none of the approvers of policy %s, which holds job %s; those vote at approvals/%s", rule.Policy, r.ID, r.ID)
}

func selfApproval(r *jobstore.Record, rule *approval.Rule) error {
	return api.Errorf(api.CodeApprovalDenied, "policy %s asks another key than the one that enqueued job %s", rule.Policy, r.ID)
}

// count returns the move that writes asked, the request of r with the vote of b, and what it decides.
func (b *Ballot) count(r *jobstore.Record, asked *approval.Request, now int64) (*jobstore.Move, error) {
	if len(b.Payload) > 0 {
		changed, err := b.changed(r, asked)
		if err != nil {
			return nil, err
		}
		r, asked.Changed = changed, true
	}
	decision := asked.Tally()
	if decision == "" {
		return b.pending(r, asked)
	}
	return decide(r, asked, Decision{State: decision, Approved: decision == approval.Approved, By: b.Key, Comment: b.Comment}, now)
}

// changed returns r with the payload that b sets. Only the first vote on a job that has not begun may
// change it: others have voted on what it was. Errors: CodeJobState, CodeInvalid, those of Check.
func (b *Ballot) changed(r *jobstore.Record, asked *approval.Request) (*jobstore.Record, error) {
	others := slices.ContainsFunc(asked.Votes, func(v approval.Vote) bool { return v.Round == asked.Round && v.Key != b.Key })
	switch {
	case r.Run.Started > 0:
		return nil, api.Errorf(api.CodeJobState, "job %s has begun: its payload cannot be changed", r.ID)
	case others || asked.Step > 0:
		return nil, api.Errorf(api.CodeJobState, "others have voted on the payload of job %s: only the first vote may change it", r.ID)
	}
	payload := b.Payload
	if b.Patch {
		var err error
		payload, err = merged(r.Spec.Payload, payload)
		if err != nil {
			return nil, err
		}
	}
	if err := b.Check(r, payload); err != nil {
		return nil, err
	}
	out, spec := *r, *r.Spec
	spec.Payload = payload
	out.Spec = &spec
	return &out, nil
}

// pending returns the move that writes asked and leaves the job held. The epoch changes the run, so that
// concurrent decisions on the job are made again.
func (b *Ballot) pending(r *jobstore.Record, asked *approval.Request) (*jobstore.Move, error) {
	m := &jobstore.Move{Record: r, To: r.Run}
	m.To.Epoch++
	return withRequest(m, asked)
}

// Decision is the decision of a request.
type Decision struct {
	State    approval.State
	Approved bool
	By       string // the key with the decisive vote, or approval.ByExpiry
	Comment  string
}

// decide returns the move that ends the request asked of r, or asks for the next of its rules.
func decide(r *jobstore.Record, asked *approval.Request, d Decision, now int64) (*jobstore.Move, error) {
	if d.Approved && asked.Step+1 < len(asked.Rules) {
		asked.Step++
		asked.Round++
		m := &jobstore.Move{Record: r, To: r.Run.To(api.JobHeld, now), Decision: d.State, Asks: true}
		m.To.Epoch++
		return withRequest(m, asked)
	}
	asked.State, asked.Approved, asked.SinceMS, asked.DecidedMS, asked.DecidedBy = d.State, d.Approved, r.Run.At, now, d.By
	var m *jobstore.Move
	switch {
	case r.Run.AwaitsApproval():
		var err error
		m, err = r.Decided(d.Approved, d.Comment, d.By, voters(asked), now)
		if err != nil {
			return nil, err
		}
	case d.Approved:
		m = &jobstore.Move{Record: r, To: r.Ready(now)}
	default:
		m = (&jobstore.Move{Record: r, To: r.Run}).Dead(api.DeadRejected, now)
	}
	m.Decision = d.State
	return withRequest(m, asked)
}

// voters returns the names of those who voted in the present round of a request.
func voters(asked *approval.Request) (names []string) {
	for i := range asked.Votes {
		v := &asked.Votes[i]
		name := cmp.Or(v.Link, v.Name, v.Key)
		if v.Round == asked.Round && name != "" { // without authentication, callers have no names
			names = append(names, name)
		}
	}
	return names
}

// maxDepth bounds the depth of a patch.
const maxDepth = 64

// merged returns a payload with a patch in the form of RFC 7396. CodeInvalid.
func merged(payload, patch json.RawMessage) (json.RawMessage, error) {
	out, err := merge(payload, patch, 0)
	if err != nil {
		return nil, api.InvalidField("patch", err.Error())
	}
	return out, nil
}

// merge is merged at a depth. Numbers keep their text.
func merge(target, patch json.RawMessage, depth int) (json.RawMessage, error) {
	if depth > maxDepth {
		return nil, errors.New("must have a depth of at most 64")
	}
	var changes map[string]json.RawMessage
	if json.Unmarshal(patch, &changes) != nil || changes == nil {
		if !json.Valid(patch) {
			return nil, errors.New("must be JSON")
		}
		return patch, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(target, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for name, change := range changes {
		if string(change) == "null" {
			delete(fields, name)
			continue
		}
		value, err := merge(fields[name], change, depth+1)
		if err != nil {
			return nil, err
		}
		fields[name] = value
	}
	return api.EncodeJSON(fields)
}

// May reports whether b would be counted for r: the voter may vote, and has not voted.
func (b *Ballot) May(r *jobstore.Record) bool {
	probe := *b
	probe.Approved, probe.Payload = true, nil
	m, err := probe.Move(r, r.Run.At)
	return err == nil && m != nil
}
