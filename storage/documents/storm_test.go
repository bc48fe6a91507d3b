package documents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// storm writes, deletes, expires and clears documents of two namespaces at random.
type storm struct {
	*harness
	clock *atomic.Int64
	on    []*documents.Repository // of which each call takes one
}

func newStorm(d *harness, on ...*documents.Repository) *storm {
	st := &storm{harness: d, clock: &atomic.Int64{}, on: on}
	st.clock.Store(d.now)
	return st
}

// places are the namespaces of a storm; two of them are of one install.
func (s *storm) places() []storage.DocumentPath {
	return []storage.DocumentPath{
		s.path,
		{Tenant: s.path.Tenant, Install: s.path.Install, Namespace: "other"},
		{Tenant: s.path.Tenant, Install: "fn.aaa.first", Namespace: "settings"},
	}
}

// step makes one call at random.
func (s *storm) step(ctx context.Context) error {
	on, places := s.on[rand.IntN(len(s.on))], s.places()
	p, now := places[rand.IntN(len(places))], s.clock.Add(rand.Int64N(20))
	switch r := rand.IntN(100); {
	case r < 2:
		_, _, err := on.Clear(ctx, p, 1_000)
		return err
	case r < 8:
		_, _, err := on.ExpireDue(ctx, p.Tenant, now, 7)
		return err
	case r < 20:
		_, err := on.Get(ctx, p, stormKey(), now)
		return err
	}
	var steps []documents.Step
	seen := map[string]bool{}
	for range 1 + rand.IntN(12) {
		step := s.randomStep(now)
		if !seen[step.Key] {
			seen[step.Key] = true
			steps = append(steps, step)
		}
	}
	_, err := on.Write(ctx, p, steps, s.q, "", now)
	return err
}

func stormKey() string { return fmt.Sprintf("key %02d é", rand.IntN(90)) }

func (s *storm) randomStep(now int64) documents.Step {
	step := documents.Step{Op: api.DocumentStepPut, Key: stormKey()}
	switch r := rand.IntN(10); {
	case r < 3:
		step.Op = api.DocumentStepDelete
	case r < 4:
		step.Op, step.If = api.DocumentStepCheck, new(int64(0))
	}
	if step.Op == api.DocumentStepPut {
		step.Value = json.RawMessage(`"` + strings.Repeat("v", rand.IntN(60)) + `"`)
		if rand.IntN(3) == 0 {
			step.ExpiresAtMS = now + 1 + rand.Int64N(2_000)
		}
	}
	return step
}

// allowed are the ends of a storm's calls.
func allowed(err error) bool {
	switch api.ErrorCode(err) {
	case "", api.CodeRevisionMismatch, api.CodeDocumentNotFound, api.CodeQuotaExceeded:
		return true
	}
	return false
}

// TestCountsAreExact: without crashes, counts are what there is after any storm, and a
// recount that runs through it finds nothing to correct at any time.
func TestCountsAreExact(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		st := newStorm(d, d.Repository, documents.NewRepository(s))
		stop, recounts := make(chan struct{}), 0
		var counter sync.WaitGroup
		counter.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				out, err := d.Recount(t.Context(), st.places()[i%3], st.clock.Load())
				if err == nil && out.Drift == (documents.Count{}) && out.Dangling == 0 {
					out, err = d.RecountTenant(t.Context(), d.path.Tenant)
				}
				if err != nil || out.Drift != (documents.Count{}) || out.Dangling != 0 {
					t.Errorf("recount during writes: got %+v and error %v, want no drift and no dangling entries", out, err)
					return
				}
				if out.Done {
					recounts++
				}
			}
		})
		for _, err := range storagetest.Concurrently(6, func(int) error {
			for range 150 {
				if err := st.step(t.Context()); !allowed(err) {
					return err
				}
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("unexpected error: %v", err)
			}
		}
		close(stop)
		counter.Wait()
		d.audit("after the storm")
		if recounts < 5 {
			t.Errorf("got %d complete recounts, want at least 5", recounts)
		}
	})
}

