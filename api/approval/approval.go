// Package approval defines the approvals of held jobs: the rules that policies set, the votes of API
// keys, and how votes decide. It has no policies themselves: package policy has those.
package approval

import (
	"encoding/json"
	"slices"

	"github.com/codesous/sous/api/agent"
)

// State is the state of a request.
type State string

// The states of a request. One that expired has the decision of its rule in Approved.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Rejected State = "rejected"
	Expired  State = "expired"
)

// The modes of a rule: which votes approve.
const (
	ModeAny   = "any"   // one vote
	ModeAll   = "all"   // a vote for each of the approvers, each by another key
	ModeCount = "count" // Count votes
)

// What happens when a request expires.
const (
	OnExpiryReject  = "reject"
	OnExpiryApprove = "approve"
	OnExpiryKeep    = "keep" // it stays pending
)

// Decisions of votes.
const (
	VoteApprove = "approve"
	VoteReject  = "reject"
)

// Limits of approvals.
const (
	MaxApprovers    = 16
	MaxVotes        = 64   // that a job keeps
	MaxCommentBytes = 1024 // of a vote
	MaxMessageBytes = 1024 // of a rule
)

// ByExpiry stands for the key in requests that their expiry decided.
const ByExpiry = "expiry"

// Rule is what a policy asked for when it held a job. A later change of the policy does not change it.
type Rule struct {
	PolicyID       string     `json:"policy_id"`
	Policy         string     `json:"policy"`
	Message        string     `json:"message,omitempty"`
	Mode           string     `json:"mode"`
	Count          int        `json:"count,omitempty"`
	Rejections     int        `json:"rejections,omitempty"` // how many votes reject; 0 stands for 1
	Approvers      []string   `json:"approvers,omitempty"`  // roles and ids of keys; none for every key that may decide
	Separate       bool       `json:"separate,omitempty"`   // the requester has no vote
	ExpiresAfterMS int64      `json:"expires_after_ms,omitempty"`
	OnExpiry       string     `json:"on_expiry,omitempty"`
	CostUSD        *agent.USD `json:"cost_usd,omitempty"` // what the job had spent when the policy held it
}

// Vote is the vote of a key.
type Vote struct {
	Round      int      `json:"round"`
	Key        string   `json:"key"`
	Name       string   `json:"name,omitempty"` // of the key
	Decision   string   `json:"decision" enum:"approve,reject"`
	Comment    string   `json:"comment,omitempty"`
	AtMS       int64    `json:"at_ms"`
	OnBehalfOf string   `json:"on_behalf_of,omitempty" doc:"the key or the role that delegated the vote"`
	As         []string `json:"as,omitempty" doc:"those of the approvers for which the vote counts"`
	Link       string   `json:"link,omitempty" doc:"for whom the link was made by which the vote came"`
}

// voter returns whose vote it is: of the delegator, if it was delegated.
func (v *Vote) voter() string {
	if v.OnBehalfOf != "" {
		return v.OnBehalfOf
	}
	return v.Key
}

// Request asks for the approval of a held job. It is part of the spec of the job, so that it changes
// together with the state of the job. A job can be asked for several times: each time is a round.
type Request struct {
	// Rules are those of all policies that have asked, Rules[Step] the present one. A request without
	// rules is decided by one vote.
	Rules     []Rule `json:"rules,omitempty"`
	Step      int    `json:"step,omitempty"`
	Round     int    `json:"round"`
	State     State  `json:"state"`
	Approved  bool   `json:"approved,omitempty"`
	Requester string `json:"requester,omitempty"` // the key that enqueued the job
	Votes     []Vote `json:"votes,omitempty"`
	SinceMS   int64  `json:"since_ms,omitempty"` // of one that is decided: when it was made
	DecidedMS int64  `json:"decided_at_ms,omitempty"`
	DecidedBy string `json:"decided_by,omitempty"` // the key with the last vote, or ByExpiry
	Changed   bool   `json:"payload_changed,omitempty"`
}

