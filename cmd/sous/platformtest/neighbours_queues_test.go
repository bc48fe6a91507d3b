package platformtest_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// enqueue invokes the victim asynchronously n times on both servers, one after the other, and
// waits for the end of each.
func (v *victim) enqueue(n int) latency {
	v.t.Helper()
	invoke := func(server *platformtest.Server) time.Duration {
		v.t.Helper()
		begin, tenant := time.Now(), server.APIOf(v.t, victimTenant)
		queued, err := tenant.Namespace(platformtest.Namespace).Function("victim").Enqueue(v.t.Context(), client.InvokeOptions{Ref: api.Ref{Alias: "prod"}})
		if err != nil {
			v.t.Fatalf("Enqueue: %v", err)
		}
		for {
			a, err := tenant.Activation(v.t.Context(), queued.ActivationID)
			if err != nil {
				v.t.Fatalf("Activation: %v", err)
			}
			if a.Status.Terminal() {
				return time.Since(begin)
			}
			time.Sleep(2 * time.Millisecond) // between two looks
		}
	}
	onServer, onControl := make([]time.Duration, n), make([]time.Duration, n)
	for i := range n {
		onServer[i], onControl[i] = invoke(v.server), invoke(v.control)
	}
	return latency{p99(onServer), p99(onControl)}
}

// A tenant with many paused queues that have triggers and jobs does not delay the asynchronous
// invocations of others. It sends nothing: the workers look after its queues.
func TestNeighboursTriggers(t *testing.T) {
	const spaces, queues = 5, 250
	server := platformtest.Serve(t, storagetest.Redis(t).URL)
	v := newGreeter(t, server, true)
	v.enqueue(20)
	quiet := v.enqueue(100)
	attacker := server.APIOf(t, attackerTenant)
	for i := range spaces {
		n := attacker.Namespace(fmt.Sprint("n", i))
		_, err := n.CreateFunction(t.Context(), client.NewFunction{Name: "f"})
		if err != nil {
			t.Fatalf("CreateFunction: %v", err)
		}
		draft, err := n.Function("f").UploadFiles(t.Context(), map[string][]byte{"function.js": []byte(`export default () => 1;`)})
		if err == nil {
			_, err = n.Function("f").Publish(t.Context(), client.Publish{DraftID: draft.DraftID, Alias: "prod"})
		}
		if err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
	paused := true
	var setup errgroup.Group
	setup.SetLimit(16)
	for i := range spaces * queues {
		n, name := attacker.Namespace(fmt.Sprint("n", i%spaces)), fmt.Sprint("q", i)
		setup.Go(func() error {
			_, err := n.Queue(name).Configure(t.Context(), client.QueueChange{Paused: &paused})
			if err == nil {
				_, err = n.Queue(name).Enqueue(t.Context(), "", api.NewJob{})
			}
			if err == nil {
				_, err = n.Trigger(name).Put(t.Context(), trigger.NewQueueTrigger{Function: "f"}, 0)
			}
			return err
		})
	}
	if err := setup.Wait(); err != nil {
		t.Fatalf("the attacker's queues: %v", err)
	}
	attacked := v.enqueue(300)
	v.unharmed(quiet, attacked)
}
