package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/approval/policy"
)

// ApprovalList selects approvals.
type ApprovalList struct {
	PageOptions
	State string // "" for pending
	Queue string // "" for all
	Mine  bool   // only those on which the caller may vote, and has not
}

// Approvals returns one page of approvals.
func (t *Tenant) Approvals(ctx context.Context, l ApprovalList) (api.Page[approval.Item], error) {
	query := l.query()
	if query == nil {
		query = url.Values{}
	}
	if l.State != "" {
		query.Set("state", l.State)
	}
	if l.Queue != "" {
		query.Set("queue", l.Queue)
	}
	if l.Mine {
		query.Set("mine", "true")
	}
	var out api.Page[approval.Item]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("approvals"), query: query}, nil, &out)
	return out, err
}

// Approval returns the approval of a held job. CodeApprovalNotFound.
func (t *Tenant) Approval(ctx context.Context, id string) (approval.Item, error) {
	var out approval.Item
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("approvals", id)}, nil, &out)
	return out, err
}

// Vote is a vote on an approval.
type Vote struct {
	Approve bool            `json:"-"`
	Comment string          `json:"comment,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"` // replaces that of the job
	Patch   json.RawMessage `json:"patch,omitempty"`   // changes the payload, as RFC 7396 says
}

// Vote votes on an approval, and returns it. CodeApprovalNotFound, CodeApprovalDenied, CodeJobState.
func (t *Tenant) Vote(ctx context.Context, id string, v Vote) (approval.Item, error) {
	verb := ":reject"
	if v.Approve {
		verb = ":approve"
	}
	var out approval.Item
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("approvals", id) + verb}, v, &out)
	return out, err
}

// MakeLink makes a link by which somebody without a key votes once. CodeApprovalNotFound, CodeJobState,
// CodeCapacityLimit.
func (t *Tenant) MakeLink(ctx context.Context, id string, n approval.NewVoteLink) (approval.VoteLink, error) {
	var out approval.VoteLink
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("approvals", id) + ":link"}, n, &out)
	return out, err
}

// Links returns the links for votes that have not ended, without their paths.
func (t *Tenant) Links(ctx context.Context) ([]approval.VoteLink, error) {
	var out struct {
		Links []approval.VoteLink `json:"links"`
	}
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("approval-links")}, nil, &out)
	return out.Links, err
}

// EndLink ends a link. CodeApprovalNotFound, CodeAuthzDenied.
func (t *Tenant) EndLink(ctx context.Context, id string) error {
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("approval-links", id)}, nil, nil)
	return err
}

// ApprovalPolicies returns the approval policies of the tenant by name.
func (t *Tenant) ApprovalPolicies(ctx context.Context) ([]policy.Policy, error) {
	var out struct {
		Policies []policy.Policy `json:"policies"`
	}
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("approval-policies")}, nil, &out)
	return out.Policies, err
}

// PutApprovalPolicy creates an approval policy or replaces its settings. CodeInvalid, CodeCapacityLimit.
func (t *Tenant) PutApprovalPolicy(ctx context.Context, name string, s policy.Rules) (policy.Policy, error) {
	var out policy.Policy
	_, err := t.c.call(ctx, &request{method: http.MethodPut, path: t.path("approval-policies", name)}, s, &out)
	return out, err
}

// DeleteApprovalPolicy deletes an approval policy. CodeApprovalNotFound.
func (t *Tenant) DeleteApprovalPolicy(ctx context.Context, name string) error {
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("approval-policies", name)}, nil, nil)
	return err
}

// Delegate lets another key vote until a Unix time in milliseconds, in the place of from: a key, a role, or
// "" for the caller's key. CodeInvalid, CodeAuthzDenied.
func (t *Tenant) Delegate(ctx context.Context, from, to string, untilMS int64) (policy.Delegation, error) {
	body := struct {
		From    string `json:"from,omitempty"`
		To      string `json:"to"`
		UntilMS int64  `json:"until_ms"`
	}{from, to, untilMS}
	var out policy.Delegation
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("approval-delegations")}, body, &out)
	return out, err
}

// Delegations returns the delegations of votes that have not ended.
func (t *Tenant) Delegations(ctx context.Context) ([]policy.Delegation, error) {
	var out struct {
		Delegations []policy.Delegation `json:"delegations"`
	}
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("approval-delegations")}, nil, &out)
	return out.Delegations, err
}

// EndDelegation ends a delegation. CodeApprovalNotFound, CodeAuthzDenied.
func (t *Tenant) EndDelegation(ctx context.Context, id string) error {
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("approval-delegations", id)}, nil, nil)
	return err
}
