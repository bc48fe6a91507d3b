package consent

import (
	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Ends reports whether a job that is found in the set of those that expire at now ends its wait for a
// decision then: its run awaits one, or its request has expired.
func Ends(r *jobstore.Record, now int64) bool {
	at := r.ApprovalExpires()
	return r.Run.AwaitsApproval() || at > 0 && at <= now
}

// Ended returns the move that decides the approval of r, for which Ends is true, by its expiry at now.
func Ended(r *jobstore.Record, now int64) (*jobstore.Move, error) {
	asked := r.Spec.Approval.Clone()
	if !r.Run.AwaitsApproval() {
		approved := asked.Rule().OnExpiry == approval.OnExpiryApprove
		return decide(r, asked, Decision{State: approval.Expired, Approved: approved, By: approval.ByExpiry}, now)
	}
	if asked.State != approval.Pending {
		asked.Step, asked.Round = len(asked.Rules), asked.Round+1
	}
	asked.State, asked.Approved, asked.SinceMS, asked.DecidedMS, asked.DecidedBy = approval.Expired, false, r.Run.At, now, approval.ByExpiry
	m := r.Undecided(now)
	m.Decision = approval.Expired
	return withRequest(m, asked)
}

// Revived returns m, the retry of a job that has ended, or the move that holds the job instead and asks
// again, if it ended before it was approved: a retry is no way around an approval.
func Revived(m *jobstore.Move, now int64) (*jobstore.Move, error) {
	if !m.Record.Spec.Approval.Blocks() {
		return m, nil
	}
	asked := m.Record.Spec.Approval.Clone()
	asked.State, asked.Approved, asked.Round, asked.SinceMS, asked.DecidedMS, asked.DecidedBy = approval.Pending, false, asked.Round+1, 0, 0, ""
	if asked.Step >= len(asked.Rules) {
		asked.Step = len(asked.Rules) - 1
	}
	m.To = m.To.To(api.JobHeld, now)
	return withRequest(m, asked)
}
