package bindings_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/storage/quotas"
	"github.com/codesous/sous/storage/quotas/quotastest"
	"github.com/codesous/sous/storage/storagetest"
)

func storedBinding(name string) bindings.Record {
	b := api.WorkerBinding{
		Name: name, Domain: "payments", Tasklist: "activities", Enabled: true,
		ActivityMap: map[string]api.JobTarget{"Pay": {Function: "pay"}},
	}
	b.Normalize()
	return bindings.Record{WorkerBinding: b, Principal: api.Principal{Sub: "me", Roles: []string{"admin"}}, Access: api.AccessGranted}
}

func TestBindings(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, r, tenant := t.Context(), bindings.New(s), storagetest.Tenant(t)
		heard := make(chan storage.Change, 1000)
		if err := s.Subscribe(ctx, func(c storage.Change) { heard <- c }); err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
		path := storage.BindingPath{Tenant: tenant, Namespace: "default", Name: "pay"}
		notice := storage.Change{Kind: storage.ChangeBinding, Tenant: tenant, Namespace: "default", Binding: "pay"}
		made, err := r.Create(ctx, tenant, "default", storedBinding("pay"), 7)
		if err != nil || made.Revision != 1 || made.CreatedAtMS != 7 || made.UpdatedAtMS != 7 {
			t.Fatalf("Create: got %+v and error %v, want revision 1 and the time 7", made, err)
		}
		storagetest.AwaitChange(t, heard, notice)
		for _, nowMS := range []int64{7, 8} { // also an equal one within the same millisecond
			if _, err := r.Create(ctx, tenant, "default", storedBinding("pay"), nowMS); api.ErrorCode(err) != api.CodeBindingExists {
				t.Errorf("Create again at %d = %v, want CodeBindingExists", nowMS, err)
			}
		}
		got, err := r.Get(ctx, path)
		want := storedBinding("pay")
		want.Revision, want.CreatedAtMS, want.UpdatedAtMS, want.Write = 1, 7, 7, got.Write
		if diff := cmp.Diff(&want, got); err != nil || diff != "" {
			t.Errorf("Get: got error %v, difference (-want +got):\n%s", err, diff)
		}
		off := func(b *bindings.Record) error { b.Enabled = false; return nil }
		if _, err := r.Update(ctx, path, new(int64(2)), 9, off); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("another revision: %v; want CodePreconditionFailed", err)
		}
		for range 2 { // the second changes nothing
			changed, err := r.Update(ctx, path, nil, 9, off)
			if err != nil || changed.Revision != 2 || changed.UpdatedAtMS != 9 || changed.CreatedAtMS != 7 || changed.Enabled {
				t.Errorf("Update: got %+v and error %v, want a disabled binding at revision 2, created at 7 and updated at 9", changed, err)
			}
		}
		storagetest.AwaitChange(t, heard, notice)
		if err := r.Delete(ctx, path, new(int64(1))); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("another revision: %v; want CodePreconditionFailed", err)
		}
		if err := r.Delete(ctx, path, new(int64(2))); err != nil {
			t.Errorf("Delete: %v", err)
		}
		storagetest.AwaitChange(t, heard, notice)
		for what, err := range map[string]error{
			"delete": r.Delete(ctx, path, nil),
			"get":    func() error { _, err := r.Get(ctx, path); return err }(),
			"update": func() error { _, err := r.Update(ctx, path, nil, 9, off); return err }(),
			"status": func() error { _, err := r.Status(ctx, path); return err }(),
		} {
			if api.ErrorCode(err) != api.CodeBindingNotFound {
				t.Errorf("%s of a deleted binding: got error %v, want CodeBindingNotFound", what, err)
			}
		}
	})
}

func TestBindingsAreListed(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, r := t.Context(), bindings.New(s)
		tenants := []string{storagetest.Tenant(t), storagetest.Tenant(t)}
		for _, tenant := range tenants {
			for _, namespace := range []string{"one", "two"} {
				for i := range 5 {
					if _, err := r.Create(ctx, tenant, namespace, storedBinding(fmt.Sprint("worker-", i)), 1); err != nil {
						t.Fatalf("Create: %v", err)
					}
				}
			}
		}
		var names []string
		for after := ""; ; {
			items, next, err := r.List(ctx, tenants[0], "one", after, 2)
			if err != nil || len(items) > 2 {
				t.Fatalf("List: got %+v and error %v, want at most 2 bindings", items, err)
			}
			for _, b := range items {
				names = append(names, b.Name)
			}
			after = next
			if next == "" {
				break
			}
		}
		if diff := cmp.Diff([]string{"worker-0", "worker-1", "worker-2", "worker-3", "worker-4"}, names); diff != "" {
			t.Errorf("names differ (-want +got):\n%s", diff)
		}
		all, err := r.All(ctx)
		found := map[storage.BindingPath]int{}
		for _, b := range all {
			found[b.Path]++
		}
		for _, tenant := range tenants {
			for _, namespace := range []string{"one", "two"} {
				if path := (storage.BindingPath{Tenant: tenant, Namespace: namespace, Name: "worker-3"}); err != nil || found[path] != 1 {
					t.Errorf("All: got %+v %d times and error %v, want it once", path, found[path], err)
				}
			}
		}
	})
}

