package bulk

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
	"github.com/codesous/sous/storage/storagetest"
)

// An operation changes the jobs that match in the store, whatever the mirror has, and of those only
// the ones from before its creation.
func TestTheStoreDecides(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ids := f.cancelled(t, f.tenant, 5)
		for _, id := range ids[:2] { // the mirror has not seen it
			if _, err := f.broker.Retry(t.Context(), f.tenant, id); err != nil {
				t.Fatalf("Retry: %v", err)
			}
		}
		if err := f.broker.Delete(t.Context(), f.tenant, ids[2]); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		b := f.retry(t, f.tenant)
		if b.Matched != (search.MatchCount{Value: 5, Exact: true}) || b.CreatedBy != "key_1" {
			t.Errorf("got %+v, want 5 matches and the key", b)
		}
		late := f.cancelled(t, f.tenant, 1)
		expect(t, f.finish(t, f.tenant, b.ID), search.BulkCompleted, 2, 3, 0)
		for id, want := range map[string]api.JobState{ids[3]: api.JobPending, ids[4]: api.JobPending, late[0]: api.JobCancelled} {
			if got := f.job(t, f.tenant, id).State; got != want {
				t.Errorf("got state %s, want %s", got, want)
			}
		}
	})
}

// A job that was retried and has ended again is not retried a second time.
func TestARetryIsNotRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ids := f.cancelled(t, f.tenant, 1)
		b := f.retry(t, f.tenant)
		if _, err := f.broker.Retry(t.Context(), f.tenant, ids[0]); err != nil {
			t.Fatalf("Retry: %v", err)
		}
		if _, err := f.broker.Cancel(t.Context(), f.tenant, ids[0]); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		expect(t, f.finish(t, f.tenant, b.ID), search.BulkCompleted, 0, 1, 0)
	})
}

// Each operation changes the jobs whose states allow it, and reports those for which it fails.
func TestOperations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		unique := api.NewJob{Payload: []byte(`1`), JobOptions: api.JobOptions{UniqueKey: "u"}}
		ids := f.add(t, f.tenant, mail, append(some(3), unique)...)
		f.reflect(t, f.tenant, ids...)
		inMail := search.Selection{Queues: []string{mail}}
		moved := f.create(t, f.tenant, &search.NewBulk{Operation: search.BulkMove, Selection: inMail, Target: "others"})
		got := f.finish(t, f.tenant, moved.ID)
		expect(t, got, search.BulkCompleted, 3, 0, 1)
		if len(got.Errors) != 1 || got.Errors[0].JobID != ids[3] || got.Errors[0].Code != api.CodeJobState {
			t.Errorf("got errors %+v, want that of %s", got.Errors, ids[3])
		}
		f.reflect(t, f.tenant, ids...)
		others := search.Selection{Queues: []string{"others"}}
		limited := f.create(t, f.tenant, &search.NewBulk{Operation: search.BulkCancel, Selection: others, Limit: 2})
		expect(t, f.finish(t, f.tenant, limited.ID), search.BulkCompleted, 2, 0, 0)
		deleted := f.create(t, f.tenant, &search.NewBulk{Operation: search.BulkDelete, Selection: others})
		expect(t, f.finish(t, f.tenant, deleted.ID), search.BulkCompleted, 3, 0, 0)
		if _, err := f.broker.Get(t.Context(), f.tenant, ids[0]); api.ErrorCode(err) != api.CodeJobNotFound {
			t.Errorf("got %v, want the job deleted", err)
		}
	})
}

// A replica that continues an operation has another mirror, in which jobs of one millisecond have
// other rows. No job is missed or examined twice.
func TestAnotherReplicaContinues(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ids := f.cancelled(t, f.tenant, 3*chunkJobs+chunkJobs/2)
		b := f.retry(t, f.tenant)
		f.round(t)
		expect(t, f.get(t, f.tenant, b.ID), search.BulkRunning, chunkJobs, 0, 0)
		f.replica(t, f.store, f.broker)
		slices.Reverse(ids)
		f.reflect(t, f.tenant, ids...)
		// The jobs that are pending now no longer match; those that the cursor passed are not counted.
		expect(t, f.finish(t, f.tenant, b.ID), search.BulkCompleted, int64(len(ids)), 0, 0)
	})
}

