package feed_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/mirror/feed"
)

// TestRowsEqualRecordsAfterKills: jobs change while the mirror ends and begins again and again; in the
// end, every row equals its record.
func TestRowsEqualRecordsAfterKills(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const queues, jobs = 4, 400
	for i := range queues {
		f.enqueue(t, fmt.Sprint("q", i), jobs, func(n int, j *api.NewJob) { j.Tags = map[string]string{"n": fmt.Sprint(n % 7)} })
		f.events(t, fmt.Sprint("q", i), []string{"all", "ends", "ends", "off"}[i])
	}
	var work sync.WaitGroup
	for i := range queues {
		work.Go(func() {
			for f.work(t, fmt.Sprint("q", i), 1+rand.IntN(20), func(j *api.FetchedJob) string {
				if j.Attempt == 1 && rand.IntN(5) == 0 {
					return "connection refused"
				}
				return ""
			}) > 0 {
			}
		})
	}
	for range 5 {
		m := f.run(t, feed.Config{})
		eventually(t, "rows", func() string {
			if m.Status().State == mirror.StateStopped {
				return m.Status().Reason
			}
			return ""
		})
		m.stop() // in the middle of its work
	}
	work.Wait()
	f.equal(t, f.run(t, feed.Config{}), queues*jobs)
}

// TestFilesAreRebuiltWhileTheFeedRuns: a file that is removed, or damaged for a reader, is replaced.
func TestFilesAreRebuiltWhileTheFeedRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enqueue(t, "mail", 50, nil)
	m := f.run(t, feed.Config{})
	f.equal(t, m, 50)
	if err := os.Remove(filepath.Join(f.dir, "mirror.db")); err != nil {
		t.Fatalf("Remove: %v", err)
	}
	eventually(t, "new file", func() string {
		_, err := os.Stat(filepath.Join(f.dir, "mirror.db"))
		if err != nil {
			return err.Error()
		}
		return ""
	})
	f.equal(t, m, 50)
	before := m.Reader()
	m.Report(mirror.ErrMissing)
	eventually(t, "another file", func() string {
		if now := m.Reader(); now == nil || now == before {
			return "got the file of before, want another"
		}
		return ""
	})
	f.equal(t, m, 50)
}

// TestGapsAreFilled: jobs whose events are no longer kept when the mirror comes back are found.
func TestGapsAreFilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enqueue(t, "mail", 50, nil)
	f.work(t, "mail", 10, succeed)
	m := f.run(t, feed.Config{})
	f.equal(t, m, 50)
	m.stop()
	f.work(t, "mail", 20, succeed)
	if err := f.store.Client().XTrimMaxLen(t.Context(), f.store.JobKeys(f.tenant).Events(), 0).Err(); err != nil {
		t.Fatalf("XTrimMaxLen: %v", err)
	}
	f.work(t, "mail", 1, succeed) // an entry behind the gap
	f.equal(t, f.run(t, feed.Config{}), 50)
}

// TestDeletedJobsLoseTheirRows: by the pass, which finds no record.
func TestDeletedJobsLoseTheirRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.enqueue(t, "mail", 20, nil)
	f.work(t, "mail", 10, succeed)
	m := f.run(t, feed.Config{})
	f.equal(t, m, 20)
	for _, id := range []string{ids[0], ids[15]} {
		if err := f.broker.Delete(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Delete: %v", err)
		}
	}
	m.Rebuild()
	f.equal(t, m, 18)
}

// TestSecondProcess: it is stopped while another process has the folder, and then takes over.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enqueue(t, "mail", 20, nil)
	first := f.run(t, feed.Config{})
	f.equal(t, first, 20)
	second := f.run(t, feed.Config{Retry: 10 * time.Millisecond})
	eventually(t, "refusal", func() string {
		if s := second.Status(); !strings.Contains(s.Reason, "another process") {
			return fmt.Sprintf("got %+v", s)
		}
		return ""
	})
	first.stop()
	f.equal(t, second, 20)
}
