package search

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

// TestTenantLeavesTurnsToOthers: a tenant whose searches do not end has a few turns, the next of its
// searches has a code, and another tenant is answered.
func TestTenantLeavesTurnsToOthers(t *testing.T) {
	t.Parallel()
	s := New(openView(t), time.Minute)
	release, ended := make(chan struct{}), make(chan error, maxPerTenant)
	began := make(chan struct{})
	for range maxPerTenant {
		go func() {
			ended <- s.run(t.Context(), testTenant, func(context.Context, *sql.Tx) error {
				began <- struct{}{}
				<-release
				return nil
			})
		}()
		<-began
	}
	if _, err := s.Jobs(t.Context(), testTenant, &search.Jobs{}, "", 1); api.ErrorCode(err) != api.CodeCapacityLimit {
		t.Errorf("search %d of a tenant: got %v, want CodeCapacityLimit", maxPerTenant+1, err)
	}
	if _, err := s.Jobs(t.Context(), "t_other1", &search.Jobs{}, "", 1); err != nil {
		t.Errorf("a search of another tenant: got %v, want an answer", err)
	}
	close(release)
	for range maxPerTenant {
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}
	if _, err := s.Jobs(t.Context(), testTenant, &search.Jobs{}, "", 1); err != nil {
		t.Errorf("a search after the others: got %v, want an answer", err)
	}
	shares := func() int {
		s.turns.mu.Lock()
		defer s.turns.mu.Unlock()
		return len(s.turns.tenants)
	}
	for deadline := time.Now().Add(10 * time.Second); shares() > 0; time.Sleep(time.Millisecond) { // a read ends after its answer
		if time.Now().After(deadline) {
			t.Fatalf("got shares of %d tenants without a search, want none", shares())
		}
	}
}

// TestStatementsEndAtTheDeadline: the statements themselves end, not only the wait for them, and their
// turns are free then.
func TestStatementsEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	v := openView(t)
	const rows = 20_000
	jobs := make([]api.Job, rows)
	for i := range jobs {
		payload := fmt.Sprintf(`{"text":"common word%d other%d %s"}`, i, i%100, strings.Repeat("more ", 20))
		jobs[i] = api.Job{ID: jobID(i), Queue: "mail", State: api.JobCompleted, CreatedAtMS: 1000 + int64(i), Payload: []byte(payload)}
	}
	v.addJobs(t, testTenant, jobs)
	const deadline = 100 * time.Millisecond
	for name, query := range map[string]string{
		"rows":     "SELECT count(*) FROM jobs a CROSS JOIN jobs b WHERE a.doc <> b.doc",
		"words":    "SELECT count(*) FROM job_words a CROSS JOIN jobs b WHERE a.job_words MATCH 'payload : common AND more' AND b.doc <> a.rowid",
		"prefixes": "SELECT count(*) FROM jobs b CROSS JOIN job_words a WHERE a.job_words MATCH 'payload : wor*' AND a.rowid <> b.row",
	} {
		s := New(v, deadline)
		ended := make(chan time.Time, 1)
		began := time.Now()
		err := s.run(t.Context(), testTenant, func(ctx context.Context, tx *sql.Tx) error {
			defer func() { ended <- time.Now() }()
			var n int
			return tx.QueryRowContext(ctx, query).Scan(&n)
		})
		if api.ErrorCode(err) != api.CodeSearchDeadline {
			t.Errorf("%s: got %v, want CodeSearchDeadline", name, err)
		}
		late := (<-ended).Sub(began) - deadline
		t.Logf("%s: it ended %v after the deadline", name, late)
		if late > 500*time.Millisecond { // 100 ms on a machine that does nothing else
			t.Errorf("%s: got an end %v after the deadline, want it at once", name, late)
		}
	}
}