// A replica that is killed after a chunk and before its progress was saved leaves the operation to the
// end of the claim. The jobs of the chunk are examined again and skipped.
func TestAKilledChunkIsExaminedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ids := f.cancelled(t, f.tenant, chunkJobs+10)
		b := f.retry(t, f.tenant)
		r, err := f.read(t.Context(), f.tenant, b.ID)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		if _, err := f.chunk(t.Context(), r); err != nil {
			t.Fatalf("chunk: %v", err)
		}
		// What the killed replica held.
		member := storage.DueMember{Key: storage.KeyBulkDue, Member: r.member(), Score: b.CreatedAtMS}
		if held, err := f.store.SettleDue(t.Context(), []storage.DueMember{member}, []int64{f.store.NowMS() + claimMS}); err != nil || !held[0] {
			t.Fatalf("SettleDue: got %v (%v), want the claim", held, err)
		}
		f.advance(claimMS*time.Millisecond - time.Second)
		if worked, err := f.RunOnce(t.Context()); worked != 0 || err != nil {
			t.Errorf("RunOnce during the claim: got %d (%v), want 0", worked, err)
		}
		f.advance(2 * time.Second)
		expect(t, f.finish(t, f.tenant, b.ID), search.BulkCompleted, 10, chunkJobs, 0)
		for _, id := range ids {
			if got := f.job(t, f.tenant, id).State; got != api.JobPending {
				t.Errorf("got state %s, want %s", got, api.JobPending)
			}
		}
	})
}

// A cancelled operation ends after the chunk in progress, whose jobs are counted.
func TestCancelInTheMiddle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.cancelled(t, f.tenant, 2*chunkJobs+1)
		b := f.retry(t, f.tenant)
		f.round(t)
		r, err := f.read(t.Context(), f.tenant, b.ID)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		after, err := f.chunk(t.Context(), r)
		if err != nil {
			t.Fatalf("chunk: %v", err)
		}
		for range 2 {
			if got, err := f.Cancel(t.Context(), f.tenant, b.ID); err != nil || got.State != search.BulkCancelled {
				t.Fatalf("Cancel: got %+v (%v), want it cancelled", got, err)
			}
		}
		if ended, err := f.save(t.Context(), r, after); err != nil || !ended {
			t.Errorf("save: got ended %t (%v), want true", ended, err)
		}
		f.round(t)
		got := f.get(t, f.tenant, b.ID)
		expect(t, got, search.BulkCancelled, 2*chunkJobs, 0, 0)
		if got.EndedAtMS == 0 {
			t.Errorf("got %+v, want the time of the end", got)
		}
		done := f.retry(t, f.tenant)
		f.finish(t, f.tenant, done.ID)
		_, err = f.Cancel(t.Context(), f.tenant, done.ID)
		refused(t, err, api.CodeBulkEnded)
	})
}

// Progress of a replica that was stopped for longer than its claim is dropped.
func TestLateProgressIsDropped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.cancelled(t, f.tenant, chunkJobs+1)
		b := f.retry(t, f.tenant)
		r, err := f.read(t.Context(), f.tenant, b.ID)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		late := *r
		late.Done = 77
		f.round(t)
		if ended, err := f.save(t.Context(), r, &late); err != nil || ended {
			t.Errorf("save: got ended %t (%v), want false", ended, err)
		}
		expect(t, f.finish(t, f.tenant, b.ID), search.BulkCompleted, chunkJobs+1, 0, 0)
	})
}

