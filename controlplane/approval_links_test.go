package controlplane_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/approval/policy"
)

// linked is a server with a policy for the queue emails, and a key that may approve.
type linked struct {
	*keyed
	admin, approver string
	approverID      string
}

func startLinked(t *testing.T, rules string) *linked {
	t.Helper()
	l := &linked{keyed: startKeyed(t, embedded(t))}
	l.admin, _ = l.key(t, api.RoleAdmin)
	approver, record := l.key(t, api.RoleApprover)
	l.approver, l.approverID = approver, record.ID
	ok[policy.Policy](t, l.as(t, l.admin, "PUT", l.at("T/approval-policies/money"), rules), http.StatusCreated)
	return l
}

// ask enqueues a job that is held, and returns its id.
func (l *linked) ask(t *testing.T) string {
	t.Helper()
	return ok[struct {
		Jobs []api.EnqueuedJob `json:"jobs"`
	}](t, l.as(t, l.admin, "POST", l.at("N/queues/emails/jobs"), `{"payload":{"text":"<script>alert(1)</script>"}}`), http.StatusCreated).Jobs[0].ID
}

// link makes a link with a key, whose secret must not show anywhere.
func (l *linked) link(t *testing.T, key, job string) approval.VoteLink {
	t.Helper()
	made := ok[approval.VoteLink](t, l.as(t, key, "POST", l.at("T/approvals/"+job+":link"), `{"for":"ada@example.com"}`), http.StatusCreated)
	_, secret, found := strings.Cut(made.Path, "?secret=")
	if !found || len(secret) < 26 {
		t.Fatalf("link: got the path %q, want one with a secret of at least 26 characters", made.Path)
	}
	l.mu.Lock()
	l.secrets = append(l.secrets, secret)
	l.mu.Unlock()
	return made
}

