package cadenceworker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/cadence/.gen/go/cadence/workflowserviceclient"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/yarpc"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cadenceworker"
	"github.com/codesous/sous/storage"
)

func deleteFunction(b *bench, name string) error {
	err := storage.NewFunctions(b.store).Delete(b.t.Context(), b.tenant, namespace, name, b.store.NowMS())
	b.replica.engine.FunctionChanged(b.t.Context(), b.tenant, namespace, name)
	return err
}

// ended is nil where there are activations and all have that status.
func ended(all []api.Activation, status api.Status) error {
	for _, a := range all {
		if a.Status != status {
			return fmt.Errorf("%s is %s", a.ActivationID, a.Status)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no activation")
	}
	return nil
}

// spy sees, and may change, what goes to the Cadence server.
type spy struct {
	workflowserviceclient.Interface
	mu    sync.Mutex
	beats []beat
	again func(*shared.PollForActivityTaskResponse) bool // deliver it once more
	extra []*shared.PollForActivityTaskResponse
	// hold keeps each task that a call brought until something is received from it.
	hold      chan struct{}
	held      int // tasks that came to hold
	described int // calls with which a worker begins
}

type beat struct {
	at      time.Time
	details string
}

func (s *spy) watch(conn *cadenceworker.Conn) *cadenceworker.Conn {
	s.Interface, conn.Service = conn.Service, s
	return conn
}

func (s *spy) RecordActivityTaskHeartbeat(ctx context.Context, r *shared.RecordActivityTaskHeartbeatRequest, o ...yarpc.CallOption) (*shared.RecordActivityTaskHeartbeatResponse, error) {
	s.mu.Lock()
	s.beats = append(s.beats, beat{time.Now(), string(r.Details)})
	s.mu.Unlock()
	return s.Interface.RecordActivityTaskHeartbeat(ctx, r, o...)
}

func (s *spy) PollForActivityTask(ctx context.Context, r *shared.PollForActivityTaskRequest, o ...yarpc.CallOption) (*shared.PollForActivityTaskResponse, error) {
	s.mu.Lock()
	if n := len(s.extra); n > 0 {
		task := s.extra[n-1]
		s.extra = s.extra[:n-1]
		s.mu.Unlock()
		return task, nil
	}
	s.mu.Unlock()
	task, err := s.Interface.PollForActivityTask(ctx, r, o...)
	if err == nil && len(task.GetTaskToken()) > 0 {
		s.mu.Lock()
		if s.again != nil && s.again(task) {
			copied := *task
			s.extra = append(s.extra, &copied)
		}
		s.held++
		s.mu.Unlock()
		if s.hold != nil {
			<-s.hold
		}
	}
	return task, err
}

func (s *spy) DescribeDomain(ctx context.Context, r *shared.DescribeDomainRequest, o ...yarpc.CallOption) (*shared.DescribeDomainResponse, error) {
	s.mu.Lock()
	s.described++
	s.mu.Unlock()
	return s.Interface.DescribeDomain(ctx, r, o...)
}

// reached is nil where one of the counts has become n.
func (s *spy) reached(count *int, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *count < n {
		return fmt.Errorf("%d of %d", *count, n)
	}
	return nil
}

func (s *spy) seen() []beat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]beat(nil), s.beats...)
}

func TestHangingSandboxMissesItsHeartbeat(t *testing.T) {
	b := newBench(t, options{})
	b.publish("hang", `export default async () => { await cs.cadence.heartbeat(1); for (;;); };`)
	b.bind(b.binding("hang"))
	began := time.Now()
	out := b.do(plan{Activity: "hang", Heartbeat: time.Second})
	if out.Kind != "timeout" || out.Reason != "HEARTBEAT" {
		t.Errorf("activity without heartbeats: got %+v, want timeout HEARTBEAT", out)
	}
	// No caller waits for the sandbox any more: it is stopped long before its own timeout.
	eventually(t, "the sandbox is stopped", func() error { return ended(b.activations("hang"), api.StatusCancelled) })
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("the end of the sandbox took %s, want at most 12s", took)
	}
}