func TestBindingsAreBounded(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	ctx, r, tenant := t.Context(), bindings.New(s), storagetest.Tenant(t)
	for i := range api.MaxBindings {
		if _, err := r.Create(ctx, tenant, "default", storedBinding(fmt.Sprint("worker-", i)), 1); err != nil {
			t.Fatalf("Create: %v", err)
		}
	}
	if _, err := r.Create(ctx, tenant, "default", storedBinding("another"), 1); api.ErrorCode(err) != api.CodeBindingLimit {
		t.Errorf("one too many: %v; want CodeBindingLimit", err)
	}
	path := storage.BindingPath{Tenant: tenant, Namespace: "default", Name: "worker-0"}
	if _, err := r.Update(ctx, path, nil, 2, func(b *bindings.Record) error { b.Enabled = false; return nil }); err != nil {
		t.Errorf("a change: %v", err)
	}
}

// Changes that race all count: none is lost.
func TestBindingChangesRace(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, r, tenant := t.Context(), bindings.New(s), storagetest.Tenant(t)
		if _, err := r.Create(ctx, tenant, "default", storedBinding("pay"), 1); err != nil {
			t.Fatalf("Create: %v", err)
		}
		path := storage.BindingPath{Tenant: tenant, Namespace: "default", Name: "pay"}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, err := r.Update(ctx, path, nil, 2, func(b *bindings.Record) error {
					b.ActivityMap[fmt.Sprint("Activity", i)] = api.JobTarget{Function: "pay", Alias: "prod"}
					return nil
				})
				if err != nil {
					t.Errorf("Update: %v", err)
				}
			})
		}
		wg.Wait()
		b, err := r.Get(ctx, path)
		if err != nil || len(b.ActivityMap) != 9 || b.Revision != 9 {
			t.Errorf("Get: got %+v and error %v, want 9 activities at revision 9", b, err)
		}
	})
}

func TestBindingStatus(t *testing.T) {
	t.Parallel()
	clock := &struct {
		sync.Mutex
		now time.Time
	}{now: time.UnixMilli(1_000_000)}
	tick := func(d time.Duration) time.Time {
		clock.Lock()
		defer clock.Unlock()
		clock.now = clock.now.Add(d)
		return clock.now
	}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: func() time.Time { return tick(0) }})
	ctx, r, tenant := context.Background(), bindings.New(s), storagetest.Tenant(t)
	if _, err := r.Create(ctx, tenant, "default", storedBinding("pay"), s.NowMS()); err != nil {
		t.Fatalf("Create: %v", err)
	}
	path := storage.BindingPath{Tenant: tenant, Namespace: "default", Name: "pay"}
	expect := func(what string, replicas int, want api.BindingCounts) {
		t.Helper()
		got, err := r.Status(ctx, path)
		if err != nil || len(got.Shares) != replicas {
			t.Errorf("%s: Status: got %+v and error %v, want %d shares", what, got, err, replicas)
		}
		if want.State == api.BindingStopped || want.State == api.BindingStarting {
			got.Status.Reason = ""
		}
		if diff := cmp.Diff(want, got.Status); diff != "" {
			t.Errorf("%s: status differs (-want +got):\n%s", what, diff)
		}
	}
	report := func(replica string, c api.BindingCounts) {
		t.Helper()
		err := r.Report(ctx, []bindings.Report{{Path: path, Share: api.BindingReplica{Replica: replica, BindingCounts: c, ReportedAtMS: s.NowMS()}}})
		if err != nil {
			t.Fatalf("Report: %v", err)
		}
	}
	expect("it is new", 0, api.BindingCounts{State: api.BindingStarting})
	tick(15 * time.Second)
	expect("no replica reports", 0, api.BindingCounts{State: api.BindingStopped})
	report("a", api.BindingCounts{State: api.BindingFailing, Reason: "down", LastPollMS: 5, Taken: 2, Completed: 1, InFlight: 1})
	expect("one fails", 1, api.BindingCounts{State: api.BindingFailing, Reason: "down", LastPollMS: 5, Taken: 2, Completed: 1, InFlight: 1})
	tick(20 * time.Second)
	report("b", api.BindingCounts{State: api.BindingRunning, LastPollMS: 4, Taken: 3, Failed: 2, Cancelled: 1})
	expect("one of two runs", 2, api.BindingCounts{State: api.BindingRunning, LastPollMS: 5, Taken: 5, Completed: 1, Failed: 2, Cancelled: 1, InFlight: 1})
	tick(20 * time.Second)
	expect("one has gone", 1, api.BindingCounts{State: api.BindingRunning, LastPollMS: 4, Taken: 3, Failed: 2, Cancelled: 1})
	if err := r.Withdraw(ctx, "b", []storage.BindingPath{path}); err != nil {
		t.Fatalf("Withdraw: %v", err)
	}
	expect("both have gone", 0, api.BindingCounts{State: api.BindingStopped})
	enable := func(on bool) {
		t.Helper()
		if _, err := r.Update(ctx, path, nil, s.NowMS(), func(b *bindings.Record) error { b.Enabled = on; return nil }); err != nil {
			t.Fatalf("Update: %v", err)
		}
	}
	enable(false)
	expect("it is disabled", 0, api.BindingCounts{State: api.BindingDisabled})
	report("a", api.BindingCounts{State: api.BindingDisabled})
	enable(true)
	expect("it is enabled again, and the replica has not seen it", 1, api.BindingCounts{State: api.BindingStarting})
	report("a", api.BindingCounts{State: api.BindingNoServer, Reason: "none"})
	expect("the replica has no server", 1, api.BindingCounts{State: api.BindingNoServer, Reason: "none"})
}