// vote sends the form of the page.
func (l *linked) vote(t *testing.T, path, decision string) answer {
	t.Helper()
	form := url.Values{"decision": {decision}, "comment": {"looks <good>"}}
	return l.call(t, "POST", path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// says fails unless an answer is a page with a status and a text, and has the headers of these pages.
func (a answer) says(t *testing.T, status int, text string) {
	t.Helper()
	if a.status != status || !strings.Contains(string(a.body), text) {
		t.Errorf("page: got %d %s, want %d with %q", a.status, a.body, status, text)
	}
	if p := a.header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || !strings.Contains(p, "frame-ancestors 'none'") {
		t.Errorf("Content-Security-Policy: got %q, want one that admits no script and no frame", p)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: got %q, want no-store", got)
	}
}

const (
	linkEnded  = "This link has ended"
	notCounted = "Your vote was not counted"
)

// A link casts the vote of its maker once, whatever opens it before.
func TestVoteByLink(t *testing.T) {
	t.Parallel()
	l := startLinked(t, `{"match":{"queue":"emails"},"message":"Send it?"}`)
	job := l.ask(t)
	made := l.link(t, l.approver, job)
	for range 2 { // a scanner of mail, and then the person
		page := l.call(t, "GET", made.Path, "")
		page.says(t, http.StatusOK, "Send it?")
		if text := string(page.body); strings.Contains(text, "<script>") || !strings.Contains(text, "&lt;script&gt;") {
			t.Errorf("page: got %s, want the payload escaped", text)
		}
	}
	if got := ok[approval.Item](t, l.as(t, l.approver, "GET", l.at("T/approvals/"+job), ""), http.StatusOK); len(got.Votes) != 0 {
		t.Errorf("approval: got the votes %+v, want none before the form is sent", got.Votes)
	}
	l.vote(t, made.Path, "maybe").refused(t, http.StatusUnprocessableEntity, api.CodeInvalid)
	for _, more := range []string{"comment=" + strings.Repeat("x", 1025), "other=" + strings.Repeat("x", 9<<10)} { // more than a comment, and than a form, may have
		l.call(t, "POST", made.Path, "decision=approve&"+more, "Content-Type", "application/x-www-form-urlencoded").refused(t, http.StatusUnprocessableEntity, api.CodeInvalid)
	}
	l.vote(t, made.Path, "approve").says(t, http.StatusOK, "The job is approved")
	got := ok[approval.Item](t, l.as(t, l.approver, "GET", l.at("T/approvals/"+job), ""), http.StatusOK)
	if got.State != approval.Approved || len(got.Votes) != 1 || got.Votes[0].Key != l.approverID || got.Votes[0].Link != "ada@example.com" || got.Votes[0].Comment != "looks <good>" {
		t.Errorf("approval: got %+v, want it approved by the vote of %s for ada@example.com", got, l.approverID)
	}
	l.vote(t, made.Path, "approve").says(t, http.StatusGone, linkEnded)
	l.call(t, "GET", made.Path, "").says(t, http.StatusGone, linkEnded)
	events := ok[api.Page[api.AuditEvent]](t, l.as(t, l.admin, "GET", l.at("T/audit"), ""), http.StatusOK)
	counted := 0
	for _, e := range events.Items {
		if e.Method == "POST" && strings.HasPrefix(e.Path, "/approve/") && e.Status == http.StatusOK {
			counted++
			if e.Sub != l.approverID || e.Action != "cs:approval:decide" || !strings.Contains(e.Made, "approve by "+made.ID+" for ada@example.com") {
				t.Errorf("audit: got %+v, want the vote of %s by the link", e, l.approverID)
			}
		}
	}
	if counted != 1 {
		t.Errorf("audit: got %d votes by links in %+v, want one", counted, events.Items)
	}
}

// Of many that use a link at once, one decides.
func TestLinkIsUsedOnce(t *testing.T) {
	t.Parallel()
	l := startLinked(t, `{"match":{"queue":"emails"},"mode":"count","count":2,"rejections":2}`)
	job := l.ask(t)
	made := l.link(t, l.approver, job)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { l.vote(t, made.Path, []string{"approve", "reject"}[i%2]) })
	}
	all.Wait()
	if got := ok[approval.Item](t, l.as(t, l.approver, "GET", l.at("T/approvals/"+job), ""), http.StatusOK); len(got.Votes) != 1 || got.State != approval.Pending {
		t.Errorf("approval: got %s with the votes %+v, want one vote and a pending approval", got.State, got.Votes)
	}
	l.call(t, "GET", made.Path, "").says(t, http.StatusGone, linkEnded)
}

// A link is worth no more than its key, and nothing without its secret.
func TestLinksThatAreNotValid(t *testing.T) {
	t.Parallel()
	l := startLinked(t, `{"match":{"queue":"emails"}}`)
	job := l.ask(t)
	bare, _, _ := strings.Cut(l.link(t, l.approver, job).Path, "?")
	for name, path := range map[string]string{
		"no secret": bare, "another secret": bare + "?secret=AAAAAAAAAAAAAAAAAAAAAAAAAA", "another tenant": strings.Replace(bare, l.tenant, "t_other1", 1) + "?secret=x",
		"no tenant": "/approve/x/y?secret=z", "no link": "/approve/" + l.tenant + "/%23?secret=x", "an unknown link": "/approve/" + l.tenant + "/l_1?secret=x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l.call(t, "GET", path, "").says(t, http.StatusGone, linkEnded)
			l.vote(t, path, "approve").says(t, http.StatusGone, linkEnded)
		})
	}
	t.Run("a revoked key", func(t *testing.T) {
		t.Parallel()
		key, record := l.key(t, api.RoleApprover)
		made := l.link(t, key, job)
		ok[struct{}](t, l.as(t, l.admin, "DELETE", l.at("T/keys/")+record.ID, ""), http.StatusNoContent)
		l.vote(t, made.Path, "approve").says(t, http.StatusGone, linkEnded)
	})
	t.Run("a time that is over", func(t *testing.T) {
		t.Parallel()
		made := ok[approval.VoteLink](t, l.as(t, l.approver, "POST", l.at("T/approvals/"+job+":link"), `{"for":"ada","expires_in_ms":1}`), http.StatusCreated)
		for l.call(t, "GET", made.Path, "").status != http.StatusGone { // until the test's time is over
		}
		l.vote(t, made.Path, "approve").says(t, http.StatusGone, linkEnded)
	})
	t.Run("a decided approval", func(t *testing.T) {
		t.Parallel()
		other := l.ask(t)
		made := l.link(t, l.approver, other)
		ok[approval.Item](t, l.as(t, l.admin, "POST", l.at("T/approvals/"+other+":reject"), ""), http.StatusOK)
		l.call(t, "GET", made.Path, "").says(t, http.StatusGone, linkEnded)
		l.vote(t, made.Path, "approve").says(t, http.StatusConflict, notCounted)
		l.as(t, l.approver, "POST", l.at("T/approvals/"+other+":link"), `{"for":"ada"}`).refused(t, http.StatusConflict, api.CodeJobState)
	})
	if got := ok[approval.Item](t, l.as(t, l.approver, "GET", l.at("T/approvals/"+job), ""), http.StatusOK); len(got.Votes) != 0 {
		t.Errorf("approval: got the votes %+v, want none", got.Votes)
	}
}

