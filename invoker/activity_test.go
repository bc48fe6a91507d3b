package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// An id that the caller derived runs once: a repeat gets the first one's outcome,
// and where that still runs, CodeIdempotencyRunning.
func TestDerivedActivationRunsOnce(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("f", `export default async (e) => { await new Promise(r => setTimeout(r, e.ms)); return Math.random() };`, defaults())
		inv := b.invocation("f", `{"ms":300}`)
		inv.ActivationID, inv.Attempt = api.TaskActivationID([]byte(t.Name())), 3
		var wg sync.WaitGroup
		results := make([]json.RawMessage, 4)
		for i := range results {
			wg.Go(func() {
				out, err := b.engine.Invoke(t.Context(), inv)
				switch {
				case err == nil && !out.Replayed: // a late one gets the record
					results[i] = out.Activation.Result
				case err == nil:
				case api.ErrorCode(err) != api.CodeIdempotencyRunning:
					t.Errorf("Invoke: %v, want no error or code %s", err, api.CodeIdempotencyRunning)
				}
			})
		}
		wg.Wait()
		ran := 0
		for _, r := range results {
			if r != nil {
				ran++
			}
		}
		again, err := b.engine.Invoke(t.Context(), inv)
		if err != nil || !again.Replayed || again.Activation.ActivationID != inv.ActivationID || again.Activation.Attempt != 3 {
			t.Fatalf("repeat: got %+v and error %v, want a replay of activation %s at attempt 3", again, err, inv.ActivationID)
		}
		if ran != 1 {
			t.Errorf("got %d of four calls run, want 1", ran)
		}
	})
}

// Where a patient caller finds no place it waits for longer than others may, and
// its own end, or the engine's, ends that.
func TestWaitForSlotWaitsForASlot(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	config := defaults()
	config.MaxConcurrency, config.TimeoutMS = 1, 20_000
	b.publish("f", `export default (e) => new Promise(r => setTimeout(r, e));`, config)
	first := make(chan error, 1)
	go func() {
		_, err := b.engine.Invoke(t.Context(), b.invocation("f", "1800"))
		first <- err
	}()
	b.eventually("the place is taken", func() bool { return len(b.list("f")) == 1 })
	inv := b.invocation("f", "1")
	inv.ActivationID, inv.WaitForSlot = api.TaskActivationID([]byte(t.Name())), true
	if out, err := b.engine.Invoke(t.Context(), inv); err != nil || out.Activation.Status != api.StatusSuccess {
		t.Errorf("call that waits for a slot: got %+v and error %v, want success", out, err)
	}
	if err := <-first; err != nil {
		t.Errorf("<-first: %v", err)
	}

	hold := b.invocation("f", "15000")
	go func() { _, _ = b.engine.Invoke(t.Context(), hold) }()
	b.eventually("the place is taken again", func() bool { return len(b.list("f")) == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	inv.ActivationID = api.TaskActivationID([]byte("another"))
	if _, err := b.engine.Invoke(ctx, inv); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Invoke while retryInterval outlives its caller: got error %v, want %v", err, context.DeadlineExceeded)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := b.engine.Invoke(context.WithoutCancel(t.Context()), inv)
		waits <- err
	}()
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := b.engine.Close(ended); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-waits; err == nil {
		t.Error("it ran although the engine had ended")
	}
}

// The caller's deadline is the function's where it is the earlier one.
func TestDeadlineClamps(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("f", `export default async (e, ctx) => { await new Promise(r => setTimeout(r, ctx.remainingMs() + 1000)); };`, defaults())
		inv := b.invocation("f", "1")
		inv.Deadline = time.Now().Add(300 * time.Millisecond)
		out, err := b.engine.Invoke(t.Context(), inv)
		if err != nil || out.Activation.Status != api.StatusTimeout || out.Activation.DeadlineMS != inv.Deadline.UnixMilli() {
			t.Errorf("got %+v and error %v, want status timeout at deadline %d", out, err, inv.Deadline.UnixMilli())
		}
	})
}

