package cadenceworker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage/bindings"
)

// Repeated changes of one binding do not keep a replica from reading all bindings, which
// makes up for lost notifications.
func TestChangesDoNotPutOffTheReading(t *testing.T) {
	b := newBench(t, options{noServer: true})
	b.domain = "payments"
	b.bind(b.binding("fun"))
	b.awaitStatus("it is known", func(c api.BindingCounts) bool { return c.State == api.BindingNoServer })
	rounds := func() float64 {
		return metricstest.Value(t, b.replica.reg, "sous_loop_rounds_total", "loop=cadence", "outcome=ok")
	}
	before := rounds()
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond) // no notice is lost, which would have all read
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if _, err := b.bindings().Update(t.Context(), b.path(), nil, b.store.NowMS(), func(s *bindings.Record) error {
				s.Limits.MaxInflightTasks = 1 + n%100
				return nil
			}); err != nil {
				t.Errorf("Update: %v", err)
				return
			}
		}
	})
	eventually(t, "all are read again", func() error {
		if n := rounds(); n <= before {
			return fmt.Errorf("%v rounds", n)
		}
		return nil
	})
	close(stop)
	changing.Wait()
}