func TestNextAttemptResumes(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default async () => {
		const from = cs.cadence.lastHeartbeat()?.done ?? 0;
		for (let done = from + 1; done <= from + 5; done++) await cs.cadence.heartbeat({ done });
		if (from < 10) throw new Error("again");
		return from;
	};`)
	b.bind(b.binding("fun"))
	// The last one counts although it came within the half second of those before it.
	if out := b.do(plan{Activity: "fun", Attempts: 5, Heartbeat: 5 * time.Second}); len(out.Results) != 1 || out.Results[0] != "10" {
		t.Errorf("activity after five attempts: got %+v, want the one result 10", out)
	}
}

func TestHeartbeatsAreFew(t *testing.T) {
	watching := &spy{}
	b := newBench(t, options{conn: watching.watch})
	b.publish("fun", `export default async () => {
		for (let i = 1; i <= 20; i++) { await cs.cadence.heartbeat(i); await new Promise(r => setTimeout(r, 100)); }
		await cs.cadence.heartbeat("last");
		throw new Error("over");
	};`)
	b.bind(b.binding("fun"))
	b.do(plan{Activity: "fun", Heartbeat: 5 * time.Second})
	beats := watching.seen()
	first := "1"
	if len(beats) > 1 && beats[0].details == "" { // the task waited for its sandbox
		beats = beats[1:]
		first = beats[0].details
	}
	if len(beats) < 4 || len(beats) > 7 || beats[0].details != first || beats[len(beats)-1].details != `"last"` {
		t.Errorf("got %d heartbeats, want from 4 to 7, the first 1 and the last \"last\": %+v", len(beats), beats)
	}
	// The last is sent when the function has failed, and waits for nothing.
	for i := 1; i < len(beats)-1; i++ {
		if gap := beats[i].at.Sub(beats[i-1].at); gap < 450*time.Millisecond {
			t.Errorf("got %s between two heartbeats, want at least 450ms", gap)
		}
	}
}

func TestCancellationStopsTheSandbox(t *testing.T) {
	watching := &spy{}
	b := newBench(t, options{conn: watching.watch})
	b.publish("fun", `export default async () => {
		for (;;) { await cs.cadence.heartbeat(); await new Promise(r => setTimeout(r, 200)); }
	};`)
	b.bind(b.binding("fun"))
	run := b.begin(plan{Activity: "fun", Heartbeat: 10 * time.Second, CancelOn: "stop"})
	eventually(t, "it beats", func() error {
		if len(watching.seen()) < 2 {
			return fmt.Errorf("%d", len(watching.seen()))
		}
		return nil
	})
	began := time.Now()
	if err := b.client.SignalWorkflow(t.Context(), run.GetID(), run.GetRunID(), "stop", nil); err != nil {
		t.Fatalf("SignalWorkflow: %v", err)
	}
	if out := b.wait(run); out.Kind != "cancelled" {
		t.Errorf("workflow that cancelled its activity: got %+v, want it cancelled", out)
	}
	eventually(t, "the sandbox is stopped", func() error { return ended(b.activations("fun"), api.StatusCancelled) })
	beats := watching.seen()
	if last := beats[len(beats)-1].at; time.Since(last) > 2*time.Second || time.Since(began) > 6*time.Second {
		t.Errorf("stopped %s after the heartbeat and %s after the signal, want at most 2s and 6s", time.Since(last), time.Since(began))
	}
	b.awaitStatus("it counts as cancelled", func(c api.BindingCounts) bool { return c.Cancelled == 1 && c.Failed == 0 })
}

// An activation that a caller cancels, not the workflow, fails: Cadence would refuse a
// cancellation that no workflow requested.
func TestActivationCancelledByAPerson(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default () => new Promise(r => setTimeout(r, 15000));`)
	b.bind(b.binding("fun"))
	run := b.begin(plan{Activity: "fun"})
	eventually(t, "it runs", func() error { return ended(b.activations("fun"), api.StatusRunning) })
	if _, err := b.replica.engine.Cancel(t.Context(), b.tenant, b.activations("fun")[0].ActivationID); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	if out := b.wait(run); out.Kind != "custom" || out.Reason != string(api.CodeRuntimeCancelled) {
		t.Errorf("workflow whose activation was cancelled: got %+v, want a custom error with reason CS_RUNTIME_CANCELLED", out)
	}
}

func TestTaskDeliveredTwiceRunsOnce(t *testing.T) {
	for name, after := range map[string]bool{"while the first runs": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			var first *shared.PollForActivityTaskResponse
			watching := &spy{}
			watching.again = func(task *shared.PollForActivityTaskResponse) bool {
				if first != nil {
					return false
				}
				first = task
				return !after
			}
			b := newBench(t, options{conn: watching.watch})
			b.publish("fun", `export default () => new Promise(r => setTimeout(() => r(Math.random()), 500));`)
			b.bind(b.binding("fun"))
			out := b.do(plan{Activity: "fun"})
			if len(out.Results) != 1 {
				t.Fatalf("first activity: got %+v, want one result", out)
			}
			if after {
				// The next call for a task brings the old one first.
				watching.mu.Lock()
				copied := *first
				watching.extra = append(watching.extra, &copied)
				watching.mu.Unlock()
				if out := b.do(plan{Activity: "fun"}); len(out.Results) != 1 {
					t.Fatalf("second activity: got %+v, want one result", out)
				}
			}
			want := int64(2)
			if after {
				want = 3
			}
			b.awaitStatus("both deliveries are seen", func(c api.BindingCounts) bool { return c.Taken == want && c.InFlight == 0 })
			if n := int64(len(b.activations("fun"))); n != want-1 {
				t.Errorf("got %d activations, want %d", n, want-1)
			}
		})
	}
}