func TestHeartbeatsReachTheCaller(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("f", `export default async () => {
			const last = cs.cadence.lastHeartbeat();
			await cs.cadence.heartbeat({ done: last.done + 1 });
			await cs.cadence.heartbeat();
			return last;
		};`, defaults())
		var beats []string
		inv := b.invocation("f", "1")
		inv.Trigger.Type = api.TriggerCadence
		inv.LastHeartbeat = json.RawMessage(`{"done":7}`)
		inv.Heartbeat = func(details json.RawMessage) error { beats = append(beats, string(details)); return nil }
		out, err := b.engine.Invoke(t.Context(), inv)
		if err != nil || string(out.Activation.Result) != `{"done":7}` || strings.Join(beats, ";") != `{"done":8};` {
			t.Errorf(`got %+v, error %v, heartbeats %q, want result {"done":7} and heartbeats {"done":8} and an empty one`, out, err, beats)
		}
		// Other triggers have no heartbeats.
		inv.Trigger.Type, inv.Heartbeat = api.TriggerAPI, nil
		out, err = b.engine.Invoke(t.Context(), inv)
		if err != nil || out.Activation.Error == nil || out.Activation.Error.Code != string(api.CodeHostInvalidArgument) {
			t.Errorf("heartbeat outside of an activity: got %+v and error %v, want code %s", out, err, api.CodeHostInvalidArgument)
		}
	})
}

// workflows records what functions ask for.
type workflows struct {
	started   []hostcall.WorkflowStart
	signalled []hostcall.WorkflowSignal
}

func (w *workflows) StartWorkflow(_ context.Context, s hostcall.WorkflowStart) (hostcall.WorkflowRun, error) {
	w.started = append(w.started, s)
	return hostcall.WorkflowRun{WorkflowID: s.ID, RunID: "run"}, nil
}

func (w *workflows) SignalWorkflow(_ context.Context, s hostcall.WorkflowSignal) error {
	w.signalled = append(w.signalled, s)
	return api.Errorf(api.CodeHostWorkflowNotFound, "no such workflow runs")
}

func TestWorkflowsNeedTheCapability(t *testing.T) {
	t.Parallel()
	for _, configured := range []bool{true, false} {
		asked := &workflows{}
		b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) {
			if configured {
				c.Workflows = asked
			}
		})
		config := defaults()
		config.Capabilities.Cadence = &api.CadenceCapability{Domains: []string{"payments"}, Workflows: []string{"Refund"}}
		b.publish("f", `export default async (e) => {
			const said = async (p) => { try { return await p } catch (err) { return err.code } };
			return [
				await said(cs.cadence.start("Refund", { domain: "payments", tasklist: "l", workflowId: "w1", input: { n: 1 } })),
				await said(cs.cadence.start("Refund", { domain: "other", tasklist: "l" })),
				await said(cs.cadence.start("Payout", { domain: "payments", tasklist: "l" })),
				await said(cs.cadence.start("Refund", { domain: "payments", tasklist: "l", idReuse: "maybe" })),
				await said(cs.cadence.signal("Refund", { domain: "payments", workflowId: "w1", signal: "go" })),
				await said(cs.cadence.signal("Payout", { domain: "payments", workflowId: "w1", signal: "go" })),
			];
		};`, config)
		want := `[{"workflowId":"w1","runId":"run"},"CS_RUNTIME_CAPABILITY_DENIED","CS_RUNTIME_CAPABILITY_DENIED",` +
			`"CS_RUNTIME_INVALID_ARGUMENT","CS_RUNTIME_WORKFLOW_NOT_FOUND","CS_RUNTIME_CAPABILITY_DENIED"]`
		if !configured {
			want = `["CS_RUNTIME_CADENCE_UNAVAILABLE","CS_RUNTIME_CAPABILITY_DENIED","CS_RUNTIME_CAPABILITY_DENIED",` +
				`"CS_RUNTIME_CADENCE_UNAVAILABLE","CS_RUNTIME_CADENCE_UNAVAILABLE","CS_RUNTIME_CAPABILITY_DENIED"]`
		}
		if out := b.invoke("f", "1"); string(out.Activation.Result) != want {
			t.Errorf("%s, want %s (%+v)", out.Activation.Result, want, out.Activation.Error)
		}
		if configured && (len(asked.started) != 1 || string(asked.started[0].Input) != `{"n":1}` || len(asked.signalled) != 1) {
			t.Errorf(`got %d starts and %d signals, %+v, want one of each, the start with input {"n":1}`, len(asked.started), len(asked.signalled), asked)
		}
	}
}
