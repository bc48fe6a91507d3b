package invoker_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

func TestAsyncIdempotencyKey(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("echo", `export default (e) => e;`, asynchronous(1))
		b.pause("fn.echo", true)
		call := func(event string) (*api.Queued, error) {
			inv := b.invocation("echo", event)
			inv.IdempotencyKey = "k"
			return b.engine.Enqueue(b.t.Context(), inv)
		}
		var ids sync.Map
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				out, err := call("1")
				if err != nil || out.Status != api.StatusQueued {
					b.t.Errorf("one of 8 concurrent calls: got %+v and error %v, want status queued", out, err)
					return
				}
				ids.Store(out.ActivationID, true)
			})
		}
		wg.Wait()
		count := 0
		ids.Range(func(_, _ any) bool { count++; return true })
		if count != 1 {
			b.t.Fatalf("got %d activations, want 1", count)
		}
		if _, err := call("2"); api.ErrorCode(err) != api.CodeIdempotencyMismatch {
			b.t.Errorf("another event under the same key: got error %v, want code %s", err, api.CodeIdempotencyMismatch)
		}
		out, err := call("1")
		if err != nil || !out.Replayed || out.Status != api.StatusQueued {
			b.t.Fatalf("repeat while queued: got %+v and error %v, want a replay with status queued", out, err)
		}
		b.pause("fn.echo", false)
		b.ends(out.ActivationID)
		out, err = call("1")
		if err != nil || !out.Replayed || out.Status != api.StatusSuccess {
			b.t.Errorf("repeat after the end: got %+v and error %v, want a replay with status success", out, err)
		}
		if items := b.list("echo"); len(items) != 1 {
			b.t.Errorf("got %d listed activations, want 1", len(items))
		}
	})
}

// A replica that died between the job and the record has decided whose the key is.
func TestAsyncIdempotencyKeyOfAJobAlone(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("echo", `export default (e) => e;`, asynchronous(1))
		b.pause("fn.echo", true)
		inv := b.invocation("echo", "1")
		inv.IdempotencyKey = "k"
		id := api.DerivedActivationID(b.tenant, namespace, "echo", inv.Ref, "k")
		spec := &api.JobSpec{
			Namespace: namespace, Queue: "fn.echo", Payload: inv.Event,
			JobOptions: api.JobOptions{Target: &api.JobTarget{Function: "echo", Alias: "prod"}},
			Activation: &api.AsyncActivation{Access: api.AccessUnrestricted, Fingerprint: fmt.Sprintf("%x", sha256.Sum256([]byte(inv.Principal.Sub+"\n1")))},
		}
		if _, _, err := b.broker.EnqueueInvocation(b.t.Context(), b.tenant, id, spec); err != nil {
			b.t.Fatalf("EnqueueInvocation: %v", err)
		}
		other := inv
		other.Event = json.RawMessage("2")
		if out, err := b.engine.Enqueue(b.t.Context(), other); api.ErrorCode(err) != api.CodeIdempotencyMismatch {
			b.t.Errorf("Enqueue of another event = %+v, %v, want code %s", out, err, api.CodeIdempotencyMismatch)
		}
		if out, err := b.engine.Enqueue(b.t.Context(), inv); err != nil || out.ActivationID != id {
			b.t.Errorf("repeat of Enqueue: got %+v and error %v, want activation %s", out, err, id)
		}
		b.pause("fn.echo", false)
		if a := b.ends(id); string(a.Result) != "1" {
			b.t.Errorf("got result %s, error %+v, want 1", a.Result, a.Error)
		}
	})
}

// A job outlives the record of its activation where the retention of the version is the shorter
// one. A repeated call gets the end of the job, and no record of a run that will never be.
func TestAsyncIdempotencyKeyOutlivesTheRecord(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("echo", `export default (e) => { if (e) throw new Error("no"); };`, asynchronous(1))
		for event, want := range map[string]api.Status{"0": api.StatusSuccess, "1": api.StatusError} {
			inv := b.invocation("echo", event)
			inv.IdempotencyKey, inv.RequestID = "k"+event, "req_1"
			first, err := b.engine.Enqueue(b.t.Context(), inv)
			if err != nil {
				b.t.Fatalf("Enqueue: %v", err)
			}
			b.ends(first.ActivationID)
			b.eventually("its job ends", func() bool { return b.job(first.ActivationID).State.Terminal() })
			inv.RequestID = "req_2"
			// The worker that ended the job may write the record once more, if it is missing.
			b.eventually("a repeat leaves no record", func() bool {
				if err := b.store.Client().Del(b.t.Context(), b.store.Keys().ActivationMeta(b.tenant, first.ActivationID)).Err(); err != nil {
					b.t.Fatalf("Del: %v", err)
				}
				again, err := b.engine.Enqueue(b.t.Context(), inv)
				if err != nil || again.Status != want || !again.Replayed || again.ActivationID != first.ActivationID {
					b.t.Errorf("event %s again: got %+v, error %v, want a repeat with status %s", event, again, err, want)
				}
				_, err = activations.New(b.store).Get(b.t.Context(), b.tenant, first.ActivationID)
				return api.ErrorCode(err) == api.CodeActivationNotFound
			})
		}
	})
}

