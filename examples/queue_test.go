package examples

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
)

// tenant returns a client for the tenant of a server that requires no keys.
func tenant(t *testing.T, server *soustest.Server) *client.Tenant {
	t.Helper()
	c, err := client.New(server.URL, client.Config{MaxAttempts: 1})
	if err != nil {
		t.Fatalf("client.New: %v", err)
	}
	return c.Tenant("t_default")
}

// consumer is a published function that handles jobs.
type consumer struct {
	t    *testing.T
	api  *client.Tenant
	name string
	url  string
}

// send invokes the function asynchronously and returns the id of the job.
func (c *consumer) send(body string) string {
	c.t.Helper()
	fn := c.api.Namespace("default").Function(c.name)
	queued, err := fn.Enqueue(c.t.Context(), client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, Event: json.RawMessage(body)})
	if err != nil {
		c.t.Fatalf("Enqueue(%s): %v", body, err)
	}
	return queued.ActivationID
}

// await waits until the job has the state, and returns it.
func (c *consumer) await(id string, state api.JobState) (job api.Job) {
	c.t.Helper()
	platformtest.Eventually(c.t, 30*time.Second, "the job has the state "+string(state), func() (err error) {
		job, err = c.api.Job(c.t.Context(), id)
		if err == nil && job.State != state {
			err = fmt.Errorf("job %s: got state %s at attempt %d, errors %v", id, job.State, job.Attempt, job.Errors)
		}
		return err
	})
	return job
}

// dead waits for n jobs in the queue orders-dead, and returns their payloads.
func (c *consumer) dead(n int) string {
	c.t.Helper()
	var payloads []string
	platformtest.Eventually(c.t, 20*time.Second, "the dead letters arrive", func() error {
		payloads = nil
		page, err := c.api.Namespace("default").Queue("orders-dead").Jobs(c.t.Context(), client.JobFilter{State: api.JobPending}, client.PageOptions{})
		for i := range page.Items {
			payloads = append(payloads, string(page.Items[i].Payload))
		}
		if err == nil && len(payloads) != n {
			err = fmt.Errorf("got %d dead letters %q, want %d", len(payloads), payloads, n)
		}
		return err
	})
	return strings.Join(payloads, "\n")
}

func testQueueConsumer(t *testing.T, server *soustest.Server) {
	const config = `{"env":{"RESTOCK_SECONDS":"1.5"},"retry":{"max_attempts":2},"on_failure":{"queue":"orders-dead"}}`
	c := &consumer{t: t, api: tenant(t, server), name: "queue-consumer", url: deployPackages(t, server, "queue-consumer", "--config", config)}
	call{"PUT", "/stock/cup", nil, "x", 422, `{"error":"send a number"}`}.do(t, c.url)
	call{"GET", "/stock/cup", nil, "", 404, `{"error":"there is no such document"}`}.do(t, c.url)
	call{"GET", "/stock", nil, "", 404, `{"error":"there is no such page"}`}.do(t, c.url)
	call{"PUT", "/stock/cup", nil, "5", 204, ""}.do(t, c.url)

	// Two deliveries of one order are filled once.
	for range 2 {
		if job := c.await(c.send(`{"id":"A-1","item":"cup","quantity":2}`), api.JobCompleted); job.Attempt != 1 || len(job.Errors) != 0 {
			t.Errorf("order A-1: got attempt %d and errors %v, want 1 attempt without errors", job.Attempt, job.Errors)
		}
	}
	call{"GET", "/stock/cup", nil, "", 200, "3"}.do(t, c.url)
	call{"GET", "/orders/A-1", nil, "", 200, `{"item":"cup","quantity":2}`}.do(t, c.url)

	// An order that is out of stock waits for the delay.
	id := c.send(`{"id":"A-2","item":"vase","quantity":1}`)
	job := c.await(id, api.JobRetrying)
	if len(job.Errors) != 1 || job.DueAtMS-job.Errors[0].AtMS != 1500 {
		t.Errorf("order A-2: got errors %v, due at %d; want one error and 1500 ms until the next attempt", job.Errors, job.DueAtMS)
	}
	call{"PUT", "/stock/vase", nil, "1", 204, ""}.do(t, c.url)
	if job := c.await(id, api.JobCompleted); job.Attempt != 2 {
		t.Errorf("order A-2: got attempt %d, want 2", job.Attempt)
	}
	call{"GET", "/stock/vase", nil, "", 200, "0"}.do(t, c.url)

	// An invalid order becomes a dead letter at once, an order without stock after all attempts.
	if job := c.await(c.send(`{"id":"A-3","item":"cup","quantity":0}`), api.JobCompleted); job.Attempt != 1 {
		t.Errorf("invalid order: got attempt %d, want 1", job.Attempt)
	}
	if got, want := c.dead(1), `{"body":{"id":"A-3","item":"cup","quantity":0},"error":"✖ Too small: expected number to be >=1\n  → at quantity"}`; got != want {
		t.Errorf("dead letter: got %s, want %s", got, want)
	}
	if job := c.await(c.send(`{"id":"A-4","item":"lamp","quantity":1}`), api.JobDead); job.DeadReason != api.DeadAttempts || job.Attempt != 2 {
		t.Errorf("order A-4: got dead reason %q at attempt %d, want %q at attempt 2", job.DeadReason, job.Attempt, api.DeadAttempts)
	}
	if got := c.dead(2); !strings.Contains(got, `"condition":"RetriesExhausted"`) || !strings.Contains(got, `"requestPayload":{"id":"A-4"`) {
		t.Errorf("dead letters: got %s, want the outcome of order A-4 among them", got)
	}
}

// TestQueueHandler runs jobs whose first attempt ends in each way that a batch offers.
func TestQueueHandler(t *testing.T) {
	t.Parallel()
	server := soustest.Start(t)
	const source = `export default {
		queue(batch) {
			const [m] = batch.messages;
			if (m.attempts === 1) new Function("batch", "m", m.body)(batch, m);
		},
	}`
	deploy(t, server, function(t, "jobs", source), "--config", `{"retry":{"max_attempts":2,"base_delay_ms":700,"backoff":"fixed"}}`)
	for body, want := range map[string]struct {
		attempts int
		delayMS  int64 // between the attempts; 0: there is one attempt
		problem  string
	}{
		"":                                    {1, 0, ""},
		"m.ack()":                             {1, 0, ""},
		"m.ack(); throw new Error('late')":    {1, 0, ""},
		"batch.ackAll()":                      {1, 0, ""},
		"m.retry({ delaySeconds: 2 })":        {2, 2000, "Exception: the handler asked for a retry of the message"},
		"batch.retryAll({ delaySeconds: 1 })": {2, 1000, "Exception: the handler asked for a retry of the message"},
		"m.retry()":                           {2, 700, "Exception: the handler asked for a retry of the message"},
		"throw new TypeError('no')":           {2, 700, "Exception: TypeError: no"},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			c := &consumer{t: t, api: tenant(t, server), name: "jobs"}
			id := c.send(strconv.Quote(body))
			if want.delayMS > 0 {
				job := c.await(id, api.JobRetrying)
				if len(job.Errors) != 1 || job.Errors[0].Error != want.problem || job.DueAtMS-job.Errors[0].AtMS != want.delayMS {
					t.Errorf("first attempt: got errors %+v, due at %d; want the error %q and %d ms until the next attempt", job.Errors, job.DueAtMS, want.problem, want.delayMS)
				}
			}
			if job := c.await(id, api.JobCompleted); job.Attempt != want.attempts {
				t.Errorf("job: got attempt %d, want %d", job.Attempt, want.attempts)
			}
		})
	}
}
