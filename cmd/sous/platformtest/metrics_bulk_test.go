package platformtest_test

import (
	"errors"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/metrics/metricstest"
)

// bulk cancels a job by a bulk operation. Until the mirror has the job, operations find none.
func (w *work) bulk() {
	tenant, ctx := w.server.API(w.t), w.t.Context()
	if _, err := tenant.Namespace(platformtest.Namespace).Queue("unread").Enqueue(ctx, "", api.NewJob{}); err != nil {
		w.t.Fatalf("Enqueue: %v", err)
	}
	cancel := search.NewBulk{Operation: search.BulkCancel, Selection: search.Selection{Queues: []string{"unread"}}}
	platformtest.Eventually(w.t, time.Minute, "a job is cancelled", func() error {
		now := scrape(w.t, w.server.Output())
		if metricstest.Sum(now["sous_bulk_operations_running"]) > 0 {
			w.during = append(w.during, now)
		}
		if len(w.during) > 0 && metricstest.Sum(now["sous_bulk_jobs_total"], "operation=cancel", "outcome=done") == 1 {
			return nil
		}
		if _, err := tenant.CreateBulk(ctx, "", cancel); err != nil && api.ErrorCode(err) != api.CodeBulkLimit {
			return err
		}
		return errors.New("none is")
	})
}