// The key that enqueued a job has no vote by a link either, and a link is ended by its maker.
func TestWhoMakesLinks(t *testing.T) {
	t.Parallel()
	l := startLinked(t, `{"match":{"queue":"emails"},"approvers":["admin","approver"]}`)
	job := l.ask(t)
	l.vote(t, l.link(t, l.admin, job).Path, "approve").says(t, http.StatusForbidden, notCounted)
	viewer, _ := l.key(t, api.RoleViewer)
	l.as(t, viewer, "POST", l.at("T/approvals/"+job+":link"), `{"for":"ada"}`).refused(t, http.StatusForbidden, api.CodeAuthzDenied)
	elsewhere, _ := l.key(t, api.RoleApprover, inNamespace("elsewhere"))
	l.as(t, elsewhere, "POST", l.at("T/approvals/"+job+":link"), `{"for":"ada"}`).refused(t, http.StatusNotFound, api.CodeApprovalNotFound)
	for _, body := range []string{`{}`, `{"for":""}`, `{"for":"a\nb"}`, `{"for":"` + strings.Repeat("x", 129) + `"}`, `{"for":"a","expires_in_ms":-1}`, `{"for":"a","expires_in_ms":2592000001}`} {
		l.as(t, l.approver, "POST", l.at("T/approvals/"+job+":link"), body).refused(t, http.StatusUnprocessableEntity, api.CodeInvalid)
	}
	made := l.link(t, l.approver, job)
	type links struct {
		Links []approval.VoteLink `json:"links"`
	}
	if got := ok[links](t, l.as(t, elsewhere, "GET", l.at("T/approval-links"), ""), http.StatusOK); len(got.Links) != 0 {
		t.Errorf("links: got %+v for a key of another namespace, want none", got.Links)
	}
	if got := ok[links](t, l.as(t, l.approver, "GET", l.at("T/approval-links"), ""), http.StatusOK); len(got.Links) != 2 || got.Links[0].Path != "" {
		t.Errorf("links: got %+v, want two without their paths", got.Links)
	}
	other, _ := l.key(t, api.RoleApprover)
	path := l.at("T/approval-links/" + made.ID)
	l.as(t, other, "DELETE", path, "").refused(t, http.StatusForbidden, api.CodeAuthzDenied)
	l.as(t, elsewhere, "DELETE", path, "").refused(t, http.StatusNotFound, api.CodeApprovalNotFound)
	ok[struct{}](t, l.as(t, l.approver, "DELETE", path, ""), http.StatusNoContent)
	l.as(t, l.approver, "DELETE", path, "").refused(t, http.StatusNotFound, api.CodeApprovalNotFound)
	l.call(t, "GET", made.Path, "").says(t, http.StatusGone, linkEnded)
}
