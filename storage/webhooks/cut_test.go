package webhooks_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/webhooks"
)

// operation is a call whose script is interrupted. call makes it, by a repository whose scripts are
// or are not interrupted; sound checks what an interrupted call left, and done what the call, or its
// repetition, has done.
type operation struct {
	call        func(*webhooks.Repository) error
	sound, done func(t *testing.T)
}

// TestScriptsMayBeCutAfterAnyWrite interrupts the scripts after each of their writes, as a crash of
// KVRocks does. No event is lost, no delivery is without a time for its next attempt, and the
// repeated call completes the change.
func TestScriptsMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *fixture) operation{
		"take": cutTake, "retry": cutRetry, "end": cutEnd, "create": cutCreate, "change": cutChange, "rotate": cutRotate,
		"delete": cutDelete, "lease": cutLease, "release": cutRelease,
	} {
		for _, b := range storagetest.AllBackends() {
			t.Run(name+"/"+b.Name, func(t *testing.T) {
				t.Parallel()
				cfg := b.Config(t)
				whole, keys := storagetest.Open(t, cfg), newKeys(t)
				for k := 0; ; k++ {
					if k > 12 {
						t.Fatal("got more than 12 writes of one script, want at most 12")
					}
					f := newFixture(t, whole, keys)
					cfg.ScriptPrelude = storagetest.CutAfter(k)
					cut := storagetest.Open(t, cfg)
					if cutOnce(t, k, f, webhooks.New(cut, secrets.New(cut, keys)), prepare(t, f)) {
						break
					}
				}
			})
		}
	}
}

// cutOnce makes the call with scripts that end after k writes, checks the remaining records, and
// repeats the call. It reports whether the script ran to its end.
func cutOnce(t *testing.T, k int, f *fixture, cut *webhooks.Repository, op operation) (whole bool) {
	t.Helper()
	err := op.call(cut)
	if err == nil {
		if k == 0 {
			t.Error("got a script without writes, want at least 1")
		}
		op.done(t)
		return true
	}
	if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "CUT") {
		t.Fatalf("got error %v, want the CUT of the prelude", err)
	}
	if op.sound != nil {
		op.sound(t)
	}
	if err := op.call(f.hooks); err != nil {
		t.Errorf("repeated after %d writes: got error %v, want success", k, err)
	}
	op.done(t)
	return false
}

func cutTake(t *testing.T, f *fixture) operation {
	t.Helper()
	f.create(t, "one")
	rec := f.record(t, "one")
	from := f.position(t, rec)
	of, to := f.happen(t, 3)
	all := func(t *testing.T) bool {
		t.Helper()
		pending, due := f.stored(t, rec)
		return slices.Equal(pending, members(of)) && slices.Equal(due, members(of))
	}
	return operation{
		call: func(r *webhooks.Repository) error {
			moved, err := r.Take(t.Context(), f.tenant, rec.ID, of, from, to)
			if err == nil && !moved {
				err = errors.New("the position is another")
			}
			return err
		},
		sound: func(t *testing.T) {
			t.Helper()
			pending, due := f.stored(t, rec)
			if at := f.position(t, rec); at != from && !all(t) {
				t.Errorf("got the position moved to %s with the deliveries %v at the times of %v, want it moved after %v", at, pending, due, members(of))
			}
			for _, m := range due {
				if !slices.Contains(pending, m) {
					t.Errorf("got a time of delivery %s without the delivery, want the delivery first", m)
				}
			}
		},
		done: func(t *testing.T) {
			t.Helper()
			if at := f.position(t, rec); at != to || !all(t) {
				t.Errorf("got position %s and incomplete deliveries: %t, want %s and all", at, !all(t), to)
			}
		},
	}
}

// taken creates a webhook with one delivery.
func (f *fixture) taken(t *testing.T) (webhooks.Record, webhooks.Member) {
	t.Helper()
	f.create(t, "one")
	rec := f.record(t, "one")
	from := f.position(t, rec)
	of, to := f.happen(t, 1)
	if moved, err := f.hooks.Take(t.Context(), f.tenant, rec.ID, of, from, to); err != nil || !moved {
		t.Fatalf("Take: got %t and error %v, want the position moved", moved, err)
	}
	return rec, webhooks.MemberOf(&of[0])
}

