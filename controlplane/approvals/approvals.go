// Package approvals serves the approvals of held jobs, the policies by which jobs are held, and the
// delegations of votes. queue/approvals counts votes, storage/approvals keeps policies and delegations.
//
//	approvals.go    New; the inbox and votes
//	caller.go       the standings of a caller: its own, and those that were delegated to it
//	policies.go     policies
//	delegations.go  delegations
//	links.go        links by which people without a key vote
//	linkpage.go     the page that a link opens
package approvals

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/approval/policy"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/approvals"
	"github.com/codesous/sous/storage"
	storeaccess "github.com/codesous/sous/storage/access"
	storeapprovals "github.com/codesous/sous/storage/approvals"
)

const (
	pathApprovals   = rest.PathTenant + "/approvals"
	pathApproval    = pathApprovals + "/{job_id}"
	pathPolicies    = rest.PathTenant + "/approval-policies"
	pathPolicy      = pathPolicies + "/{policy}"
	pathDelegations = rest.PathTenant + "/approval-delegations"
	pathDelegation  = pathDelegations + "/{delegation}"
	pathLinks       = rest.PathTenant + "/approval-links"
	pathLink        = pathLinks + "/{link}"
	pathLinkPage    = "/approve/{tenant}/{link}"
)

// API serves approvals. It is safe for concurrent use.
type API struct {
	approvals *approvals.Approvals
	policies  *storeapprovals.Repository
	keys      *storeaccess.APIKeys
	auth      *access.Authenticator
	store     *storage.Store
	bodies    rest.Decoder[policy.Rules]
}

// New returns the API of the approvals of broker, which works on store. auth finds the keys for which
// links vote.
func New(store *storage.Store, broker *queue.Broker, auth *access.Authenticator) *API {
	return &API{
		approvals: approvals.New(store, broker), policies: broker.Policies(), keys: storeaccess.NewAPIKeys(store), auth: auth, store: store,
		bodies: rest.NewDecoder[policy.Rules](),
	}
}

// ApprovalPath holds the parameters of the path of an approval.
type ApprovalPath struct {
	rest.TenantPath
	JobID string `path:"job_id" doc:"the id of the held job, a UUID"`
}

// Resolve refuses an id that cannot be a job's.
func (p *ApprovalPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateJobID(p.JobID))
}

type approvalInput struct{ ApprovalPath }

type approvalOutput struct{ Body approval.Item }

type listInput struct {
	rest.TenantPath
	rest.PageQuery
	State string `query:"state" enum:"pending,approved,rejected,expired" default:"pending"`
	Queue string `query:"queue" maxLength:"128" doc:"only jobs of this queue"`
	Mine  bool   `query:"mine" doc:"only those on which the caller may vote, and has not"`
}

type voteInput struct {
	ApprovalPath
	Body *voteBody
}

type voteBody struct {
	Comment string          `json:"comment,omitempty" maxLength:"1024"`
	Payload json.RawMessage `json:"payload,omitempty" doc:"replaces the payload of the job; only by the first vote on a job that has not begun"`
	Patch   json.RawMessage `json:"patch,omitempty" doc:"changes the payload as RFC 7396 says; excludes payload"`
}

// Endpoints returns the declarations of all routes of the API.
func (a *API) Endpoints() []rest.Endpoint {
	out := []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathApprovals, Action: access.ApprovalRead, Extent: rest.HandlerNamespace,
			ID: "list-approvals", Tag: "jobs", Summary: "List approvals, without the payloads of their jobs",
			Description: "Pending ones oldest first, others by their decision, newest first. Filters are applied while scanning: a page may be short, even empty, and still have a next_cursor.",
		}, a.list),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathApproval, Action: access.ApprovalRead, Extent: rest.HandlerNamespace,
			ID: "get-approval", Tag: "jobs", Summary: "Read an approval with the payload of its job", Description: "The id is that of the held job.",
		}, a.get),
		a.voteEndpoint("approve", true), a.voteEndpoint("reject", false),
	}
	return slices.Concat(out, a.policyEndpoints(), a.delegationEndpoints(), a.linkEndpoints())
}