// Operations wait for a mirror that is rebuilt or behind their creation.
func TestOperationsWaitForTheMirror(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.cancelled(t, f.tenant, 1)
		b := f.retry(t, f.tenant)
		f.mirror.SetLag(10 * time.Minute)
		f.round(t)
		f.mirror.SetLag(0)
		f.mirror.SetRebuilding("a test", 0)
		f.round(t)
		expect(t, f.get(t, f.tenant, b.ID), search.BulkRunning, 0, 0, 0)
		f.mirror.SetServing()
		expect(t, f.finish(t, f.tenant, b.ID), search.BulkCompleted, 1, 0, 0)
	})
}

// A tenant has a limited number of operations that run, and each round works on one chunk of each
// tenant.
func TestTenantsShareTheRounds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.cancelled(t, f.tenant, chunkJobs+10)
		var first *search.Bulk
		for n := range search.MaxBulkRunning {
			if b := f.retry(t, f.tenant); n == 0 {
				first = b
			}
		}
		again := &search.NewBulk{Operation: search.BulkRetry, Selection: search.Selection{Namespace: namespace}}
		_, _, err := f.Create(t.Context(), f.tenant, "", again)
		refused(t, err, api.CodeBulkLimit)
		other := storagetest.Tenant(t)
		f.cancelled(t, other, 1)
		b := f.retry(t, other)
		if worked, err := f.RunOnce(t.Context()); worked != 2 || err != nil {
			t.Errorf("RunOnce: got %d (%v), want one operation of each tenant", worked, err)
		}
		expect(t, f.get(t, other, b.ID), search.BulkCompleted, 1, 0, 0)
		expect(t, f.get(t, f.tenant, first.ID), search.BulkRunning, chunkJobs, 0, 0)
		f.advance(time.Minute)
		f.finish(t, f.tenant, first.ID)
		f.create(t, f.tenant, again)
	})
}

// A slot of a creation that died is free after a minute, and its mark is dropped.
func TestADeadCreationLeavesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for range search.MaxBulkRunning {
			if err := f.takeSlot(t.Context(), f.tenant, api.NewJobID()); err != nil {
				t.Fatalf("takeSlot: %v", err)
			}
		}
		refused(t, f.takeSlot(t.Context(), f.tenant, api.NewJobID()), api.CodeBulkLimit)
		r := &record{Bulk: search.Bulk{ID: api.NewJobID(), CreatedAtMS: f.store.NowMS()}, tenant: f.tenant}
		if err := f.mark(t.Context(), r); err != nil {
			t.Fatalf("mark: %v", err)
		}
		f.round(t)
		f.advance(time.Second)
		if n := f.store.Client().ZCard(t.Context(), storage.KeyBulkDue).Val(); n != 1 {
			t.Errorf("got %d marks within a minute, want 1", n)
		}
		f.round(t)
		if n := f.store.Client().ZCard(t.Context(), storage.KeyBulkDue).Val(); n != 0 {
			t.Errorf("got %d marks after a minute, want 0", n)
		}
		if err := f.takeSlot(t.Context(), f.tenant, api.NewJobID()); err != nil {
			t.Errorf("takeSlot after a minute: got %v, want none", err)
		}
	})
}

func TestCreationsAreRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.cancelled(t, f.tenant, 1)
		n := &search.NewBulk{Operation: search.BulkRetry, Selection: search.Selection{Namespace: namespace}}
		first, created, err := f.Create(t.Context(), f.tenant, "k", n)
		if err != nil || !created {
			t.Fatalf("Create: got created %t (%v), want true", created, err)
		}
		f.finish(t, f.tenant, first.ID)
		second, created, err := f.Create(t.Context(), f.tenant, "k", n)
		if err != nil || created || second.ID != first.ID || second.Done != 1 {
			t.Errorf("Create again: got %+v, created %t (%v); want the first one", second, created, err)
		}
		_, _, err = f.Create(t.Context(), f.tenant, "k", &search.NewBulk{Operation: search.BulkDelete, Selection: n.Selection})
		refused(t, err, api.CodeIdempotencyMismatch)
	})
}

func TestListsAreNewestFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.cancelled(t, f.tenant, 1)
		var want, got []string
		for range 5 {
			b := f.retry(t, f.tenant)
			f.finish(t, f.tenant, b.ID)
			want = append([]string{b.ID}, want...)
		}
		for cursor, page := "", 0; page == 0 || cursor != ""; page++ {
			items, next, err := f.List(t.Context(), f.tenant, "", cursor, 2)
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			for _, b := range items {
				got = append(got, b.ID)
			}
			cursor = next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of 2 (-want +got):\n%s", diff)
		}
		if items, _, err := f.List(t.Context(), f.tenant, namespace, "", 0); err != nil || len(items) != 0 {
			t.Errorf("of one namespace: got %d (%v), want 0", len(items), err)
		}
		_, _, err := f.List(t.Context(), f.tenant, "", "x", 0)
		refused(t, err, api.CodeValidationCursor)
	})
}

func TestWhatCannotRunIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		some := search.Selection{Queues: []string{mail}}
		for name, c := range map[string]struct {
			n    search.NewBulk
			want api.Code
		}{
			"unknown operation": {search.NewBulk{Operation: "hold", Selection: some}, api.CodeInvalid},
			"no filter":         {search.NewBulk{Operation: search.BulkDelete}, api.CodeInvalid},
			"no target":         {search.NewBulk{Operation: search.BulkMove, Selection: some}, api.CodeInvalid},
			"needless target":   {search.NewBulk{Operation: search.BulkRetry, Selection: some, Target: mail}, api.CodeInvalid},
			"target":            {search.NewBulk{Operation: search.BulkMove, Selection: some, Target: "fn.hello"}, api.CodeQueueReserved},
			"name":              {search.NewBulk{Operation: search.BulkMove, Selection: some, Target: "A B"}, api.CodeValidationName},
			"limit":             {search.NewBulk{Operation: search.BulkRetry, Selection: some, Limit: -1}, api.CodeInvalid},
			"words":             {search.NewBulk{Operation: search.BulkRetry, Selection: search.Selection{Words: `"`}}, api.CodeSearchSyntax},
		} {
			_, _, err := f.Create(t.Context(), f.tenant, "", &c.n)
			if got := api.ErrorCode(err); got != c.want {
				t.Errorf("%s: got %q (%v), want %s", name, got, err, c.want)
			}
		}
		_, err := f.Get(t.Context(), f.tenant, api.NewJobID())
		refused(t, err, api.CodeBulkNotFound)
		if n := f.store.Client().ZCard(t.Context(), storage.KeyBulkDue).Val(); n != 0 {
			t.Errorf("got %d marks, want none", n)
		}
	})
}

// pages is a selector that returns one page.
type pages struct {
	jobs []api.Job
	from string // the cursor of the last search
}

func (p *pages) Jobs(_ context.Context, _ string, _ *search.Jobs, cursor string, _ int) (*mirrorsearch.Result[api.Job], error) {
	p.from = cursor
	return &mirrorsearch.Result[api.Job]{Items: slices.Clone(p.jobs)}, nil
}

func (*pages) State() (*search.MirrorState, error) { return &search.MirrorState{}, nil }

// A chunk begins before the cursor, since records have other rows in other mirrors, and leaves out the
// jobs that were examined there.
func TestChunksOverlap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		var jobs []api.Job
		for _, id := range f.cancelled(t, f.tenant, 2) {
			jobs = append(jobs, *f.job(t, f.tenant, id))
		}
		b := f.retry(t, f.tenant)
		r, err := f.read(t.Context(), f.tenant, b.ID)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		at := mirror.RowOf(jobs[0].CreatedAtMS, jobs[0].ID)
		r.Cursor, r.Recent = mirrorsearch.Behind(at), []seen{{jobs[0].ID, at}}
		selector := &pages{jobs: jobs}
		f.selector = selector
		after, err := f.chunk(t.Context(), r)
		if err != nil {
			t.Fatalf("chunk: %v", err)
		}
		expect(t, &after.Bulk, search.BulkCompleted, 1, 0, 0)
		if want := mirrorsearch.Behind(at - window); selector.from != want {
			t.Errorf("got a chunk from %s, want %s", selector.from, want)
		}
	})
}
