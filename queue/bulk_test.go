package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/storagetest"
)

// asError reports whether err is an api.Error, and sets target to it.
func asError(err error, target **api.Error) bool { return errors.As(err, target) }

// many enqueues n jobs in calls of at most 500.
func (f *fixture) many(t testing.TB, n int, change ...func(*api.NewJob)) {
	t.Helper()
	for n > 0 {
		jobs := make([]api.NewJob, min(n, 500))
		for i := range jobs {
			jobs[i] = job(`1`, change...)
		}
		f.add(t, jobs...)
		n -= len(jobs)
	}
}

func TestClearAndDeleteAQueue(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.Backends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, backend.Config(t))
			all := 5000
			if backend.Name == "embedded" { // the same, and slower
				all = 1000
			}
			f.many(t, all-10)
			f.add(t, job(`1`, func(j *api.NewJob) { j.UniqueKey, j.Hold = "k", true }))
			f.many(t, 10, func(j *api.NewJob) { j.RunAtMS = f.clock.ms.Load() + 1000 })
			running := f.fetch(t, 3)
			f.ack(t, running[0], "")
			if n, err := f.Clear(t.Context(), f.tenant, namespace, emails); err != nil || n != all+1-3 {
				t.Fatalf("Clear: deleted %d jobs, error %v, want %d", n, err, all+1-3)
			}
			q, err := f.GetQueue(t.Context(), f.tenant, namespace, emails)
			if err != nil || q.Depths[api.JobActive] != 2 || q.Depths[api.JobCompleted] != 1 || len(f.sound(t)) != 3 {
				t.Errorf("GetQueue after Clear: got %+v, error %v, want 3 jobs: 2 active and 1 completed", q, err)
			}
			if err := f.DeleteQueue(t.Context(), f.tenant, namespace, emails); api.ErrorCode(err) != api.CodeQueueBusy {
				t.Errorf("DeleteQueue with active jobs = %v, want CodeQueueBusy", err)
			}
			f.ack(t, running[1], "")
			f.fail(t, running[2], func(j *api.JobFail) { j.Fatal = true })
			if err := f.DeleteQueue(t.Context(), f.tenant, namespace, emails); err != nil {
				t.Fatalf("DeleteQueue: %v", err)
			}
			if _, err := f.GetQueue(t.Context(), f.tenant, namespace, emails); api.ErrorCode(err) != api.CodeQueueNotFound {
				t.Errorf("GetQueue after DeleteQueue: got error %v, want CodeQueueNotFound", err)
			}
			prefix := string(f.store.JobKeys(f.tenant).Queue(namespace, emails))
			for _, key := range f.scan(t, prefix+":*") {
				if key != prefix+":cursor" { // the clocks of producers may still be behind it
					t.Errorf("DeleteQueue: got key %s left, want only the cursor", key)
				}
			}
			if left := f.jobs(t); len(left) != 0 {
				t.Errorf("%d jobs exist after DeleteQueue, want none", len(left))
			}
			added := f.add(t, job(`1`, func(j *api.NewJob) { j.UniqueKey = "k" }))
			if got := f.fetch(t, 5); added[0].Duplicate || len(got) != 1 {
				t.Errorf("the queue made again: added %+v, fetched %+v, want one job, no duplicate", added, got)
			}
		})
	}
}

// TestDeletingAQueueSparesJobsThatLeftIt: DeleteQueue does not delete a live job because of an
// entry that a crash left in a set of ended jobs.
func TestDeletingAQueueSparesJobsThatLeftIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		if _, err := f.Cancel(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		set := f.store.JobKeys(f.tenant).Queue(namespace, emails).Set("cancelled")
		entry := f.members(t, set)[0]
		if _, err := f.Retry(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Retry: %v", err)
		}
		if _, err := f.Move(t.Context(), f.tenant, id, "others"); err != nil {
			t.Fatalf("Move: %v", err)
		}
		if err := f.store.Client().ZAdd(t.Context(), set, entry).Err(); err != nil {
			t.Fatalf("ZAdd: %v", err)
		}
		if err := f.DeleteQueue(t.Context(), f.tenant, namespace, emails); err != nil {
			t.Fatalf("DeleteQueue: %v", err)
		}
		f.sound(t, id)
	})
}