// Waits reports whether the policies that have asked have not all approved.
func (r *Request) Waits() bool { return r != nil && r.State == Pending }

// Blocks reports whether a retry of the job has to ask again: it ended before all policies approved it.
func (r *Request) Blocks() bool { return r.Rule() != nil && !r.Approved }

// Rule returns the rule that is asked for, nil for none.
func (r *Request) Rule() *Rule {
	if r == nil || r.Step >= len(r.Rules) {
		return nil
	}
	return &r.Rules[r.Step]
}

// Has reports whether a policy has asked.
func (r *Request) Has(policyID string) bool {
	return r != nil && slices.ContainsFunc(r.Rules, func(rule Rule) bool { return rule.PolicyID == policyID })
}

// Clone returns a copy whose rules and votes can be changed; of nil a request without rules.
func (r *Request) Clone() *Request {
	if r == nil {
		return &Request{}
	}
	out := *r
	out.Rules, out.Votes = slices.Clone(r.Rules), slices.Clone(r.Votes)
	return &out
}

// Add appends vote, and forgets the oldest votes beyond MaxVotes.
func (r *Request) Add(v *Vote) {
	r.Votes = append(r.Votes, *v)
	if n := len(r.Votes) - MaxVotes; n > 0 {
		r.Votes = slices.Delete(r.Votes, 0, n)
	}
}

// Own returns the vote of a key in the present round, nil for none.
func (r *Request) Own(key string) *Vote {
	for i := range r.Votes {
		if r.Votes[i].Round == r.Round && r.Votes[i].Key == key {
			return &r.Votes[i]
		}
	}
	return nil
}

// Taken reports whether the vote of a key or role has been cast in the present round, by itself or by a
// delegate.
func (r *Request) Taken(voter string) bool {
	return slices.ContainsFunc(r.Votes, func(v Vote) bool { return v.Round == r.Round && v.voter() == voter })
}

// Required returns how many votes approve.
func (rule *Rule) Required() int {
	switch {
	case rule == nil || rule.Mode == ModeAny:
		return 1
	case rule.Mode == ModeAll:
		return max(1, len(rule.Approvers))
	}
	return max(1, rule.Count)
}

// Tally returns the decision of the votes of the present round, "" for none yet.
func (r *Request) Tally() State {
	rule := r.Rule()
	var approving []Vote
	rejecting, rejections := 0, 1
	if rule != nil {
		rejections = max(1, rule.Rejections)
	}
	for i := range r.Votes {
		switch v := &r.Votes[i]; {
		case v.Round != r.Round:
		case v.Decision == VoteApprove:
			approving = append(approving, *v)
		default:
			rejecting++
		}
	}
	switch {
	case rejecting >= rejections:
		return Rejected
	case rule != nil && rule.Mode == ModeAll && len(rule.Approvers) > 0:
		if covered(rule.Approvers, approving) {
			return Approved
		}
		return ""
	case len(approving) >= rule.Required():
		return Approved
	}
	return ""
}

// covered reports whether each of the approvers can be assigned a vote of its own that counts for it.
func covered(approvers []string, votes []Vote) bool {
	of := make([]int, len(votes)) // the approver to which a vote is assigned, from 1; 0 for none
	var assign func(approver int, seen []bool) bool
	assign = func(approver int, seen []bool) bool {
		for i := range votes {
			if seen[i] || !slices.Contains(votes[i].As, approvers[approver]) {
				continue
			}
			seen[i] = true
			if of[i] == 0 || assign(of[i]-1, seen) {
				of[i] = approver + 1
				return true
			}
		}
		return false
	}
	for i := range approvers {
		if !assign(i, make([]bool, len(votes))) {
			return false
		}
	}
	return true
}

// ExpiresMS returns when a pending request of a job that is held since then expires, 0 for never.
func (r *Request) ExpiresMS(since int64) int64 {
	rule := r.Rule()
	if !r.Waits() || rule == nil || rule.ExpiresAfterMS == 0 || rule.OnExpiry == OnExpiryKeep {
		return 0
	}
	return since + rule.ExpiresAfterMS
}