func (a *API) voteEndpoint(verb string, approved bool) rest.Endpoint {
	return rest.Operation(rest.Route{
		Method: http.MethodPost, Path: pathApproval + ":" + verb, Action: access.ApprovalDecide, Extent: rest.HandlerNamespace,
		ID: verb + "-approval", Tag: "jobs", Summary: "Vote to " + verb + " a held job",
		Description: "A key votes once; the same vote again succeeds. A job that no policy holds needs the action cs:job:steer.",
	}, func(ctx context.Context, in *voteInput) (*approvalOutput, error) { return a.vote(ctx, in, approved) })
}

// list answers with a page of approvals of the namespaces that the caller may enter.
func (a *API) list(ctx context.Context, in *listInput) (*rest.PageOutput[approval.Item], error) {
	c, tenant := rest.CallerOf(ctx), string(in.Tenant)
	f := approvals.Filter{State: approval.State(in.State), Namespace: c.Namespace, Queue: in.Queue}
	if in.Mine {
		ballot, err := a.ballot(ctx, tenant)
		if err != nil {
			return nil, err
		}
		f.Mine = &ballot
	}
	mine := ""
	if in.Mine {
		mine = c.Sub
	}
	return rest.ReadPage(rest.ListScope("approvals", tenant, c.Namespace, in.State, in.Queue, mine), in.Cursor, func(position string) ([]approval.Item, string, error) {
		return a.approvals.List(ctx, tenant, f, position, in.Limit)
	})
}

// approval returns an approval of a namespace that the caller may enter. Errors: CodeApprovalNotFound.
func (a *API) approval(ctx context.Context, p *ApprovalPath) (approval.Item, error) {
	item, err := a.approvals.Get(ctx, string(p.Tenant), p.JobID)
	if err == nil && !rest.CallerOf(ctx).EntersNamespace(item.Namespace) {
		return approval.Item{}, api.Errorf(api.CodeApprovalNotFound, "approval %s does not exist", p.JobID)
	}
	return item, err
}

func (a *API) get(ctx context.Context, in *approvalInput) (*approvalOutput, error) {
	item, err := a.approval(ctx, &in.ApprovalPath)
	if err != nil {
		return nil, err
	}
	return &approvalOutput{Body: item}, nil
}

// vote counts the vote of the caller. A job never leaves its namespace, which is checked before.
func (a *API) vote(ctx context.Context, in *voteInput, approved bool) (*approvalOutput, error) {
	if _, err := a.approval(ctx, &in.ApprovalPath); err != nil {
		return nil, err
	}
	ballot, err := a.ballot(ctx, string(in.Tenant))
	if err != nil {
		return nil, err
	}
	ballot.Approved = approved
	if in.Body != nil {
		if len(in.Body.Payload) > 0 && len(in.Body.Patch) > 0 {
			return nil, api.InvalidField("patch", "cannot be combined with payload")
		}
		ballot.Comment, ballot.Payload = in.Body.Comment, in.Body.Payload
		if len(in.Body.Patch) > 0 {
			ballot.Payload, ballot.Patch = in.Body.Patch, true
		}
	}
	ballot.Check = checkPayload(rest.CallerOf(ctx))
	item, err := a.approvals.Vote(ctx, string(in.Tenant), in.JobID, ballot)
	if err != nil {
		return nil, err
	}
	for i := range item.Votes {
		if v := &item.Votes[i]; v.Key == ballot.Key && v.OnBehalfOf != "" {
			rest.NoteMade(ctx, "on behalf of "+v.OnBehalfOf)
		}
	}
	return &approvalOutput{Body: item}, nil
}

// checkPayload returns the check of a payload that the vote of c has changed: its size, and whether c may
// enqueue such a job.
func checkPayload(c *access.Caller) func(r *approvals.Record, payload json.RawMessage) error {
	return func(r *approvals.Record, payload json.RawMessage) error {
		action := access.JobEnqueue
		if r.Spec.Target != nil {
			action = access.FunctionInvoke
		}
		if err := c.Need(action); err != nil {
			return err
		}
		if len(payload) > api.MaxJobPayloadBytes {
			return api.Errorf(api.CodeBodyLimit, "the payload has %s, the limit is %s", api.SizeText(len(payload)), api.SizeText(api.MaxJobPayloadBytes))
		}
		return nil
	}
}
