package search

import (
	"fmt"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
)

const testTenant = "t_acme01"

// testView is the view of a mirror that tests write.
type testView struct {
	View
	mirror *mirror.Mirror
}

// openView returns an empty view.
func openView(tb testing.TB) *testView {
	tb.Helper()
	m, err := mirror.New(mirror.Config{Dir: tb.TempDir()})
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	if _, _, err := m.Open(tb.Context()); err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() { _ = m.Close() })
	return &testView{Of(m), m}
}

func lastError(job *api.Job) string {
	if len(job.Errors) == 0 {
		return ""
	}
	return job.Errors[len(job.Errors)-1].Error
}

// addJobs writes jobs of a tenant.
func (v *testView) addJobs(tb testing.TB, tenant string, added []api.Job) {
	tb.Helper()
	var batch mirror.Batch
	for i := range added {
		doc, err := api.EncodeJSON(&added[i])
		if err != nil {
			tb.Fatalf("EncodeJSON: %v", err)
		}
		batch.Jobs = append(batch.Jobs, mirror.Job{Tenant: tenant, ID: added[i].ID, Run: "1", View: &added[i], Doc: doc})
	}
	if _, err := v.mirror.Apply(tb.Context(), &batch); err != nil {
		tb.Fatalf("Apply: %v", err)
	}
}

// jobID returns the id of the n-th job of a test.
func jobID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n) }
