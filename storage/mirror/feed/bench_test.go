package feed_test

import (
	"fmt"
	"testing"

	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/mirror/feed"
)

// BenchmarkCatchUp measures how many ends of jobs the mirror applies a second, from their events to
// the rows, after it was away. An operation is a job.
//
//	go test ./storage/mirror/feed -run '^$' -bench CatchUp -benchtime 50000x
func BenchmarkCatchUp(b *testing.B) {
	f := newFixture(b)
	f.enqueue(b, "first", 1, nil)
	m := f.run(b, feed.Config{})
	eventually(b, "rebuild", func() string {
		if s := m.Status(); s.State != mirror.StateServing {
			return fmt.Sprintf("got %+v", s)
		}
		return ""
	})
	m.stop()
	ids := f.enqueue(b, "mail", b.N, nil)
	for done := 0; done < b.N; {
		done += f.work(b, "mail", 1000, succeed)
	}
	b.ResetTimer()
	m = f.run(b, feed.Config{})
	eventually(b, "row of the last job", func() string {
		var state string
		if db := m.Reader(); db != nil {
			_ = db.QueryRowContext(b.Context(), "SELECT state FROM jobs WHERE tenant = ? AND id = ?", f.tenant, ids[len(ids)-1]).Scan(&state) // "" without a row
		}
		if state != "completed" {
			return fmt.Sprintf("got state %q", state)
		}
		return ""
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
