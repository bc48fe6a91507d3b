package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// sharing is a Claimer whose claim scripts are counted, and of which the first can be held up.
type sharing struct {
	*Claimer
	q       jobstore.Queue
	ids     []string // the pending jobs
	scripts atomic.Int64
	reached chan struct{} // closed before the first script is sent
	release chan struct{}
}

func newSharing(t *testing.T, pending int) *sharing {
	t.Helper()
	var ms atomic.Int64
	ms.Store(1_760_000_000_000)
	s := storagetest.Open(t, storage.Config{
		URL: storagetest.Redis(t).URL, Clock: func() time.Time { return time.UnixMilli(ms.Load()) },
	})
	jobs, err := jobstore.New(s, storage.Retention{Default: time.Hour}, jobstore.Notify{DueAt: func(int64) {}, Wake: func(jobstore.Queue) {}})
	if err != nil {
		t.Fatalf("jobstore.New: %v", err)
	}
	c, err := New(t.Context(), s, jobs, Hooks{Claimed: func(jobstore.Queue, string, []api.FetchedJob, int64) {}})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	out := &sharing{
		Claimer: c, q: jobstore.Queue{Tenant: storagetest.Tenant(t), Namespace: "default", Name: "emails"},
		reached: make(chan struct{}), release: make(chan struct{}),
	}
	out.ids = addPending(t, jobs, out.q, &ms, pending+1)[1:]
	if _, _, err := c.Take(t.Context(), out.q, Request{WorkerID: "first", Lease: time.Minute}, 1); err != nil { // loads the script
		t.Fatalf("Take: %v", err)
	}
	s.Client().AddHook(storagetest.Before(func(cmds []redis.Cmder) {
		if strings.HasPrefix(cmds[0].Name(), "evalsha") && out.scripts.Add(1) == 1 {
			close(out.reached)
			<-out.release
		}
	}))
	return out
}

// take starts a Take whose jobs it appends to got.
func (s *sharing) take(t *testing.T, work *sync.WaitGroup, got *[]string, lease time.Duration, worker string, want int) {
	work.Go(func() {
		jobs, _, err := s.Take(t.Context(), s.q, Request{WorkerID: worker, Lease: lease}, want)
		if err != nil {
			t.Errorf("Take of %s: %v", worker, err)
		}
		for i := range jobs {
			*got = append(*got, jobs[i].ID)
		}
	})
}

// waiting waits until the fetches behind the first claim want n jobs.
func (s *sharing) waiting(t *testing.T, n int) {
	t.Helper()
	for count := -1; count != n; count, _ = s.claims.Waiting(time.Now()) {
		if t.Context().Err() != nil {
			t.Fatalf("waiting fetches: got %d jobs wanted, want %d", count, n)
		}
		time.Sleep(time.Millisecond)
	}
}

// Fetches that arrive during a claim share the next one. Each gets as many jobs as it wants, the
// earlier one those that are due first, under a lease of its own worker.
func TestFetchesShareAClaim(t *testing.T) {
	t.Parallel()
	s := newSharing(t, 8)
	var work sync.WaitGroup
	got := make([][]string, 4)
	s.take(t, &work, &got[0], time.Minute, "w0", 1)
	<-s.reached
	for i, want := range []int{2, 3, 2} {
		before, _ := s.claims.Waiting(time.Now())
		s.take(t, &work, &got[i+1], time.Minute, fmt.Sprint("w", i+1), want)
		s.waiting(t, before+want)
	}
	close(s.release)
	work.Wait()
	if diff := cmp.Diff([][]string{s.ids[:1], s.ids[1:3], s.ids[3:6], s.ids[6:8]}, got); diff != "" {
		t.Errorf("jobs by fetch (-want +got):\n%s", diff)
	}
	if n := s.scripts.Load(); n != 2 {
		t.Errorf("claims: got %d, want 2", n)
	}
	for worker, ids := range got {
		for _, id := range ids {
			run, err := jobstore.ParseRun(s.rdb.Get(t.Context(), s.store.JobKeys(s.q.Tenant).Run(id)).Val())
			if want := fmt.Sprint("w", worker); err != nil || run.Worker != want {
				t.Errorf("worker of %s: got %q and error %v, want %q", id, run.Worker, err, want)
			}
		}
	}
}