// A replica that starts removes the reports of replicas that ended without withdrawing
// them, even if no client ever reads the status.
func TestPruneRemovesTheDead(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_000_000)
	redis := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: redis.URL, Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
	ctx, r, tenant := t.Context(), bindings.New(s), storagetest.Tenant(t)
	path := storage.BindingPath{Tenant: tenant, Namespace: "default", Name: "pay"}
	report := func(replica string) {
		t.Helper()
		share := api.BindingReplica{Replica: replica, ReportedAtMS: now.Load()}
		if err := r.Report(ctx, []bindings.Report{{Path: path, Share: share}}); err != nil {
			t.Fatalf("Report: %v", err)
		}
	}
	raw := storagetest.Open(t, storage.Config{URL: redis.URL}).Client()
	wantReplicas := func(want ...string) {
		t.Helper()
		got := raw.HKeys(ctx, "cs:cadence:"+tenant+":default:worker:pay:status").Val()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("status hash: got replicas %q, want %q", got, want)
		}
	}
	prune := func() {
		t.Helper()
		if err := errors.Join(r.Prune(ctx, []storage.BindingPath{path}), r.Prune(ctx, nil)); err != nil {
			t.Fatalf("Prune: %v", err)
		}
	}
	if _, err := r.Create(ctx, tenant, "default", storedBinding("pay"), 1); err != nil {
		t.Fatalf("Create: %v", err)
	}
	report("dead")
	now.Add(bindings.ReportTTL.Milliseconds() + 1)
	report("alive")
	// The clock of this reader may be ahead: it removes nothing.
	if status, err := r.Status(ctx, path); err != nil || len(status.Shares) != 1 {
		t.Errorf("Status: got %+v and error %v, want the share of alive", status, err)
	}
	prune()
	wantReplicas("alive", "dead")
	now.Add(bindings.PruneAfter.Milliseconds())
	report("alive")
	prune()
	wantReplicas("alive")
}

// TestBindingsStopAtTheLimit: a tenant cannot have more bindings in all of its namespaces than its
// limit. A deletion makes room, and the bindings are counted by their indexes.
func TestBindingsStopAtTheLimit(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		const limit = 3
		ctx, r, tenant := t.Context(), bindings.New(s), storagetest.Tenant(t)
		create := func(namespace string) error {
			_, err := r.Create(ctx, tenant, namespace, storedBinding("pay"), 1)
			return err
		}
		if err := create("old"); err != nil { // by a release without the quota
			t.Fatalf("Create: %v", err)
		}
		quotastest.Limit(t, s, quota.TenantLimits{Bindings: limit})
		if _, err := quotas.Count(ctx, s, tenant); err != nil {
			t.Fatalf("Count: %v", err)
		}
		errs := storagetest.Concurrently(8, func(i int) error { return create(fmt.Sprint("ns-", i)) })
		made := []string{"old"}
		for i, err := range errs {
			var e *api.Error
			switch {
			case err == nil:
				made = append(made, fmt.Sprint("ns-", i))
			case !errors.As(err, &e) || e.Code != api.CodeTenantQuota || e.Quota == nil || e.Quota.Unit != "bindings" || e.Quota.Limit != limit:
				t.Errorf("Create: got error %v, want %s with the limit", err, api.CodeTenantQuota)
			}
		}
		if len(made) != limit {
			t.Fatalf("got bindings in %q, want %d", made, limit)
		}
		if err := create("old"); api.ErrorCode(err) != api.CodeBindingExists {
			t.Errorf("Create of a binding that exists, at the limit: got error %v, want %s", err, api.CodeBindingExists)
		}
		if err := r.Delete(ctx, storage.BindingPath{Tenant: tenant, Namespace: made[1], Name: "pay"}, nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		used, err := quotas.Stored(ctx, s, tenant)
		if err != nil || used[quota.Bindings] != limit-1 {
			t.Errorf("use after a deletion: got %d and error %v, want %d", used[quota.Bindings], err, limit-1)
		}
		if err := create("another"); err != nil {
			t.Errorf("Create after a deletion: got error %v, want none", err)
		}
	})
}