// TestCountsOutliveCrashes: where scripts are cut and connections break, counts are never
// below what there is, and a recount sets them right.
func TestCountsOutliveCrashes(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	for range 3 {
		d := newHarness(t, s)
		st := newStorm(d, d.Repository)
		for k := range 14 {
			st.on = append(st.on, d.Repository, documents.NewRepository(storagetest.Open(t, storage.Config{URL: server.URL, ScriptPrelude: storagetest.CutAfter(k)})))
		}
		var failed atomic.Int64
		for _, err := range storagetest.Concurrently(6, func(i int) error {
			for n := range 150 {
				switch {
				case i == 0 && n%10 == 0:
					s.Client().Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal")
				case i == 1:
					_, err1 := st.on[n%len(st.on)].Recount(t.Context(), st.places()[n%3], st.clock.Load())
					_, err2 := st.on[n%len(st.on)].RecountTenant(t.Context(), d.path.Tenant)
					if err := errors.Join(err1, err2); err != nil {
						failed.Add(1)
					}
				}
				switch err := st.step(t.Context()); {
				case allowed(err):
				case strings.Contains(err.Error(), "CUT"), api.ErrorCode(err) == api.CodeStoreUnavailable:
					failed.Add(1)
				default:
					return err
				}
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("unexpected error: %v", err)
			}
		}
		if failed.Load() < 50 {
			t.Errorf("got %d interrupted calls, want at least 50", failed.Load())
		}
		d.auditCut("after the storm")
		d.recount()
		d.audit("after the storm and a recount")
		d.noRemains("after the storm")
	}
}

// TestQuotasAreExact: what 64 racing writers get in is exactly what fits.
func TestQuotasAreExact(t *testing.T) {
	t.Parallel()
	const size = int64(len("key 00{}1"))
	tests := map[string]struct {
		q      documents.Quota
		fits   int64
		refuse string
	}{
		"records of the namespace": {documents.Quota{NamespaceRecords: 40, NamespaceBytes: 1 << 20, TenantRecords: 1000, TenantBytes: 1 << 20}, 40, "namespace records 40/40"},
		"bytes of the namespace":   {documents.Quota{NamespaceRecords: 1000, NamespaceBytes: 40*size + 5, TenantRecords: 1000, TenantBytes: 1 << 20}, 40, "namespace bytes 360/365"},
		"records of the tenant":    {documents.Quota{TenantRecords: 41}, 40, "tenant records 41/41"},
		"bytes of the tenant":      {documents.Quota{TenantBytes: 41 * size}, 40, "tenant bytes 369/369"},
	}
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		for name, tt := range tests {
			d := newHarness(t, s)
			elsewhere := *d
			elsewhere.path.Install = "fn.payments.other"
			elsewhere.mustWrite(put("key ee", "1"))
			d.q = tt.q
			var accepted atomic.Int64
			for _, err := range storagetest.Concurrently(64, func(i int) error {
				_, err := d.write(put(fmt.Sprintf("key %02d", i), "1"))
				if err == nil {
					accepted.Add(1)
				} else if api.ErrorCode(err) == api.CodeQuotaExceeded {
					err = nil
				}
				return err
			}) {
				if err != nil {
					t.Errorf("%s: got error %v, want success", name, err)
				}
			}
			if got := accepted.Load(); got != tt.fits {
				t.Errorf("%s: got %d writes accepted, want %d", name, got, tt.fits)
			}
			if got := wrote(d.write(put("key zz", "1"))); got != "QUOTA_EXCEEDED "+tt.refuse {
				t.Errorf("%s: write above the quota: got %s, want %s", name, got, "QUOTA_EXCEEDED "+tt.refuse)
			}
			d.audit(name)
		}
	})
}

// TestQuotasLeaveRoomForWhatFits: a write that does not grow a count is never refused for
// it, and what has expired takes no room.
func TestQuotasLeaveRoomForWhatFits(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		d.mustWrite(put("a", "1"), put("b", `"much longer"`), until(d.now+10, put("c", "1")))
		d.q = documents.Quota{NamespaceRecords: 2, NamespaceBytes: 10} // lowered below what there is
		for _, tt := range []struct {
			steps  []documents.Step
			answer string
		}{
			{[]documents.Step{put("a", "2")}, "2"},
			{[]documents.Step{put("b", `"shorter"`)}, "2"},
			{[]documents.Step{put("b", `"longer again"`)}, "QUOTA_EXCEEDED namespace bytes 20/10"},
			{[]documents.Step{put("d", "1"), remove("b")}, "1 0"},
			{[]documents.Step{put("e", "1")}, "QUOTA_EXCEEDED namespace records 3/2"},
		} {
			if got := wrote(d.write(tt.steps...)); got != tt.answer {
				t.Errorf("%+v: got answer %q, want %q", tt.steps, got, tt.answer)
			}
		}
		d.now += 10
		d.q = documents.Quota{NamespaceRecords: 3}
		if got := wrote(d.write(put("e", "1"))); got != "1" {
			t.Errorf("write over the quota with an expired document in the namespace: got %s, want revision 1", got)
		}
		// The same where another namespace holds what has expired.
		other := *d
		other.path.Namespace, other.q = "other", documents.Quota{}
		other.mustWrite(until(d.now+10, put("x", "1")), until(d.now+10, put("y", "1")))
		d.now += 10
		d.q = documents.Quota{TenantRecords: 5}
		if got := wrote(d.write(put("f", "1"), put("g", "1"))); got != "1 1" {
			t.Errorf("write over the quota with expired documents in another namespace: got %s, want revisions 1 1", got)
		}
		d.audit("after all")
	})
}

// TestARecountWithinARecount: what a namespace's recount corrects, the tenant's that has
// passed it does not bring back.
func TestARecountWithinARecount(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		d.mustWrite(put("a", "1"), put("b", "1"))
		d.drift(7)
		tenant := func() (documents.Recount, error) { return d.RecountTenant(t.Context(), d.path.Tenant) }
		if out, err := tenant(); out.Done || err != nil {
			t.Fatalf("RecountTenant: got %+v and error %v, want a step that is not the last", out, err)
		}
		drift := documents.Count{Records: 7, Bytes: 7}
		if out, err := d.Recount(t.Context(), d.path, d.now); !out.Done || out.Drift != drift || err != nil {
			t.Errorf("Recount: got %+v and error %v, want the last step with drift %+v", out, err, drift)
		}
		if out, err := tenant(); !out.Done || out.Drift != (documents.Count{}) || err != nil {
			t.Errorf("RecountTenant: got %+v and error %v, want the last step without drift", out, err)
		}
		d.audit("after both")
	})
}

// TestARecountSeesNewNamespaces, also one that comes while it reads their list.
func TestARecountSeesNewNamespaces(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	d := newHarness(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	late := *d
	late.path.Namespace = "late"
	other := storagetest.Open(t, storage.Config{URL: server.URL})
	other.Client().AddHook(&before{key: d.key(d.path.Install, "usage"), do: func() { late.mustWrite(put("a", "1")) }})
	d.mustWrite(put("a", "1"))
	d.walk(func() (documents.Recount, error) {
		out, err := documents.NewRepository(other).RecountTenant(t.Context(), d.path.Tenant)
		if out.Drift != (documents.Count{}) {
			t.Errorf("RecountTenant: got %+v, want no drift", out)
		}
		return out, err
	})
	d.audit("after it")
}
