package approvals

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	storeapprovals "github.com/codesous/sous/storage/approvals"
)

// LinkPath holds the parameters of the path of a link.
type LinkPath struct {
	rest.TenantPath
	Link string `path:"link" maxLength:"64"`
}

// Resolve refuses a tenant that does not match its pattern.
func (p *LinkPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)))
}

type makeLinkInput struct {
	ApprovalPath
	Body approval.NewVoteLink
}

type linkOutput struct{ Body approval.VoteLink }

type linksInput struct{ rest.TenantPath }

type linksOutput struct {
	Body struct {
		Links []approval.VoteLink `json:"links"`
	}
}

type endLinkInput struct{ LinkPath }

func (a *API) linkEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathApproval + ":link", Action: access.ApprovalDecide, Extent: rest.HandlerNamespace, Status: http.StatusCreated,
			ID: "make-approval-link", Tag: "jobs", Summary: "Make a link by which somebody without a key votes once",
			Description: "The link casts the vote of the key that makes it, which must be valid then, and shows the payload of the job. It ends when it is used, when its time is over, or when the approval is decided. Only this answer has its path.",
		}, a.makeLink),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathLinks, Action: access.ApprovalRead, Extent: rest.HandlerNamespace,
			ID: "list-approval-links", Tag: "jobs", Summary: "List the links for votes that have not ended, without their paths",
		}, a.listLinks),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathLink, Action: access.ApprovalDecide, Extent: rest.HandlerNamespace,
			ID: "end-approval-link", Tag: "jobs", Summary: "End a link for a vote", Description: "The key that made it may end it, and those with the action cs:approval:write.",
		}, a.endLink),
		rest.Handle(rest.Route{Method: http.MethodGet, Path: pathLinkPage, Action: access.Public, Extent: rest.NoNamespace}, a.showLink),
		rest.Handle(rest.Route{Method: http.MethodPost, Path: pathLinkPage, Action: access.Public, Extent: rest.NoNamespace}, a.voteByLink),
	}
}

// makeLink makes a link for the pending approval of a job. Errors: CodeApprovalNotFound, CodeJobState,
// CodeInvalid, CodeCapacityLimit.
func (a *API) makeLink(ctx context.Context, in *makeLinkInput) (*linkOutput, error) {
	item, err := a.approval(ctx, &in.ApprovalPath)
	if err != nil {
		return nil, err
	}
	if item.State != approval.Pending {
		return nil, api.Errorf(api.CodeJobState, "the approval of job %s is %s", in.JobID, item.State)
	}
	n, now, c := in.Body, a.store.NowMS(), rest.CallerOf(ctx)
	if strings.ContainsFunc(n.For, unicode.IsControl) {
		return nil, api.InvalidField("for", "must have no control characters")
	}
	if n.ExpiresInMS == 0 {
		n.ExpiresInMS = approval.DefaultLinkMS
	}
	text := rand.Text()
	sum, key := sha256.Sum256([]byte(text)), c.Digest()
	l := storeapprovals.Link{
		VoteLink:  approval.VoteLink{ID: "l_" + uuid.NewString(), JobID: in.JobID, For: n.For, CreatedBy: c.Sub, CreatedAtMS: now, UntilMS: now + n.ExpiresInMS},
		Namespace: item.Namespace, Round: item.Round, Key: hex.EncodeToString(key[:]), Secret: hex.EncodeToString(sum[:]),
	}
	if err := a.policies.AddLink(ctx, string(in.Tenant), &l); err != nil {
		return nil, err
	}
	rest.NoteMade(ctx, l.ID+" for "+l.For)
	// The secret is part of the query, which no log has.
	l.Path = "/approve/" + string(in.Tenant) + "/" + l.ID + "?secret=" + text
	return &linkOutput{Body: l.VoteLink}, nil
}

// listLinks answers with the links for jobs of the namespaces that the caller may enter.
func (a *API) listLinks(ctx context.Context, in *linksInput) (*linksOutput, error) {
	found, err := a.policies.Links(ctx, string(in.Tenant), a.store.NowMS())
	if err != nil {
		return nil, err
	}
	out := &linksOutput{}
	out.Body.Links = []approval.VoteLink{}
	for i := range found {
		if rest.CallerOf(ctx).EntersNamespace(found[i].Namespace) {
			out.Body.Links = append(out.Body.Links, found[i].VoteLink)
		}
	}
	return out, nil
}

// endLink ends a link. Errors: CodeApprovalNotFound, CodeAuthzDenied.
func (a *API) endLink(ctx context.Context, in *endLinkInput) (*struct{}, error) {
	c, tenant := rest.CallerOf(ctx), string(in.Tenant)
	l, err := a.policies.Link(ctx, tenant, in.Link, a.store.NowMS())
	if err == nil && !c.EntersNamespace(l.Namespace) {
		err = api.Errorf(api.CodeApprovalNotFound, "link %q does not exist", in.Link)
	}
	if err == nil && l.CreatedBy != c.Sub {
		err = c.Need(access.ApprovalWrite)
	}
	if err != nil {
		return nil, err
	}
	return nil, a.policies.EndLink(ctx, tenant, in.Link)
}