// Item is an approval as the API shows it.
type Item struct {
	ID          string            `json:"id" doc:"that of the job"`
	Round       int               `json:"round" doc:"how often the job has been asked for, with this time"`
	State       State             `json:"state" enum:"pending,approved,rejected,expired"`
	Namespace   string            `json:"namespace"`
	Queue       string            `json:"queue"`
	Function    string            `json:"function,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	Policy      string            `json:"policy,omitempty" doc:"left out for a job that no policy holds"`
	Message     string            `json:"message,omitempty" doc:"that of the policy, or why the job is held"`
	Mode        string            `json:"mode" enum:"any,all,count"`
	Required    int               `json:"required" doc:"how many votes approve"`
	Approvers   []string          `json:"approvers,omitempty"`
	Separate    bool              `json:"separate,omitempty"`
	Requester   string            `json:"requester,omitempty" doc:"the key that enqueued the job"`
	CostUSD     *agent.USD        `json:"cost_usd,omitempty" doc:"what the job had spent when it was held for its cost"`
	Votes       []Vote            `json:"votes" doc:"of this round"`
	CreatedAtMS int64             `json:"created_at_ms"`
	ExpiresAtMS int64             `json:"expires_at_ms,omitempty"`
	OnExpiry    string            `json:"on_expiry,omitempty" enum:"approve,reject,keep"`
	DecidedAtMS int64             `json:"decided_at_ms,omitempty"`
	DecidedBy   string            `json:"decided_by,omitempty" doc:"the key with the decisive vote, or expiry"`
	Approved    bool              `json:"approved,omitempty" doc:"what an expired approval has decided"`
	Changed     bool              `json:"payload_changed,omitempty" doc:"the approval has changed the payload"`
	Payload     json.RawMessage   `json:"payload,omitempty" doc:"of the job; not in lists"`
}

// Approving returns how many votes approve.
func (i *Item) Approving() int {
	n := 0
	for at := range i.Votes {
		if i.Votes[at].Decision == VoteApprove {
			n++
		}
	}
	return n
}

// Holding is how a job is held, for its Item.
type Holding struct {
	Held    bool
	SinceMS int64
	Reason  string
}

// View returns the state of r, the request of a job, nil for none. ok is false if the job has no
// approval: it is not held, and no request of it has been decided.
func View(r *Request, h Holding) (out Item, ok bool) {
	if !h.Held && (r == nil || r.State == Pending || r.State == "") {
		return out, false
	}
	seen := r.Clone()
	if h.Held && seen.State != Pending { // held again, without a policy
		seen = &Request{Round: seen.Round + 1, State: Pending, Step: len(seen.Rules), Rules: seen.Rules, Requester: seen.Requester}
	}
	out = Item{
		Round: seen.Round, State: seen.State, Mode: ModeAny, Required: 1, Requester: seen.Requester, Votes: []Vote{}, CreatedAtMS: seen.SinceMS,
		DecidedAtMS: seen.DecidedMS, DecidedBy: seen.DecidedBy, Approved: seen.Approved, Changed: seen.Changed, Message: h.Reason,
	}
	if h.Held {
		out.CreatedAtMS, out.Approved = h.SinceMS, false
	}
	for i := range seen.Votes {
		if seen.Votes[i].Round == seen.Round {
			out.Votes = append(out.Votes, seen.Votes[i])
		}
	}
	rule := seen.Rule()
	if rule == nil {
		return out, true
	}
	out.Policy, out.Mode, out.Required, out.Approvers = rule.Policy, rule.Mode, rule.Required(), rule.Approvers
	out.Separate, out.CostUSD = rule.Separate, rule.CostUSD
	out.ExpiresAtMS = seen.ExpiresMS(h.SinceMS)
	if rule.ExpiresAfterMS > 0 {
		out.OnExpiry = rule.OnExpiry
	}
	if rule.Message != "" {
		out.Message = rule.Message
	}
	return out, true
}