// settle makes an attempt, as a dispatcher does.
func (f *fixture) settle(t *testing.T, r *webhooks.Repository, rec webhooks.Record, m webhooks.Member, attempt webhook.Delivery, failingSince int64) error {
	t.Helper()
	d, raw, found, err := f.hooks.Pending(t.Context(), f.tenant, rec.ID, m)
	if err != nil || !found {
		return err
	}
	attempt.Event, attempt.Attempt, attempt.AtMS = d.Event, d.Attempts+1, f.store.NowMS()
	return r.Settle(t.Context(), f.tenant, rec.ID, &d, raw, &attempt, failingSince)
}

// checkStatus checks what the last attempt left in the webhook, and the attempts of the log.
func (f *fixture) checkStatus(t *testing.T, result string, status int, failingSince int64) {
	t.Helper()
	w, err := f.hooks.Get(t.Context(), f.tenant, "one")
	if err != nil || w.LastStatus != status || w.FailingSinceMS != failingSince || w.LastDeliveryAtMS == 0 {
		t.Errorf("Get: got %+v and error %v, want status %d, failing since %d", w, err, status, failingSince)
	}
	items, _, err := f.hooks.Deliveries(t.Context(), f.tenant, "one", "", 10)
	if err != nil || len(items) == 0 || items[0].Result != result {
		t.Errorf("Deliveries: got %+v and error %v, want an attempt that is %s", items, err, result)
	}
}

func cutRetry(t *testing.T, f *fixture) operation {
	t.Helper()
	rec, m := f.taken(t)
	next := f.store.NowMS() + time.Hour.Milliseconds()
	there := func(t *testing.T) {
		t.Helper()
		if pending, due := f.stored(t, rec); len(pending) != 1 || len(due) != 1 {
			t.Errorf("got deliveries %v at the times of %v, want one of each", pending, due)
		}
	}
	return operation{
		call: func(r *webhooks.Repository) error {
			return f.settle(t, r, rec, m, webhook.Delivery{Result: webhook.Retrying, Status: 500, Error: "500", NextAtMS: next}, 1_000)
		},
		sound: there,
		done: func(t *testing.T) {
			t.Helper()
			there(t)
			f.checkStatus(t, webhook.Retrying, 500, 1_000)
			d, _, found, err := f.hooks.Pending(t.Context(), f.tenant, rec.ID, m)
			if err != nil || !found || d.Attempts < 1 {
				t.Errorf("Pending: got %+v, %t and error %v, want at least one attempt", d, found, err)
			}
			due, err := f.hooks.Due(t.Context(), f.tenant, []webhooks.Record{rec})
			if err != nil || len(due[0]) != 1 || due[0][0].AtMS != next {
				t.Errorf("Due: got %+v and error %v, want one at %d", due, err, next)
			}
		},
	}
}

func cutEnd(t *testing.T, f *fixture) operation {
	t.Helper()
	rec, m := f.taken(t)
	return operation{
		call: func(r *webhooks.Repository) error {
			return f.settle(t, r, rec, m, webhook.Delivery{Result: webhook.Delivered, Status: 200}, 0)
		},
		sound: func(t *testing.T) {
			t.Helper()
			pending, due := f.stored(t, rec)
			if len(due) != 1 {
				t.Errorf("got deliveries %v at the times of %v, want the time until the end, or no replica finds the rest", pending, due)
			}
			items, _, err := f.hooks.Deliveries(t.Context(), f.tenant, "one", "", 10)
			if err != nil || len(pending) == 0 && len(items) == 0 {
				t.Errorf("Deliveries: got none and error %v, want the attempt of a delivery that ended", err)
			}
		},
		done: func(t *testing.T) {
			t.Helper()
			if pending, due := f.stored(t, rec); len(pending) != 0 || len(due) != 0 {
				t.Errorf("got deliveries %v at the times of %v, want none", pending, due)
			}
			f.checkStatus(t, webhook.Delivered, 200, 0)
		},
	}
}

func cutCreate(t *testing.T, f *fixture) operation {
	t.Helper()
	return operation{
		call: func(r *webhooks.Repository) error {
			_, _, err := r.Put(t.Context(), f.tenant, "one", config(), webhooks.Condition{})
			return err
		},
		done: func(t *testing.T) {
			t.Helper()
			rec := f.record(t, "one")
			if keys, err := f.hooks.Keys(f.tenant, &rec); err != nil || len(keys) != 1 || f.position(t, rec) == "" {
				t.Errorf("got %d secrets, error %v and position %q, want one secret and a position", len(keys), err, f.position(t, rec))
			}
		},
	}
}

