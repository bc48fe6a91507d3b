package platformtest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/metrics/metricstest"
)

// hookReceiver accepts deliveries up to a limit, and holds further requests until the limit is
// raised or their sender dies.
type hookReceiver struct {
	*httptest.Server

	mu       sync.Mutex
	verifier *standardwebhooks.Webhook
	limit    int
	raised   chan struct{}  // closed when limit is raised
	accepted map[string]int // by subject
	held     int            // requests that wait
	wrong    []error
}

func receiveHooks(t *testing.T, limit int) *hookReceiver {
	t.Helper()
	r := &hookReceiver{limit: limit, raised: make(chan struct{}), accepted: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(r.Close)
	return r
}

// receive is the handler.
func (r *hookReceiver) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender died
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var e event.Event
	err = r.verifier.Verify(body, req.Header)
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		r.wrong = append(r.wrong, err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	for len(r.accepted) >= r.limit {
		raised := r.raised
		r.held++
		r.mu.Unlock()
		select {
		case <-raised:
		case <-req.Context().Done():
		}
		r.mu.Lock()
		r.held--
		if req.Context().Err() != nil {
			return
		}
	}
	r.accepted[e.Subject]++
	w.WriteHeader(http.StatusNoContent)
}

// raise accepts deliveries of up to limit events.
func (r *hookReceiver) raise(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = limit
	close(r.raised)
	r.raised = make(chan struct{})
}

// full returns an error unless the limit is reached and a request waits.
func (r *hookReceiver) full() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.accepted) < r.limit || r.held == 0 {
		return fmt.Errorf("%d events of %d are accepted, %d requests wait, and %v are wrong", len(r.accepted), r.limit, r.held, r.wrong)
	}
	return nil
}

// The replica that delivers is killed in the middle of its requests, and then the one that took over.
// Each of 500 events is delivered at least once, with a signature that verifies.
func TestKilledReplicaLosesNoWebhookEvent(t *testing.T) {
	t.Parallel()
	const jobs = 500
	r := receiveHooks(t, 100)
	config := platformtest.Config{Store: redis(t), Args: []string{
		"--admin-listen", "127.0.0.1:0", "--egress-allow", "127.0.0.0/8", "--secrets-key-file", secretsKey(t),
	}}
	replicas := []*platformtest.Server{config.Serve(t), config.Serve(t)}
	tenant := replicas[0].API(t)
	made, err := tenant.Webhook("all").Create(t.Context(), webhook.HookSettings{URL: r.URL, Events: []string{event.JobEnqueued}})
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	verifier, err := standardwebhooks.NewWebhook(made.Secret)
	if err != nil {
		t.Fatalf("NewWebhook: %v", err)
	}
	r.mu.Lock()
	r.verifier = verifier
	r.mu.Unlock()
	queue, all := tenant.Namespace(platformtest.Namespace).Queue("mail"), "all"
	if _, err := queue.Configure(t.Context(), client.QueueChange{Events: &all}); err != nil {
		t.Fatalf("Configure: %v", err)
	}
	enqueued, err := queue.Enqueue(t.Context(), "", make([]api.NewJob, jobs)...)
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	for _, limit := range []int{300, jobs} {
		platformtest.Eventually(t, time.Minute, "requests wait", r.full)
		at := delivers(t, replicas)
		if err := replicas[at].Kill(); err != nil {
			t.Fatalf("Kill: %v", err)
		}
		replicas[at] = config.Serve(t)
		r.raise(limit)
	}
	r.raise(jobs + 1)
	platformtest.Eventually(t, time.Minute, "all events are delivered", func() error {
		w, err := replicas[0].API(t).Webhook("all").Get(t.Context())
		r.mu.Lock()
		defer r.mu.Unlock()
		if err == nil && (len(r.accepted) < jobs || w.Pending > 0) {
			err = fmt.Errorf("%d of %d events are accepted, and %d deliveries wait", len(r.accepted), jobs, w.Pending)
		}
		return err
	})
	r.check(t, enqueued)
}

// delivers returns the replica that has delivered since its start.
func delivers(t *testing.T, replicas []*platformtest.Server) int {
	t.Helper()
	found := -1
	platformtest.Eventually(t, time.Minute, "one replica delivers", func() error {
		var counts []float64
		for i, replica := range replicas {
			counts = append(counts, metricstest.Sum(scrape(t, replica.Output())["sous_webhook_deliveries_total"]))
			if counts[i] > 0 {
				found = i
			}
		}
		if (counts[0] > 0) == (counts[1] > 0) {
			return fmt.Errorf("the replicas have delivered %v", counts)
		}
		return nil
	})
	return found
}

// check checks that the receiver accepted the events of all jobs.
func (r *hookReceiver) check(t *testing.T, jobs []api.EnqueuedJob) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) > 0 {
		t.Errorf("got %d requests that do not verify, want 0; the first: %v", len(r.wrong), r.wrong[0])
	}
	var missing []string
	for _, job := range jobs {
		if r.accepted["jobs/"+job.ID] == 0 {
			missing = append(missing, job.ID)
		}
	}
	if len(missing) > 0 {
		t.Errorf("got no event of %d jobs, want one of each: %s", len(missing), strings.Join(missing, " "))
	}
}
