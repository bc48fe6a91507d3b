package cadenceworker

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/cadence/.gen/go/cadence/workflowserviceclient"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/yarpc"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/storage/storagetest"
)

func TestPollerShare(t *testing.T) {
	t.Parallel()
	many := func(n, wanted int) []int {
		all := make([]int, n)
		for i := range all {
			all[i] = wanted
		}
		return all
	}
	for name, c := range map[string]struct {
		wanted []int
		want   int
	}{
		"no binding":          {nil, 64},
		"room for all":        {many(4, 64), 64},
		"one too many":        {many(5, 64), 51},
		"a small one is kept": {append(many(4, 64), 8), 62},
		"small ones":          {many(32, 8), 64},
		"one each":            {many(200, 64), 1},
		"more than there are": {many(1000, 1), 1},
	} {
		if got := pollerShare(c.wanted); got != c.want {
			t.Errorf("%s: got %d pollers, want %d", name, got, c.want)
		}
	}
}

// idleServer is a Cadence server without tasks: its polls stay open.
type idleServer struct {
	workflowserviceclient.Interface

	mu        sync.Mutex
	polls     map[string]int // open ones, by tasklist
	described map[string]int // workers that began, by domain
}

func (s *idleServer) DescribeDomain(_ context.Context, r *shared.DescribeDomainRequest, _ ...yarpc.CallOption) (*shared.DescribeDomainResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.described[r.GetName()]++
	return &shared.DescribeDomainResponse{}, nil
}

func (s *idleServer) PollForActivityTask(ctx context.Context, r *shared.PollForActivityTaskRequest, _ ...yarpc.CallOption) (*shared.PollForActivityTaskResponse, error) {
	tasklist := r.GetTaskList().GetName()
	s.add(tasklist, 1)
	defer s.add(tasklist, -1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *idleServer) add(tasklist string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls[tasklist] += n
}

// await waits until the open polls, by tasklist, are the wanted ones.
func (s *idleServer) await(t *testing.T, want map[string]int) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; {
		s.mu.Lock()
		got := maps.Clone(s.polls)
		s.mu.Unlock()
		maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
		diff := cmp.Diff(want, got)
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("open polls, difference (-want +got):\n%s", diff)
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}

// begun returns the number of workers that began for a domain.
func (s *idleServer) begun(domain string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.described[domain]
}

// TestBindingsOfATenantSharePollers: a replica polls for all bindings of a tenant together with at
// most maxTenantPollers. It replaces only workers whose share changed, and not each time that
// another binding comes and goes.
func TestBindingsOfATenantSharePollers(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_000_000)
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
	server := &idleServer{polls: map[string]int{}, described: map[string]int{}}
	s, err := New(t.Context(), store, nil, Config{Conn: &Conn{Service: server}})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		s.mu.Lock()
		for _, b := range s.bound {
			b.stop()
		}
		s.mu.Unlock()
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	tenant := storagetest.Tenant(t)
	at := func(name string) storage.BindingPath {
		return storage.BindingPath{Tenant: tenant, Namespace: "ns-" + name, Name: name}
	}
	bind := func(path storage.BindingPath, pollers int) {
		t.Helper()
		b := api.WorkerBinding{
			Name: path.Name, Domain: path.Name, Tasklist: path.Name, Enabled: true, Pollers: api.BindingPollers{Activity: pollers},
			ActivityMap: map[string]api.JobTarget{"act": {Function: "fun"}},
		}
		b.Normalize()
		if _, err := s.bindings.Create(t.Context(), path.Tenant, path.Namespace, bindings.Record{WorkerBinding: b}, now.Load()); err != nil {
			t.Fatalf("Create: %v", err)
		}
	}
	refresh := func(path storage.BindingPath) {
		t.Helper()
		if err := s.refresh(t.Context(), path); err != nil {
			t.Fatalf("refresh: %v", err)
		}
	}
	unbind := func(path storage.BindingPath) {
		t.Helper()
		if err := s.bindings.Delete(t.Context(), path, nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		refresh(path)
	}
	other := storage.BindingPath{Tenant: storagetest.Tenant(t), Namespace: "default", Name: "other"}
	bind(other, 64)
	bind(at("small"), 8)
	for _, name := range []string{"a", "b", "c"} {
		bind(at(name), 64)
	}
	if err := s.RunOnce(t.Context()); err != nil {
		t.Fatalf("RunOnce: %v", err)
	}
	server.await(t, map[string]int{"other": 64, "small": 8, "a": 64, "b": 64, "c": 64})

	for _, name := range []string{"d", "e"} {
		bind(at(name), 64)
		refresh(at(name))
	}
	shared := map[string]int{"other": 64, "small": 8, "a": 49, "b": 49, "c": 49, "d": 49, "e": 49}
	server.await(t, shared)
	began := server.begun("a")
	if server.begun("small") != 1 || server.begun("other") != 1 {
		t.Errorf("workers with an unchanged number of pollers began %d and %d times, want once", server.begun("small"), server.begun("other"))
	}
	s.bound[at("a")].setProblem("")
	want := "polls with 49 of 64 pollers: the bindings of a tenant share 256 pollers on each replica"
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := s.bound[at("a")].share(0)
		if got.State == api.BindingRunning && got.Reason == want {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("status: got %q and reason %q, want %q", got.State, got.Reason, want)
		}
	}

	for range 3 {
		unbind(at("e"))
		bind(at("e"), 64)
		refresh(at("e"))
	}
	server.await(t, shared)
	if n := server.begun("a"); n != began {
		t.Errorf("%d workers began while another binding came and went, want none", n-began)
	}

	unbind(at("e"))
	now.Add(readEvery.Milliseconds())
	if err := s.RunOnce(t.Context()); err != nil {
		t.Fatalf("RunOnce: %v", err)
	}
	server.await(t, map[string]int{"other": 64, "small": 8, "a": 62, "b": 62, "c": 62, "d": 62})

	polls := map[string]int{"other": 64}
	for name := range map[string]bool{"small": true, "a": true, "b": true, "c": true, "d": true} {
		polls[name] = 1
	}
	for i := range maxTenantPollers / 2 {
		name := fmt.Sprint("more-", i)
		bind(at(name), 64)
		polls[name] = 1
	}
	if err := s.RunOnce(t.Context()); err != nil {
		t.Fatalf("RunOnce: %v", err)
	}
	server.await(t, polls)
}