func TestRedriveFilters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		begin := f.clock.ms.Load()
		var ids []string
		for i := range 12 {
			ids = append(ids, f.add(t, job(`1`, func(j *api.NewJob) {
				j.MaxAttempts, j.Tags = 1, map[string]string{"customer": fmt.Sprint("c", i%3)}
			}))[0].ID)
			f.fail(t, f.fetch(t, 1)[0], func(j *api.JobFail) { j.Fatal = i%2 == 0 })
			f.clock.advance(time.Second)
		}
		redrive := func(name string, want int, change func(*queue.Redrive)) {
			t.Helper()
			r := queue.Redrive{Tenant: f.tenant, Namespace: namespace, Queue: emails}
			change(&r)
			if n, err := f.Redrive(t.Context(), r); err != nil || n != want {
				t.Errorf("Redrive by %s = %d, %v, want %d", name, n, err, want)
			}
			for _, j := range f.fetch(t, 100) {
				f.fail(t, j, func(j *api.JobFail) { j.Fatal = true })
			}
		}
		redrive("another queue", 0, func(r *queue.Redrive) { r.Queue = "others" })
		redrive("out of attempts", 6, func(r *queue.Redrive) { r.Reason = api.DeadAttempts })
		redrive("fatal now", 12, func(r *queue.Redrive) { r.Reason = api.DeadFatal })
		redrive("tag", 4, func(r *queue.Redrive) { r.Tag, r.TagValue = "customer", "c1" })
		redrive("any value", 12, func(r *queue.Redrive) { r.Tag = "customer" })
		redrive("ids", 2, func(r *queue.Redrive) { r.IDs = []string{ids[0], ids[7], api.NewJobID()} })
		redrive("limit", 5, func(r *queue.Redrive) { r.Limit = 5 })
		redrive("before they ended", 0, func(r *queue.Redrive) { r.ToMS = begin })
		redrive("since", 12, func(r *queue.Redrive) { r.FromMS = begin })
		redrive("all", 12, func(*queue.Redrive) {})
		f.sound(t, ids...)
	})
}

// TestListsPageUnderInserts lists 1,000 jobs of one score page by page while others are added
// and deleted. Each job that exists throughout is listed once.
func TestListsPageUnderInserts(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.Backends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, backend.Config(t))
			f.many(t, 1000, func(j *api.NewJob) { j.Hold = true })
			for _, state := range []api.JobState{api.JobHeld, api.JobDead} {
				if state == api.JobDead && backend.Name == "embedded" {
					break // the same, and slower
				}
				if state == api.JobDead {
					for id := range f.jobs(t) {
						if _, err := f.Reject(t.Context(), f.tenant, id); err != nil {
							t.Fatalf("Reject: %v", err)
						}
					}
				}
				there := f.jobs(t)
				var work sync.WaitGroup
				done := make(chan struct{})
				work.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						added := f.add(t, job(`2`, func(j *api.NewJob) { j.Hold = true }))
						if _, err := f.Reject(t.Context(), f.tenant, added[0].ID); err != nil {
							t.Errorf("Reject: %v", err)
						}
						if err := f.Delete(t.Context(), f.tenant, added[0].ID); err != nil {
							t.Errorf("Delete: %v", err)
						}
					}
				})
				listed := map[string]int{}
				for cursor, page := "", 0; page < 200; page++ {
					items, next, err := f.List(t.Context(), queue.List{
						Tenant: f.tenant, Namespace: namespace, Queue: emails, State: state, Cursor: cursor, Limit: 33,
					})
					if err != nil {
						t.Errorf("List: %v", err)
					}
					for _, j := range items {
						listed[j.ID]++
					}
					cursor = next
					if cursor == "" {
						break
					}
				}
				close(done)
				work.Wait()
				for id := range there {
					if listed[id] != 1 {
						t.Errorf("%s job %s was listed %d times, want once", state, id, listed[id])
					}
				}
			}
			if _, _, err := f.List(t.Context(), queue.List{Tenant: f.tenant, Namespace: namespace, Queue: emails, State: api.JobDead, Cursor: "x"}); api.ErrorCode(err) != api.CodeValidationCursor {
				t.Errorf("List with a malformed cursor: got error %v, want CodeValidationCursor", err)
			}
		})
	}
}
