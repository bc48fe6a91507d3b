package storage_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// TestScriptsMayBeCutAfterAnyWrite interrupts every script after each of its writes, as a
// crash of KVRocks does, and checks that the remaining records are sound and that the
// repeated call completes them.
func TestScriptsMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.AllBackends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			whole := storagetest.Open(t, cfg)
			for name, op := range cutOperations() {
				for k := 0; ; k++ {
					if k > 12 {
						t.Fatalf("%s: got more than 12 writes of one script, want at most 12", name)
					}
					cfg.ScriptPrelude = storagetest.CutAfter(k)
					if cutOnce(t, name, op, whole, storagetest.Open(t, cfg)) {
						if k == 0 {
							t.Errorf("%s: got a script without writes, want at least 1", name)
						}
						break // the script has no more than k writes
					}
				}
			}
		})
	}
}

// cutOperation is a call that runs one script. prepare makes its call; done
// checks what it should have done, once it has succeeded.
type cutOperation func(t *testing.T, f *fixture) (call func(f *fixture) error, done func(t *testing.T, f *fixture))

// cutOnce makes the call on a store that interrupts its script, checks the records, and
// repeats the call. It reports whether the script ran to its end.
func cutOnce(t *testing.T, name string, op cutOperation, whole, cut *storage.Store) (uncut bool) {
	t.Helper()
	f := newFixture(t, whole)
	call, done := op(t, f)
	broken := *f
	broken.Store, broken.functions, broken.versions = cut, storage.NewFunctions(cut), storage.NewVersions(cut)
	broken.aliases, broken.activations = storage.NewAliases(cut), activations.New(cut)
	err := call(&broken)
	if err == nil {
		done(t, f)
		return true
	}
	if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "CUT") {
		t.Fatalf("%s: got error %v, want the CUT of the prelude", name, err)
	}
	if _, err := f.functions.Get(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name); err == nil {
		checkFunction(t, f)
	}
	changesAreRecorded(t, name, f)
	activationsAreRecorded(t, name, f)
	if err := call(f); err != nil {
		t.Errorf("%s, again after a cut: %v", name, err)
	}
	done(t, f)
	return false
}

func cutOperations() map[string]cutOperation {
	return map[string]cutOperation{
		"create":        cutCreate,
		"revive":        cutRevive,
		"delete":        cutDelete,
		"publish":       cutPublish,
		"publish again": cutPublishAgain,
		"set alias":     cutAliasSet,
		"delete alias":  cutAliasDelete,
		"finish":        cutFinish,
		"repair":        cutSweep,
		"withdraw":      cutWithdraw,
		"attempt":       cutAttempt,

		"create binding": cutBindingCreate,
		"change binding": cutBindingUpdate,
		"delete binding": cutBindingDelete,
	}
}

func cutCreate(_ *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	fn := f.fn
	fn.Name = "another"
	return func(f *fixture) error {
			_, err := f.functions.Create(context.Background(), fn)
			return err
		}, func(t *testing.T, f *fixture) {
			t.Helper()
			if items, _, err := f.functions.List(t.Context(), fn.Tenant, fn.Namespace, "", 10); err != nil || len(items) != 2 {
				t.Errorf("List: got %+v and error %v, want 2 functions", items, err)
			}
		}
}

func cutRevive(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	if err := f.functions.Delete(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, 1); err != nil {
		t.Fatalf("functions.Delete: %v", err)
	}
	return func(f *fixture) error {
		_, err := f.functions.Create(context.Background(), f.fn)
		return err
	}, func(t *testing.T, f *fixture) { t.Helper(); checkFunction(t, f) }
}

