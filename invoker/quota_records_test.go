package invoker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/quotas/quotastest"
	"github.com/codesous/sous/storage/storagetest"
)

// fullRecords are quotas that admit calls, and no more bytes of records once full is set.
type fullRecords struct {
	full    atomic.Bool
	charged atomic.Int64 // bytes of records
}

func (q *fullRecords) Call(context.Context, string) error   { return nil }
func (q *fullRecords) Egress(context.Context, string) error { return nil }
func (q *fullRecords) Overdrawn(string, quota.Name) error   { return nil }

func (q *fullRecords) Records(context.Context, string) error {
	if q.full.Load() {
		return api.Errorf(api.CodeTenantRate, "no more records today")
	}
	return nil
}

func (q *fullRecords) Charge(_ string, name quota.Name, amount int64) {
	if name == quota.RecordBytes {
		q.charged.Add(amount)
	}
}

// Errors count as bytes of records. Beyond the limit, the records have little of them, also those
// of asynchronous invocations with large results, and calls with an idempotency key are refused.
func TestFullRecordsAreShort(t *testing.T) {
	t.Parallel()
	q := &fullRecords{}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	b := newBench(t, s, func(c *invoker.Config) { c.Quotas = q })
	defer b.work()()
	b.publish("throws", `export default () => { throw new Error("x".repeat(70000)) }`, defaults())
	b.publish("large", `export default () => "x".repeat(20000)`, asynchronous(1))

	held := b.stored(b.invoke("throws", "null").Activation.ActivationID).Error
	if got := q.charged.Load(); held.Bytes() < api.MaxErrorMessageBytes || got < int64(held.Bytes()) {
		t.Errorf("an error of %d bytes was stored and %d bytes were charged, want the whole error, and as many", held.Bytes(), got)
	}
	q.full.Store(true)
	q.charged.Store(0)
	out := b.invoke("throws", "null")
	held = b.stored(out.Activation.ActivationID).Error
	if held.Bytes() > 2<<10 || !strings.HasPrefix(held.Message, "xxx") || held.Type != api.ErrException {
		t.Errorf("beyond the limit: got an error of type %s with %d bytes, want the begin of the thrown one, and at most 2 KiB", held.Type, held.Bytes())
	}
	record := b.ends(b.enqueue("large", "null"))
	if !record.ResultTruncated || len(record.Result) > api.MaxInlineResultBytes {
		t.Errorf("result of an asynchronous invocation beyond the limit: %d bytes, truncated %t, want it truncated", len(record.Result), record.ResultTruncated)
	}
	if got := q.charged.Load(); got != 0 {
		t.Errorf("beyond the limit: %d bytes were charged, want none", got)
	}
	inv := b.invocation("large", "null")
	inv.IdempotencyKey = "once"
	if _, err := b.engine.Invoke(t.Context(), inv); api.ErrorCode(err) != api.CodeTenantRate {
		t.Errorf("idempotent call beyond the limit: got error %v, want %s", err, api.CodeTenantRate)
	}
}

// spentCalls are quotas that admit a number of calls.
type spentCalls struct {
	fullRecords
	left atomic.Int64
}

func (q *spentCalls) Call(context.Context, string) error {
	if q.left.Add(-1) < 0 {
		return api.Errorf(api.CodeTenantRate, "no more calls in this second")
	}
	return nil
}

// A repeat under an idempotency key counts as a call, once, whatever access the caller has.
func TestReplaysAreCalls(t *testing.T) {
	t.Parallel()
	q := &spentCalls{}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	b := newBench(t, s, func(c *invoker.Config) { c.Quotas = q })
	b.publish("hello", `export default () => 1`, defaults())
	inv := b.invocation("hello", "null")
	for _, access := range []api.Access{api.AccessUnrestricted, api.AccessGranted} {
		q.left.Store(2)
		inv.Access, inv.IdempotencyKey = access, fmt.Sprint("k", access)
		for n, replayed := range []bool{false, true} {
			if out, err := b.engine.Invoke(t.Context(), inv); err != nil || out.Replayed != replayed {
				t.Fatalf("call %d of two with access %v: got %+v, %v, want replayed %t", n+1, access, out, err, replayed)
			}
		}
		if out, err := b.engine.Invoke(t.Context(), inv); api.ErrorCode(err) != api.CodeTenantRate {
			t.Errorf("a repeat beyond the rate, with access %v: got %+v, %v, want %s", access, out, err, api.CodeTenantRate)
		}
	}
}

// The outcome that a destination receives counts as bytes of jobs, with the payload that it repeats.
func TestOutcomesAreLimited(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	quotastest.Limit(t, s, quota.TenantLimits{JobBytes: 1_000_000})
	b := newBench(t, s)
	defer b.work()()
	config := asynchronous(1)
	config.OnSuccess = &api.Destination{Queue: "outcomes"}
	b.publish("sender", `export default () => 1`, config)
	event := quote(strings.Repeat("x", 100_000))
	for n := 0; ; n++ {
		out, err := b.engine.Enqueue(t.Context(), b.invocation("sender", event))
		if api.ErrorCode(err) == api.CodeTenantRate {
			if n < 3 || n > 6 {
				t.Errorf("got %d invocations within 1 MB, want 5: each has a payload of 100 kB, and an outcome", n)
			}
			return
		}
		if err != nil || n > 20 {
			t.Fatalf("Enqueue %d: got error %v, want %s after some", n, err, api.CodeTenantRate)
		}
		b.ends(out.ActivationID)
	}
}
