package queue_test

import (
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

// TestAJobPutBackExpiresAtItsTime: maintenance postpones the expiry of an active job to the end of
// its lease. If its worker then holds the job, the next maintenance ends it.
func TestAJobPutBackExpiresAtItsTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`, func(j *api.NewJob) { j.ExpireAtMS = f.clock.ms.Load() + 1000 }))[0].ID
		got := f.fetch(t, 1)
		f.clock.advance(2 * time.Second)
		f.settle(t)
		out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: id, LeaseEpoch: got[0].LeaseEpoch, Hold: "wait"}})
		if err != nil || !out[0].OK {
			t.Fatalf("Ack: got %v, error %v, want success", out, err)
		}
		f.settle(t)
		if j := f.get(t, id); j.State != api.JobDead || j.DeadReason != api.DeadExpired {
			t.Errorf("the job is %s (%s), want dead, expired", j.State, j.DeadReason)
		}
		f.sound(t, id)
	})
}
