package invoker

import (
	"context"
	"testing"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
)

// TestAnswersToReportsOfUsage: only a lost lease, and a job that is gone, end a run. Usage of a job that
// is gone is counted elsewhere, and the function learns of any other refusal.
func TestAnswersToReportsOfUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer api.JobOutcome
		lost   bool
		other  int
		want   api.Code
	}{
		"stored":         {api.JobOutcome{OK: true, LeaseExpiresMS: 7}, false, 0, ""},
		"the lease lost": {api.JobOutcome{Code: api.CodeJobLeaseLost}, true, 0, ""},
		"the job gone":   {api.JobOutcome{Code: api.CodeJobNotFound}, true, 1, ""},
		"refused":        {api.JobOutcome{Code: api.CodeInvalid, Message: "no"}, false, 0, api.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, j, other := &worker{i: &Invoker{logger: zap.NewNop()}}, &leasedJob{}, 0
			j.ctx, j.lose = context.WithCancelCause(t.Context())
			defer j.lose(nil)
			err := w.spent(t.Context(), j, &c.answer, agent.Usage{Seq: 3}, func(_ context.Context, u agent.Usage) error {
				if u.Seq != 0 {
					t.Errorf("got seq %d, want none: it is that of a lease", u.Seq)
				}
				other++
				return nil
			})
			if api.ErrorCode(err) != c.want || j.lost() != c.lost || other != c.other {
				t.Errorf("got error %v, lost %v, %d entries elsewhere, want code %q, %v, %d", err, j.lost(), other, c.want, c.lost, c.other)
			}
		})
	}
}