// loses lets another process remove a job before the nth claim is sent, which has its candidates.
func (s *sharing) loses(t *testing.T, id string, nth int64) {
	ctx := context.WithoutCancel(t.Context())
	s.rdb.AddHook(storagetest.Before(func(cmds []redis.Cmder) {
		if strings.HasPrefix(cmds[0].Name(), "evalsha") && s.scripts.Load() == nth {
			s.rdb.ZRem(ctx, s.jobs.Keys(s.q).Set(string(api.JobPending)), id)
			s.rdb.Del(ctx, s.store.JobKeys(s.q.Tenant).Run(id))
		}
	}))
}

// A fetch of a shared claim whose candidate another process took gets another job, and no fetch
// gets more than it wants.
func TestASharedClaimThatLosesJobsGoesOn(t *testing.T) {
	t.Parallel()
	s := newSharing(t, 8)
	var work sync.WaitGroup
	got := make([][]string, 3)
	s.take(t, &work, &got[0], time.Minute, "w0", 1)
	<-s.reached
	for i := range 2 {
		s.take(t, &work, &got[i+1], time.Minute, fmt.Sprint("w", i+1), 2)
		s.waiting(t, 2*(i+1))
	}
	second := s.ids[1]
	s.loses(t, second, 2)
	close(s.release)
	work.Wait()
	for i, ids := range got[1:] {
		if len(ids) != 2 || slices.Contains(ids, second) {
			t.Errorf("jobs of w%d: got %v, want two others than %s", i+1, ids, second)
		}
	}
	all := slices.Concat(got...)
	slices.Sort(all)
	if unique := slices.Compact(slices.Clone(all)); len(unique) != len(all) {
		t.Errorf("jobs: got %v, want no job twice", all)
	}
}

// A repeated claim of one fetch reads spare candidates. One of several reads none: its last fetch would
// get more jobs than it wants.
func TestSharedClaimsReadNoSpareCandidates(t *testing.T) {
	t.Parallel()
	s := newSharing(t, 8)
	close(s.release)
	s.loses(t, s.ids[0], 1)
	var shares []*share
	for i := range 2 {
		shares = append(shares, &share{Request: Request{WorkerID: fmt.Sprint("w", i)}, state: s.stateOf(s.q), want: 1, try: 1})
	}
	s.claim(t.Context(), shareKey{s.q, time.Minute.Milliseconds()}, shares)
	for i, one := range shares {
		if one.err != nil || len(one.jobs) != i {
			t.Errorf("share %d: got %d jobs and error %v, want %d", i, len(one.jobs), one.err, i)
		}
	}
}

// A claim has leases of one length: fetches with another one have a claim of their own, which does not
// wait. Fetches of large jobs share none.
func TestWhatSharesNoClaim(t *testing.T) {
	t.Parallel()
	s := newSharing(t, 8)
	var work, other sync.WaitGroup
	got := make([][]string, 4)
	s.take(t, &work, &got[0], time.Minute, "w0", 1)
	<-s.reached
	s.take(t, &other, &got[1], time.Hour, "w1", 1)
	other.Wait()
	s.stateOf(s.q).meanBytes.Store(claimBytes)
	for i := range 2 {
		s.take(t, &work, &got[i+2], time.Minute, fmt.Sprint("w", i+2), 1)
		s.waiting(t, i+1)
	}
	close(s.release)
	work.Wait()
	for i, ids := range got {
		if len(ids) != 1 {
			t.Errorf("jobs of w%d: got %v, want one", i, ids)
		}
	}
	if n := s.scripts.Load(); n != 4 {
		t.Errorf("claims: got %d, want 4", n)
	}
}

// A job that expired, and whose end cannot be stored, does not keep the other jobs of its claim from
// their workers.
func TestFailedExpiryLosesNoOtherJob(t *testing.T) {
	t.Parallel()
	s := newSharing(t, 2)
	failure := errors.New("no")
	s.hooks.Expire = func(context.Context, string, string) error { return failure }
	mine := &share{}
	offers := make([]offer, 2)
	for i, id := range s.ids {
		offers[i] = offer{candidate: candidate{id: id}, owner: mine, taken: true, spec: &api.JobSpec{Namespace: s.q.Namespace, Queue: s.q.Name}}
	}
	offers[0].spec.ExpireAtMS = 1
	jobs, owners, err := s.deliver(t.Context(), &attempt{q: s.q, now: 2}, offers)
	if len(jobs) != 1 || jobs[0].ID != s.ids[1] || len(owners) != 1 || !errors.Is(err, failure) {
		t.Errorf("deliver: got %d jobs of %d shares and error %v, want the second job and %v", len(jobs), len(owners), err, failure)
	}
}
