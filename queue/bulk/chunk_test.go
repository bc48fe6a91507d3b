package bulk

import (
	"testing"

	"github.com/codesous/sous/api/search"
)

// A chunk has 100 jobs at most, also where the page lacks jobs that were examined before.
func TestChunksAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.cancelled(t, f.tenant, chunkJobs+1)
		b := f.retry(t, f.tenant)
		r, err := f.read(t.Context(), f.tenant, b.ID)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		r.Recent = []seen{{ID: "elsewhere"}}
		after, err := f.chunk(t.Context(), r)
		if err != nil {
			t.Fatalf("chunk: %v", err)
		}
		expect(t, &after.Bulk, search.BulkRunning, chunkJobs, 0, 0)
		if _, err := f.save(t.Context(), r, after); err != nil {
			t.Fatalf("save: %v", err)
		}
		expect(t, f.finish(t, f.tenant, b.ID), search.BulkCompleted, chunkJobs+1, 0, 0)
	})
}