// A repeat of a call whose job an operator has retried gets the state of the retry, also after
// the record of the first run has expired. Another request under the key is refused.
func TestAsyncIdempotencyKeyOfARetriedJob(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("picky", `export default async () => { if (!await cs.kv.get("done")) throw new Error("not yet") };`, asynchronous(1))
		calls := 0
		call := func(event string) (*api.Queued, error) {
			inv := b.invocation("picky", event)
			calls++
			inv.IdempotencyKey, inv.RequestID = "k", fmt.Sprintf("req_%d", calls)
			return b.engine.Enqueue(b.t.Context(), inv)
		}
		first, err := call("1")
		if err != nil {
			b.t.Fatalf("Enqueue: %v", err)
		}
		b.eventually("its job is dead", func() bool { return b.job(first.ActivationID).State == api.JobDead })
		b.pause("fn.picky", true)
		retried, err := b.broker.Retry(b.t.Context(), b.tenant, first.ActivationID)
		if err != nil {
			b.t.Fatalf("Retry: %v", err)
		}
		current := retried.ActivationID
		if err := b.store.Client().Del(b.t.Context(), b.store.Keys().ActivationMeta(b.tenant, first.ActivationID)).Err(); err != nil {
			b.t.Fatalf("Del: %v", err)
		}
		repeat := func(when string, want api.Status) {
			b.t.Helper()
			out, err := call("1")
			// The first repeat writes the record again, and is no replay.
			if err != nil || !out.Replayed && want.Terminal() || out.Status != want || out.ActivationID != current {
				b.t.Errorf("a repeat %s: got %+v, error %v, want the answer of %s with status %s", when, out, err, current, want)
			}
		}
		repeat("while the retry waits", api.StatusQueued)
		if _, err := call("2"); api.ErrorCode(err) != api.CodeIdempotencyMismatch {
			b.t.Errorf("another event under the key: got error %v, want %s", err, api.CodeIdempotencyMismatch)
		}
		b.pause("fn.picky", false)
		b.ends(current)
		repeat("after the retry has failed", api.StatusError)
	})
}

// Each attempt runs what the alias means then.
func TestAsyncAliasIsResolvedAnew(t *testing.T) {
	eachWorking(t, func(b *bench) {
		config := asynchronous(1000)
		delay := int64(200)
		config.Retry.Backoff, config.Retry.BaseDelayMS = api.BackoffFixed, &delay
		b.publish("moving", `export default () => { throw new Error("old"); };`, config)
		id := b.enqueue("moving", "1")
		b.eventually("it fails", func() bool { a := b.stored(id); return a.Error != nil && a.Ref.Version == 1 })
		b.publish("moving", `export default () => "new";`, config)
		if a := b.ends(id); a.Status != api.StatusSuccess || a.Ref.Version != 2 || a.Attempt < 2 {
			b.t.Errorf("got status %s, version %d, attempt %d, want success of version 2 at attempt 2 or later", a.Status, a.Ref.Version, a.Attempt)
		}
	})
}

// What cannot be run at all is not tried again.
func TestAsyncRefusals(t *testing.T) {
	eachWorking(t, func(b *bench) {
		config := asynchronous(5)
		b.publish("gone", `export default () => 1;`, config)
		b.pause("fn.gone", true)
		id := b.enqueue("gone", "1")
		if err := storage.NewAliases(b.store).Delete(b.t.Context(), b.tenant, namespace, "gone", "prod", nil); err != nil {
			b.t.Fatalf("Delete: %v", err)
		}
		b.engine.FunctionChanged(b.t.Context(), b.tenant, namespace, "gone")
		b.pause("fn.gone", false)
		if a := b.ends(id); a.Status != api.StatusError || a.Error.Type != api.ErrRefused || a.Error.Code != string(api.CodeAliasNotFound) || a.Attempt != 1 {
			b.t.Errorf("got status %s, error %+v, attempt %d, want error %s with code %s at attempt 1", a.Status, a.Error, a.Attempt, api.ErrRefused, api.CodeAliasNotFound)
		}
		if j := b.job(id); j.State != api.JobDead || j.DeadReason != api.DeadFatal {
			b.t.Errorf("got job %+v, want it dead with reason %s", j, api.DeadFatal)
		}
		// A version that names roles is judged at the attempt, too.
		b.publish("closed", `export default () => 1;`, asynchronous(5))
		b.pause("fn.closed", true)
		inv := b.invocation("closed", "1")
		inv.Access, inv.Principal.Roles = api.AccessGranted, []string{"invoker"}
		out, err := b.engine.Enqueue(b.t.Context(), inv)
		if err != nil {
			b.t.Fatalf("Enqueue: %v", err)
		}
		config.Authz = &api.Authz{InvokeHTTPRoles: []string{"admin"}}
		b.publish("closed", `export default () => 2;`, config)
		b.pause("fn.closed", false)
		if a := b.ends(out.ActivationID); a.Error == nil || a.Error.Code != string(api.CodeAuthzDenied) {
			b.t.Errorf("got status %s, error %+v, want an error with code %s", a.Status, a.Error, api.CodeAuthzDenied)
		}
		if _, err := b.engine.Enqueue(b.t.Context(), inv); api.ErrorCode(err) != api.CodeAuthzDenied {
			b.t.Errorf("Enqueue without the role: got error %v, want code %s", err, api.CodeAuthzDenied)
		}
		inv.Event = json.RawMessage(`"` + strings.Repeat("x", api.MaxJobPayloadBytes) + `"`)
		if _, err := b.engine.Enqueue(b.t.Context(), inv); api.ErrorCode(err) != api.CodeBodyLimit {
			b.t.Errorf("Enqueue of too large an event: got error %v, want code %s", err, api.CodeBodyLimit)
		}
	})
}