func cutDelete(_ *testing.T, _ *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	return func(f *fixture) error {
			return f.functions.Delete(context.Background(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, 5)
		}, func(t *testing.T, f *fixture) {
			t.Helper()
			if _, err := f.functions.Get(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name); api.ErrorCode(err) != api.CodeFunctionNotFound {
				t.Errorf("functions.Get: got %v; want CodeFunctionNotFound", err)
			}
		}
}

func cutPublish(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	id := f.draft(t, "aa")
	return func(f *fixture) error {
		v, _, err := f.publish(id, "aa", "prod")
		if err == nil && v.Version != 1 {
			err = errors.New("another version")
		}
		return err
	}, func(t *testing.T, f *fixture) { t.Helper(); checkPublished(t, f, id) }
}

func cutPublishAgain(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	if _, _, err := f.publish(f.draft(t, "aa"), "aa", ""); err != nil {
		t.Fatalf("publish: %v", err)
	}
	return cutPublish(t, f)
}

// checkPublished: there is one version, prod points at it, the draft is consumed.
func checkPublished(t *testing.T, f *fixture, draftID string) {
	t.Helper()
	if latest := checkFunction(t, f); latest != 1 {
		t.Errorf("got latest version %d, want 1", latest)
	}
	tn, ns, name := f.fn.Tenant, f.fn.Namespace, f.fn.Name
	if r, err := f.versions.Resolve(t.Context(), tn, ns, name, api.Ref{Alias: "prod"}); err != nil || r.Version.Version != 1 {
		t.Errorf("Resolve of prod: got %+v and error %v, want version 1", r, err)
	}
	if d, err := f.functions.Detail(t.Context(), tn, ns, name); err != nil || len(d.Aliases) != 1 {
		t.Errorf("Detail: got aliases %+v and error %v, want 1 alias", d.Aliases, err)
	}
	if _, err := f.drafts.Get(t.Context(), tn, ns, name, draftID); api.ErrorCode(err) != api.CodeDraftConsumed {
		t.Errorf("draft: %v; want CodeDraftConsumed", err)
	}
}

func cutAliasSet(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	id := f.draft(t, "aa")
	if _, _, err := f.publish(id, "aa", ""); err != nil {
		t.Fatalf("publish: %v", err)
	}
	return func(f *fixture) error {
		_, err := f.aliases.Set(context.Background(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, "prod", 1, new(int64(0)), 1)
		return err
	}, func(t *testing.T, f *fixture) { t.Helper(); checkPublished(t, f, id) }
}

func cutAliasDelete(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	if _, _, err := f.publish(f.draft(t, "aa"), "aa", "prod"); err != nil {
		t.Fatalf("publish: %v", err)
	}
	return func(f *fixture) error {
			err := f.aliases.Delete(context.Background(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, "prod", nil)
			if api.ErrorCode(err) == api.CodeAliasNotFound {
				err = nil // the alias went before the cut
			}
			return err
		}, func(t *testing.T, f *fixture) {
			t.Helper()
			items, _, err := f.aliases.List(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, "", 10)
			if err != nil || len(items) != 0 {
				t.Errorf("List of aliases: got %+v and error %v, want none", items, err)
			}
		}
}

func cutFinish(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	a := f.running()
	a.Events = event.RecordAll
	f.start(t, a)
	done := succeeded(a, 7, `"`+strings.Repeat("a", api.MaxInlineResultBytes)+`"`)
	return func(f *fixture) error {
			won, _, err := f.activations.Finish(context.Background(), done)
			if err == nil && !won {
				err = errors.New("lost against itself")
			}
			return err
		}, func(t *testing.T, f *fixture) {
			t.Helper()
			got, err := f.activations.Get(t.Context(), a.Tenant, a.ActivationID)
			if err != nil || got.Status != api.StatusSuccess || string(got.Result) != string(done.Result) {
				t.Errorf("Get: got %+v and error %v, want status %s and a result of %d bytes", got, err, api.StatusSuccess, len(done.Result))
			}
		}
}

// cutSweep is a finish that is not repeated; the sweeper repairs it.
func cutSweep(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	a := f.lost()
	a.Events = event.RecordEnds
	f.start(t, a)
	return func(f *fixture) error {
			_, err := f.activations.SweepFunction(context.Background(), a.Tenant, a.Namespace, a.Function, f.NowMS(), 10)
			return err
		}, func(t *testing.T, f *fixture) {
			t.Helper()
			got, err := f.activations.Get(t.Context(), a.Tenant, a.ActivationID)
			if err != nil || got.Error == nil || got.Error.Type != api.ErrLost {
				t.Errorf("Get: got %+v and error %v, want error type %s", got, err, api.ErrLost)
			}
		}
}

func cutWithdraw(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	a := f.running()
	f.start(t, a)
	return func(f *fixture) error { return f.activations.Withdraw(context.Background(), a) },
		func(t *testing.T, f *fixture) {
			t.Helper()
			if items := f.firstPage(t); len(items) != 0 {
				t.Errorf("got %+v listed after the withdrawal, want none", items)
			}
		}
}

// cutAttempt: the worker writes the record itself where the enqueue did not.
func cutAttempt(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	a := f.queued()
	a.Status, a.Attempt, a.LeaseEpoch, a.Events = api.StatusRunning, 1, 1, event.RecordAll
	return func(f *fixture) error {
			won, _, err := f.activations.Begin(context.Background(), a)
			if err == nil && !won {
				err = errors.New("lost against itself")
			}
			return err
		}, func(t *testing.T, f *fixture) {
			t.Helper()
			if items := f.firstPage(t); len(items) != 1 || items[0].Status != api.StatusRunning || items[0].Attempt != 1 {
				t.Errorf("List: got %+v, want 1 activation with status %s at attempt 1", items, api.StatusRunning)
			}
		}
}
