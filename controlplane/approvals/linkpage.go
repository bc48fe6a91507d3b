package approvals

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // the page
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	storeapprovals "github.com/codesous/sous/storage/approvals"
)

const (
	// maxForm bounds the form of the page, in bytes.
	maxForm = 8 << 10
	// maxShown is how much of a payload the page shows, in bytes.
	maxShown = 64 << 10
)

var (
	//go:embed link.html
	linkText string
	//go:embed link.css
	linkStyle string

	linkTemplate = template.Must(template.New("link").Parse(linkText))

	// linkPolicy admits linkStyle, and forms that are sent to this server.
	linkPolicy = func() string {
		sum := sha256.Sum256([]byte(linkStyle))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
	}()
)

// linkView has the content of the page: a form if Item is set, else Text.
type linkView struct {
	Style       template.CSS
	Title, Text string
	Item        *approval.Item
	For         string
	Payload     string
	Since, Ends string
}

// ended is the answer for a link that is not valid, whatever the reason: it tells nothing about jobs.
var ended = linkView{Title: "This link has ended", Text: "It was used, its time is over, or the approval was decided. Ask the sender for another one if you still have to decide."}

// write answers with the page. It has a secret in its address, so that no cache keeps it, and no
// other server learns the address from a Referer. The policy same-origin, and not no-referrer, leaves forms their Origin.
func (v linkView) write(w http.ResponseWriter, status int) error {
	v.Style = template.CSS(linkStyle) //nolint:gosec // it is a constant of the program
	var body bytes.Buffer
	if err := linkTemplate.Execute(&body, v); err != nil {
		return api.Wrap(api.CodeInternal, err, "render the page of a link")
	}
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": linkPolicy, "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Frame-Options": "DENY", "X-Robots-Tag": "noindex",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client has gone
	return nil
}

// errEnded is the error for a link that is not valid.
var errEnded = errors.New("approvals: the link is not valid")

// find returns the link that a request opens, and makes the key that made the link the caller of the
// request, for an action. The key must still decide on approvals. Errors: errEnded, CodeStoreUnavailable.
func (a *API) find(r *http.Request, action access.Action) (*storeapprovals.Link, error) {
	tenant, id := rest.PathParam(r, "tenant"), rest.PathParam(r, "link")
	if api.ValidateTenant(tenant) != nil || len(id) > 64 {
		return nil, errEnded
	}
	l, err := a.policies.Link(r.Context(), tenant, id, a.store.NowMS())
	switch {
	case api.ErrorCode(err) == api.CodeApprovalNotFound:
		return nil, errEnded
	case err != nil:
		return nil, err
	}
	sent := sha256.Sum256([]byte(r.URL.Query().Get("secret")))
	if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sent[:])), []byte(l.Secret)) != 1 {
		return nil, errEnded
	}
	var digest [sha256.Size]byte
	if _, err := hex.Decode(digest[:], []byte(l.Key)); err != nil {
		return nil, api.Wrap(api.CodeInternal, err, "decode a link")
	}
	c, err := a.auth.OfKey(r.Context(), digest)
	switch {
	case api.ErrorCode(err) == api.CodeAuthnInvalid: // it is revoked
		return nil, errEnded
	case err != nil:
		return nil, err
	case !c.Enters(tenant) || !c.EntersNamespace(l.Namespace) || c.Need(access.ApprovalDecide) != nil:
		return nil, errEnded
	}
	rest.ActFor(r.Context(), c, action, tenant)
	return l, nil
}

// showLink shows the approval that a link is for, with a form for the vote. It changes nothing: programs
// that examine mail open links.
func (a *API) showLink(w http.ResponseWriter, r *http.Request) error {
	l, err := a.find(r, access.ApprovalRead)
	if errors.Is(err, errEnded) {
		return ended.write(w, http.StatusGone)
	}
	if err != nil {
		return err
	}
	item, err := a.approvals.Get(r.Context(), rest.PathParam(r, "tenant"), l.JobID)
	gone := api.ErrorCode(err) == api.CodeApprovalNotFound
	if err != nil && !gone {
		return err
	}
	if gone || item.Round != l.Round || item.State != approval.Pending {
		return ended.write(w, http.StatusGone)
	}
	v := linkView{Title: "A job waits for your decision", Item: &item, For: l.For, Payload: shown(item.Payload), Since: dateOf(item.CreatedAtMS), Ends: dateOf(l.UntilMS)}
	return v.write(w, http.StatusOK)
}

// voteByLink counts the vote that the form of the page sends, and ends the link.
func (a *API) voteByLink(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), rest.PathParam(r, "tenant")
	l, err := a.find(r, access.ApprovalDecide)
	if errors.Is(err, errEnded) {
		return ended.write(w, http.StatusGone)
	}
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return api.Errorf(api.CodeInvalid, "the form cannot be read, or has more than %s", api.SizeText(maxForm))
	}
	decision, comment := r.PostForm.Get("decision"), r.PostForm.Get("comment")
	if decision != approval.VoteApprove && decision != approval.VoteReject {
		return api.InvalidField("decision", "must be approve or reject")
	}
	ballot, err := a.ballot(ctx, tenant)
	if err != nil {
		return err
	}
	ballot.Approved, ballot.Comment, ballot.Round, ballot.Link = decision == approval.VoteApprove, comment, l.Round, l.For
	rest.NoteMade(ctx, decision+" by "+l.ID+" for "+l.For)
	item, err := a.approvals.Vote(ctx, tenant, l.JobID, ballot)
	switch api.ErrorCode(err) {
	case "":
	case api.CodeApprovalNotFound:
		return ended.write(w, http.StatusGone)
	case api.CodeJobState:
		return linkView{Title: "Your vote was not counted", Text: "The approval was decided, or this vote has been cast."}.write(w, http.StatusConflict)
	case api.CodeApprovalDenied:
		return linkView{Title: "Your vote was not counted", Text: "The key that made this link has no vote on this job."}.write(w, http.StatusForbidden)
	default:
		return err
	}
	err = a.policies.EndLink(ctx, tenant, l.ID)
	if err != nil && api.ErrorCode(err) != api.CodeApprovalNotFound {
		return err // the vote is counted; the form may be sent again
	}
	return counted(decision, &item).write(w, http.StatusOK)
}

// counted tells what became of a vote.
func counted(decision string, item *approval.Item) linkView {
	v := linkView{Title: "Your vote is counted", Text: "You have voted to " + decision + ". "}
	switch item.State {
	case approval.Approved:
		v.Text += "The job is approved, and runs now."
	case approval.Rejected:
		v.Text += "The job is rejected, and does not run."
	default:
		v.Text += "The job waits for further votes: it has " + strconv.Itoa(item.Approving()) + " of " + strconv.Itoa(item.Required) + "."
	}
	return v
}

// shown returns a payload as the page shows it.
func shown(payload json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, payload, "", "  ") != nil {
		return string(payload)
	}
	if out.Len() > maxShown {
		return api.TruncateText(out.String(), maxShown) + "\n(cut)"
	}
	return out.String()
}

func dateOf(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04 UTC") }