// cutChange enables a webhook: it begins with the next event, without the deliveries of before.
func cutChange(t *testing.T, f *fixture) operation {
	t.Helper()
	rec, m := f.taken(t)
	enable := func(r *webhooks.Repository, on bool) error {
		_, err := r.Update(t.Context(), f.tenant, "one", nil, func(c *webhook.Config) error { c.Enabled = on; return nil })
		return err
	}
	if err := enable(f.hooks, false); err != nil {
		t.Fatalf("Update: %v", err)
	}
	k := f.store.Keys().Webhook(f.tenant, rec.ID)
	if err := f.store.Client().HSet(t.Context(), k.Pending(), string(m), "{}").Err(); err != nil { // a crash left it
		t.Fatalf("HSet: %v", err)
	}
	_, end := f.happen(t, 1)
	return operation{
		call: func(r *webhooks.Repository) error { return enable(r, true) },
		done: func(t *testing.T) {
			t.Helper()
			pending, due := f.stored(t, rec)
			if got := f.record(t, "one"); !got.Enabled || got.Revision != 3 || f.position(t, rec) != end || len(pending)+len(due) != 0 {
				t.Errorf("got %+v at %s with deliveries %v, want it enabled at %s without deliveries", got, f.position(t, rec), pending, end)
			}
		},
	}
}

func cutRotate(t *testing.T, f *fixture) operation {
	t.Helper()
	made, secret := f.create(t, "one"), ""
	return operation{
		call: func(r *webhooks.Repository) error {
			w, err := r.Rotate(t.Context(), f.tenant, "one", nil)
			secret = w.Secret
			return err
		},
		done: func(t *testing.T) {
			t.Helper()
			rec := f.record(t, "one")
			if keys, err := f.hooks.Keys(f.tenant, &rec); err != nil || !slices.Equal(keys, []string{secret, made.Secret}) {
				t.Errorf("Keys: got %d and error %v, want the new secret and the one of the creation", len(keys), err)
			}
		},
	}
}

func cutDelete(t *testing.T, f *fixture) operation {
	t.Helper()
	rec, _ := f.taken(t)
	return operation{
		call: func(r *webhooks.Repository) error { return r.Delete(t.Context(), f.tenant, "one", nil) },
		done: func(t *testing.T) {
			t.Helper()
			if _, err := f.hooks.Get(t.Context(), f.tenant, "one"); api.ErrorCode(err) != api.CodeWebhookNotFound {
				t.Errorf("Get: got error %v, want %s", err, api.CodeWebhookNotFound)
			}
			k := f.store.Keys().Webhook(f.tenant, rec.ID)
			for _, key := range []string{k.State(), k.Pending(), k.Due(), k.Log()} {
				if n, err := f.store.Client().Exists(t.Context(), key).Result(); err != nil || n != 0 {
					t.Errorf("Exists(%s): got %d and error %v, want none", key, n, err)
				}
			}
		},
	}
}

func cutLease(t *testing.T, f *fixture) operation {
	t.Helper()
	return operation{
		call: func(r *webhooks.Repository) error {
			mine, err := r.Lease(t.Context(), f.tenant, "a", time.Minute)
			if err == nil && !mine {
				err = errors.New("another replica has the lease")
			}
			return err
		},
		done: func(t *testing.T) {
			t.Helper()
			if mine, err := f.hooks.Lease(t.Context(), f.tenant, "b", time.Minute); err != nil || mine {
				t.Errorf("Lease of another replica: got %t and error %v, want false", mine, err)
			}
		},
	}
}

func cutRelease(t *testing.T, f *fixture) operation {
	t.Helper()
	if mine, err := f.hooks.Lease(t.Context(), f.tenant, "a", time.Minute); err != nil || !mine {
		t.Fatalf("Lease: got %t and error %v, want the lease", mine, err)
	}
	return operation{
		call: func(r *webhooks.Repository) error { return r.Release(t.Context(), f.tenant, "a") },
		done: func(t *testing.T) {
			t.Helper()
			if mine, err := f.hooks.Lease(t.Context(), f.tenant, "b", time.Minute); err != nil || !mine {
				t.Errorf("Lease of another replica: got %t and error %v, want true", mine, err)
			}
		},
	}
}
