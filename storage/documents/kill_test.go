package documents_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// TestDocumentsOutliveAKilledStore kills the store at random under a storm of
// documents, in the middle of scripts. No count is below what there is, every
// document is in the index, and a recount sets the counts right.
func TestDocumentsOutliveAKilledStore(t *testing.T) {
	t.Parallel()
	server := storagetest.DurableServer(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	kills, failed, drifted := storagetest.Kills(), atomic.Int64{}, 0
	for range kills {
		d := newHarness(t, s)
		st := newStorm(d, d.Repository, documents.NewRepository(s))
		killed := make(chan struct{})
		go func() {
			<-time.After(20*time.Millisecond + rand.N(200*time.Millisecond))
			server.Kill()
			close(killed)
		}()
		for _, err := range storagetest.Concurrently(8, func(i int) error {
			for n := 0; ; n++ {
				err := st.step(t.Context())
				if err == nil && i == 0 {
					_, err = d.Recount(t.Context(), st.places()[n%3], st.clock.Load())
				}
				if api.ErrorCode(err) == api.CodeStoreUnavailable {
					failed.Add(1)
					return nil
				}
				if !allowed(err) {
					return err
				}
			}
		}) {
			if err != nil {
				t.Errorf("unexpected error: %v", err)
			}
		}
		<-killed
		server.Start(t)
		storagetest.AwaitReachable(t, s)
		d.auditCut("after the kill")
		before := d.stored("after the kill")
		if before.tenant != before.all || before.allOfUsed != before.all {
			drifted++
		}
		d.recount()
		d.audit("after the kill and a recount")
		d.noRemains("after the kill and a recount")
		if t.Failed() {
			break
		}
	}
	t.Logf("%d calls failed; counts were too high after %d of %d kills", failed.Load(), drifted, kills)
}
